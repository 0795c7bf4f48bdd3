#include "report/process_rounds.h"

#include <stdlib.h>

#include "base/mem.h"
#include "model/busy.h"
#include "model/step_found.h"

/* Processes with less than this part of the work of the busiest are helpers, not loops. */
#define SMALL_PART 20

/* Rounds are found by ranges, operators and calls of the C library. */
#define NOT_NEEDED \
	(LULL_WITHOUT_PYTHON | LULL_WITHOUT_GIL | LULL_WITHOUT_SCHED | LULL_WITHOUT_SAMPLES)

/* The round with this mark, or LULL_NONE. */
static u32 round_at(const struct lull_rounds *rounds, u64 mark_ns)
{
	const struct lull_round *at = rounds->all.at;
	u32 low = 0, high = (u32)rounds->all.n;

	while (low < high) {
		u32 middle = low + (high - low) / 2;

		if (at[middle].mark_ns < mark_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low < rounds->all.n && at[low].mark_ns == mark_ns ? low : LULL_NONE;
}

static bool is_of(const struct lull_lane_row *lanes, u32 lane, u32 process)
{
	return lane && lanes[lane - 1].process == process;
}

/* The program counts: its numbers and its thread. */
static void number_by_table(struct lull_process_rounds *p, const struct lull_lane_row *lanes)
{
	struct lull_step_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, p->reader, LULL_TABLE_step, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			u32 round = round_at(&p->rounds, cols.start_ns[i]);

			if (round == LULL_NONE || !is_of(lanes, cols.lane[i], p->process))
				continue;
			p->numbers[round] = cols.number[i];
			p->lane = cols.lane[i];
		}
	}
	lull_cursor_release(&c);
}

/* The thread whose ranges begin the rounds. */
static void find_lane(struct lull_process_rounds *p, const struct lull_lane_row *lanes)
{
	struct lull_range_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, p->reader, LULL_TABLE_range, 0, UINT64_MAX);
	lull_cursor_want(&c, "start_ns");
	lull_cursor_want(&c, "lane");
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			if (is_of(lanes, cols.lane[i], p->process) &&
			    round_at(&p->rounds, cols.start_ns[i]) != LULL_NONE)
				p->lane = cols.lane[i];
		}
	}
	lull_cursor_release(&c);
}

static void find_names(struct lull_process_rounds *p)
{
	size_t n_lanes;
	const struct lull_lane_row *lanes = lull_reader_dim(p->reader, LULL_TABLE_lane, &n_lanes);

	p->numbers = lull_alloc(p->rounds.all.n + 1, sizeof(*p->numbers));
	for (size_t i = 0; i < p->rounds.all.n; i++)
		p->numbers[i] = i;
	/*
	 * Threads of the backward pass come and go: the one that is first goes through the steps.
	 */
	p->lane = p->chain.n ? p->chain.nodes[0].lane : 0;
	switch (p->rounds.source) {
	case LULL_ROUNDS_STEP:
	case LULL_ROUNDS_HOOK:
		number_by_table(p, lanes);
		break;
	case LULL_ROUNDS_RANGE:
	case LULL_ROUNDS_NAMED:
	case LULL_ROUNDS_FORWARD:
		find_lane(p, lanes);
		break;
	default:
		break;
	}
}

static void release(struct lull_process_rounds *p)
{
	free(p->numbers);
	lull_rounds_release(&p->rounds);
	lull_host_release(&p->host);
	lull_chain_release(&p->chain);
	lull_units_release(&p->units);
}

static bool visit_pair(struct lull_reader *r, const struct lull_unit_pair *pair, const u32 *tracks,
		       lull_process_rounds_visit *visit, void *ctx)
{
	struct lull_process_rounds p = { .reader = r,
					 .process = pair->process,
					 .track = pair->track };
	bool has_rounds;

	lull_units_init(&p.units, r, pair->process, pair->track, tracks);
	lull_chain_init(&p.chain, r, pair->process, &p.units);
	lull_host_init(&p.host, r, &p.chain, NOT_NEEDED);
	lull_rounds_init(&p.rounds, r, pair->process, &p.chain, &p.units, &p.host, NOT_NEEDED);
	find_names(&p);
	has_rounds = p.rounds.all.n > 0;
	p.last_ns = has_rounds ? lull_steps_last_end_ns(&p.rounds, &p.chain) : 0;
	if (has_rounds)
		visit(ctx, &p);
	release(&p);
	return has_rounds;
}

size_t lull_process_rounds_each(struct lull_reader *r, bool is_first_only,
				lull_process_rounds_visit *visit, void *ctx)
{
	u32 *tracks = lull_busy_devices(r);
	size_t n_processes, n_found = 0;
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
		n_found += visit_pair(r, &at[i], tracks, visit, ctx);
		if (is_first_only)
			break;
	}
	lull_vec_release(&pairs);
	free(is_seen);
	free(tracks);
	return n_found;
}

struct lull_span lull_process_round_span(const struct lull_process_rounds *p, u32 round)
{
	const struct lull_round *at = p->rounds.all.at;
	u64 end_ns = round + 1 < p->rounds.all.n ? at[round + 1].mark_ns : p->last_ns;

	return (struct lull_span){ at[round].mark_ns,
				   end_ns > at[round].mark_ns ? end_ns : at[round].mark_ns };
}

struct lull_span lull_process_round_window(const struct lull_process_rounds *p, u32 round)
{
	if (lull_rounds_are_marked(&p->rounds))
		return lull_process_round_span(p, round);
	return (struct lull_span){ lull_round_begin_ns(&p->rounds, round),
				   lull_round_end_ns(&p->rounds, round) };
}
