/*
 * attach_int - shared by the files of attach/; no other file includes it.
 */
#ifndef LULL_ATTACH_ATTACH_INT_H
#define LULL_ATTACH_ATTACH_INT_H

#include <sys/user.h>

#include "attach/attach.h"
#include "wire/attach_block.h"

/* The system call in which a thread was shortly before it was stopped. */
struct lull_seen_call {
	bool is_known;
	u64 number, args[6], sp, pc;
};

/* A thread that is stopped, and what is done to it. */
struct lull_tracee {
	const struct lull_attach_target *target;
	const struct lull_attach_wish *wish;
	pid_t tid;
	struct user_regs_struct regs; /* as it was stopped */
	struct user_regs_struct call; /* where the function begins, with the frame below */
	u64 frame_addr;		      /* what the stack pointer is when rt_sigreturn() is called */
	struct lull_seen_call seen;
	struct lull_seen_call last;    /* the last one that is known: it may be in it again */
	struct lull_attach_span stack; /* the thread's own, as far as it may be used */
	bool is_asked;	 /* it is to stop, and has not yet; `seen` is from before that */
	bool is_in_call; /* the last stop was at the entry of a system call */
	u64 stopped_ns;
	u32 n_steps;
	char why[96]; /* why this was no safe point */
};

/* target.c: copy memory of the process; false if not all of it is there. */
bool lull_attach_read(pid_t pid, u64 addr, void *to, size_t n_bytes);
/* Write it, also where the program may not; not atomic. */
bool lull_attach_write(struct lull_tracee *t, u64 addr, const void *from, size_t n_bytes);
/* Whether the process still runs the program that was looked at. */
bool lull_attach_is_same(const struct lull_attach_target *t);
/* A line of /proc/PID/status, or of one of its threads: the text after "KEY:\t"; false if none. */
bool lull_attach_status(pid_t pid, const char *key, char *to, size_t room);

/* ptrace() that tells the test of each step. */
long lull_attach_trace(struct lull_tracee *t, int request, u64 addr, void *data);

/*
 * thread.c: stop a thread at a safe point; tries others and later until `until_ns`. On success the
 * thread is in a ptrace stop and t->regs is filled.
 */
int lull_attach_stop(struct lull_tracee *t, u64 until_ns, u32 *n_tries, struct lull_err *err);
/* Let it go as it is. */
void lull_attach_let_go(struct lull_tracee *t);

/* sigframe.c: the same for both machines. */
u64 lull_attach_pc(const struct user_regs_struct *r);
u64 lull_attach_sp(const struct user_regs_struct *r);
/* Where the variables of the stopped thread lie that each thread has; 0 if that is not known. */
u64 lull_attach_variables(struct lull_tracee *t);
/* Whether it runs code of the machine that our functions are for; 32-bit code is none. */
bool lull_attach_is_native(const struct user_regs_struct *r);
bool lull_attach_get_regs(struct lull_tracee *t, struct user_regs_struct *r);
bool lull_attach_set_regs(struct lull_tracee *t, const struct user_regs_struct *r);
/* The number and the result of the system call at which the thread is stopped. */
u64 lull_attach_number(const struct user_regs_struct *r);
u64 lull_attach_result(const struct user_regs_struct *r);
/* Skip the system call at whose entry the thread is stopped; the registers were set before. */
bool lull_attach_skip(struct lull_tracee *t);
/*
 * A wait that our stop has broken off, and that the kernel would not begin again: make it so in
 * t->regs and in the thread.
 */
bool lull_attach_unbreak(struct lull_tracee *t);
/* Write the frame with what t->regs and the kernel say of the thread; fills t->call. */
int lull_attach_frame(struct lull_tracee *t, struct lull_err *err);
/* Registers that call a function with these arguments and return into rt_sigreturn(). */
struct user_regs_struct lull_attach_call_regs(const struct lull_tracee *t, u64 function,
					      const u64 *args, u32 n_args);

/* call.c: run the function on the stopped thread; *result is that of its last system call. */
int lull_attach_call(struct lull_tracee *t, u64 function, const u64 *args, u32 n_args, i64 *result,
		     struct lull_err *err);

/* rights.c: whether we may trace it; if not, who has to be asked. */
int lull_attach_check_rights(const struct lull_attach_target *t, struct lull_err *err);
/* It has filters of system calls of which it is not known that they are those of a container. */
bool lull_attach_has_filters(pid_t pid);
/* It may only read, write and end (seccomp's first mode). */
bool lull_attach_is_strict(pid_t pid);

struct sock_filter;

/*
 * filters.c: the name of a system call that the agent makes and for which this filter would end the
 * program; NULL if there is none.
 */
const char *lull_attach_harmful_call(const struct sock_filter *code, long n);
/* Whether the filters of the stopped thread let the agent in; 0, or why not. */
int lull_attach_check_filters(struct lull_tracee *t, struct lull_err *err);

/* occupied.c: the process is recorded already, by lull of this build or another one. */
bool lull_attach_is_occupied(pid_t pid);

/* stub.c: the code to copy. */
const u8 *lull_attach_code(size_t *n_bytes);

#endif
