/*
 * python - the Python stacks of a live process, read from outside without stopping it.
 *
 * What it gives:  for each Python thread its frames (function, file, line) and whether it holds the
 *                 interpreter lock. CPython 3.9 to 3.14, 64-bit, not the free-threaded builds.
 * What it checks: the target runs on while it is read, so every pointer may be stale: a read that
 *                 fails, an object that is no code object, a chain without end are all expected.
 *                 Such a stack is read once more and then counted as torn. Nothing that is read
 *                 can make us loop or overrun.
 * Ownership:      lull_python_attach() allocates, lull_python_free() frees. Frames and their
 *                 strings are valid until the callback returns.
 * Threads:        one thread only.
 * Cost:           nothing in the target. Attach 0.3 to 20 ms (symbols of the interpreter); a sample
 *                 of three threads and 56 frames 20 us on 3.11, up to 50 us on 3.9.
 */
#ifndef LULL_RECORD_PYTHON_PYTHON_H
#define LULL_RECORD_PYTHON_PYTHON_H

#include <sys/types.h>

#include "base/err.h"
#include "base/types.h"

/* Deeper stacks are cut: the innermost frames are kept. */
#define LULL_PYTHON_MAX_FRAMES 256

struct lull_python_frame {
	u32 code_id; /* the same code object has the same id for as long as we are attached */
	u32 line;    /* where it is, 0 if unknown */
	u32 first_line;
	const char *function; /* qualified from 3.11 on: "Model.forward" */
	const char *file;
};

struct lull_python_stack {
	u32 tid; /* as the process itself counts them, within its pid namespace */
	bool has_gil;
	bool is_cut;				/* outer frames are missing */
	const struct lull_python_frame *frames; /* innermost first */
	size_t n_frames;
};

typedef void lull_python_stack_fn(void *ctx, const struct lull_python_stack *stack);

/* The tid of the thread with this pthread_t, 0 if unknown. */
typedef u32 lull_python_tid_fn(void *ctx, u64 pthread_id);

struct lull_python;

/*
 * Find the interpreter in `pid`. `runtime_hint` is the address of _PyRuntime if the caller knows
 * it, else 0. LULL_E_NOT_FOUND: no interpreter is mapped (yet). LULL_E_UNSUPPORTED: one of an
 * unknown version, a free-threaded one, or reading the process is not permitted. After an exec of
 * the process attach anew. The caller frees *py.
 */
int lull_python_attach(struct lull_python **py, pid_t pid, u64 runtime_hint, struct lull_err *err);

/* Free; NULL is fine. */
void lull_python_free(struct lull_python *py);

/*
 * Before 3.11 Python knows its threads by pthread_t only. Without a lookup the tid is read from
 * glibc's thread descriptor and checked against /proc; an agent inside the process may know better.
 */
void lull_python_set_tid_lookup(struct lull_python *py, lull_python_tid_fn *lookup, void *ctx);

/*
 * Call `stack` for each thread with a Python stack. LULL_E_NOT_FOUND when the process is gone,
 * LULL_E_UNSUPPORTED when it may not be read any more (it changed its user, say).
 */
int lull_python_sample(struct lull_python *py, lull_python_stack_fn *stack, void *ctx,
		       struct lull_err *err);

/* Such as "3.11.2"; only "3.9" or "3.10" if the file does not say. Borrowed. */
const char *lull_python_version_text(const struct lull_python *py);

/* Stacks that could not be read because they changed meanwhile, since attach. */
u64 lull_python_n_torn(const struct lull_python *py);

#endif
