/*
 * windows - the steps of a report that can be compared.
 *
 * A step is a time window on the device, from the end of the previous work to the end of its own,
 * and another one on the host, from its mark to the next: a host that runs ahead is some steps
 * ahead. Steps are those of `lull why` (model/rounds), found if the program marks none; a report
 * without device work has those of its table `step`, the same on host and device.
 */
#ifndef LULL_COMPARE_WINDOWS_H
#define LULL_COMPARE_WINDOWS_H

#include "base/types.h"
#include "base/vec.h"
#include "trace/reader.h"

struct lull_why; /* cause/why.h */

struct lull_windows {
	struct lull_vec device; /* struct lull_span, by time, not overlapping */
	struct lull_vec host;	/* as many */
	size_t n_warmup;	/* steps at the beginning that were left out */
	u32 process;		/* whose steps they are; 0 if that is not known */
};

/* Find them; none if the report has no steps. */
void lull_windows_init(struct lull_windows *w, struct lull_reader *r);

/* The same where the report was asked why already; `why` is NULL if that failed. */
void lull_windows_init_why(struct lull_windows *w, struct lull_reader *r,
			   const struct lull_why *why);

/* Free them. */
void lull_windows_release(struct lull_windows *w);

/* How many steps there are. */
static inline size_t lull_windows_len(const struct lull_windows *w)
{
	return w->device.n;
}

#endif
