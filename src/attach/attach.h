/*
 * attach - load the agent into a program that runs already.
 *
 * How it goes:
 *   1. lull_attach_inspect() reads all that is needed from /proc/PID and from the memory of the
 *      program: rights, its C library, addresses of functions. What cannot work is refused here,
 *      with nothing changed.
 *   2. lull_attach_enter() forks a tracer, so that whatever happens to it is the end of the tracer
 *      alone: the kernel lets go of a program whose tracer has died.
 *   3. The tracer chooses a thread, best one that waits in a system call, and stops it
 *      (PTRACE_SEIZE, PTRACE_INTERRUPT); the others run on. It unwinds the thread's stack: in a
 *      signal handler, the loader, the allocator, fork or a restartable sequence it is let go, and
 *      another one or a later moment is tried (thread.c).
 *   4. It writes a signal frame with all registers below the thread's stack pointer, as the kernel
 *      does for a handler, and then sets the registers once: to a function, with the C library's
 *      call of rt_sigreturn() as its return address (sigframe.c, call.c). From that moment on
 *      nobody needs the tracer: if it dies, the thread runs the function, returns, and
 *      rt_sigreturn() puts back each register, the signal mask and the interrupted system call. The
 *      usual way is the same one, so there is no second way that is never tried.
 *   5. Three functions are called so: mmap() and mprotect() for two pages, and the stub (stub.c),
 *      which starts a thread. Then the stopped thread is let go: it was away for less than a
 *      millisecond, in which no other thread waited for it.
 *   6. The new thread calls dlopen() and then lull_agent_attach() of the agent, with the folder of
 *      the session as argument. It stays as the agent's own thread until the recording is over, or
 *      the recorder dead. Then the agent takes all its hooks out and ends the thread. What stays is
 *      the library, which is mapped once however often it is entered, and does nothing.
 *
 * What stays if the tracer dies: between 5 and 6 at most two pages without use.
 */
#ifndef LULL_ATTACH_ATTACH_H
#define LULL_ATTACH_ATTACH_H

#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"
#include "base/types.h"

/* Functions of the program's C library. */
struct lull_attach_calls {
	u64 mmap, mprotect, munmap, pthread_create, pthread_detach, dlopen, dlsym, dlerror;
	u64 sigreturn; /* code that calls rt_sigreturn() */
};

/* Code in which a thread must not be stopped. */
struct lull_attach_span {
	u64 start, end;
};

#define LULL_ATTACH_SPANS 96

struct lull_attach_target {
	pid_t pid;
	char name[32];
	struct lull_attach_calls calls;
	u8 code[2][16]; /* what stands at mmap() and at the call of rt_sigreturn() */
	struct lull_attach_span libc;
	struct lull_attach_span unsafe[LULL_ATTACH_SPANS];
	u32 n_unsafe;
	bool has_filters;     /* of system calls, and some may end it */
	bool has_own_malloc;  /* the program itself has the allocator: where, is not known */
	bool is_other_mounts; /* it sees other files than we do */
};

struct lull_attach_wish {
	const char *agent_path;	 /* as the program sees it */
	const char *folder;	 /* likewise */
	const char *python_path; /* of our package, "" for none */
	u64 number;
	/* For tests: called before and after each change of the program. */
	void (*on_step)(void *ctx, u32 step);
	void *ctx;
};

struct lull_attach_done {
	u64 stop_ns; /* how long the thread was stopped */
	u32 n_tries; /* stops until one was at a safe point */
	u32 n_steps; /* as on_step() counts them */
};

/*
 * Find out whether and how the process can be entered. LULL_E_NOT_FOUND: there is no such process;
 * LULL_E_UNSUPPORTED: it cannot be entered, with the reason; LULL_E_IO: we may not.
 */
int lull_attach_inspect(struct lull_attach_target *t, pid_t pid, struct lull_err *err);

/*
 * Put a copy of the agent where a process with other files can load it, and append its path as that
 * process sees it. The copy stays: what is loaded once is not loaded again.
 */
int lull_attach_lend(pid_t pid, const char *agent_path, struct lull_str *path,
		     struct lull_err *err);

/* Load the agent, and wait until it says that it is in. */
int lull_attach_enter(const struct lull_attach_target *t, const struct lull_attach_wish *wish,
		      struct lull_attach_done *done, struct lull_err *err);

#endif
