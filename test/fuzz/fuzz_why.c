/*
 * fuzz_why - throw reports with any values at `lull why`, for a while.
 *
 *	fuzz_why [SECONDS [SEED]]		(default 10 s, seed 1)
 *
 * Rows of all tables that it reads are made at random: times that overlap, are 0 or end after the
 * end of time, rows of threads and devices that are not there, numbers that nobody gave. Built with
 * ASan and UBSan: they are the judges, together with two rules: nothing may hang, and time is cut
 * exactly once. The seed of a failure is the last one printed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/str.h"
#include "base/time.h"
#include "cause/why.h"
#include "cmd/why_print.h"
#include "trace/text.h"

#define HANG_S 20 /* of the CPU: a run takes milliseconds, but others may use the machine */

struct fuzz {
	u64 state;
	struct lull_str text;
};

static u64 next_random(struct fuzz *f)
{
	f->state ^= f->state << 13;
	f->state ^= f->state >> 7;
	f->state ^= f->state << 17;
	return f->state;
}

static u64 below(struct fuzz *f, u64 n)
{
	return next_random(f) % n;
}

/* Mostly a moment of a short recording, now and then one that cannot be. */
static u64 any_time(struct fuzz *f)
{
	switch (below(f, 40)) {
	case 0:
		return 0;
	case 1:
		return UINT64_MAX - below(f, 3);
	case 2:
		return next_random(f) >> below(f, 64);
	default:
		return below(f, 20000000);
	}
}

static u64 any_dur(struct fuzz *f)
{
	return below(f, 30) ? below(f, 400000) : any_time(f);
}

static void add_dims(struct fuzz *f)
{
	static const char *const labels[] = { "step_1", "data_load", "save", "optimizer", "x" };
	static const char *const kernels[] = { "gemm", "add_elementwise", "ncclAllReduce",
					       "ncclSendRecv" };

	lull_str_puts(&f->text,
		      "process pid=10 has_agent=1 runtime=\"python 3\"\nprocess pid=20\n"
		      "device process=1 device_id=0 name=H200 clock_hz=2000000000\n"
		      "device process=2 device_id=1 name=T4\n"
		      "lane kind=1 process=1 tid=10\nlane kind=1 process=1 tid=11\n"
		      "lane kind=2 process=1 device=1 stream_id=7\n"
		      "lane kind=2 process=1 device=1 stream_id=8\n"
		      "lane kind=1 process=2 tid=20\n"
		      "lane kind=2 process=2 device=2 stream_id=7\n"
		      "frame kind=2 function=load file=/x/torch/utils/data/a.py line=1\n"
		      "frame kind=2 function=step file=/home/train.py line=2\n"
		      "frame kind=1 function=memset\nframe kind=3 function=clear_page_erms\n"
		      "stack frame=2\nstack parent=1 frame=1\n"
		      "stack parent=1 frame=3\nstack parent=3 frame=4\n"
		      "op_label name=aten::mm kind=1\nop_label name=Optimizer.step kind=3\n"
		      "metric name=sm_clock unit=MHz\nmetric name=throttle\n");
	for (size_t i = 0; i < LULL_COUNT_OF(labels); i++)
		lull_str_addf(&f->text, "label name=%s\n", labels[i]);
	for (size_t i = 0; i < LULL_COUNT_OF(kernels); i++)
		lull_str_addf(&f->text, "launch name=%s\n", kernels[i]);
}

/* Numbers are drawn one after the other: a seed is the same report with every compiler. */
static void add_host(struct fuzz *f, const char *table, const char *column, u64 n)
{
	unsigned long long at = any_time(f), dur = any_dur(f), lane = below(f, 7);
	unsigned long long value = below(f, n);

	lull_str_addf(&f->text, "%s start=%llu dur=%llu lane=%llu %s=%llu\n", table, at, dur, lane,
		      column, value);
}

static void add_copy(struct fuzz *f, const char *place)
{
	unsigned long long size_bytes = any_dur(f), kind = below(f, 4);
	unsigned long long from = below(f, 8), to = below(f, 8);

	lull_str_addf(&f->text,
		      "memcpy %s size_bytes=%llu copy_kind=%llu src_kind=%llu dst_kind=%llu\n",
		      place, size_bytes, kind, from, to);
}

/* A call of the C library. */
static void add_call(struct fuzz *f)
{
	static const char *const names[] = { "read",   "recv",	 "accept",
					     "open",   "usleep", "pthread_mutex_lock",
					     "mmap",   "poll",	 "pthread_cond_wait",
					     "munmap", "pread",	 "epoll_wait" };
	unsigned long long at = any_time(f), dur = any_dur(f), lane = below(f, 7);
	unsigned long long name = below(f, LULL_COUNT_OF(names)), ret = below(f, 5);

	lull_str_addf(&f->text,
		      "oscall start=%llu dur=%llu lane=%llu name=%s ret=%llu arg=%llu stack=%llu\n",
		      at, dur, lane, names[name], ret, dur % 5, at % 5);
}

/* A native sample, and a fault of managed memory. */
static void add_sample(struct fuzz *f)
{
	unsigned long long at = any_time(f), dur = any_dur(f), lane = below(f, 7);
	unsigned long long number = below(f, 200);

	lull_str_addf(&f->text,
		      "sample start=%llu lane=%llu stack=%llu weight_ns=%llu\n"
		      "um_event start=%llu kind=%llu n_faults=%llu process=1\n",
		      at, lane, number % 5, dur, dur, number % 8, number % 3);
}

static void add_row(struct fuzz *f)
{
	static const char *const calls[] = { "cudaLaunchKernel",      "cudaMemcpyAsync",
					     "cudaStreamSynchronize", "cudaMalloc",
					     "cuModuleLoad",	      "cudaDeviceSynchronize",
					     "cudaGetDevice",	      "cudaEventQuery" };
	unsigned long long at = any_time(f), dur = any_dur(f), lane = below(f, 7);
	unsigned long long number = below(f, 200), process = below(f, 3);
	char place[160];

	switch (below(f, 19)) {
	case 0:
	case 1:
	case 2:
	case 3:
		lull_str_addf(&f->text,
			      "cuda_call start=%llu dur=%llu lane=%llu name=%s correlation=%llu\n",
			      at, dur, lane, calls[below(f, LULL_COUNT_OF(calls))], number);
		break;
	case 4:
	case 5:
	case 6:
		lull_str_addf(&f->text,
			      "kernel start=%llu dur=%llu lane=%llu launch=%llu correlation=%llu "
			      "process=%llu\n",
			      at, dur, lane, (unsigned long long)below(f, 6), number, process);
		break;
	case 7:
		snprintf(place, sizeof(place),
			 "start=%llu dur=%llu lane=%llu correlation=%llu process=%llu", at, dur,
			 lane, number, process);
		add_copy(f, place);
		break;
	case 8:
		add_host(f, "range", "label", 7);
		break;
	case 9:
		add_host(f, "op", "label", 4);
		break;
	case 10:
		add_host(f, "gil_wait", "stack", 4);
		break;
	case 11:
		add_host(f, "sched", "end_reason", 5);
		break;
	case 12:
		add_host(f, "step", "number", 9);
		break;
	case 13:
		lull_str_addf(&f->text, "pysample start=%llu lane=%llu stack=%llu\n", at, lane,
			      (unsigned long long)below(f, 4));
		break;
	case 14:
		lull_str_addf(&f->text, "overhead start=%llu dur=%llu kind=262144 process=1\n", at,
			      dur);
		break;
	case 15:
	case 16:
		add_call(f);
		break;
	case 17:
		add_sample(f);
		break;
	default:
		lull_str_addf(&f->text, "counter start=%llu metric=%llu device=%llu value=1e%llu\n",
			      at, number % 4, number / 4 % 4, lane);
	}
}

static void check(const struct lull_why *why, u64 seed)
{
	for (u32 i = 0; i < why->n_subjects; i++) {
		const struct lull_subject *s = &why->subjects[i];
		u64 costs = 0, parts = 0;

		for (int k = 0; k < LULL_SUBJECT_CAUSES; k++)
			costs += s->cost_ns[k];
		for (int k = 0; k < LULL_N_SPLITS; k++)
			parts += s->split_ns[k];
		if (parts == s->window_ns &&
		    costs == s->window_ns - s->split_ns[LULL_SPLIT_COMPUTE])
			continue;
		fprintf(stderr, "fuzz_why: seed %llu: time is not cut exactly once\n",
			(unsigned long long)seed);
		abort();
	}
}

static void run(u64 seed, const char *path, FILE *null)
{
	struct fuzz f = { .state = seed * 2654435761u + 88172645463325252u, .text = LULL_STR_INIT };
	struct lull_vec none = { .elem_bytes = sizeof(struct lull_why_answer) };
	struct lull_reader *r;
	struct lull_err err;
	struct lull_why why;

	add_dims(&f);
	for (u64 n = below(&f, 600); n; n--)
		add_row(&f);
	if (lull_text_write(lull_str_text(&f.text), path, &err) ||
	    lull_reader_open(&r, path, &err)) {
		fprintf(stderr, "fuzz_why: %s\n", err.msg);
		abort();
	}
	if (!lull_why_run(&why, r, NULL, &err)) {
		check(&why, seed);
		lull_why_print(null, &why, &none, 80, true);
		lull_why_print_json(null, &why, &none, path);
	}
	lull_why_release(&why);
	lull_reader_close(r);
	lull_str_release(&f.text);
	unlink(path);
}

int main(int argc, char **argv)
{
	u64 seconds = argc > 1 ? strtoull(argv[1], NULL, 10) : 10;
	u64 seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1, n = 0;
	u64 end_ns = lull_now_ns() + seconds * 1000000000u;
	const char *tmp = getenv("TMPDIR");
	struct lull_str path = LULL_STR_INIT;
	const struct itimerval hang = { .it_value = { .tv_sec = HANG_S } };
	FILE *null = fopen("/dev/null", "we");

	if (!null)
		return 1;
	lull_str_addf(&path, "%s/lull-fuzz-why-%d.lull", tmp ? tmp : "/tmp", (int)getpid());
	while (lull_now_ns() < end_ns) {
		fprintf(stderr, "\rseed %llu", (unsigned long long)seed);
		setitimer(ITIMER_PROF, &hang, NULL);
		run(seed++, lull_str_text(&path), null);
		n++;
	}
	fclose(null);
	lull_str_release(&path);
	printf("fuzz_why: %llu reports, all in order\n", (unsigned long long)n);
	return 0;
}
