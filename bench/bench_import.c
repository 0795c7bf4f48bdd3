/*
 * bench_import - how fast a PyTorch trace becomes a report, and in how much memory.
 *
 *	bench_import [MB [FOLDER]]	(default 500, $TMPDIR or /tmp)
 *
 * The trace is like one of torch.profiler with shapes and stacks: of ten events four are Python
 * functions, three operators with their inputs, and of the rest each is a launch, its kernel or the
 * flow between them. Layers of one step differ in names, shapes and times; steps repeat with other
 * times. The import runs in a process of its own, with the file in the page cache; the best of
 * three counts. Each takes turns with a pass over the bytes of the file that looks at one after the
 * other. Fails if not all events come through.
 *
 * Each line is "name value unit".
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "base/time.h"
#include "import/import.h"

#define N_ROUNDS 3
#define N_OPS	 64u /* different operators */

struct generator {
	FILE *to;
	u64 state;
	u64 at_ns; /* of the thread */
	u64 device_ns;
	u64 n_events, ix;
	u32 correlation;
};

static u64 next_random(struct generator *g)
{
	g->state ^= g->state << 13;
	g->state ^= g->state >> 7;
	g->state ^= g->state << 17;
	return g->state;
}

static u64 between(struct generator *g, u64 low, u64 high)
{
	return low + next_random(g) % (high - low);
}

/* An event up to its arguments. */
static void put_head(struct generator *g, const char *category, const char *name, u64 start_ns,
		     u64 dur_ns, bool is_device)
{
	fprintf(g->to,
		"%s  {\n    \"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": %d, "
		"\"tid\": %d,\n"
		"    \"ts\": %llu.%03llu, \"dur\": %llu.%03llu,\n    \"args\": {\n      ",
		g->n_events++ ? ",\n" : "", category, name, is_device ? 0 : 4012,
		is_device ? 7 : 4012, (unsigned long long)(start_ns / 1000),
		(unsigned long long)(start_ns % 1000), (unsigned long long)(dur_ns / 1000),
		(unsigned long long)(dur_ns % 1000));
}

static void put_python(struct generator *g)
{
	static const char *const files[] = { "torch/nn/modules/module.py", "train.py",
					     "torch/optim/adamw.py", "torch/nn/functional.py" };
	u64 which = between(g, 0, 200);
	struct lull_str name = LULL_STR_INIT;

	lull_str_addf(&name, "%s(%llu): function_%llu", files[which % 4],
		      (unsigned long long)(which * 7), (unsigned long long)which);
	put_head(g, "python_function", name.at, g->at_ns, between(g, 900, 40000), false);
	fprintf(g->to,
		"\"Python parent id\": %llu, \"Python id\": %llu, \"Ev Idx\": %llu\n    }\n  }",
		(unsigned long long)g->ix / 2, (unsigned long long)g->ix,
		(unsigned long long)g->ix);
	g->ix++;
	g->at_ns += between(g, 200, 900);
	lull_str_release(&name);
}

static void put_op(struct generator *g, unsigned op)
{
	unsigned rows = 64u << (op % 5), columns = 128u << (op % 4);
	struct lull_str name = LULL_STR_INIT;

	lull_str_addf(&name, "aten::operator_%u", op);
	put_head(g, "cpu_op", name.at, g->at_ns, between(g, 3000, 30000), false);
	fprintf(g->to,
		"\"External id\": %llu,\"Record function id\": 0, \"Sequence number\": %llu, "
		"\"Fwd thread id\": 0, \"Concrete Inputs\": [\"\", \"[%u, %u]\", \"False\"], "
		"\"Input type\": [\"float\", \"ScalarList\", \"Scalar\"], \"Input Strides\": [[%u, "
		"1], [], "
		"[]], \"Input Dims\": [[%u, %u], [], []], \"Ev Idx\": %llu\n    }\n  }",
		(unsigned long long)g->ix, (unsigned long long)g->ix / 3, rows, columns, columns,
		rows, columns, (unsigned long long)g->ix);
	g->ix++;
	g->at_ns += between(g, 300, 2000);
	lull_str_release(&name);
}

static void put_launch(struct generator *g, unsigned op)
{
	struct lull_str name = LULL_STR_INIT;
	u64 dur_ns = between(g, 2000, 60000) / 32 * 32;

	g->correlation += 3;
	put_head(g, "cuda_runtime", "cudaLaunchKernel", g->at_ns, between(g, 3000, 9000), false);
	fprintf(g->to, "\"External id\": %llu,      \"cbid\": 211, \"correlation\": %u\n    }\n  }",
		(unsigned long long)g->ix, g->correlation);
	fprintf(g->to,
		",\n  {\n    \"ph\": \"s\", \"id\": %u, \"pid\": 4012, \"tid\": 4012, \"ts\": "
		"%llu.%03llu,\n"
		"    \"cat\": \"ac2g\", \"name\": \"ac2g\"\n  }",
		g->correlation, (unsigned long long)(g->at_ns / 1000),
		(unsigned long long)(g->at_ns % 1000));
	g->at_ns += 10000;
	if (g->device_ns < g->at_ns)
		g->device_ns = g->at_ns;
	lull_str_addf(
		&name,
		"void at::native::vectorized_elementwise_kernel<4, at::native::Functor_%u<float, "
		"float, at::native::binary_internal::Op>, std::array<char*, 2ul> >(int, "
		"at::native::Functor_%u<float, float>, std::array<char*, 2ul>)",
		op, op);
	put_head(g, "kernel", name.at, g->device_ns, dur_ns, true);
	fprintf(g->to,
		"\"External id\": %llu,      \"queued\": 0, \"device\": 0, \"context\": 1,      "
		"\"stream\": "
		"7, \"correlation\": %u,      \"registers per thread\": 32,      \"shared "
		"memory\": 0,      "
		"\"blocks per SM\": 1.939394,      \"warps per SM\": 31.030304,      \"grid\": "
		"[%u, 16, 1],  "
		"    \"block\": [128, 1, 1],      \"est. achieved occupancy %%\": 24\n    }\n  }",
		(unsigned long long)g->ix, g->correlation, 16u << (op % 5));
	g->device_ns += dur_ns + between(g, 800, 3000);
	lull_str_release(&name);
}

/* Returns how many events there are, but for flows: they are no rows of a report. */
static u64 generate(const char *path, u64 size_bytes)
{
	struct generator g = { .to = fopen(path, "we"), .state = 88172645463325252ULL };

	if (!g.to) {
		perror(path);
		exit(1);
	}
	g.at_ns = 3844341732647001ULL;
	fputs("{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [{\"id\": 0, \"name\": \"NVIDIA "
	      "H200\", "
	      "\"totalGlobalMem\": 150109880320, \"computeMajor\": 9, \"computeMinor\": 0, "
	      "\"numSms\": "
	      "132}],\n  \"baseTimeNanoseconds\": 1790857026000000000,\n  \"traceEvents\": [\n",
	      g.to);
	while ((u64)ftello(g.to) < size_bytes) {
		for (unsigned op = 0; op < N_OPS; op++) {
			for (int i = 0; i < 4; i++)
				put_python(&g);
			for (unsigned i = 0; i < 3; i++)
				put_op(&g, (op + i) % N_OPS);
			put_launch(&g, op);
		}
	}
	fprintf(g.to, "\n  ],\n  \"traceName\": \"bench.json\"\n}\n");
	if (fclose(g.to)) {
		perror(path);
		exit(1);
	}
	return g.n_events;
}

/* CPU seconds for looking at each byte of the file: what a reader of JSON cannot avoid. */
static f64 pass_over(const char *path, u64 size_bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	const u8 *at = mmap(NULL, size_bytes, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
	u64 begin_ns = lull_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	volatile u32 n_strings;
	u32 n_quotes = 0, is_escaped = 0;

	if (at == MAP_FAILED) {
		perror(path);
		exit(1);
	}
	for (u64 i = 0; i < size_bytes; i++) {
		n_quotes += at[i] == '"' && !is_escaped;
		is_escaped = at[i] == '\\' && !is_escaped;
	}
	n_strings = n_quotes / 2;
	(void)n_strings;
	begin_ns = lull_clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
	munmap((void *)at, size_bytes);
	close(fd);
	return (f64)begin_ns / 1e9;
}

struct outcome {
	f64 seconds; /* of CPU: one core, and others may be using it */
	f64 wall_seconds;
	u64 rss_bytes, n_rows, n_missed, report_bytes;
};

static f64 seconds_of(struct timeval t)
{
	return (f64)t.tv_sec + (f64)t.tv_usec / 1e6;
}

/* Import in a process of its own. */
static struct outcome import_once(const char *trace, const char *report)
{
	struct outcome o = { 0 };
	struct lull_import_result result;
	struct rusage usage;
	int status, fds[2];
	u64 begin_ns = lull_now_ns();
	pid_t pid;

	if (pipe(fds) || (pid = fork()) < 0)
		exit(1);
	if (!pid) {
		struct lull_err err;

		if (lull_import_file(trace, report, NULL, &result, &err)) {
			fprintf(stderr, "bench_import: %s\n", err.msg);
			_exit(1);
		}
		_exit(write(fds[1], &result, sizeof(result)) != sizeof(result));
	}
	if (wait4(pid, &status, 0, &usage) < 0 || status ||
	    read(fds[0], &result, sizeof(result)) != sizeof(result))
		exit(1);
	close(fds[0]);
	close(fds[1]);
	o.wall_seconds = (f64)(lull_now_ns() - begin_ns) / 1e9;
	o.seconds = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
	o.rss_bytes = (u64)usage.ru_maxrss << 10;
	o.n_rows = result.n_rows;
	o.n_missed = result.n_bad + result.n_unmapped + result.is_cut;
	o.report_bytes = result.size_bytes;
	unlink(report);
	return o;
}

int main(int argc, char **argv)
{
	u64 size_bytes = (argc > 1 ? strtoull(argv[1], NULL, 10) : 500) * 1000000;
	const char *tmp = getenv("TMPDIR");
	const char *folder = argc > 2 ? argv[2] : tmp ? tmp : "/tmp";
	struct lull_str trace = LULL_STR_INIT, report = LULL_STR_INIT;
	struct outcome best = { .seconds = 1e9 };
	f64 pass_s = 1e9;
	struct stat st;
	u64 n_events;

	lull_str_addf(&trace, "%s/lull-bench-%d.json", folder, (int)getpid());
	lull_str_addf(&report, "%s/lull-bench-%d.lull", folder, (int)getpid());
	n_events = generate(trace.at, size_bytes);
	if (stat(trace.at, &st))
		return 1;
	for (int i = 0; i < N_ROUNDS; i++) {
		struct outcome o = import_once(trace.at, report.at);
		f64 s = pass_over(trace.at, (u64)st.st_size);

		pass_s = s < pass_s ? s : pass_s;
		if (o.seconds < best.seconds)
			best = o;
	}
	unlink(trace.at);
	if (best.n_rows != n_events || best.n_missed) {
		fprintf(stderr, "bench_import: %llu rows of %llu events, %llu missed\n",
			(unsigned long long)best.n_rows, (unsigned long long)n_events,
			(unsigned long long)best.n_missed);
		return 1;
	}
	printf("import_trace    %.0f MB\n", (f64)st.st_size / 1e6);
	printf("import_rate     %.0f MB/s\n", (f64)st.st_size / 1e6 / best.seconds);
	printf("import_pass     %.0f MB/s\n", (f64)st.st_size / 1e6 / pass_s);
	printf("import_wall     %.0f MB/s\n", (f64)st.st_size / 1e6 / best.wall_seconds);
	printf("import_events   %.2f M/s\n", (f64)best.n_rows / 1e6 / best.seconds);
	printf("import_rss      %.1f MB\n", (f64)best.rss_bytes / 1e6);
	printf("import_size     %.2f B/event\n", (f64)best.report_bytes / (f64)best.n_rows);
	lull_str_release(&trace);
	lull_str_release(&report);
	return 0;
}
