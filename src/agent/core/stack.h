/*
 * stack - write an event with a copy of the top of the stack; the recorder unwinds it later.
 *
 * Guarantees:       both events are written next to each other in one commit, or neither is. Bytes
 *                   beyond the end of the stack are never touched: each page is probed before it is
 *                   read. So no bounds have to be known, and any stack works (main, thread,
 *                   alternate, coroutine).
 * Cost:             one system call per page of stack but the one that we are in, then a copy:
 *                   about 1 us for 6 KiB.
 * Signals:          safe in a signal handler. errno changes; callers inside the program's calls
 *                   save it.
 */
#ifndef LULL_AGENT_CORE_STACK_H
#define LULL_AGENT_CORE_STACK_H

#include "agent/core/ring.h"

/* Most stack that one event can carry; more is cut. */
#define LULL_STACK_MAX 24576u

/*
 * The registers of the function that called the one this is written in, as they were at the call.
 * pc lies inside the call instruction, so that a lookup gives the line of the call. Needs frame
 * pointers.
 */
#define LULL_CALLER_REGS()                                      \
	((struct lull_wire_regs){                               \
		.pc = (u64)__builtin_return_address(0) - 1,     \
		.sp = (u64)__builtin_dwarf_cfa(),               \
		.fp = *(const u64 *)__builtin_frame_address(0), \
	})

/*
 * Write the event *e, all of it filled in, with up to `max_bytes` of the stack from regs->sp before
 * it; sets LULL_HAS_STACK in its `a`. With max_bytes 0 the event goes alone. Counts a drop like
 * lull_reserve().
 */
void lull_stack_emit(struct lull_thread *t, const struct lull_event *e,
		     const struct lull_wire_regs *regs, u32 max_bytes);

/*
 * Copy up to n_bytes (a multiple of 8) from an address that may not be readable; returns how many
 * there were.
 */
u32 lull_stack_copy(void *to, u64 from_addr, u32 n_bytes);

/* From here on events go without stacks, and nothing is copied. */
void lull_stack_refuse(void);

#endif
