#include "model/step_windows.h"

#include <stdlib.h>

#include "model/busy.h"
#include "model/chain.h"
#include "model/host.h"
#include "model/rounds.h"
#include "model/unit.h"

static u32 add_windows(struct lull_vec *windows, struct lull_reader *r,
		       const struct lull_unit_pair *pair, const u32 *tracks)
{
	struct lull_units units;
	struct lull_chain chain;
	struct lull_host host;
	struct lull_rounds rounds;
	u32 n;

	lull_units_init(&units, r, pair->process, pair->track, tracks);
	lull_chain_init(&chain, r, pair->process, &units);
	lull_host_init(&host, r, &chain, 0);
	lull_rounds_init(&rounds, r, pair->process, &chain, &units, &host, 0);
	n = lull_rounds_n_steady(&rounds);
	for (u32 i = rounds.first_steady; i < rounds.first_steady + n; i++)
		*(struct lull_span *)lull_vec_push(windows) =
			(struct lull_span){ lull_round_begin_ns(&rounds, i),
					    lull_round_end_ns(&rounds, i) };
	lull_rounds_release(&rounds);
	lull_host_release(&host);
	lull_chain_release(&chain);
	lull_units_release(&units);
	return n;
}

u32 lull_step_windows(struct lull_vec *windows, struct lull_reader *r)
{
	u32 *tracks = lull_busy_devices(r), n = 0;
	struct lull_vec pairs;
	const struct lull_unit_pair *first;

	lull_vec_init(&pairs, sizeof(struct lull_unit_pair));
	lull_units_pairs(&pairs, r, tracks);
	first = pairs.at;
	if (pairs.n && first->process && first->track)
		n = add_windows(windows, r, first, tracks);
	lull_vec_release(&pairs);
	free(tracks);
	return n;
}
