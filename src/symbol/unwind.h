/*
 * unwind - from registers and a copied piece of stack to the list of program counters.
 *
 * How:       frame by frame: the unwind tables of the file (cfi), where there are none the frame
 *            pointer, and for the innermost frame on aarch64 the link register. Never a scan of the
 *            stack: a wrong frame is worse than a missing one.
 * Order:     innermost frame first. lull_pc.addr is the raw counter; lull_pc.vaddr is what to look
 *            up, already minus 1 for return addresses and exact for the innermost frame and for
 *            interrupted ones.
 * Honesty:   a stack that does not reach the outermost frame says why (enum lull_cut).
 * Ownership: the unwinder keeps rules per file index, so it belongs to one struct lull_files.
 * Threads:   one at a time; one unwinder per thread is fine, but the files must then not be shared.
 * Cost:      see bench/bench_unwind: well under 100 ns a frame once a place is known, microseconds
 *            the first time.
 */
#ifndef LULL_SYMBOL_UNWIND_H
#define LULL_SYMBOL_UNWIND_H

#include "base/types.h"
#include "symbol/cfi.h"
#include "symbol/regs.h"
#include "symbol/space.h"

/* Why a stack ends. */
enum lull_cut {
	LULL_CUT_NONE = 0,     /* it is complete */
	LULL_CUT_STACK = 1,    /* the copied piece of stack was too short */
	LULL_CUT_NO_RULE = 2,  /* neither unwind tables nor a frame pointer */
	LULL_CUT_LOOP = 3,     /* the next frame would not be further up: something is wrong */
	LULL_CUT_CAPACITY = 4, /* no room in the result */
};

/* A list of frames, innermost first, in memory of the caller. */
struct lull_callstack {
	struct lull_pc *at;
	size_t cap;
	size_t n;
	enum lull_cut cut;
};

struct lull_unwind {
	struct lull_cfi cfi;
	u64 n_frames; /* frames given so far; with cfi.n_misses this tells the hit rate */
};

/* An unwinder with an empty cache. */
void lull_unwind_init(struct lull_unwind *u);

/* Forget everything. */
void lull_unwind_release(struct lull_unwind *u);

/*
 * Unwind one sample. `out` has room for out->cap frames; n and cut are set. There is always at
 * least one frame if cap allows it: the program counter itself.
 */
void lull_unwind_sample(struct lull_unwind *u, const struct lull_space *space,
			const struct lull_regs *regs, const struct lull_stack_bytes *stack,
			struct lull_callstack *out);

/*
 * Turn a call chain of perf (PERF_SAMPLE_CALLCHAIN, with its context markers) into frames. The
 * first address after a marker is exact, the others are return addresses.
 */
void lull_unwind_chain(const struct lull_space *space, const u64 *ips, size_t n,
		       struct lull_callstack *out);

/*
 * When `stack` is cut and its outermost frame also occurs in `chain`, append what the chain has
 * above it; cut then becomes that of the chain.
 */
void lull_unwind_merge(struct lull_callstack *stack, const struct lull_callstack *chain);

#endif
