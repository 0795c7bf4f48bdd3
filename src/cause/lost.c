#include "cause/lost.h"

#include "cause/marks.h"
#include "cause/thresholds.h"

f64 lull_lost_share(const struct lull_subject *s)
{
	u64 all_ns = s->host.ran_ns + s->host.preempted_ns;

	return all_ns ? (f64)s->host.preempted_ns / (f64)all_ns : 0;
}

/* Whether the call waits for the device, and what it started itself has ended. */
static bool is_done(const struct lull_subject *s, u32 node, u64 at_ns)
{
	const struct lull_node *n = &s->chain.nodes[node];

	if (n->kind != LULL_KIND_OF_SYNC && n->kind != LULL_KIND_OF_COPY)
		return false;
	for (u32 unit = n->unit; unit != LULL_NONE; unit = s->units.next[unit]) {
		if (s->units.at[unit].end_ns > at_ns)
			return false;
	}
	return true;
}

static bool is_lost(const struct lull_subject *s, u32 node, const struct lull_host_pause *pause,
		    u64 from_ns)
{
	if (pause->kind == LULL_HOST_PREEMPTED)
		return s->chain.nodes[node].kind != LULL_KIND_OF_LAUNCH ||
		       (s->marks[node] & LULL_MARK_PREEMPTED);
	return pause->kind == LULL_HOST_BLOCKED &&
	       pause->end_ns - from_ns >= LULL_TN(gap_long_ns) && is_done(s, node, from_ns) &&
	       lull_lost_share(s) >= LULL_T(crowded);
}

bool lull_lost_next(const struct lull_subject *s, u32 node, u64 from_ns, u64 to_ns,
		    struct lull_span *lost)
{
	const struct lull_host_pause *at = s->host.pauses.at;
	u32 lane = s->chain.nodes[node].lane;

	/* A pause may go on after the device is idle no more. */
	if (from_ns >= to_ns)
		return false;
	for (size_t i = lull_host_pause_at(&s->host, lane, from_ns);
	     i < s->host.pauses.n && at[i].lane == lane && at[i].begin_ns < to_ns; i++) {
		u64 begin_ns = at[i].begin_ns > from_ns ? at[i].begin_ns : from_ns;

		if (at[i].end_ns > from_ns && is_lost(s, node, &at[i], begin_ns)) {
			*lost = (struct lull_span){ begin_ns,
						    at[i].end_ns < to_ns ? at[i].end_ns : to_ns };
			return true;
		}
	}
	return false;
}

u64 lull_lost_ns(const struct lull_subject *s, u32 node, u64 from_ns, u64 to_ns)
{
	struct lull_span lost;
	u64 sum = 0;

	for (; lull_lost_next(s, node, from_ns, to_ns, &lost); from_ns = lost.to_ns)
		sum += lost.to_ns - lost.from_ns;
	return sum;
}
