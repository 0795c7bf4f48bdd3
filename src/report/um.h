/*
 * um - what the reports about unified memory share.
 */
#ifndef LULL_REPORT_UM_H
#define LULL_REPORT_UM_H

#include "text/out.h"
#include "report/report.h"

/* um_event.kind */
enum lull_um_kind {
	LULL_UM_HTOD = 1,
	LULL_UM_DTOH = 2,
	LULL_UM_CPU_FAULT = 3,
	LULL_UM_GPU_FAULT = 4,
};

/* What happened to some of the memory. */
struct lull_um_sum {
	u64 htod_bytes;
	u64 dtoh_bytes;
	u64 n_cpu_faults;
	u64 n_gpu_faults;
	u64 moved_ns; /* time of the migrations */
};

struct lull_um_event {
	u64 start_ns;
	u64 dur_ns;
	u64 address;
	u64 size_bytes;
	u64 n_faults;
	u64 pc;
	u8 kind;
};

/* Called for each event in the time asked for. */
typedef void lull_um_visit(void *ctx, const struct lull_um_event *event);

/* Walk them. */
void lull_um_each(struct lull_reader *r, const struct lull_report_options *options,
		  lull_um_visit *visit, void *ctx);

/* Count an event. */
void lull_um_add(struct lull_um_sum *sum, const struct lull_um_event *event);

/* Fill the next cell with an address in hex. */
void lull_um_put_address(struct lull_out *out, u64 address);

#endif
