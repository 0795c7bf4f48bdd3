/*
 * process_rounds - the steps of a process as `lull why` finds them (model/rounds.h), with the work
 * and the calls they were found in.
 *
 * Which process:  those with work on a device, most work first, each on the device where it has
 *                 most. Processes with a small part of the work are helpers and are left out.
 * Numbers:        those of the report `steps`: what the program counts, or 0, 1, 2, ...
 * Cost:           0.6 us for a kernel and its call (model/step_found.h).
 */
#ifndef LULL_REPORT_PROCESS_ROUNDS_H
#define LULL_REPORT_PROCESS_ROUNDS_H

#include "base/types.h"
#include "model/chain.h"
#include "model/host.h"
#include "model/rounds.h"
#include "model/span.h"
#include "model/unit.h"
#include "trace/reader.h"

/* Finding them in this many kernels takes less than 0.1 s: done although nobody asked for it. */
#define LULL_ROUNDS_QUICK 100000

struct lull_process_rounds {
	struct lull_reader *reader; /* borrowed */
	u32 process;
	u32 track; /* the device: the row that stands for it (model/device.h) */
	u32 lane;  /* the thread that goes through the steps */
	struct lull_units units;
	struct lull_chain chain;
	struct lull_host host;
	struct lull_rounds rounds;
	u64 last_ns;  /* end of the last round on the host */
	u64 *numbers; /* by round */
};

/* Called for each process that has rounds; what it gets is freed afterwards. */
typedef void lull_process_rounds_visit(void *ctx, const struct lull_process_rounds *p);

/* Visit the processes, or only the one with most work. How many had rounds. */
size_t lull_process_rounds_each(struct lull_reader *r, bool is_first_only,
				lull_process_rounds_visit *visit, void *ctx);

/* When a round takes place on the host: from its mark to the next. */
struct lull_span lull_process_round_span(const struct lull_process_rounds *p, u32 round);

/* Its time in the report `steps`: on the host if steps are marked, else on the device. */
struct lull_span lull_process_round_window(const struct lull_process_rounds *p, u32 round);

#endif
