/*
 * bench_format - what the report file costs: bytes an event, events a second.
 *
 *	bench_format [EVENTS [FOLDER [LULL]]]	(default 100 million, $TMPDIR or /tmp)
 *
 * Rows are made in memory first: two processes of a main, a second and eight worker threads. The
 * first two run a fixed program of nested ranges, step after step, with log-normal durations; the
 * workers make OS calls by a Markov chain; all are sampled and scheduled. Names follow Zipf's law.
 * Rows arrive as a recorder sees them: thread by thread in batches, ranges when they end. The
 * measured part is everything from the row in memory to the sealed file. With LULL, the path of the
 * command, it also tells what `lull info` and two reports of `lull stats` take on that file.
 *
 * To compare with, on the same data: zstd over the rows as they are in memory, both ways, a plain
 * read of the file, and `lull --version`. Times are those of the CPU where not said
 * otherwise. Fails if rows are missing or damaged at any point, or a
 * command prints nothing.
 *
 * Each line is "name value unit".
 */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zstd.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include "base/vec.h"
#include "bench/scan.h"
#include "trace/file_frame.h"
#include "trace/reader.h"
#include "trace/recover.h"
#include "trace/writer.h"

#define N_LANES	     20u
#define N_LABELS     190u
#define N_OS_NAMES   50u
#define N_STACKS     3000u
#define N_OPS	     700u  /* ranges of one step of one thread */
#define BATCH_ROWS   1500u /* a chunk of shared memory holds about as many events */
#define N_COMMANDS   5
#define ROUND_EVENTS 4000000u /* rows kept in memory; longer files repeat them, later */
#define ZSTD_ROWS    1000000u
#define READ_BYTES   (1u << 20)

/* ---- random numbers ---- */

struct rng {
	u64 state;
};

static f64 uniform(struct rng *r)
{
	r->state ^= r->state << 13;
	r->state ^= r->state >> 7;
	r->state ^= r->state << 17;
	return (f64)(r->state >> 11) * 0x1p-53;
}

static f64 normal(struct rng *r)
{
	return sqrt(-2 * log(uniform(r) + 1e-300)) * cos(6.283185307179586 * uniform(r));
}

static u64 log_normal(struct rng *r, f64 median, f64 sigma)
{
	return (u64)(median * exp(sigma * normal(r))) + 1;
}

/* Zipf (1.05) over 1 .. n by inversion of its integral. */
static u32 zipf(struct rng *r, u32 n)
{
	const f64 s = 1.05;
	f64 u = uniform(r) * (1 - pow(n + 1.0, 1 - s));
	u32 k = (u32)pow(1 - u, 1 / (1 - s));

	return k < 1 ? 1 : k > n ? n : k;
}

/* ---- the made-up program ---- */

struct op {
	u32 label;
	u8 depth;
	f64 self_ns; /* median time outside its children */
	f64 sigma;
};

struct row {
	u16 table;
	union {
		struct lull_range_row range;
		struct lull_mark_row mark;
		struct lull_oscall_row oscall;
		struct lull_sample_row sample;
		struct lull_sched_row sched;
	};
};

/* One thread and what it has emitted. */
struct thread {
	struct rng rng;
	u32 lane;
	u64 now_ns;
	u64 next_sample_ns;
	u64 sched_ns; /* begin of the stay on a CPU */
	u16 cpu;
	u32 os_name;
	u64 n_steps;
	struct lull_vec rows;
	size_t n_taken;
};

static void emit(struct thread *t, const struct row *row)
{
	lull_vec_add(&t->rows, row, 1);
}

/* Samples at 1 kHz with some jitter, and a switch of CPU now and then. */
static void emit_background(struct thread *t)
{
	while (t->now_ns >= t->next_sample_ns) {
		struct row row = { .table = LULL_TABLE_sample };

		row.sample = (struct lull_sample_row){
			.start_ns = t->next_sample_ns,
			.lane = t->lane,
			.stack = zipf(&t->rng, N_STACKS),
			.cpu = t->cpu,
			.weight_ns = 1000000,
			.source = 1,
		};
		emit(t, &row);
		t->next_sample_ns += 1000000 + log_normal(&t->rng, 2000, 0.8);
	}
	if (t->now_ns - t->sched_ns > log_normal(&t->rng, 150000, 1.0)) {
		struct row row = { .table = LULL_TABLE_sched };

		row.sched = (struct lull_sched_row){
			.start_ns = t->sched_ns,
			.dur_ns = t->now_ns - t->sched_ns,
			.lane = t->lane,
			.cpu = t->cpu,
			.end_reason = uniform(&t->rng) < 0.9 ? 1 : 2,
		};
		emit(t, &row);
		t->now_ns += log_normal(&t->rng, 20000, 1.2);
		t->sched_ns = t->now_ns;
		if (uniform(&t->rng) < 0.1)
			t->cpu = (u16)(uniform(&t->rng) * 64);
	}
}

/* Run ops[*at] and its children; the row is emitted when it ends, after theirs. */
static void run_op(struct thread *t, const struct op *ops, size_t *at)
{
	const struct op *op = &ops[(*at)++];
	struct row row = { .table = LULL_TABLE_range };

	row.range = (struct lull_range_row){
		.start_ns = t->now_ns, .depth = op->depth, .lane = t->lane, .label = op->label
	};
	t->now_ns += log_normal(&t->rng, op->self_ns * 0.4, op->sigma);
	while (*at < N_OPS && ops[*at].depth > op->depth)
		run_op(t, ops, at);
	t->now_ns += log_normal(&t->rng, op->self_ns * 0.6, op->sigma);
	row.range.dur_ns = t->now_ns - row.range.start_ns;
	emit(t, &row);
	t->now_ns += log_normal(&t->rng, 300, 0.3);
}

static void run_step(struct thread *t, const struct op *ops)
{
	struct row row = { .table = LULL_TABLE_mark };

	for (size_t at = 0; at < N_OPS;) {
		run_op(t, ops, &at);
		emit_background(t);
		if (at % 30 == 0) {
			row.mark = (struct lull_mark_row){ .start_ns = t->now_ns,
							   .lane = t->lane,
							   .label = 1 + (u32)(at % 7),
							   .payload_type = 1,
							   .payload = t->n_steps };
			emit(t, &row);
		}
	}
	t->n_steps++;
	t->now_ns += log_normal(&t->rng, 1500000, 0.5);
}

/* A worker: calls that follow each other by a Markov chain, each with its own spread. */
static void run_oscall(struct thread *t)
{
	struct row row = { .table = LULL_TABLE_oscall };
	u32 name = t->os_name = uniform(&t->rng) < 0.7 ? t->os_name * 7 % N_OS_NAMES + 1
						       : zipf(&t->rng, N_OS_NAMES);
	u64 dur = log_normal(&t->rng, 1500.0 * name, 0.5 + 0.02 * name);

	row.oscall = (struct lull_oscall_row){
		.start_ns = t->now_ns,
		.dur_ns = dur,
		.lane = t->lane,
		.name = name,
		.ret = name % 3 ? 0 : (i64)log_normal(&t->rng, 4096, name % 2 ? 0.0 : 0.8),
		.arg = name % 4 ? 3 + name % 9 : 0,
	};
	emit(t, &row);
	t->now_ns += dur + log_normal(&t->rng, 3000, 1.0);
	emit_background(t);
}

static void make_ops(struct op *ops, struct rng *r)
{
	for (size_t i = 0; i < N_OPS; i++) {
		u8 depth = i ? (u8)(uniform(r) * (ops[i - 1].depth < 3 ? ops[i - 1].depth + 2 : 4))
			     : 0;

		ops[i] = (struct op){ .label = zipf(r, N_LABELS),
				      .depth = depth,
				      .self_ns = uniform(r) < 0.5 ? 2400 : 48000,
				      .sigma = 0.01 + 0.15 * uniform(r) };
	}
}

/* ---- rows in the order they arrive ---- */

static void run_threads(struct thread *threads, size_t n_rows)
{
	struct rng r = { 42 };
	struct op ops[4][N_OPS];
	size_t total = 0;

	for (size_t i = 0; i < 4; i++)
		make_ops(ops[i], &r);
	for (u32 i = 0; i < N_LANES; i++) {
		threads[i] = (struct thread){ .rng = { 1000 + i },
					      .lane = i + 1,
					      .os_name = 1,
					      .now_ns = i * 777,
					      .cpu = (u16)i };
		lull_vec_init(&threads[i].rows, sizeof(struct row));
	}
	/* The thread that is furthest behind goes on, so that all keep the same time. */
	while (total < n_rows) {
		struct thread *t = threads;

		for (u32 i = 1; i < N_LANES; i++)
			t = threads[i].now_ns < t->now_ns ? &threads[i] : t;
		total -= t->rows.n;
		if (t->lane % 10 <= 1)
			run_step(t, ops[(t->lane / 10 * 2 + t->lane % 10) % 4]);
		else
			run_oscall(t);
		total += t->rows.n;
	}
}

/* Merge the threads batch by batch, oldest batch first. Returns rows; *n receives the count. */
static struct row *make_rows(size_t n_wanted, size_t *n, u64 *span_ns)
{
	struct thread threads[N_LANES];
	struct lull_vec rows;

	run_threads(threads, n_wanted);
	lull_vec_init(&rows, sizeof(struct row));
	*span_ns = 0;
	for (;;) {
		struct thread *next = NULL;
		f64 least = 2;

		for (u32 i = 0; i < N_LANES; i++) {
			struct thread *t = &threads[i];
			f64 share = (f64)t->n_taken / (f64)(t->rows.n + 1);

			if (t->n_taken < t->rows.n && share < least) {
				least = share;
				next = t;
			}
		}
		if (!next)
			break;
		size_t left = next->rows.n - next->n_taken,
		       take = left < BATCH_ROWS ? left : BATCH_ROWS;

		lull_vec_add(&rows, (struct row *)next->rows.at + next->n_taken, take);
		next->n_taken += take;
	}
	for (u32 i = 0; i < N_LANES; i++) {
		*span_ns = threads[i].now_ns > *span_ns ? threads[i].now_ns : *span_ns;
		lull_vec_release(&threads[i].rows);
	}
	*n = rows.n;
	return rows.at;
}

/* ---- measuring ---- */

static f64 cpu_s(void)
{
	return (f64)lull_clock_ns(CLOCK_THREAD_CPUTIME_ID) / 1e9;
}

static void die(const struct lull_err *err)
{
	fprintf(stderr, "bench_format: %s\n", err->msg);
	exit(1);
}

static void expect(const char *what, u64 found, u64 wanted)
{
	struct lull_err err;

	if (found == wanted)
		return;
	lull_fail(&err, LULL_E_FORMAT, "%s: %llu, not %llu", what, (unsigned long long)found,
		  (unsigned long long)wanted);
	die(&err);
}

static void add_dims(struct lull_writer *w)
{
	char name[64];

	for (u32 i = 1; i <= N_LABELS; i++) {
		struct lull_label_row label = { .api = 1 };

		snprintf(name, sizeof(name), "aten::operator_number_%u", i);
		label.name = lull_writer_string(w, name, strlen(name));
		lull_writer_add_dim(w, LULL_TABLE_label, &label);
	}
	for (u32 i = 1; i <= N_STACKS; i++) {
		struct lull_frame_row frame = { .kind = 1, .addr = i * 64 };
		struct lull_stack_row stack = { .parent = i / 2, .frame = i };

		lull_writer_add_dim(w, LULL_TABLE_frame, &frame);
		lull_writer_add_dim(w, LULL_TABLE_stack, &stack);
	}
	for (u32 i = 1; i <= N_LANES; i++) {
		struct lull_lane_row lane = { .kind = 1, .tid = 1000 + i };

		lull_writer_add_dim(w, LULL_TABLE_lane, &lane);
	}
}

/* Write all rows once, shifted in time, with a fresh number for marks. */
static void write_round(struct lull_writer *w, struct row *rows, size_t n, u64 shift_ns)
{
	for (size_t i = 0; i < n; i++) {
		rows[i].range.start_ns += shift_ns; /* start_ns is the first field of every row */
		lull_writer_add(w, (enum lull_table)rows[i].table, &rows[i].range);
	}
}

/* What zstd makes of the rows as they are, and how fast. */
static void bench_zstd(const struct row *rows, size_t n)
{
	size_t n_bytes = n * sizeof(*rows), room = ZSTD_compressBound(n_bytes), packed;
	void *to = malloc(room), *back = malloc(n_bytes);
	f64 begin = cpu_s(), middle, end;

	if (!to || !back)
		exit(1);
	packed = ZSTD_compress(to, room, rows, n_bytes, ZSTD_CLEVEL_DEFAULT);
	middle = cpu_s();
	expect("bytes that zstd gives back",
	       ZSTD_isError(packed) ? 0 : ZSTD_decompress(back, n_bytes, to, packed), n_bytes);
	end = cpu_s();
	printf("zstd_rate %.1f M events/s (CPU, %zu bytes each)\n", (f64)n / (middle - begin) / 1e6,
	       sizeof(*rows));
	printf("zstd_decode_rate %.1f M events/s\n", (f64)n / (end - middle) / 1e6);
	printf("zstd_size %.2f B/event\n", (f64)packed / (f64)n);
	free(to);
	free(back);
}

static void bench_seal(const char *path, u64 n_events)
{
	struct lull_file_info info = { 0 };
	struct lull_writer_stats stats;
	struct lull_writer *w;
	struct lull_err err;
	struct rusage usage;
	u64 n_done = 0, span_ns, wall_ns;
	size_t n;
	struct row *rows =
		make_rows(n_events < ROUND_EVENTS ? n_events : ROUND_EVENTS, &n, &span_ns);
	f64 cpu;

	if (lull_writer_open(&w, path, &info, &err))
		die(&err);
	add_dims(w);
	cpu = cpu_s();
	wall_ns = lull_now_ns();
	while (n_done < n_events) {
		size_t part = n_events - n_done < n ? (size_t)(n_events - n_done) : n;

		write_round(w, rows, part, n_done ? span_ns : 0);
		n_done += part;
	}
	if (lull_writer_flush(w, &err))
		die(&err);
	stats = lull_writer_stats(w);
	cpu = cpu_s() - cpu;
	if (lull_writer_seal(w, &err))
		die(&err);
	wall_ns = lull_now_ns() - wall_ns;
	getrusage(RUSAGE_SELF, &usage);
	printf("seal_rate %.1f M events/s (CPU)\n", (f64)n_events / cpu / 1e6);
	printf("seal_rate_wall %.1f M events/s (with syncs)\n", (f64)n_events / (f64)wall_ns * 1e3);
	printf("size %.2f B/event\n", (f64)stats.size_bytes / (f64)n_events);
	printf("rows_in_memory %.0f MB\n", (f64)n * sizeof(struct row) / 1e6);
	printf("max_rss %.0f MB (rows in memory included)\n", (f64)usage.ru_maxrss / 1e3);
	bench_zstd(rows, n < ZSTD_ROWS ? n : ZSTD_ROWS);
	free(rows);
}

static void print_tables(struct lull_reader *r)
{
	for (const struct lull_table_desc *t = lull_tables; t->name; t++) {
		struct lull_table_stats s = lull_reader_stats(r, t->id);

		if (t->kind == LULL_KIND_FACT && s.n_rows)
			printf("size_%s %.2f B/event (%.1f M)\n", t->name,
			       (f64)s.size_bytes / (f64)s.n_rows, (f64)s.n_rows / 1e6);
	}
}

/* Decode every column of every block. */
static void bench_decode(const char *path, u64 n_events)
{
	struct lull_reader *r;
	struct lull_err err;
	u64 n_rows;
	f64 s;

	if (lull_reader_open(&r, path, &err))
		die(&err);
	print_tables(r);
	s = bench_scan_s(r, &n_rows);
	expect("decoded rows", n_rows, n_events);
	expect("damaged blocks", lull_reader_n_damaged(r), 0);
	printf("decode_rate %.1f M events/s\n", (f64)n_rows / s / 1e6);
	lull_reader_close(r);
}

/* Sum of durations by label: two columns. */
static void bench_scan(const char *path)
{
	u64 sums[N_LABELS + 1] = { 0 }, n_rows = 0, begin = lull_now_ns();
	struct lull_range_cols cols;
	struct lull_reader *r;
	struct lull_cursor c;
	struct lull_err err;
	size_t n;

	if (lull_reader_open(&r, path, &err))
		die(&err);
	lull_cursor_init(&c, r, LULL_TABLE_range, 0, UINT64_MAX);
	lull_cursor_want(&c, "dur_ns");
	lull_cursor_want(&c, "label");
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		n_rows += n;
		for (size_t i = 0; i < n; i++)
			sums[cols.label[i]] += cols.dur_ns[i];
	}
	lull_cursor_release(&c);
	expect("ranges", n_rows, lull_reader_stats(r, LULL_TABLE_range).n_rows);
	lull_reader_close(r);
	printf("scan_rate %.1f M ranges/s (sum of dur by label, open to close, %llu ns for the "
	       "first)\n",
	       (f64)n_rows / (f64)(lull_now_ns() - begin) * 1e3, (unsigned long long)sums[1]);
}

/* What `lull info` asks of a file: open, totals, dimensions, their strings. */
static void bench_info(const char *path)
{
	u64 begin = lull_now_ns(), n_rows = 0;
	const struct lull_label_row *labels;
	struct lull_reader *r;
	struct lull_err err;
	size_t n, len = 0;

	if (lull_reader_open(&r, path, &err))
		die(&err);
	for (const struct lull_table_desc *t = lull_tables; t->name; t++)
		n_rows += lull_reader_stats(r, t->id).n_rows;
	labels = lull_reader_dim(r, LULL_TABLE_label, &n);
	for (size_t i = 0; i < n; i++)
		len += strlen(lull_reader_string(r, labels[i].name, NULL));
	lull_reader_dim(r, LULL_TABLE_lane, &n);
	lull_reader_close(r);
	printf("info %.2f ms (%llu rows, %zu bytes of names)\n", (f64)(lull_now_ns() - begin) / 1e6,
	       (unsigned long long)n_rows, len);
}

/* CPU time of `lull WORD [-r REPORT] [PATH]`; its output goes to a file without a name. */
static f64 run_command(const char *lull, const char *word, const char *report, const char *path)
{
	int out = memfd_create("out", MFD_CLOEXEC), status;
	struct rusage usage;
	pid_t pid = fork();

	if (pid == 0) {
		if (dup2(out, STDOUT_FILENO) >= 0)
			execl(lull, lull, word, report ? "-r" : path, report, path, (char *)NULL);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &usage) != pid || status != 0 ||
	    lseek(out, 0, SEEK_END) < 10) {
		fprintf(stderr, "bench_format: %s %s failed or printed nothing\n", lull, word);
		exit(1);
	}
	close(out);
	return (f64)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (f64)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* The least of some runs. */
static f64 command_s(const char *lull, const char *word, const char *report, const char *path)
{
	f64 least_s = 1e9;

	for (int i = 0; i < N_COMMANDS; i++) {
		f64 s = run_command(lull, word, report, path);

		least_s = s < least_s ? s : least_s;
	}
	return least_s;
}

static void bench_commands(const char *lull, const char *path)
{
	struct lull_reader *r;
	struct lull_err err;
	u64 n_ranges, n_calls;

	if (lull_reader_open(&r, path, &err))
		die(&err);
	n_ranges = lull_reader_stats(r, LULL_TABLE_range).n_rows;
	n_calls = lull_reader_stats(r, LULL_TABLE_oscall).n_rows;
	lull_reader_close(r);
	printf("version_command %.2f ms\n", command_s(lull, "--version", NULL, NULL) * 1e3);
	printf("info_command %.2f ms\n", command_s(lull, "info", NULL, path) * 1e3);
	printf("stats_nvtx_sum %.1f M ranges/s\n",
	       (f64)n_ranges / command_s(lull, "stats", "nvtx_sum", path) / 1e6);
	printf("stats_osrt_sum %.1f M calls/s\n",
	       (f64)n_calls / command_s(lull, "stats", "osrt_sum", path) / 1e6);
}

/* A plain read of the file, which is in the page cache. */
static void bench_read(const char *path)
{
	static char buffer[READ_BYTES];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	f64 begin = cpu_s();
	u64 n_bytes = 0;
	ssize_t n;

	while ((n = read(fd, buffer, sizeof(buffer))) > 0)
		n_bytes += (u64)n;
	printf("read %.1f GB/s (CPU)\n", (f64)n_bytes / (cpu_s() - begin) / 1e9);
	close(fd);
}

/* Cut the trailer off, then recover in place: the walk, every checksum, and a new index. */
static void bench_recover(const char *path, u64 n_events)
{
	struct lull_recover_stats stats;
	struct lull_reader *r;
	struct lull_err err;
	f64 begin;
	u64 size;

	if (lull_reader_open(&r, path, &err))
		die(&err);
	size = lull_reader_size_bytes(r);
	lull_reader_close(r);
	if (truncate(path, (off_t)(size - LULL_TRAILER_BYTES))) {
		perror("truncate");
		exit(1);
	}
	begin = cpu_s();
	if (lull_reader_open(&r, path, &err))
		die(&err);
	expect("damaged blocks", lull_reader_verify(r), 0);
	printf("verify %.1f GB/s (CPU)\n", (f64)size / (cpu_s() - begin) / 1e9);
	lull_reader_close(r);
	begin = cpu_s();
	if (lull_recover_file(path, NULL, &stats, &err))
		die(&err);
	expect("rows after recovery", stats.n_rows, n_events);
	printf("recover %.1f GB/s (CPU; %llu rows, %llu bytes lost)\n",
	       (f64)size / (cpu_s() - begin) / 1e9, (unsigned long long)stats.n_rows,
	       (unsigned long long)stats.lost_bytes);
}

int main(int argc, char **argv)
{
	const char *tmp = argc > 2 ? argv[2] : getenv("TMPDIR");
	u64 n_events = argc > 1 ? strtoull(argv[1], NULL, 10) : 100000000;
	struct lull_str path = LULL_STR_INIT;

	lull_str_addf(&path, "%s/lull-bench-%d.lull", tmp ? tmp : "/tmp", (int)getpid());
	printf("events %llu\n", (unsigned long long)n_events);
	bench_seal(lull_str_text(&path), n_events);
	bench_info(lull_str_text(&path));
	bench_decode(lull_str_text(&path), n_events);
	bench_scan(lull_str_text(&path));
	if (argc > 3)
		bench_commands(argv[3], lull_str_text(&path));
	bench_read(lull_str_text(&path));
	bench_recover(lull_str_text(&path), n_events);
	unlink(lull_str_text(&path));
	lull_str_release(&path);
	return 0;
}
