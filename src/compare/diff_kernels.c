/*
 * kernels: by name, without the list of arguments, which compilers and importers spell differently.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "compare/diff.h"
#include "model/work.h"

/* Up to the "(" that opens the last list of arguments; names without one stay. */
static char *short_name(const char *name)
{
	size_t len = strlen(name), depth = 0;

	if (!len || name[len - 1] != ')')
		return lull_strdup(name);
	for (size_t i = len; i-- > 0;) {
		depth += name[i] == ')';
		if (name[i] == '(' && --depth == 0)
			return lull_strndup(name, i ? i : len);
	}
	return lull_strdup(name);
}

static char **launch_names(struct lull_reader *r, size_t *n)
{
	const struct lull_launch_row *rows = lull_reader_dim(r, LULL_TABLE_launch, n);
	char **names = lull_alloc(*n + 1, sizeof(*names));

	names[0] = lull_strdup("(graph)");
	for (size_t i = 0; i < *n; i++)
		names[i + 1] = short_name(lull_reader_string(r, rows[i].name, NULL));
	return names;
}

static void collect(struct lull_reader *r, struct lull_diff *to)
{
	size_t n;
	char **names = launch_names(r, &n);
	struct lull_work_cursor c;
	struct lull_work work;

	lull_work_begin(&c, r, LULL_WORK_COMPUTE, 0, LULL_SPAN_ALL);
	while (lull_work_next(&c, &work))
		lull_diff_count(to, names[work.kind == LULL_WORK_KERNEL ? work.what : 0],
				work.start_ns, work.dur_ns, 0);
	lull_work_end(&c);
	for (size_t i = 0; i <= n; i++)
		free(names[i]);
	free(names);
}

const struct lull_diff_kind lull_diff_kernels = {
	.name = "kernels",
	.title = "Kernels",
	.collect = collect,
};
