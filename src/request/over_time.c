#include "request/over_time.h"

#include <stddef.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"
#include "request/summary.h"

/* Time of [from_ns, to_ns) in an interval. */
static f64 share_of(const struct lull_request_interval *at, u64 from_ns, u64 to_ns)
{
	u64 from = from_ns > at->from_ns ? from_ns : at->from_ns;
	u64 to = to_ns < at->to_ns ? to_ns : at->to_ns;

	return to > from ? (f64)(to - from) / (f64)(at->to_ns - at->from_ns) : 0;
}

/* The interval that holds a moment. */
static size_t find(const struct lull_vec *all, u64 at_ns)
{
	size_t n = lull_vec_upper(all, offsetof(struct lull_request_interval, from_ns), at_ns);

	return n ? n - 1 : 0;
}

static void add(struct lull_vec *all, u64 from_ns, u64 to_ns, bool is_waiting)
{
	struct lull_request_interval *at = all->at;

	for (size_t i = find(all, from_ns); i < all->n && at[i].from_ns < to_ns; i++) {
		if (is_waiting)
			at[i].n_waiting += share_of(&at[i], from_ns, to_ns);
		else
			at[i].n_open += share_of(&at[i], from_ns, to_ns);
	}
}

static bool is_waiting(u8 part)
{
	return part == LULL_PART_OF_QUEUE || part == LULL_PART_OF_OTHERS;
}

/* Requests are by start, so that those of an interval follow each other. */
static void find_latencies(struct lull_vec *all, const struct lull_requests *q)
{
	const struct lull_one_request *one = q->all.at;
	struct lull_request_interval *at = all->at;
	u64 *values = lull_alloc(q->all.n, sizeof(*values));
	size_t k = 0;

	for (size_t i = 0; i < all->n; i++) {
		size_t n = 0;

		for (; k < q->all.n && (i + 1 == all->n || one[k].start_ns < at[i].to_ns); k++)
			values[n++] = lull_request_ns(&one[k]);
		at[i].n_arrived = (u32)n;
		if (!n)
			continue;
		lull_sort_u64(values, n);
		at[i].p50_ns = lull_quantile(values, n, 0.5);
		at[i].max_ns = values[n - 1];
	}
	free(values);
}

void lull_request_intervals(struct lull_vec *to, const struct lull_requests *q, u32 n)
{
	const struct lull_one_request *all = q->all.at;
	const struct lull_request_piece *pieces = q->pieces.at;
	u64 first_ns = all[0].start_ns, last_ns = first_ns + n;

	for (size_t i = 0; i < q->all.n; i++)
		last_ns = all[i].end_ns > last_ns ? all[i].end_ns : last_ns;
	for (u32 i = 0; i < n; i++) {
		struct lull_request_interval *at = lull_vec_push(to);

		at->from_ns = first_ns + (u64)((f64)(last_ns - first_ns) * i / n);
		at->to_ns = first_ns + (u64)((f64)(last_ns - first_ns) * (i + 1) / n);
	}
	for (size_t i = 0; i < q->all.n; i++)
		add(to, all[i].start_ns, all[i].end_ns, false);
	for (size_t i = 0; i < q->pieces.n; i++)
		if (is_waiting(pieces[i].part))
			add(to, pieces[i].from_ns, pieces[i].to_ns, true);
	find_latencies(to, q);
}
