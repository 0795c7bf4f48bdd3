/*
 * kernel:NAME: time of the kernels of a name in a step.
 */
#include <fnmatch.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "compare/metric.h"
#include "model/work.h"
#include "text/kernel_name.h"

#define REGEX "regex:"

/* What a kernel is asked for by. */
struct pattern {
	const char *text;
	regex_t regex;
	bool is_regex;
	bool is_part;  /* the text may stand anywhere in the name */
	bool is_short; /* of the short name, which tables show */
};

/* A name or glob pattern counts for the whole name, and for the name up to its arguments. */
static bool is_named(const char *name, const char *glob)
{
	size_t len = strcspn(name, "(<");
	char *base;
	bool is;

	if (fnmatch(glob, name, 0) == 0)
		return true;
	base = lull_strndup(name, len);
	is = fnmatch(glob, base, 0) == 0;
	free(base);
	return is;
}

static bool matches(const struct pattern *pattern, const char *name)
{
	if (pattern->is_regex)
		return regexec(&pattern->regex, name, 0, NULL, 0) == 0;
	if (pattern->is_part)
		return strstr(name, pattern->text) != NULL;
	return is_named(name, pattern->text);
}

/* What people read in tables: they type that. */
static bool matches_short(const struct pattern *pattern, const char *name)
{
	struct lull_str text = LULL_STR_INIT;
	bool does;

	lull_kernel_short(&text, name);
	does = matches(pattern, lull_str_text(&text));
	lull_str_release(&text);
	return does;
}

/* Per launch id, whether it is one of the kernels that are asked for. */
static bool *find_launches(struct lull_reader *r, const struct pattern *pattern, bool *has_any)
{
	size_t n;
	const struct lull_launch_row *rows = lull_reader_dim(r, LULL_TABLE_launch, &n);
	bool *is = lull_alloc(n + 1, sizeof(*is));

	is[0] = false;
	*has_any = false;
	for (size_t i = 0; i < n; i++) {
		const char *name = lull_reader_string(r, rows[i].name, NULL);

		is[i + 1] =
			pattern->is_short ? matches_short(pattern, name) : matches(pattern, name);
		*has_any |= is[i + 1];
	}
	return is;
}

/*
 * By name or glob; else, if no kernel has that name, by a part of it; both for full names first,
 * then for short ones. A regular expression has no parts.
 */
static bool *find_somehow(struct lull_reader *r, struct pattern *pattern)
{
	bool has_any, *is;

	for (int way = 0; way < 4; way++) {
		pattern->is_short = way & 2;
		pattern->is_part = way & 1;
		is = find_launches(r, pattern, &has_any);
		if (has_any)
			return is;
		free(is);
	}
	return NULL;
}

static int choose(struct lull_reader *r, const char *arg, bool **is, struct lull_err *err)
{
	struct pattern pattern = { .text = arg };

	pattern.is_regex = strncmp(arg, REGEX, strlen(REGEX)) == 0;
	if (pattern.is_regex &&
	    regcomp(&pattern.regex, arg + strlen(REGEX), REG_EXTENDED | REG_NOSUB) != 0)
		return lull_fail(err, LULL_E_USAGE, "'%s' is not a regular expression",
				 arg + strlen(REGEX));
	*is = find_somehow(r, &pattern);
	if (pattern.is_regex)
		regfree(&pattern.regex);
	if (*is)
		return LULL_OK;
	return lull_fail(err, LULL_E_NOT_FOUND,
			 "no kernel has '%s' in its name; lull stats -r cuda_gpu_kern_sum lists "
			 "them",
			 arg);
}

static int measure(struct lull_reader *r, const struct lull_vec *windows, const char *arg,
		   f64 *value, struct lull_err *err)
{
	struct lull_work_cursor c;
	struct lull_work work;
	bool *is = NULL;

	if (choose(r, arg, &is, err) || !is)
		return err->code;
	lull_work_begin(&c, r, LULL_WORK_KERNEL, 0, LULL_SPAN_ALL);
	while (lull_work_next(&c, &work)) {
		size_t ix = is[work.what] ? lull_metric_window(windows, work.start_ns) : SIZE_MAX;

		if (ix != SIZE_MAX)
			value[ix] += (f64)work.dur_ns;
	}
	lull_work_end(&c);
	free(is);
	return LULL_OK;
}

const struct lull_metric lull_metric_kernel = {
	.name = "kernel",
	.arg = "NAME",
	.summary = "time of the kernels with this in their name (or *gemm*, regex:gemm|conv) in a "
		   "step",
	.kind = LULL_OUT_NS,
	.measure = measure,
};
