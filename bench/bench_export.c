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
 * Before each format, all columns are decoded to compare with (scan.h), in the same process. Fails
 * if a format writes less than a byte an event.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/whole_file.h"
#include "base/str.h"
#include "base/time.h"
#include "bench/gen_report.h"
#include "bench/scan.h"
#include "export/export.h"

static void die(const struct lull_err *err)
{
	fprintf(stderr, "bench_export: %s\n", err->msg);
	exit(1);
}

/* /dev/null that counts. */
static ssize_t count_bytes(void *n_bytes, const char *bytes, size_t n)
{
	(void)bytes;
	*(u64 *)n_bytes += n;
	return (ssize_t)n;
}

static FILE *open_null(u64 *n_bytes)
{
	FILE *f = fopencookie(n_bytes, "w", (cookie_io_functions_t){ .write = count_bytes });

	if (!f)
		exit(1);
	return f;
}

/* Bytes of a file, or of the files in a folder. */
static u64 size_of(const char *path)
{
	struct lull_str file = LULL_STR_INIT;
	DIR *dir = opendir(path);
	struct dirent *entry;
	struct stat st;
	u64 n = 0;

	if (!dir)
		return stat(path, &st) == 0 ? (u64)st.st_size : 0;
	while ((entry = readdir(dir))) {
		lull_str_clear(&file);
		lull_str_addf(&file, "%s/%s", path, entry->d_name);
		if (stat(lull_str_text(&file), &st) == 0 && S_ISREG(st.st_mode))
			n += (u64)st.st_size;
	}
	closedir(dir);
	lull_str_release(&file);
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
	u64 n, n_bytes = 0, cpu_ns;
	FILE *null = open_null(&n_bytes);
	f64 scan_s;
	int rc;

	lull_str_addf(&out, "%s.out", path);
	if (lull_reader_open(&r, path, &err))
		die(&err);
	scan_s = bench_scan_s(r, &n);
	cpu_ns = lull_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	rc = format->write ? format->write(r, &options, null, &err)
			   : format->write_path(r, &options, lull_str_text(&out), &err);
	if (rc)
		die(&err);
	cpu_ns = lull_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns;
	getrusage(RUSAGE_SELF, &usage);
	fclose(null);
	n_bytes += format->write ? 0 : size_of(lull_str_text(&out));
	if (!n || n_bytes < n) {
		lull_fail(&err, LULL_E_FORMAT, "%s has %llu bytes for %llu events", name,
			  (unsigned long long)n_bytes, (unsigned long long)n);
		die(&err);
	}
	printf("export_%s%s %.2f M events/s (%.2f s CPU, %.0f MB, peak %ld MB)\n", name,
	       is_plain ? "_plain" : "", (f64)n / (f64)cpu_ns * 1e3, (f64)cpu_ns / 1e9,
	       (f64)n_bytes / 1e6, usage.ru_maxrss / 1024);
	printf("scan_of_%s%s %.2f M events/s\n", name, is_plain ? "_plain" : "",
	       (f64)n / scan_s / 1e6);
	lull_whole_file_remove(lull_str_text(&out));
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
