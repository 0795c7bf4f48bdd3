#include "counter/stall.h"

#include <math.h>
#include <string.h>

const struct lull_stall_info lull_stalls[] = {
#define STALL(reason, kind, title, help) \
	{ #reason, LULL_STALL_##kind, title, help, LULL_K_stall_##reason },
#include "counter/stalls.def"
#undef STALL
};

/* Warps of a scheduler for each issued instruction: all states together. */
static f64 all_states(const struct lull_profile *p)
{
	f64 sum = 0;

	for (int i = 0; i < LULL_N_STALLS; i++)
		sum += p->metrics[lull_stalls[i].metric];
	if (isnan(sum))
		sum = p->metrics[LULL_K_warp_latency];
	return sum;
}

f64 lull_stall_share(const struct lull_profile *p, enum lull_stall_ix stall)
{
	f64 all = all_states(p);
	f64 share = p->metrics[lull_stalls[stall].metric] / all;

	return all > 0 ? (share > 1 ? 1 : share) : NAN;
}

int lull_stall_top(const struct lull_profile *p)
{
	int top = -1;
	f64 most = 0, rest = 1;

	for (int i = 0; i < LULL_N_STALLS; i++) {
		f64 share = lull_stall_share(p, (enum lull_stall_ix)i);

		rest -= isnan(share) ? 0 : share;
		if (lull_stalls[i].kind != LULL_STALL_WORK && share > most) {
			most = share;
			top = i;
		}
	}
	/* What was not measured may be more. */
	return most > rest ? top : -1;
}

int lull_stall_find(const char *reason)
{
	for (int i = 0; i < LULL_N_STALLS; i++)
		if (strcmp(lull_stalls[i].reason, reason) == 0)
			return i;
	return -1;
}

size_t lull_stalls_sorted(const struct lull_profile *p, enum lull_stall_ix to[LULL_N_STALLS])
{
	size_t n = 0;

	for (int i = 0; i < LULL_N_STALLS; i++) {
		f64 share = lull_stall_share(p, (enum lull_stall_ix)i);
		size_t at = n;

		if (isnan(share))
			continue;
		for (; at > 0 && lull_stall_share(p, to[at - 1]) < share; at--)
			to[at] = to[at - 1];
		to[at] = (enum lull_stall_ix)i;
		n++;
	}
	return n;
}
