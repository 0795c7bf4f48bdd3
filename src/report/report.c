#include "report/report.h"

#include <string.h>

#include "base/mem.h"
#include "base/nearest.h"

#define REPORT(name) extern const struct lull_report lull_report_##name;
#include "report/reports.def"
#undef REPORT

const struct lull_report *const lull_reports[] = {
#define REPORT(name) &lull_report_##name,
#include "report/reports.def"
#undef REPORT
	NULL,
};

static const char cuda_option[] = "--trace=cuda";

/* What a table is called when it is missed, and the options of `lull profile` that fill it. */
static const struct {
	u64 need;
	const char *what;
	const char *how;
} sources[] = {
	{ LULL_NEED(range), "ranges", "--trace=nvtx, and ranges of NVTX or lull.h in the program" },
	{ LULL_NEED(oscall), "C library calls", "--trace=osrt" },
	{ LULL_NEED(gil_wait), "waits for Python's interpreter lock", "--trace=python-gil" },
	{ LULL_NEED(sample), "CPU samples", "--sample=process-tree" },
	{ LULL_NEED(sched), "scheduling", "--cpuctxsw=process-tree" },
	{ LULL_NEED(pysample), "Python samples", "--python-sampling=true" },
	{ LULL_NEED(kernel), "CUDA kernels", cuda_option },
	{ LULL_NEED(memcpy), "CUDA copies", cuda_option },
	{ LULL_NEED(memset), "CUDA memsets", cuda_option },
	{ LULL_NEED(graph), "CUDA graphs", cuda_option },
	{ LULL_NEED(cuda_call), "CUDA calls", cuda_option },
	{ LULL_NEED(op), "operators", "torch.profiler, and give its trace" },
	{ LULL_NEED(step), "steps", "lull_step() of lull.h in the program's loop" },
};

const struct lull_report *lull_report_find(const char *name, const char **nearest)
{
	struct lull_nearest near = { .word = name };

	for (size_t i = 0; lull_reports[i]; i++) {
		const char *old_name = lull_reports[i]->old_name;

		if (!strcmp(lull_reports[i]->name, name) || (old_name && !strcmp(old_name, name)))
			return lull_reports[i];
		lull_nearest_add(&near, lull_reports[i]->name);
	}
	*nearest = near.best;
	return NULL;
}

/* The tables of `needs` that have rows. */
static u64 filled(const struct lull_reader *r, u64 needs)
{
	u64 has = 0;

	for (u16 id = 0; needs >> id; id++) {
		if (needs >> id & 1 && lull_reader_stats(r, id).n_rows)
			has |= 1ULL << id;
	}
	return has;
}

/* "no A and no B; record with X and Y". */
static void explain(u64 missing, struct lull_str *why)
{
	const char *before = "no ", *how = NULL;

	for (size_t i = 0; i < LULL_COUNT_OF(sources); i++) {
		if (!(sources[i].need & missing))
			continue;
		lull_str_addf(why, "%s%s", before, sources[i].what);
		before = ", no ";
	}
	before = "; record with ";
	for (size_t i = 0; i < LULL_COUNT_OF(sources); i++) {
		if (!(sources[i].need & missing) || how == sources[i].how)
			continue;
		how = sources[i].how;
		lull_str_addf(why, "%s%s", before, how);
		before = " or ";
	}
}

bool lull_report_has_data(const struct lull_report *report, const struct lull_reader *r,
			  struct lull_str *why)
{
	u64 missing = report->needs & ~filled(r, report->needs);

	if (report->needs_any && !filled(r, report->needs_any))
		missing |= report->needs_any;
	if (missing)
		explain(missing, why);
	return !missing;
}

/* Whether `word` of `len` bytes is in a list whose words are separated by `separator`. */
static bool holds(const char *list, char separator, const char *word, size_t len)
{
	const char separators[] = { separator, 0 };

	while (list && *list) {
		size_t n = strcspn(list, separators);

		if (n == len && !memcmp(list, word, len))
			return true;
		list += n + (list[n] != 0);
	}
	return false;
}

int lull_report_check_args(const struct lull_report *report, const char *args, struct lull_err *err)
{
	while (args && *args) {
		size_t len = strcspn(args, ":"), name_len = strcspn(args, "=:");

		if (args[name_len] == '=')
			name_len++;
		if (!holds(report->args, ' ', args, name_len))
			return lull_fail(err, LULL_E_USAGE,
					 "report %s takes no argument \"%.*s\"%s%s", report->name,
					 (int)len, args, report->args ? ", only: " : "",
					 report->args ? report->args : "");
		args += len + (args[len] != 0);
	}
	return LULL_OK;
}

bool lull_report_has_arg(const struct lull_report_options *options, const char *word)
{
	return holds(options->args, ':', word, strlen(word));
}

char *lull_report_arg_value(const struct lull_report_options *options, const char *name)
{
	const char *args = options->args;
	size_t len = strlen(name);

	while (args && *args) {
		size_t n = strcspn(args, ":");

		if (n > len && !memcmp(args, name, len) && args[len] == '=')
			return lull_strndup(args + len + 1, n - len - 1);
		args += n + (args[n] != 0);
	}
	return NULL;
}
