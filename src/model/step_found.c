#include "model/step_found.h"

#include <stdlib.h>

#include "base/mem.h"
#include "model/busy.h"
#include "model/rounds.h"
#include "model/step.h"

/* Processes with less than this part of the work of the busiest are helpers, not loops. */
#define SMALL_PART 20

/* Rounds are found by ranges, operators and calls of the C library. */
#define NOT_NEEDED \
	(LULL_WITHOUT_PYTHON | LULL_WITHOUT_GIL | LULL_WITHOUT_SCHED | LULL_WITHOUT_SAMPLES)

static void take(struct lull_vec *steps, const struct lull_rounds *rounds, u32 lane,
		 struct lull_span window)
{
	const struct lull_round *at = rounds->all.at;

	for (size_t i = 0; i < rounds->all.n; i++) {
		u64 end_ns = i + 1 < rounds->all.n ? at[i + 1].mark_ns : rounds->last_ns;
		u64 dur_ns = end_ns > at[i].mark_ns ? end_ns - at[i].mark_ns : 0;

		if (!lull_span_holds(window, at[i].mark_ns, dur_ns))
			continue;
		*(struct lull_step *)lull_vec_push(steps) = (struct lull_step){
			.start_ns = at[i].mark_ns,
			.dur_ns = dur_ns,
			.number = i,
			.lane = lane,
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

/* The thread that starts the work; PyTorch's backward threads come and go in between. */
static u32 leading_lane(const struct lull_chain *c)
{
	return c->n ? c->nodes[0].lane : 0;
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
		take(steps, &rounds, leading_lane(&chain), window);
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
	for (size_t i = 0; i < pairs.n && at[i].n * SMALL_PART >= at[0].n; i++) {
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
