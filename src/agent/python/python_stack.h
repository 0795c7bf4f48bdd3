/*
 * python_stack - the Python stack of the calling thread, read by the thread itself.
 *
 * What it gives:  a hash that identifies the stack, defined in the thread's stream: functions,
 *                 files and lines. The frames of a thread do not change while it is in C, so
 *                 neither the interpreter's lock nor a copy is needed, and no stack can be torn.
 * What it checks: the offsets of CPython's fields come from wire/python_layouts.def. They are
 *                 verified on a known stack before they are used.
 * Cost:           a few loads per frame; names are read once per recording.
 * Limits:         3.9 to 3.14, not the free-threaded builds; the innermost LULL_PYTHON_STACK_MAX
 *                 frames.
 */
#ifndef LULL_AGENT_PYTHON_PYTHON_STACK_H
#define LULL_AGENT_PYTHON_PYTHON_STACK_H

#include "agent/core/ring.h"

#define LULL_PYTHON_STACK_MAX 48u

/*
 * Called by a Python function: find out where this interpreter (PY_VERSION_HEX) has its frames. The
 * innermost must be one of `code`, an address, that is at `line`, and its caller one of
 * `caller_code`. False if that is not what is found; then lull_python_stack() gives nothing.
 */
bool lull_python_stack_learn(u32 version, u64 code, u32 line, u64 caller_code);

/* The stack of this thread, 0 if it runs no Python, or there was no room to define it. */
u64 lull_python_stack(struct lull_thread *t);

/*
 * The same for callers that may come at any time: 0 also while the interpreter ends, since it frees
 * the states of threads that still run.
 */
u64 lull_python_stack_anytime(struct lull_thread *t);

#endif
