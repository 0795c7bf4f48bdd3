/*
 * gil - waits for Python's interpreter lock, seen at the condition variable the waiter sleeps on.
 *
 * Words of lull_thread.scratch used here hold one wait that is not yet known to be over: CPython
 * waits in slices of 5 ms and asks for the lock between them.
 */
#ifndef LULL_AGENT_PYTHON_GIL_H
#define LULL_AGENT_PYTHON_GIL_H

#include "agent/core/ring.h"
#include "agent/core/stack.h"

enum {
	LULL_SCRATCH_GIL_START = 1,
	LULL_SCRATCH_GIL_END = 2,
	LULL_SCRATCH_GIL_SLICES = 3, /* 0: no wait is held back */
};

/* Watch the condition variables inside [start_addr, +size_bytes), which is _PyRuntime. */
void lull_gil_watch(u64 start_addr, u64 size_bytes);

/* Write the wait held back, if there is one, with a stack if regs is not NULL. errno may change. */
void lull_gil_emit(struct lull_thread *t, const struct lull_wire_regs *regs);

/* The same without a stack; inline, because nearly always there is none. */
static inline void lull_gil_flush(struct lull_thread *t)
{
	if (__builtin_expect(t->scratch[LULL_SCRATCH_GIL_SLICES] != 0, 0))
		lull_gil_emit(t, NULL);
}

#endif
