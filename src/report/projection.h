/*
 * projection - ranges of threads projected to the devices: when the work ran that was launched in
 * them.
 *
 * Work belongs to every range that contains its launching call on the same thread; what a thread of
 * PyTorch's autograd launches, to those of the thread that waits for it (report/waiting.h). Ranges
 * that ended on another thread than they started on are left out. A range without work has no
 * projection.
 */
#ifndef LULL_REPORT_PROJECTION_H
#define LULL_REPORT_PROJECTION_H

#include "model/link.h"
#include "model/nest.h"
#include "report/report.h"

struct lull_projected {
	u64 first_ns; /* begin of the first work */
	u64 last_ns;  /* end of the last */
	u64 n_works;  /* 0: no projection */
};

struct lull_projection {
	struct lull_nest nest;
	struct lull_projected *ranges; /* by number - 1, one for each of the nest */
};

/* Project all ranges that lie in the time asked for. */
void lull_projection_init(struct lull_projection *p, struct lull_reader *r,
			  const struct lull_report_options *options);

/* Free everything. */
void lull_projection_release(struct lull_projection *p);

#endif
