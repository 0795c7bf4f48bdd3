/*
 * refusal - which call of CUPTI failed, and what it said.
 *
 *	LULL_TRY(cuptiPCSamplingStop, &params);		needs `api` and `p`, which has `refused`
 */
#ifndef LULL_AGENT_COUNTERS_REFUSAL_H
#define LULL_AGENT_COUNTERS_REFUSAL_H

#include <stdbool.h>

struct lull_refusal {
	int error;	  /* of CUPTI, 0 = none; -1: this CUPTI lacks a function */
	const char *step; /* in which call */
};

/* Note it; always false. */
static inline bool lull_refuse(struct lull_refusal *r, const char *step, int error)
{
	r->step = step;
	r->error = error;
	return false;
}

/* Call a function of `api`; unless it succeeds, note that in p->refused and return false. */
#define LULL_TRY(call, params)                                       \
	do {                                                         \
		int rc_ = api.call(params);                          \
                                                                     \
		if (rc_ != 0)                                        \
			return lull_refuse(&p->refused, #call, rc_); \
	} while (0)

#endif
