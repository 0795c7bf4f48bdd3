/*
 * bench_export - how fast a report becomes another program's file.
 *
 *	bench_export [KERNELS]	(default 10 million)
 *
 * The report is that of gen_report.h with kernels, copies and calls only. Formats that can be
 * streamed go to /dev/null, packed ones packed and not packed; folders go to $TMPDIR. Each runs in
 * a process of its own. An event is a row of the report, whatever becomes of it: a call and its
 * kernel are two events, and in Chrome's JSON four, with both ends of the arrow.
 *
 * Each line is "name value unit". Time is that of the CPU: one core, and the disk does not count.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/place.h"
#include "base/str.h"
#include "base/time.h"
#include "bench/gen_report.h"
#include "export/export.h"

static void die(const struct lull_err *err)
{
	fprintf(stderr, "bench_export: %s\n", err->msg);
	exit(1);
}

static u64 count_events(const struct lull_reader *r)
{
	u64 n = 0;

	for (const struct lull_table_desc *t = lull_tables; t->name; t++)
		if (t->kind == LULL_KIND_FACT)
			n += lull_reader_stats(r, t->id).n_rows;
	return n;
}

/* In a process of its own, so that its peak of memory is that of this format. */
static void run_export(const char *path, const char *name, bool is_plain)
{
	const struct lull_export *format = lull_export_find(name);
	struct lull_export_options options = { .tables = { .elem_bytes = sizeof(char *) },
					       .is_plain = is_plain };
	struct lull_str out = LULL_STR_INIT;
	struct lull_reader *r;
	struct rusage usage;
	struct lull_err err;
	FILE *null = fopen("/dev/null", "w");
	u64 n, cpu_ns;
	int rc;

	lull_str_addf(&out, "%s.out", path);
	if (lull_reader_open(&r, path, &err))
		die(&err);
	n = count_events(r);
	cpu_ns = lull_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	rc = format->write ? format->write(r, &options, null, &err)
			   : format->write_path(r, &options, lull_str_text(&out), &err);
	if (rc)
		die(&err);
	cpu_ns = lull_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns;
	getrusage(RUSAGE_SELF, &usage);
	printf("export_%s%s %.2f M events/s (%.2f s CPU, peak %ld MB)\n", name,
	       is_plain ? "_plain" : "", (f64)n / (f64)cpu_ns * 1e3, (f64)cpu_ns / 1e9,
	       usage.ru_maxrss / 1024);
	lull_place_remove(lull_str_text(&out));
	lull_reader_close(r);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		bool is_plain;
	} runs[] = { { "perfetto", false }, { "chrome", true },	    { "chrome", false },
		     { "parquet", false },  { "jsonlines", false }, { "csv", false } };
	const struct gen_report_options options = {
		.n_kernels = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000000
	};
	const char *tmp = getenv("TMPDIR");
	struct lull_str path = LULL_STR_INIT;
	struct lull_err err;
	int status = 0;

	lull_str_addf(&path, "%s/lull-bench-%d.lull", tmp ? tmp : "/tmp", (int)getpid());
	if (gen_report(lull_str_text(&path), &options, &err))
		die(&err);
	for (size_t i = 0; i < LULL_COUNT_OF(runs) && !status; i++) {
		pid_t pid = fork();

		if (!pid) {
			run_export(lull_str_text(&path), runs[i].name, runs[i].is_plain);
			exit(0);
		}
		waitpid(pid, &status, 0);
	}
	unlink(lull_str_text(&path));
	lull_str_release(&path);
	return status ? 1 : 0;
}
