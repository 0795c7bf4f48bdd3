/*
 * bench_why - how long `lull why` takes, how much memory, and whether both grow with the events.
 *
 *	bench_why [KERNELS]	(default 10 million)
 *
 * The file is that of a training loop: steps of 500 kernels on one stream, a call for each, an
 * operator around every second call, a loader of 2 ms at the start of each step and a wait at its
 * end. It is analysed with a tenth of the kernels and with all of them, each in a process of its
 * own, with the file in the page cache, and then decoded to compare with (scan.h). Times are those
 * of the CPU: others may use the machine. Fails if the loader is not what it finds.
 *
 * Each line is "name value unit".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "bench/scan.h"
#include "cause/why.h"
#include "trace/writer.h"

#define PLANTED	 "input-pipeline" /* the cause that is in the file */
#define PER_STEP 500u
#define N_NAMES	 50u

static void die(const struct lull_err *err)
{
	fprintf(stderr, "bench_why: %s\n", err->msg);
	exit(1);
}

static u32 name_of(struct lull_writer *w, const char *text)
{
	return lull_writer_string(w, text, strlen(text));
}

static void add_dims(struct lull_writer *w)
{
	static const char *const labels[] = { "step", "data_load" };

	lull_writer_add_dim(w, LULL_TABLE_process, &(struct lull_process_row){ .pid = 1 });
	lull_writer_add_dim(
		w, LULL_TABLE_device,
		&(struct lull_device_row){ .process = 1, .name = name_of(w, "Test GPU") });
	lull_writer_add_dim(w, LULL_TABLE_lane,
			    &(struct lull_lane_row){ .kind = 1, .process = 1, .tid = 1 });
	lull_writer_add_dim(w, LULL_TABLE_lane,
			    &(struct lull_lane_row){ .kind = 2, .process = 1, .device = 1 });
	lull_writer_add_dim(
		w, LULL_TABLE_op_label,
		&(struct lull_op_label_row){ .name = name_of(w, "aten::mul"), .kind = 1 });
	for (size_t i = 0; i < LULL_COUNT_OF(labels); i++)
		lull_writer_add_dim(w, LULL_TABLE_label,
				    &(struct lull_label_row){ .name = name_of(w, labels[i]) });
	for (unsigned i = 0; i < N_NAMES; i++) {
		char text[64];

		snprintf(text, sizeof(text), "kernel_%u", i);
		lull_writer_add_dim(w, LULL_TABLE_launch,
				    &(struct lull_launch_row){ .name = name_of(w, text) });
	}
}

struct clocks {
	u64 host_ns, device_ns;
	u32 number;
};

static void add_range(struct lull_writer *w, u64 from_ns, u64 to_ns, u32 label, u8 depth)
{
	lull_writer_add(w, LULL_TABLE_range,
			&(struct lull_range_row){ .start_ns = from_ns,
						  .dur_ns = to_ns - from_ns,
						  .depth = depth,
						  .lane = 1,
						  .label = label });
}

static void add_kernel(struct lull_writer *w, struct clocks *c, u32 i, u32 call_name)
{
	u64 begin_ns = c->host_ns + 8000;

	if (i % 2)
		lull_writer_add(w, LULL_TABLE_op,
				&(struct lull_op_row){ .start_ns = c->host_ns - 3000,
						       .dur_ns = 9000,
						       .lane = 1,
						       .label = 1 });
	lull_writer_add(w, LULL_TABLE_cuda_call,
			&(struct lull_cuda_call_row){ .start_ns = c->host_ns,
						      .dur_ns = 5000,
						      .lane = 1,
						      .name = call_name,
						      .correlation = c->number });
	begin_ns = begin_ns > c->device_ns + 1000 ? begin_ns : c->device_ns + 1000;
	lull_writer_add(w, LULL_TABLE_kernel,
			&(struct lull_kernel_row){ .start_ns = begin_ns,
						   .dur_ns = 4000 + i % 7 * 3000,
						   .lane = 2,
						   .launch = 1 + i % N_NAMES,
						   .correlation = c->number++,
						   .process = 1 });
	c->device_ns = begin_ns + 4000 + i % 7 * 3000;
	c->host_ns += 12000;
}

static void add_step(struct lull_writer *w, struct clocks *c, const u32 *names)
{
	u64 from_ns = c->host_ns;

	add_range(w, from_ns + 1000, from_ns + 2000000, 2, 1);
	c->host_ns += 2010000;
	for (u32 i = 0; i < PER_STEP; i++)
		add_kernel(w, c, i, names[0]);
	lull_writer_add(
		w, LULL_TABLE_cuda_call,
		&(struct lull_cuda_call_row){ .start_ns = c->host_ns,
					      .dur_ns = c->device_ns + 5000 > c->host_ns
								? c->device_ns + 5000 - c->host_ns
								: 2000,
					      .lane = 1,
					      .name = names[1],
					      .correlation = c->number++ });
	c->host_ns = (c->device_ns > c->host_ns ? c->device_ns : c->host_ns) + 8000;
	add_range(w, from_ns, c->host_ns - 100, 1, 0);
}

static void make_file(const char *path, u64 n_kernels)
{
	struct lull_file_info info = { .epoch_ns = 1 };
	struct clocks c = { 1000000, 0, 1 };
	struct lull_writer *w;
	struct lull_err err;
	u32 names[2];

	if (lull_writer_open(&w, path, &info, &err))
		die(&err);
	add_dims(w);
	names[0] = name_of(w, "cudaLaunchKernel");
	names[1] = name_of(w, "cudaStreamSynchronize");
	for (u64 i = 0; i < n_kernels / PER_STEP; i++)
		add_step(w, &c, names);
	if (lull_writer_seal(w, &err))
		die(&err);
}

static f64 seconds_of(struct timeval t)
{
	return (f64)t.tv_sec + (f64)t.tv_usec / 1e6;
}

/* In a process of its own, so that its peak of memory is that of this file. */
static void analyse(const char *path, u64 n_kernels, const char *suffix)
{
	struct lull_reader *r;
	struct lull_err err;
	struct lull_why why;
	struct rusage usage;
	const char *found;
	f64 seconds, scan_s;
	u64 n_rows;

	if (lull_reader_open(&r, path, &err) || lull_why_run(&why, r, NULL, &err))
		die(&err);
	getrusage(RUSAGE_SELF, &usage);
	seconds = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
	found = why.first < 0 ? why.cannot : lull_causes[lull_why_first(&why)->cause]->id;
	if (strcmp(found, PLANTED) != 0) {
		lull_fail(&err, LULL_E_NOT_FOUND, "it finds \"%s\", not %s", found, PLANTED);
		die(&err);
	}
	scan_s = bench_scan_s(r, &n_rows);
	if (n_rows < 2 * n_kernels || n_rows != bench_n_rows(r)) {
		lull_fail(&err, LULL_E_FORMAT, "%llu rows", (unsigned long long)n_rows);
		die(&err);
	}
	printf("why_time%s %.3f s (%.2f M kernels, %s)\n", suffix, seconds, (f64)n_kernels / 1e6,
	       found);
	printf("why_scan%s %.3f s (%.2f M rows)\n", suffix, scan_s, (f64)n_rows / 1e6);
	printf("why_memory%s %.0f MB\n", suffix, (f64)usage.ru_maxrss / 1024);
	lull_why_release(&why);
	lull_reader_close(r);
}

int main(int argc, char **argv)
{
	u64 n_kernels = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000000;
	const char *tmp = getenv("TMPDIR");
	struct lull_str path = LULL_STR_INIT;
	int status = 0;

	lull_str_addf(&path, "%s/lull-bench-why-%d.lull", tmp ? tmp : "/tmp", (int)getpid());
	for (int i = 0; i < 2 && !status; i++) {
		u64 n = (i ? n_kernels : n_kernels / 10) / PER_STEP * PER_STEP;
		pid_t pid;

		make_file(lull_str_text(&path), n);
		fflush(stdout);
		pid = fork();
		if (!pid) {
			analyse(lull_str_text(&path), n, i ? "" : "_tenth");
			exit(0);
		}
		waitpid(pid, &status, 0);
		unlink(lull_str_text(&path));
	}
	lull_str_release(&path);
	return status ? 1 : 0;
}
