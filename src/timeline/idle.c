#include "timeline/idle.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"

void lull_idle_init(struct lull_idle_sweep *s, lull_idle_visit *visit, void *ctx)
{
	*s = (struct lull_idle_sweep){ .visit = visit, .ctx = ctx };
	lull_vec_init(&s->pending, sizeof(struct lull_span));
}

void lull_idle_release(struct lull_idle_sweep *s)
{
	lull_vec_release(&s->pending);
}

void lull_idle_add(struct lull_idle_sweep *s, u64 start_ns, u64 end_ns)
{
	struct lull_span span = { start_ns, end_ns };

	if (end_ns > start_ns)
		lull_vec_add(&s->pending, &span, 1);
}

/* Merge two sorted runs of `at` into `to`. */
static void merge_runs(const struct lull_span *at, size_t mid, size_t n, struct lull_span *to)
{
	size_t a = 0, b = mid;

	for (size_t i = 0; i < n; i++) {
		if (b == n || (a < mid && at[a].from_ns <= at[b].from_ns))
			to[i] = at[a++];
		else
			to[i] = at[b++];
	}
}

/* The end of the sorted run that begins at `i`. */
static size_t run_end(const struct lull_span *at, size_t i, size_t n)
{
	for (i++; i < n && at[i - 1].from_ns <= at[i].from_ns;)
		i++;
	return i;
}

/*
 * What arrives is a few sorted runs, one for each stream: merging the runs that are there takes a
 * third of the time of lull_sort().
 */
static void sort_pending(struct lull_vec *pending)
{
	struct lull_span *at = pending->at, *to;
	size_t n = pending->n, i, out;

	if (run_end(at, 0, n) >= n)
		return;
	to = lull_alloc(n, sizeof(*to));
	while (run_end(at, 0, n) < n) {
		for (i = 0, out = 0; i < n;) {
			size_t mid = run_end(at, i, n), end = mid < n ? run_end(at, mid, n) : n;

			merge_runs(at + i, mid - i, end - i, to + out);
			out += end - i;
			i = end;
		}
		memcpy(at, to, n * sizeof(*at));
	}
	free(to);
}

static void take(struct lull_idle_sweep *s, struct lull_span span)
{
	if (!s->has_run) {
		s->run = span;
		s->has_run = true;
	} else if (span.from_ns > s->run.to_ns) {
		s->visit(s->ctx, s->run, true);
		s->visit(s->ctx, (struct lull_span){ s->run.to_ns, span.from_ns }, false);
		s->run = span;
	} else if (span.to_ns > s->run.to_ns) {
		s->run.to_ns = span.to_ns;
	}
}

void lull_idle_advance(struct lull_idle_sweep *s, u64 at_ns)
{
	struct lull_span *pending = s->pending.at;
	size_t i = 0;

	if (s->pending.n) {
		sort_pending(&s->pending);
		for (; i < s->pending.n && pending[i].from_ns < at_ns; i++)
			take(s, pending[i]);
		memmove(pending, pending + i, (s->pending.n - i) * sizeof(*pending));
		s->pending.n -= i;
	}
	if (at_ns == UINT64_MAX && s->has_run) {
		s->visit(s->ctx, s->run, true);
		s->has_run = false;
	}
}
