#include "cmd/kernel/kernel_from.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "cmd/losses.h"
#include "import/import.h"
#include "trace/reader.h"

/* A third of the launches, and no more than this, are taken for the program's warm-up. */
#define WARM_UP_SHARE 3u
#define MAX_WARM_UP   50u

/* Launches of one name. */
struct sum {
	u32 name; /* string id */
	u32 launch;
	u64 n;
	u64 total_ns;
};

static int by_time(const void *a, const void *b)
{
	const struct sum *x = a, *y = b;

	return x->total_ns != y->total_ns ? (x->total_ns < y->total_ns ? 1 : -1)
					  : (x->launch > y->launch) - (x->launch < y->launch);
}

/* Time by launch shape, 0 for those that did not run; [0] is not used. */
static struct sum *sum_launches(struct lull_reader *r, size_t n_launches)
{
	struct sum *sums = lull_alloc(n_launches + 1, sizeof(*sums));
	struct lull_kernel_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, r, LULL_TABLE_kernel, 0, UINT64_MAX);
	lull_cursor_want(&c, "dur_ns");
	lull_cursor_want(&c, "launch");
	while ((n = lull_cursor_next(&c, &cols)) > 0)
		for (size_t i = 0; i < n; i++)
			if (cols.launch[i] <= n_launches) {
				sums[cols.launch[i]].total_ns += cols.dur_ns[i];
				sums[cols.launch[i]].n++;
			}
	lull_cursor_release(&c);
	return sums;
}

/* Shapes of one name together, longest first; how many names. */
static size_t by_name(struct sum *sums, const struct lull_launch_row *launches, size_t n_launches)
{
	size_t n = 0;

	for (size_t i = 1; i <= n_launches; i++) {
		size_t at = 0;

		while (at < n && sums[at].name != launches[i - 1].name)
			at++;
		if (at == n) {
			struct sum one = sums[i];

			one.name = launches[i - 1].name;
			one.launch = (u32)i;
			sums[n++] = one;
		} else {
			sums[at].total_ns += sums[i].total_ns;
			sums[at].n += sums[i].n;
		}
	}
	lull_sort(sums, n, sizeof(*sums), by_time);
	return n;
}

static int fill(struct lull_reader *r, u64 top, struct lull_kwish *wish, struct lull_err *err)
{
	size_t n_launches, n;
	const struct lull_launch_row *launches = lull_reader_dim(r, LULL_TABLE_launch, &n_launches);
	struct sum *sums = sum_launches(r, n_launches);

	n = by_name(sums, launches, n_launches);
	for (size_t i = 0; i < n && i < top && sums[i].n && i < LULL_KWISH_N_FILTERS; i++) {
		const struct lull_launch_row *launch = &launches[sums[i].launch - 1];
		struct lull_kwish_filter *f = &wish->filters[i];
		const char *name = lull_reader_string(
			r, launch->mangled_name ? launch->mangled_name : launch->name, NULL);
		u64 skip = sums[i].n / WARM_UP_SHARE;

		if (strlen(name) >= sizeof(f->name))
			continue;
		memcpy(f->name, name, strlen(name) + 1);
		f->skip = skip < MAX_WARM_UP ? skip : MAX_WARM_UP;
		f->count = 1;
		wish->n_filters = (u32)i + 1;
	}
	free(sums);
	return wish->n_filters ? 0
			       : lull_fail(err, LULL_E_NOT_FOUND,
					   "the report has no kernels; record the program with "
					   "lull profile -t cuda first");
}

int lull_kernel_from(const char *path, u64 top, struct lull_kwish *wish, struct lull_err *err)
{
	struct lull_reader *r;
	int rc;

	if (lull_import_open(path, &r, err))
		return err->code;
	rc = fill(r, top, wish, err);
	lull_losses_close(r, path);
	return rc ? lull_err_wrap(err, "--from %s", path) : 0;
}
