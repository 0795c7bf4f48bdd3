#include "request/summary.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/time.h"

/* Of the requests by latency: those in the middle are typical, the last ones slow. */
#define TYPICAL_FROM 0.25
#define TYPICAL_TO   0.75
#define SLOW_FROM    0.9

u64 lull_quantile(const u64 *sorted, size_t n, f64 p)
{
	size_t rank = (size_t)(p * (f64)n);

	if ((f64)rank < p * (f64)n)
		rank++;
	return sorted[rank ? rank - 1 : 0];
}

static struct lull_quantiles quantiles(u64 *values, size_t n)
{
	struct lull_quantiles q = { .n = n };

	if (!n)
		return q;
	lull_sort_u64(values, n);
	for (size_t i = 0; i < n; i++)
		q.mean_ns += (f64)values[i] / (f64)n;
	q.p50_ns = lull_quantile(values, n, 0.5);
	q.p90_ns = lull_quantile(values, n, 0.9);
	q.p99_ns = lull_quantile(values, n, 0.99);
	q.max_ns = values[n - 1];
	return q;
}

/* ---- parts ---- */

static void add_parts(f64 *to, const struct lull_one_request *one, f64 weight)
{
	for (u32 p = 0; p < LULL_N_REQUEST_PARTS; p++)
		to[p] += (f64)one->part_ns[p] * weight;
}

static void average_parts(struct lull_request_summary *s, const struct lull_requests *q,
			  const u64 *sorted)
{
	const struct lull_one_request *all = q->all.at;
	size_t n = q->all.n;
	u64 low_ns = lull_quantile(sorted, n, TYPICAL_FROM), high_ns, slow_ns;

	high_ns = lull_quantile(sorted, n, TYPICAL_TO);
	slow_ns = lull_quantile(sorted, n, SLOW_FROM);
	for (size_t i = 0; i < n; i++) {
		u64 ns = lull_request_ns(&all[i]);

		add_parts(s->part_mean_ns, &all[i], 1.0 / (f64)n);
		for (u32 p = 0; p < LULL_N_REQUEST_PARTS && all[i].n_tokens; p++)
			s->part_prefill_ns[p] += (f64)all[i].prefill_ns[p] / (f64)s->first_token.n;
		if (ns >= low_ns && ns <= high_ns) {
			add_parts(s->part_typical_ns, &all[i], 1);
			s->n_typical++;
		}
		if (ns >= slow_ns) {
			add_parts(s->part_slow_ns, &all[i], 1);
			s->n_slow++;
		}
	}
	for (u32 p = 0; p < LULL_N_REQUEST_PARTS; p++) {
		s->part_typical_ns[p] /= (f64)(s->n_typical ? s->n_typical : 1);
		s->part_slow_ns[p] /= (f64)(s->n_slow ? s->n_slow : 1);
	}
}

/* ---- load ---- */

static void measure_load(struct lull_request_load *l, const struct lull_requests *q)
{
	const struct lull_one_request *all = q->all.at;
	size_t n = q->all.n;
	u64 first_ns = all[0].start_ns, last_ns = all[n - 1].start_ns, end_ns = first_ns;
	f64 open_ns = 0, whole_ns = (f64)(q->served.to_ns - q->served.from_ns), limit;

	for (size_t i = 0; i < n; i++) {
		open_ns += (f64)lull_request_ns(&all[i]);
		end_ns = all[i].end_ns > end_ns ? all[i].end_ns : end_ns;
		l->n_max = all[i].n_open + 1 > l->n_max ? all[i].n_open + 1 : l->n_max;
	}
	if (n > 1 && last_ns > first_ns)
		l->rate_hz = (f64)(n - 1) / ((f64)(last_ns - first_ns) / LULL_NS_PER_S);
	if (end_ns > first_ns)
		l->n_mean = open_ns / (f64)(end_ns - first_ns);
	if (whole_ns <= 0)
		return;
	l->busy_share = (f64)q->busy_ns / whole_ns;
	l->thread_share = (f64)q->thread_busy_ns / whole_ns;
	limit = (f64)(q->busy_ns > q->thread_busy_ns ? q->busy_ns : q->thread_busy_ns);
	l->is_device = q->busy_ns >= q->thread_busy_ns;
	if (limit > 0)
		l->limit_hz = (f64)n / (limit / LULL_NS_PER_S);
}

/* ---- names ---- */

static int by_count(const void *a, const void *b)
{
	const struct lull_request_group *x = a, *y = b;

	return x->latency.n > y->latency.n ? -1 : x->latency.n < y->latency.n;
}

static bool has_group(const struct lull_request_summary *s, u32 name)
{
	const struct lull_request_group *g = s->groups.at;

	for (size_t i = 0; i < s->groups.n; i++)
		if (g[i].name == name)
			return true;
	return false;
}

static void group(struct lull_request_summary *s, const struct lull_requests *q, u64 *values)
{
	const struct lull_one_request *all = q->all.at;

	for (size_t i = 0; i < q->all.n; i++) {
		size_t n = 0;

		if (has_group(s, all[i].name))
			continue;
		for (size_t k = i; k < q->all.n; k++)
			if (all[k].name == all[i].name)
				values[n++] = lull_request_ns(&all[k]);
		*(struct lull_request_group *)lull_vec_push(&s->groups) =
			(struct lull_request_group){ all[i].name, quantiles(values, n) };
	}
	lull_sort(s->groups.at, s->groups.n, sizeof(struct lull_request_group), by_count);
}

void lull_request_summary_init(struct lull_request_summary *s, const struct lull_requests *q)
{
	const struct lull_one_request *all = q->all.at;
	size_t n = q->all.n, n_first = 0;
	u64 *values = lull_alloc((n > q->gaps.n ? n : q->gaps.n) + 1, sizeof(*values));

	*s = (struct lull_request_summary){ 0 };
	lull_vec_init(&s->groups, sizeof(struct lull_request_group));
	for (size_t i = 0; i < n; i++)
		if (all[i].n_tokens)
			values[n_first++] = all[i].first_token_ns - all[i].start_ns;
	s->first_token = quantiles(values, n_first);
	for (size_t i = 0; i < q->gaps.n; i++)
		values[i] = ((const u64 *)q->gaps.at)[i];
	s->between = quantiles(values, q->gaps.n);
	group(s, q, values);
	for (size_t i = 0; i < n; i++)
		values[i] = lull_request_ns(&all[i]);
	s->latency = quantiles(values, n);
	average_parts(s, q, values);
	measure_load(&s->load, q);
	free(values);
}

void lull_request_summary_release(struct lull_request_summary *s)
{
	lull_vec_release(&s->groups);
}
