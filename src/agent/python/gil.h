/*
 * gil - waits for Python's interpreter lock, observed at the condition variable on which the thread
 * sleeps.
 *
 * CPython waits in slices of 5 ms and requests the lock between them. So a wait whose end is not
 * yet known is kept in lull_thread.gil.
 */
#ifndef LULL_AGENT_PYTHON_GIL_H
#define LULL_AGENT_PYTHON_GIL_H

#include "agent/core/ring.h"
#include "agent/core/stack.h"

/* Watch the condition variables inside [start_addr, +size_bytes), which is _PyRuntime. */
void lull_gil_watch(u64 start_addr, u64 size_bytes);

/* Write the wait held back, if there is one, with a stack if regs is not NULL. errno may change. */
void lull_gil_emit(struct lull_thread *t, const struct lull_wire_regs *regs);

/* The same without a stack; inline, because nearly always there is none. */
static inline void lull_gil_flush(struct lull_thread *t)
{
	if (__builtin_expect(t->gil.n_slices != 0, 0))
		lull_gil_emit(t, NULL);
}

#endif
