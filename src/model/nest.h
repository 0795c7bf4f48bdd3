/*
 * nest - the ranges of threads as a tree.
 *
 * A thread has one stack of ranges for each NVTX domain, so parents, levels and children are
 * counted within a thread and a domain. Lookups of the ranges open at a point in time cover all
 * domains.
 *
 * What it gives:  ranges by start; the number of a range is its place there, counted from 1.
 * Start/end:      ranges that were started and ended by id are on no stack: level 0, no relatives.
 * Memory:         72 bytes per range.
 * Threads:        one; lookups leave hints for the next ones.
 */
#ifndef LULL_MODEL_NEST_H
#define LULL_MODEL_NEST_H

#include "base/str.h"
#include "base/types.h"
#include "base/vec.h"
#include "model/span.h"
#include "trace/reader.h"

/* Bits of range.flags. */
#define LULL_RANGE_START_END	4u /* started and ended by id, not pushed and popped */
#define LULL_RANGE_OTHER_THREAD 8u /* ended on another thread */

/* label.api of ranges that are annotations of an imported trace, and the same on a device. */
#define LULL_LABEL_API_ANNOTATION 3
#define LULL_LABEL_API_ON_DEVICE  4
#define LULL_LABEL_API_HOOK	  6
#define LULL_LABEL_API_REQUEST	  7 /* wire/request_mark.h */

/* Whether ranges of this label are of our hooks, not of the program. */
static inline bool lull_nest_is_hook(const struct lull_label_row *label)
{
	return label->api == LULL_LABEL_API_HOOK || label->api == LULL_LABEL_API_REQUEST;
}

/*
 * Whether ranges of this label are the shadow that other ranges throw on a device: they are on
 * streams, not on threads, and what they say of the program is said already.
 */
static inline bool lull_nest_is_shadow(const struct lull_label_row *labels, u32 label)
{
	return label && labels[label - 1].api == LULL_LABEL_API_ON_DEVICE;
}

struct lull_nest_range {
	u64 start_ns;
	u64 dur_ns;
	u64 child_ns; /* sum of its direct children */
	u32 lane;
	u32 label;
	u32 parent; /* number, 0 for none */
	u32 outer;  /* private: the last one begun on the thread that was open at its start */
	u32 n_children;
	u32 level;
	u8 depth; /* as recorded */
	u8 flags;
};

struct lull_nest {
	struct lull_vec ranges; /* struct lull_nest_range */
	u32 *numbers;		/* private: by lane, then start */
	u64 *starts_ns;		/* private: of these, so that a search stays in the cache */
	size_t *first_ix;	/* private: where a lane begins there, one more than lanes */
	size_t *hints;		/* private: by lane, where the last question ended */
	size_t n_lanes;
};

/* Which ranges are taken. */
enum lull_nest_styles {
	LULL_NEST_PUSHPOP,
	LULL_NEST_ONE_THREAD, /* and start/end ranges that ended where they began */
};

/* Collect the ranges that lie in `window`. */
void lull_nest_init(struct lull_nest *n, struct lull_reader *r, struct lull_span window,
		    enum lull_nest_styles styles);

/* Free them. */
void lull_nest_release(struct lull_nest *n);

/* The range of this number. */
static inline const struct lull_nest_range *lull_nest_get(const struct lull_nest *n, u32 number)
{
	return (const struct lull_nest_range *)n->ranges.at + number - 1;
}

/* The number of the innermost range that holds `span` on this thread, 0 if there is none. */
u32 lull_nest_find(const struct lull_nest *n, u32 lane, struct lull_span span);

/* The next one outside of `number` that holds `span`, 0 if there is none. */
u32 lull_nest_outside(const struct lull_nest *n, u32 number, struct lull_span span);

/* Append ":5:6", the numbers from the outermost parent to this range. */
void lull_nest_stack(struct lull_str *to, const struct lull_nest *n, u32 number);

#endif
