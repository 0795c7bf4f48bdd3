#include "model/step_found.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"
#include "model/busy.h"
#include "model/limits.h"
#include "model/rounds.h"
#include "model/step.h"

/* Rounds are found by ranges, operators and calls of the C library. */
#define NOT_NEEDED \
	(LULL_WITHOUT_PYTHON | LULL_WITHOUT_GIL | LULL_WITHOUT_SCHED | LULL_WITHOUT_SAMPLES)

/* The thread that starts the work; PyTorch's backward threads come and go in between. */
static u32 leading_lane(const struct lull_chain *c)
{
	return c->n ? c->nodes[0].lane : 0;
}

/* ---- the end of the last one ---- */

static u64 median_of(u64 *values, size_t n)
{
	lull_sort_u64(values, n);
	return values[n / 2];
}

/* The ends of the calls of the last round that start work, by time; how many are usual. */
static u64 read_launches(struct lull_vec *ends, const struct lull_rounds *rounds,
			 const struct lull_chain *c)
{
	u32 last = (u32)rounds->all.n - 1;
	u64 *counts = lull_alloc(rounds->all.n, sizeof(*counts)), usual;

	for (u32 i = 0; i < c->n; i++) {
		const struct lull_node *node = &c->nodes[i];

		if (node->round == LULL_NONE || node->unit == LULL_NONE)
			continue;
		counts[node->round]++;
		if (node->round == last)
			*(u64 *)lull_vec_push(ends) = node->end_ns;
	}
	if (ends->n)
		lull_sort_u64(ends->at, ends->n);
	usual = median_of(counts, last);
	free(counts);
	return usual;
}

static u64 usual_ns(const struct lull_rounds *rounds)
{
	const struct lull_round *at = rounds->all.at;
	size_t n = rounds->all.n - 1;
	u64 *durs_ns = lull_alloc(n, sizeof(*durs_ns)), usual_ns;

	for (size_t i = 0; i < n; i++)
		durs_ns[i] = at[i + 1].mark_ns - at[i].mark_ns;
	usual_ns = median_of(durs_ns, n);
	free(durs_ns);
	return usual_ns;
}

/* Where the last round begins to wait for longer than a round takes; UINT64_MAX if it does not. */
static u64 long_wait_ns(const struct lull_rounds *rounds, const struct lull_chain *c, u64 long_ns)
{
	u64 first_ns = UINT64_MAX;

	for (u32 i = 0; i < c->n; i++) {
		const struct lull_node *node = &c->nodes[i];

		if (node->round == rounds->all.n - 1 && node->kind == LULL_KIND_OF_SYNC &&
		    node->end_ns - node->begin_ns > long_ns && node->begin_ns < first_ns)
			first_ns = node->begin_ns;
	}
	return first_ns;
}

u64 lull_steps_last_end_ns(const struct lull_rounds *rounds, const struct lull_chain *c)
{
	const struct lull_round *at = rounds->all.at;
	u64 mark_ns = at[rounds->all.n - 1].mark_ns, end_ns = rounds->last_ns, median_ns, usual;
	struct lull_vec ends;

	if (rounds->all.n < LULL_LN(rounds_least) || end_ns <= mark_ns)
		return end_ns;
	median_ns = usual_ns(rounds);
	if ((f64)(end_ns - mark_ns) <= LULL_L(last_long) * (f64)median_ns)
		return end_ns;
	/* A wait at the end of the program takes as long as there is work. */
	usual = long_wait_ns(rounds, c, median_ns);
	end_ns = usual < end_ns ? usual : end_ns;
	lull_vec_init(&ends, sizeof(u64));
	usual = read_launches(&ends, rounds, c);
	/* What it starts beyond the usual is what the program does after its loop. */
	usual = usual && usual < ends.n ? usual : ends.n;
	if (usual && ((const u64 *)ends.at)[usual - 1] < end_ns)
		end_ns = ((const u64 *)ends.at)[usual - 1];
	lull_vec_release(&ends);
	return end_ns;
}

/* ---- the steps ---- */

void lull_steps_take(struct lull_vec *steps, const struct lull_rounds *rounds,
		     const struct lull_chain *c, struct lull_span window)
{
	const struct lull_round *at = rounds->all.at;
	u64 last_ns = rounds->all.n ? lull_steps_last_end_ns(rounds, c) : 0;
	bool is_marked = lull_rounds_are_marked(rounds);

	for (u32 i = 0; i < rounds->all.n; i++) {
		u64 end_ns = i + 1 < rounds->all.n ? at[i + 1].mark_ns : last_ns;
		struct lull_span host = { at[i].mark_ns,
					  end_ns > at[i].mark_ns ? end_ns : at[i].mark_ns };
		struct lull_span span =
			is_marked ? host
				  : (struct lull_span){ lull_round_begin_ns(rounds, i),
							lull_round_end_ns(rounds, i) };

		if (!lull_span_holds(window, span.from_ns, span.to_ns - span.from_ns))
			continue;
		*(struct lull_step *)lull_vec_push(steps) = (struct lull_step){
			.start_ns = span.from_ns,
			.dur_ns = span.to_ns - span.from_ns,
			.host = host,
			.number = i,
			.lane = leading_lane(c),
			.source = rounds->source,
		};
	}
}

/* Leave out the steps that the table has of this process. */
static void forget(struct lull_vec *steps, struct lull_reader *r, u32 process)
{
	size_t n_lanes, n_kept = 0;
	const struct lull_lane_row *lanes = lull_reader_dim(r, LULL_TABLE_lane, &n_lanes);
	struct lull_step *at = steps->at;

	for (size_t i = 0; i < steps->n; i++) {
		if (!at[i].lane || lanes[at[i].lane - 1].process != process)
			at[n_kept++] = at[i];
	}
	steps->n = n_kept;
}

/* The step that nothing ended ends with its work. */
static void end_last(struct lull_vec *steps, const struct lull_rounds *rounds)
{
	const struct lull_round *last =
		lull_vec_get((struct lull_vec *)&rounds->all, rounds->all.n - 1);
	struct lull_step *at = steps->at;

	for (size_t i = 0; i < steps->n; i++) {
		if (at[i].start_ns == last->mark_ns && at[i].source == rounds->source &&
		    rounds->last_ns > at[i].start_ns &&
		    rounds->last_ns - at[i].start_ns < at[i].dur_ns)
			at[i].dur_ns = rounds->last_ns - at[i].start_ns;
	}
}

/* Whether the rounds of the process are not those of the table. */
static bool find_in(struct lull_vec *steps, struct lull_reader *r,
		    const struct lull_unit_pair *pair, const u32 *tracks, struct lull_span window)
{
	struct lull_units units;
	struct lull_chain chain;
	struct lull_host host;
	struct lull_rounds rounds;
	bool are_found;

	lull_units_init(&units, r, pair->process, pair->track, tracks);
	lull_chain_init(&chain, r, pair->process, &units);
	lull_host_init(&host, r, &chain, NOT_NEEDED);
	lull_rounds_init(&rounds, r, pair->process, &chain, &units, &host, NOT_NEEDED);
	are_found = rounds.all.n && rounds.source != LULL_ROUNDS_STEP &&
		    rounds.source != LULL_ROUNDS_HOOK && leading_lane(&chain);
	if (are_found) {
		forget(steps, r, pair->process);
		lull_steps_take(steps, &rounds, &chain, window);
	} else if (rounds.all.n) {
		end_last(steps, &rounds);
	}
	lull_rounds_release(&rounds);
	lull_host_release(&host);
	lull_chain_release(&chain);
	lull_units_release(&units);
	return are_found;
}

bool lull_steps_find(struct lull_vec *steps, struct lull_reader *r, struct lull_span window)
{
	size_t n_processes;
	u32 *tracks = lull_busy_devices(r);
	const struct lull_unit_pair *at;
	struct lull_vec pairs;
	bool *is_seen, are_found = false;

	lull_reader_dim(r, LULL_TABLE_process, &n_processes);
	is_seen = lull_alloc(n_processes + 1, sizeof(*is_seen));
	lull_vec_init(&pairs, sizeof(struct lull_unit_pair));
	lull_units_pairs(&pairs, r, tracks);
	at = pairs.at;
	for (size_t i = 0; i < pairs.n && (f64)at[i].n >= LULL_L(helper) * (f64)at[0].n; i++) {
		if (!at[i].process || !at[i].track || is_seen[at[i].process])
			continue;
		is_seen[at[i].process] = true;
		are_found |= find_in(steps, r, &at[i], tracks, window);
	}
	lull_vec_release(&pairs);
	free(is_seen);
	free(tracks);
	return are_found;
}
