/*
 * link - which CUDA call launched which work.
 *
 * Work and the call that launched it have the same correlation id. Ids restart in every process, so
 * a call is found by process and id; the kernels of a graph share the id of its launch.
 *
 * Memory:         24 bytes per call and 4 for each id between the first and the last.
 */
#ifndef LULL_MODEL_LINK_H
#define LULL_MODEL_LINK_H

#include "base/types.h"
#include "base/vec.h"
#include "model/numbers.h"
#include "model/work.h"

struct lull_call {
	u64 start_ns;
	u64 dur_ns;
	u32 lane; /* thread */
	u32 name; /* string id */
};

struct lull_link {
	struct lull_vec calls;		   /* struct lull_call */
	struct lull_numbers numbers;	   /* private: index in calls + 1 */
	const struct lull_lane_row *lanes; /* private */
};

/* Collect the calls of the recording. */
void lull_link_init(struct lull_link *l, struct lull_reader *r);

/* Free them. */
void lull_link_release(struct lull_link *l);

/* The call that started this work, or NULL if it was not recorded. */
const struct lull_call *lull_link_find(const struct lull_link *l, const struct lull_work *work);

/* How long the work waited between the end of its call and its start; 0 if it started earlier. */
u64 lull_link_queue_ns(const struct lull_call *call, const struct lull_work *work);

/* From the start of the call to the end of call and work. */
u64 lull_link_total_ns(const struct lull_call *call, const struct lull_work *work);

/* From its start to its end. */
static inline struct lull_span lull_call_span(const struct lull_call *call)
{
	return (struct lull_span){ call->start_ns, lull_span_end_ns(call->start_ns, call->dur_ns) };
}

#endif
