#include "compare/windows.h"

#include <stdlib.h>

#include "base/sort.h"
#include "cause/why.h"
#include "model/step.h"

static void add(struct lull_vec *spans, u64 from_ns, u64 to_ns)
{
	*(struct lull_span *)lull_vec_push(spans) =
		(struct lull_span){ from_ns, to_ns > from_ns ? to_ns : from_ns };
}

/* Whether each step has work: not if nobody recorded the calls that launched it. */
static bool have_work(const struct lull_rounds *rounds)
{
	for (u32 i = rounds->first_steady; i < rounds->all.n; i++)
		if (lull_round_end_ns(rounds, i) <= lull_round_begin_ns(rounds, i))
			return false;
	return true;
}

/* The steady steps of the process and device that the answer of `lull why` is about. */
static void add_rounds(struct lull_windows *w, const struct lull_rounds *rounds)
{
	const struct lull_round *at = rounds->all.at;
	bool has_work = have_work(rounds);
	u32 n = (u32)rounds->all.n;

	w->n_warmup = rounds->first_steady;
	for (u32 i = rounds->first_steady; i < n; i++) {
		u64 begin_ns = at[i].mark_ns;
		u64 end_ns = i + 1 < n ? at[i + 1].mark_ns : rounds->last_ns;

		add(&w->host, begin_ns, end_ns);
		if (has_work) {
			begin_ns = lull_round_begin_ns(rounds, i);
			end_ns = lull_round_end_ns(rounds, i);
		}
		add(&w->device, begin_ns, end_ns);
	}
}

static int by_start(const void *a, const void *b)
{
	const struct lull_step *x = a, *y = b;

	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* The table `step`, for programs that use no device. */
static void add_steps(struct lull_windows *w, struct lull_reader *r)
{
	struct lull_steps steps;
	struct lull_step *at;
	u64 last_ns = 0;
	size_t n_lanes;
	const struct lull_lane_row *lanes = lull_reader_dim(r, LULL_TABLE_lane, &n_lanes);
	u32 lane;

	lull_steps_init(&steps, r, LULL_SPAN_ALL);
	at = steps.all.at;
	lane = lull_steps_main_lane(&steps);
	w->process = lane && lane <= n_lanes ? lanes[lane - 1].process : 0;
	if (steps.all.n)
		lull_sort(at, steps.all.n, sizeof(*at), by_start);
	for (size_t i = 0; i < steps.all.n; i++) {
		u64 end_ns = lull_span_end_ns(at[i].start_ns, at[i].dur_ns);
		u64 from_ns = at[i].start_ns > last_ns ? at[i].start_ns : last_ns;

		if (at[i].lane != lane || from_ns >= end_ns)
			continue;
		add(&w->device, from_ns, end_ns);
		add(&w->host, from_ns, end_ns);
		last_ns = end_ns;
	}
	lull_steps_release(&steps);
}

void lull_windows_init_why(struct lull_windows *w, struct lull_reader *r,
			   const struct lull_why *why)
{
	lull_vec_init(&w->device, sizeof(struct lull_span));
	lull_vec_init(&w->host, sizeof(struct lull_span));
	w->n_warmup = 0;
	w->process = 0;
	if (why && why->lead) {
		add_rounds(w, &why->lead->rounds);
		w->process = why->lead->process;
	}
	if (!w->device.n)
		add_steps(w, r);
}

void lull_windows_init(struct lull_windows *w, struct lull_reader *r)
{
	struct lull_why why;
	struct lull_err ignored;
	bool has_why = lull_why_run(&why, r, NULL, &ignored) == LULL_OK;

	lull_windows_init_why(w, r, has_why ? &why : NULL);
	if (has_why)
		lull_why_release(&why);
}

void lull_windows_release(struct lull_windows *w)
{
	lull_vec_release(&w->device);
	lull_vec_release(&w->host);
}
