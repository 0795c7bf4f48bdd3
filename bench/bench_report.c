/*
 * bench_report - how long the reports take on a recording of many kernels, and how much memory.
 *
 *	bench_report [KERNELS|FILE [REPORT...]]	(default 10 million; all reports and rules)
 *
 * The recording is that of two processes with one device each. A step is one fixed program of 1,100
 * launches in layers: a call for each, nested ranges around them, every 25th a copy, every 50th a
 * collective on a stream of its own, one wait at the end. Names follow Zipf's law over 220; half of
 * the operators take around 2.4 us, half around 48 us, with a log-normal spread of 0.01 to 0.16;
 * devices count in ticks of 32 ns. FILE is kept if it is to be made: NAME.lull that does not exist.
 * What that recording has no rows for is run on a second one (gen_host.h), which has a quarter as
 * many of calls, samples, operators, allocations and so on each; its reports are called host/NAME.
 *
 * Each report runs in a process of its own, with the file in the page cache, and prints CSV to
 * /dev/null. Each line is "name value unit"; the value is CPU time, which other programs on the
 * machine change less than the time on the clock. Lines "scan" tell what it takes to decode all
 * columns of the recording and to do nothing with them, again after every tenth report: the reports
 * after it compare with that.
 *
 * Fails if a scan does not see all rows, or if a report prints nothing although these recordings
 * have what it tells.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "base/time.h"
#include "bench/gen_host.h"
#include "bench/scan.h"
#include "report/report.h"
#include "report/rule.h"
#include "trace/writer.h"

#define N_PROCESSES 2u
#define N_STREAMS   3u /* of each process: compute, copy, collective */
#define N_OPS	    1100u
#define N_NAMES	    220u
#define N_LABELS    190u
#define LAYER_OPS   14u
#define TICK_NS	    32u
#define N_SPREADS   4096u
#define NO_DATA	    77 /* status of a report that this recording has nothing for */
#define HOST_PART   4u /* reports look at up to four tables of the second recording */

struct op {
	u32 launch;
	u32 label;
	u32 n_spreads; /* how many of the spreads are used: less is narrower */
	u64 mean_ns;
	bool is_copy, is_collective;
};

struct bench {
	struct lull_writer *w;
	struct op ops[N_OPS];
	f64 spreads[N_SPREADS]; /* log-normal factors of sigma 0.16, the narrow ones first */
	u64 random;
	u32 launch_call, copy_call, sync_call, malloc_name;
	u32 step_label, layer_label;
};

/* What a process has reached. */
struct process {
	u64 host_ns;
	u64 stream_ns[N_STREAMS];
	u32 correlation;
	u32 thread; /* its lane; the streams follow */
	u32 id;
};

static void die(const struct lull_err *err)
{
	fprintf(stderr, "bench_report: %s\n", err->msg);
	exit(1);
}

static u64 next_random(struct bench *b)
{
	b->random ^= b->random << 13;
	b->random ^= b->random >> 7;
	b->random ^= b->random << 17;
	return b->random;
}

static f64 uniform(struct bench *b)
{
	return (f64)(next_random(b) >> 11) * 0x1p-53;
}

static u32 text(struct bench *b, const char *format, unsigned number)
{
	struct lull_str s = LULL_STR_INIT;
	u32 id;

	lull_str_addf(&s, format, number);
	id = lull_writer_string(b->w, s.at, s.len);
	lull_str_release(&s);
	return id;
}

/* ---- making the recording ---- */

static void add_process(struct bench *b, u32 id)
{
	u32 name = text(b, "Test GPU", 0), uuid = text(b, "uuid %u", id);

	lull_writer_add_dim(b->w, LULL_TABLE_process, &(struct lull_process_row){ .pid = id });
	lull_writer_add_dim(
		b->w, LULL_TABLE_device,
		&(struct lull_device_row){
			.process = id, .device_id = id - 1, .name = name, .uuid = uuid });
	lull_writer_add_dim(b->w, LULL_TABLE_lane,
			    &(struct lull_lane_row){ .kind = 1, .process = id, .tid = id });
	for (u32 s = 0; s < N_STREAMS; s++)
		lull_writer_add_dim(
			b->w, LULL_TABLE_lane,
			&(struct lull_lane_row){
				.kind = 2, .process = id, .device = id, .stream_id = 7 + s });
}

/* The rank of a name by Zipf's law. */
static u32 zipf(struct bench *b, u32 n)
{
	return (u32)(pow((f64)n + 1, uniform(b))) - 1;
}

/* Two launches of each name, so that shapes differ, too. */
static void add_names(struct bench *b)
{
	for (u32 l = 0; l < 2 * N_NAMES; l++) {
		const char *format =
			l / 2 == N_NAMES - 1
				? "ncclDevKernel_AllReduce_Sum_f32_RING_LL(Args<%u>)"
				: "void at::native::vectorized_elementwise_kernel<(int)4, "
				  "at::native::Functor_%u<float>, std::array<char*, "
				  "2ul>>(int, float)";
		struct lull_launch_row row = { .name = text(b, format, l / 2),
					       .grid_x = 1 + l % 2 * 63,
					       .grid_y = 1,
					       .grid_z = 1,
					       .block_x = 128,
					       .block_y = 1,
					       .block_z = 1,
					       .registers = 32,
					       .static_shared_bytes = l % 3 * 1024,
					       .dynamic_shared_bytes = l % 5 * 4096 };

		lull_writer_add_dim(b->w, LULL_TABLE_launch, &row);
	}
	for (u32 l = 0; l < N_LABELS; l++)
		lull_writer_add_dim(b->w, LULL_TABLE_label,
				    &(struct lull_label_row){ .name = text(b, "range %u", l) });
	b->launch_call = text(b, "cudaLaunchKernel_v7000", 0);
	b->copy_call = text(b, "cudaMemcpyAsync_v3020", 0);
	b->sync_call = text(b, "cudaStreamSynchronize_v3020", 0);
}

static void plan(struct bench *b)
{
	for (u32 i = 0; i < N_SPREADS; i++) {
		f64 normal = sqrt(-2 * log(uniform(b) + 1e-300)) * cos(6.283185307 * uniform(b));
		f64 sigma = 0.01 + 0.15 * (f64)i / N_SPREADS;

		b->spreads[i] = exp(sigma * normal);
	}
	for (u32 i = 0; i < N_OPS; i++) {
		struct op *op = &b->ops[i];

		op->is_copy = i % 25 == 24;
		op->is_collective = i % 50 == 49;
		op->launch = 1 + 2 * zipf(b, N_NAMES - 1) + (next_random(b) & 1);
		if (op->is_collective)
			op->launch = 2 * N_NAMES - 1;
		op->label = 3 + zipf(b, N_LABELS - 3);
		op->mean_ns = (u64)((next_random(b) & 1 ? 2400 : 48000) * (0.5 + uniform(b)));
		op->n_spreads = 256 + (u32)(next_random(b) % (N_SPREADS - 256));
	}
}

static void add_range(struct bench *b, const struct process *p, u64 start_ns, u32 label, u8 depth)
{
	struct lull_range_row row = { .start_ns = start_ns,
				      .dur_ns = p->host_ns - start_ns,
				      .depth = depth,
				      .lane = p->thread,
				      .label = label };

	lull_writer_add(b->w, LULL_TABLE_range, &row);
}

static void add_call(struct bench *b, struct process *p, u32 name, u64 dur_ns)
{
	struct lull_cuda_call_row row = { .start_ns = p->host_ns,
					  .dur_ns = dur_ns,
					  .lane = p->thread,
					  .name = name,
					  .correlation = p->correlation,
					  .api = 2 };

	lull_writer_add(b->w, LULL_TABLE_cuda_call, &row);
	p->host_ns += dur_ns;
}

/* When work on a stream begins and ends. */
static u64 occupy(struct process *p, unsigned stream, u64 dur_ns)
{
	u64 *clock_ns = &p->stream_ns[stream], start_ns = p->host_ns + 1500;

	if (*clock_ns + 1000 > start_ns)
		start_ns = *clock_ns + 1000;
	start_ns = start_ns / TICK_NS * TICK_NS;
	*clock_ns = start_ns + dur_ns;
	return start_ns;
}

static void add_op(struct bench *b, struct process *p, const struct op *op)
{
	u64 begin_ns = p->host_ns, bits = next_random(b);
	unsigned stream = op->is_collective ? 2 : op->is_copy ? 1 : 0;
	f64 spread = b->spreads[bits % op->n_spreads];
	u64 dur_ns = (u64)((f64)op->mean_ns * spread) / TICK_NS * TICK_NS;

	p->correlation += 1 + (u32)(bits >> 20) % 3;
	p->host_ns += 800 + (bits >> 24) % 600;
	add_call(b, p, op->is_copy && !op->is_collective ? b->copy_call : b->launch_call,
		 2500 + (bits >> 40) % 900);
	if (op->is_copy && !op->is_collective) {
		struct lull_memcpy_row copy = { .start_ns = occupy(p, stream, dur_ns),
						.dur_ns = dur_ns,
						.lane = p->thread + 1 + stream,
						.size_bytes = 4096 + (bits >> 50) % 64 * 65536,
						.correlation = p->correlation,
						.copy_kind = 1,
						.src_kind = 1,
						.dst_kind = 3,
						.flags = 1,
						.process = p->id };

		lull_writer_add(b->w, LULL_TABLE_memcpy, &copy);
	} else {
		struct lull_kernel_row kernel = { .start_ns = occupy(p, stream, dur_ns),
						  .dur_ns = dur_ns,
						  .lane = p->thread + 1 + stream,
						  .launch = op->launch,
						  .correlation = p->correlation,
						  .process = p->id };

		lull_writer_add(b->w, LULL_TABLE_kernel, &kernel);
	}
	p->host_ns += 300;
	if (bits >> 63)
		add_range(b, p, begin_ns, op->label, 2);
}

/* The host runs ahead of the device by at most 8 ms, the depth of its queue. */
static void wait_for_queue(struct process *p)
{
	u64 ahead_ns = 8000000;

	if (p->stream_ns[0] > p->host_ns + ahead_ns)
		p->host_ns = p->stream_ns[0] - ahead_ns;
}

static void add_step(struct bench *b, struct process *p, u64 number)
{
	u64 begin_ns = p->host_ns, layer_ns = begin_ns;
	struct lull_step_row step = { .start_ns = begin_ns, .lane = p->thread, .number = number };
	struct lull_oscall_row call = { .start_ns = begin_ns,
					.dur_ns = 500000 + next_random(b) % 2000000,
					.lane = p->thread,
					.name = b->malloc_name };

	lull_writer_add(b->w, LULL_TABLE_oscall, &call);
	p->host_ns += call.dur_ns;
	for (u32 i = 0; i < N_OPS; i++) {
		add_op(b, p, &b->ops[i]);
		wait_for_queue(p);
		if (i % LAYER_OPS == LAYER_OPS - 1) {
			add_range(b, p, layer_ns, 2, 1);
			layer_ns = p->host_ns;
		}
	}
	p->correlation++;
	add_call(b, p, b->sync_call,
		 p->stream_ns[0] > p->host_ns ? p->stream_ns[0] - p->host_ns + 3000 : 3000);
	add_range(b, p, begin_ns, 1, 0);
	step.dur_ns = p->host_ns - begin_ns;
	lull_writer_add(b->w, LULL_TABLE_step, &step);
}

static void make_file(const char *path, u64 n_kernels)
{
	struct lull_file_info info = { .epoch_ns = 1 };
	struct process processes[N_PROCESSES] = { { 0 } };
	struct bench b = { .random = 88172645463325252u };
	u64 n_steps = n_kernels / (N_OPS - N_OPS / 50) / N_PROCESSES + 1; /* copies are none */
	struct lull_err err;

	if (lull_writer_open(&b.w, path, &info, &err))
		die(&err);
	for (u32 p = 0; p < N_PROCESSES; p++) {
		add_process(&b, p + 1);
		processes[p] = (struct process){ .thread = p * (N_STREAMS + 1) + 1, .id = p + 1 };
	}
	add_names(&b);
	b.malloc_name = text(&b, "poll", 0);
	plan(&b);
	for (u64 step = 0; step < n_steps; step++) {
		for (u32 p = 0; p < N_PROCESSES; p++)
			add_step(&b, &processes[p], step);
	}
	if (lull_writer_seal(b.w, &err))
		die(&err);
}

/* ---- running the reports ---- */

static int open_null(void *ctx, FILE **to, struct lull_err *err)
{
	(void)err;
	*to = ctx;
	return LULL_OK;
}

static const struct lull_report *find(const char *name)
{
	const char *nearest;
	const struct lull_report *report = lull_report_find(lull_reports, name, &nearest);

	return report ? report : lull_report_find(lull_rules, name, &nearest);
}

/* Reports and rules that rightly find nothing in these recordings, or have nothing to read. */
static const char *const quiet[] = {
	"alloc_growth",	  "alloc_leaks",	 "nvtx_startend_sum",
	"losses",	  "cuda_memcpy_sync",	 "gpu_gaps",
	"gpu_time_util",  "cuda_memset_sync",	 "alloc_backward",
	"ops_pairs",	  "host/nccl_sum",	 "host/step_sum",
	"host/steps",	  "host/losses",	 "host/gpu_gaps",
	"host/ops_pairs", "host/alloc_backward", "host/cuda_memset_sync",
};

static bool is_quiet(const char *prefix, const char *name)
{
	size_t n = strlen(prefix);

	for (size_t i = 0; i < LULL_COUNT_OF(quiet); i++)
		if (strncmp(quiet[i], prefix, n) == 0 && strcmp(quiet[i] + n, name) == 0)
			return true;
	return false;
}

static void run_scan(const char *path)
{
	struct lull_reader *r;
	struct lull_err err;
	u64 n_rows;
	f64 cpu_s;

	if (lull_reader_open(&r, path, &err))
		die(&err);
	cpu_s = bench_scan_s(r, &n_rows);
	if (!n_rows || n_rows != bench_n_rows(r)) {
		lull_fail(&err, LULL_E_FORMAT, "%llu of %llu rows were decoded",
			  (unsigned long long)n_rows, (unsigned long long)bench_n_rows(r));
		die(&err);
	}
	printf("scan  %.3f s (%.2f M rows)\n", cpu_s, (f64)n_rows / 1e6);
	lull_reader_close(r);
}

/* In a process of its own, so that its peak of memory is that of this report. */
static void run_report(const char *path, const char *name, const char *prefix)
{
	struct lull_report_options options = LULL_REPORT_OPTIONS_INIT;
	struct lull_out_options csv = LULL_OUT_OPTIONS_INIT;
	const struct lull_report *report = find(name);
	struct lull_str why = LULL_STR_INIT;
	u64 begin = lull_now_ns(), dur_ns;
	f64 cpu_s;
	FILE *null = fopen("/dev/null", "w");
	struct lull_reader *r;
	struct rusage usage;
	struct lull_err err;
	struct lull_out out;

	if (!report)
		lull_fail(&err, LULL_E_USAGE, "no report %s", name);
	if (!report || lull_reader_open(&r, path, &err))
		die(&err);
	if (!lull_report_has_data(report, r, &why))
		exit(NO_DATA);
	csv.format = LULL_OUT_FORMAT_csv;
	lull_out_init(&out, report->columns, report->n_columns);
	lull_out_stream(&out, &csv, open_null, null);
	if (lull_report_run(report, r, &out, &options, &err) || lull_out_finish(&out, &err))
		die(&err);
	dur_ns = lull_now_ns() - begin;
	getrusage(RUSAGE_SELF, &usage);
	cpu_s = (f64)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
		(f64)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
	printf("report %s%s  %.3f s (%.3f s wall, %zu rows, peak %ld MB)\n", prefix, name, cpu_s,
	       (f64)dur_ns / 1e9, lull_out_len(&out), usage.ru_maxrss / 1024);
	if (!lull_out_len(&out) && !is_quiet(prefix, name)) {
		lull_fail(&err, LULL_E_NOT_FOUND, "%s%s printed nothing", prefix, name);
		die(&err);
	}
	lull_out_release(&out);
	lull_reader_close(r);
}

/* A scan if there is no name. */
static int fork_report(const char *path, const char *name, const char *prefix)
{
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		if (name)
			run_report(path, name, prefix);
		else
			run_scan(path);
		exit(0);
	}
	waitpid(pid, &status, 0);
	return status;
}

/* Reports that ran on one of the recordings. */
static struct {
	const char *names[256];
	u32 n;
} done;

/* A report, and a scan before every tenth. */
static int next_report(const char *path, const char *name, const char *prefix)
{
	static u32 n;
	int status = n++ % 10 == 0 ? fork_report(path, NULL, "") : 0;

	if (!status)
		status = fork_report(path, name, prefix);
	if (WIFEXITED(status) && WEXITSTATUS(status) == NO_DATA)
		return 0;
	if (!status && done.n < LULL_COUNT_OF(done.names))
		done.names[done.n++] = name;
	return status;
}

/* Has every report of the list run? */
static int check_list(const struct lull_report *const *list)
{
	for (; *list; list++) {
		bool is_done = is_quiet("", (*list)->name);

		for (u32 i = 0; i < done.n && !is_done; i++)
			is_done = strcmp(done.names[i], (*list)->name) == 0;
		if (!is_done) {
			fprintf(stderr, "bench_report: no recording has what %s tells\n",
				(*list)->name);
			return 1;
		}
	}
	return 0;
}

static int run_list(const char *path, const struct lull_report *const *list)
{
	int status = 0;

	for (; *list && !status; list++)
		status = next_report(path, (*list)->name, "");
	return status;
}

/* Reports about other things than kernels, ranges and the calls that launch them. */
static int run_host_list(const char *path, const struct lull_report *const *list)
{
	const u64 others = LULL_NEED(kernel) | LULL_NEED(range) | LULL_NEED(memcpy) |
			   LULL_NEED(cuda_call) | LULL_NEED(step);
	int status = 0;

	for (; *list && !status; list++) {
		if (!((*list)->needs & others))
			status = next_report(path, (*list)->name, "host/");
	}
	return status;
}

static int run_host(const char *path, u64 n)
{
	struct lull_err err;
	int status;

	if (gen_host(path, n, &err))
		die(&err);
	status = fork_report(path, NULL, "") || run_host_list(path, lull_reports) ||
		 run_host_list(path, lull_rules);
	unlink(path);
	return status;
}

int main(int argc, char **argv)
{
	const char *tmp = getenv("TMPDIR"), *first = argc > 1 ? argv[1] : "10000000";
	bool is_file = strstr(first, ".lull") != NULL;
	const char *number = getenv("LULL_BENCH_KERNELS");
	u64 n_kernels = strtoull(!is_file ? first : number ? number : "10000000", NULL, 10);
	struct lull_str path = LULL_STR_INIT;
	int status = 0;

	if (is_file)
		lull_str_puts(&path, first);
	else
		lull_str_addf(&path, "%s/lull-bench-%d.lull", tmp ? tmp : "/tmp", (int)getpid());
	if (access(path.at, R_OK))
		make_file(path.at, n_kernels);
	for (int i = 2; i < argc && !status; i++)
		status = next_report(path.at, argv[i], "");
	if (argc <= 2)
		status = run_list(path.at, lull_reports) || run_list(path.at, lull_rules);
	if (!is_file)
		unlink(path.at);
	if (!is_file && argc <= 2 && !status)
		status = run_host(path.at, n_kernels / HOST_PART) || check_list(lull_reports) ||
			 check_list(lull_rules);
	lull_str_release(&path);
	return status ? 1 : 0;
}
