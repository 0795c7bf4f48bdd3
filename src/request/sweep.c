#include "request/sweep.h"

#include "base/sort.h"

void lull_sweep_add(struct lull_vec *edges, u64 from_ns, u64 to_ns, u8 what)
{
	struct lull_edge *e;

	if (to_ns <= from_ns)
		return;
	e = lull_vec_extend(edges, 2);
	e[0] = (struct lull_edge){ from_ns, what, false };
	e[1] = (struct lull_edge){ to_ns, what, true };
}

static int by_time(const void *a, const void *b)
{
	const struct lull_edge *x = a, *y = b;

	return x->at_ns < y->at_ns ? -1 : x->at_ns > y->at_ns;
}

void lull_sweep(struct lull_vec *edges, lull_sweep_fn *visit, void *ctx)
{
	const struct lull_edge *e = edges->at;
	u32 counts[LULL_SWEEP_MAX] = { 0 };

	lull_sort(edges->at, edges->n, sizeof(*e), by_time);
	for (size_t i = 0; i < edges->n; i++) {
		if (i && e[i].at_ns > e[i - 1].at_ns)
			visit(ctx, e[i - 1].at_ns, e[i].at_ns, counts);
		/* Ends may come before starts of the same time; in between nobody looks. */
		counts[e[i].what] += e[i].is_end ? UINT32_MAX : 1u;
	}
}
