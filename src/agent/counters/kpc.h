/*
 * kpc - program counter samples of one launch, from CUPTI: where its warps were, and why they
 * stalled.
 *
 *	struct lull_kpc *p = lull_kpc_open(context);
 *	if (lull_kpc_start(p)) {
 *		the program launches a kernel, and the device is idle again
 *		lull_kpc_stop(p);			p->data.n_pcs of p->pcs
 *	}
 *
 * The counters of kprof.h and this exclude each other: the other has to be paused.
 */
#ifndef LULL_AGENT_COUNTERS_KPC_H
#define LULL_AGENT_COUNTERS_KPC_H

#include "agent/counters/refusal.h"
#include "wire/cuprof.h"

#define LULL_KPC_MAX_PCS     8192u
#define LULL_KPC_MAX_REASONS 64u
#define LULL_KPC_NAME_BYTES  128u /* CUPTI writes so much of a reason's name at most */

struct lull_kpc {
	void *context;
	struct lull_refusal refused; /* .error is 0 when it is ready */
	size_t n_reasons;
	u32 indices[LULL_KPC_MAX_REASONS];
	char names[LULL_KPC_MAX_REASONS][LULL_KPC_NAME_BYTES];
	struct lull_pc_data data, buffer; /* ours, and the one that CUPTI fills by itself */
	struct lull_pc_pc pcs[2][LULL_KPC_MAX_PCS];
	struct lull_pc_stall stalls[2][LULL_KPC_MAX_PCS][LULL_KPC_MAX_REASONS];
};

/* Get ready; NULL only if there is no memory. */
struct lull_kpc *lull_kpc_open(void *context);

/* Before the launch, with an idle device; false with ->refused if CUPTI refuses. */
bool lull_kpc_start(struct lull_kpc *p);

/* After it ended: the samples are in ->data. False with ->refused if there are none. */
bool lull_kpc_stop(struct lull_kpc *p);

/* The name of a reason, "" if it is not known. */
const char *lull_kpc_reason(const struct lull_kpc *p, u32 reason_ix);

/*
 * A module with device code was loaded: keep a copy, for lines of source. Up to 512 MiB in a
 * process.
 */
void lull_kpc_module(const void *cubin, size_t size_bytes);

/* The line of an instruction; false if its module was not built with -lineinfo. */
bool lull_kpc_line(const struct lull_pc_pc *pc, struct lull_pc_source *source);

#endif
