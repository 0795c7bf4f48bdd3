/*
 * interpreter - find the Python interpreter in this process, if there is one.
 *
 * Only its addresses are looked up here; the agent never holds its lock.
 */
#ifndef LULL_AGENT_PYTHON_INTERPRETER_H
#define LULL_AGENT_PYTHON_INTERPRETER_H

#include "base/types.h"

/*
 * Look for _PyRuntime in everything that is loaded, if it has not been found yet, and tell the
 * image and the GIL source where it is. At the start of each image and after each dlopen. Not legal
 * in a signal handler.
 */
void lull_python_find(void);

/* Address of _PyRuntime, 0 if it has not been found. */
u64 lull_python_runtime(void);

#endif
