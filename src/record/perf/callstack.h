/*
 * callstack - the address spaces of the recorded processes, and stacks in the report.
 *
 * Glue between what arrives (mappings from perf and agents; registers, stack bytes and call chains)
 * and the unwinder. A process has a space from its first mapping on; a forked child starts with a
 * copy of its parent's.
 */
#ifndef LULL_RECORD_PERF_CALLSTACK_H
#define LULL_RECORD_PERF_CALLSTACK_H

#include "record/recording.h"
#include "symbol/space.h"

/* A file was mapped in this process. */
void lull_callstack_map(struct lull_recording *r, struct lull_process *p,
			const struct lull_mmap *m);

/* A process that was there before us (system-wide samples): read its mappings once from /proc. */
void lull_callstack_look(struct lull_recording *r, struct lull_process *p);

/* `child` was forked from `parent`. */
void lull_callstack_fork(struct lull_recording *r, struct lull_process *child,
			 const struct lull_process *parent);

/* The process runs another program: forget its mappings. */
void lull_callstack_exec(struct lull_process *p);

/*
 * The stack id of a moment: registers and stack bytes (either may be NULL), and the kernel's call
 * chain. Returns 0 if there is nothing. *is_cut (may be NULL) says whether it ends before the
 * outermost frame.
 */
u32 lull_callstack_add(struct lull_recording *r, struct lull_process *p,
		       const struct lull_regs *regs, const struct lull_stack_bytes *bytes,
		       const u64 *chain, size_t n_chain, bool *is_cut);

/* Free what a process owns here; for lull_tree.on_free. */
void lull_callstack_free(struct lull_process *p);

#endif
