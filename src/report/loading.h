/*
 * loading - when batches were loaded: by workers of a loader, or by the thread of the steps itself.
 *
 * Ranges say so, by their names: those of PyTorch's hooks (dataloader.fetch, data_load) and the
 * program's own. Where other threads or child processes load, the thread of the steps only waits
 * for them, and its own ranges do not count.
 */
#ifndef LULL_REPORT_LOADING_H
#define LULL_REPORT_LOADING_H

#include "base/types.h"
#include "base/vec.h"
#include "model/span.h"
#include "trace/reader.h"

struct lull_loading {
	struct lull_vec spans; /* struct lull_span, by time, none touches another */
	u32 n_others;	       /* threads that load; 0: the thread of the steps does */
};

/* Find what was loaded in a stretch of time for the steps of this thread. */
void lull_loading_init(struct lull_loading *l, struct lull_reader *r, u32 lane,
		       struct lull_span window);

/* Free it. */
void lull_loading_release(struct lull_loading *l);

#endif
