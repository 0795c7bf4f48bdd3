/*
 * bench_report - how fast the reports about devices are: kernels a second, and memory.
 *
 *	bench_report [KERNELS [REPORT...]]	(default 10 million; the reports below)
 *
 * The file is that of two processes of two streams each: kernels of 300 launches, one after the
 * other on a stream, durations of 2 to 50 us with gaps of 0 to 12 us, a call for each, and a copy
 * for every tenth. Each report runs in a process of its own, with the file in the page cache.
 *
 * Each line is "name value unit".
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "base/time.h"
#include "report/report.h"
#include "trace/writer.h"

#define N_PROCESSES 2u
#define N_STREAMS   2u /* of each process */
#define N_LAUNCHES  300u
#define CALL_NS	    3000u

static void die(const struct lull_err *err)
{
	fprintf(stderr, "bench_report: %s\n", err->msg);
	exit(1);
}

static u64 next_random(u64 *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static u32 text(struct lull_writer *w, const char *format, unsigned number)
{
	struct lull_str s = LULL_STR_INIT;
	u32 id;

	lull_str_addf(&s, format, number);
	id = lull_writer_string(w, s.at, s.len);
	lull_str_release(&s);
	return id;
}

/* The thread of each process is followed by its streams. */
static void add_dims(struct lull_writer *w)
{
	for (u32 p = 1; p <= N_PROCESSES; p++) {
		u32 name = text(w, "Test GPU", 0), uuid = text(w, "uuid %u", p);

		lull_writer_add_dim(w, LULL_TABLE_process, &(struct lull_process_row){ .pid = p });
		lull_writer_add_dim(
			w, LULL_TABLE_device,
			&(struct lull_device_row){ .process = p, .name = name, .uuid = uuid });
		lull_writer_add_dim(w, LULL_TABLE_lane,
				    &(struct lull_lane_row){ .kind = 1, .process = p, .tid = p });
		for (u32 s = 0; s < N_STREAMS; s++)
			lull_writer_add_dim(
				w, LULL_TABLE_lane,
				&(struct lull_lane_row){
					.kind = 2, .process = p, .device = p, .stream_id = s });
	}
	for (unsigned l = 0; l < N_LAUNCHES; l++)
		lull_writer_add_dim(
			w, LULL_TABLE_launch,
			&(struct lull_launch_row){
				.name = text(w, "void ns::kernel_%u<float>(float*)", l / 2),
				.grid_x = 1 + l % 2,
				.grid_y = 1,
				.grid_z = 1,
				.block_x = 128,
				.block_y = 1,
				.block_z = 1 });
}

/* One call and its kernel, on every tenth turn with a copy behind it. */
static void add_work(struct lull_writer *w, u64 turn, u64 *clocks, u64 *random)
{
	u32 process = (u32)(turn % N_PROCESSES), stream = (u32)(turn / N_PROCESSES % N_STREAMS);
	u32 thread_lane = process * (N_STREAMS + 1) + 1, stream_lane = thread_lane + 1 + stream;
	u64 *clock_ns = &clocks[process * N_STREAMS + stream], bits = next_random(random);
	u32 correlation = (u32)(turn / N_PROCESSES) + 1;
	struct lull_cuda_call_row call = {
		.start_ns = turn / N_PROCESSES * (2 * CALL_NS),
		.dur_ns = CALL_NS,
		.lane = thread_lane,
		.name = text(w, "cudaLaunchKernel_v7000", 0),
		.correlation = correlation,
	};
	struct lull_kernel_row kernel = {
		.start_ns = *clock_ns + bits % 12000,
		.dur_ns = 2000 + (bits >> 20) % 48000,
		.lane = stream_lane,
		.launch = 1 + (u32)((bits >> 40) % N_LAUNCHES),
		.correlation = correlation,
		.process = process + 1,
	};
	struct lull_memcpy_row copy = {
		.start_ns = kernel.start_ns + kernel.dur_ns,
		.dur_ns = 5000,
		.lane = stream_lane,
		.size_bytes = 4096,
		.correlation = correlation,
		.copy_kind = 1,
		.process = process + 1,
	};

	lull_writer_add(w, LULL_TABLE_cuda_call, &call);
	lull_writer_add(w, LULL_TABLE_kernel, &kernel);
	if (turn % 10 == 0)
		lull_writer_add(w, LULL_TABLE_memcpy, &copy);
	*clock_ns = copy.start_ns + (turn % 10 == 0 ? copy.dur_ns : 0);
}

static void make_file(const char *path, u64 n_kernels)
{
	struct lull_file_info info = { .epoch_ns = 1 };
	u64 clocks[N_PROCESSES * N_STREAMS] = { 0 }, random = 88172645463325252u;
	struct lull_writer *w;
	struct lull_err err;

	if (lull_writer_open(&w, path, &info, &err))
		die(&err);
	add_dims(w);
	for (u64 turn = 0; turn < n_kernels; turn++)
		add_work(w, turn, clocks, &random);
	if (lull_writer_seal(w, &err))
		die(&err);
}

/* In a process of its own, so that its peak of memory is that of this report. */
static void run_report(const char *path, const char *name, u64 n_kernels)
{
	struct lull_report_options options = LULL_REPORT_OPTIONS_INIT;
	const char *nearest;
	const struct lull_report *report = lull_report_find(lull_reports, name, &nearest);
	u64 begin = lull_now_ns(), dur_ns;
	struct lull_reader *r;
	struct lull_err err;
	struct rusage usage;
	struct lull_out out;

	if (!report)
		lull_fail(&err, LULL_E_USAGE, "no report %s", name);
	if (!report || lull_reader_open(&r, path, &err))
		die(&err);
	lull_out_init(&out, report->columns, report->n_columns);
	if (lull_report_run(report, r, &out, &options, &err))
		die(&err);
	dur_ns = lull_now_ns() - begin;
	getrusage(RUSAGE_SELF, &usage);
	printf("%s %.2f M kernels/s (%.2f s, %zu rows, peak %ld MB)\n", name,
	       (f64)n_kernels / (f64)dur_ns * 1e3, (f64)dur_ns / 1e9, lull_out_len(&out),
	       usage.ru_maxrss / 1024);
	lull_out_release(&out);
	lull_reader_close(r);
}

int main(int argc, char **argv)
{
	static const char *const names[] = { "cuda_gpu_kern_sum", "cuda_gpu_kern_gb_sum",
					     "cuda_api_gpu_sum",  "cuda_kern_exec_sum",
					     "overlap",		  "gpu_idle" };
	const char *tmp = getenv("TMPDIR");
	u64 n_kernels = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000000;
	size_t n = argc > 2 ? (size_t)argc - 2 : LULL_COUNT_OF(names);
	struct lull_str path = LULL_STR_INIT;
	int status = 0;

	lull_str_addf(&path, "%s/lull-bench-%d.lull", tmp ? tmp : "/tmp", (int)getpid());
	make_file(lull_str_text(&path), n_kernels);
	for (size_t i = 0; i < n && !status; i++) {
		pid_t pid = fork();

		if (!pid) {
			run_report(lull_str_text(&path), argc > 2 ? argv[i + 2] : names[i],
				   n_kernels);
			exit(0);
		}
		waitpid(pid, &status, 0);
	}
	unlink(lull_str_text(&path));
	lull_str_release(&path);
	return status ? 1 : 0;
}
