#include "model/step_found.h"

#include <stdlib.h>

#include "base/mem.h"
#include "model/busy.h"
#include "model/rounds.h"
#include "model/step.h"

/* Processes with less than this part of the work of the busiest are helpers, not loops. */
#define SMALL_PART 20

/* Marks need ranges and operators alone. */
#define NOT_NEEDED                                                                         \
	(LULL_WITHOUT_PYTHON | LULL_WITHOUT_OSRT | LULL_WITHOUT_GIL | LULL_WITHOUT_SCHED | \
	 LULL_WITHOUT_SAMPLES)

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

/* The thread that starts the work; PyTorch's backward threads come and go in between. */
static u32 leading_lane(const struct lull_chain *c)
{
	return c->n ? c->nodes[0].lane : 0;
}

static void find_in(struct lull_vec *steps, struct lull_reader *r,
		    const struct lull_unit_pair *pair, const u32 *tracks, struct lull_span window)
{
	struct lull_units units;
	struct lull_chain chain;
	struct lull_host host;
	struct lull_rounds rounds;

	lull_units_init(&units, r, pair->process, pair->track, tracks);
	lull_chain_init(&chain, r, pair->process, &units);
	lull_host_init(&host, r, &chain, NOT_NEEDED);
	lull_rounds_init(&rounds, r, pair->process, &chain, &units, &host, NOT_NEEDED);
	if (leading_lane(&chain))
		take(steps, &rounds, leading_lane(&chain), window);
	lull_rounds_release(&rounds);
	lull_host_release(&host);
	lull_chain_release(&chain);
	lull_units_release(&units);
}

void lull_steps_find(struct lull_vec *steps, struct lull_reader *r, struct lull_span window)
{
	size_t n_processes;
	u32 *tracks = lull_busy_devices(r);
	const struct lull_unit_pair *at;
	struct lull_vec pairs;
	bool *is_seen;

	lull_reader_dim(r, LULL_TABLE_process, &n_processes);
	is_seen = lull_alloc(n_processes + 1, sizeof(*is_seen));
	lull_vec_init(&pairs, sizeof(struct lull_unit_pair));
	lull_units_pairs(&pairs, r, tracks);
	at = pairs.at;
	for (size_t i = 0; i < pairs.n && at[i].n * SMALL_PART >= at[0].n; i++) {
		if (!at[i].process || !at[i].track || is_seen[at[i].process])
			continue;
		is_seen[at[i].process] = true;
		find_in(steps, r, &at[i], tracks, window);
	}
	lull_vec_release(&pairs);
	free(is_seen);
	free(tracks);
}
