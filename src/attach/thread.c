/*
 * thread - choose a thread of the program, and stop it where it holds nothing that others need.
 */
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/attach_int.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/sort.h"
#include "base/time.h"
#include "base/vec.h"
#include "symbol/unwind.h"

/* How long one thread may take to stop; mostly it is microseconds. */
#define STOP_NS (100 * LULL_NS_PER_S / 1000)

/* After all threads were tried. */
#define PAUSE_US 2000

/* The stack that our functions need, with the frame. */
#define ROOM_BYTES (24u << 10)

/* Of the stack, for unwinding. */
#define STACK_BYTES (64u << 10)
#define MAX_FRAMES  128u

/* Where instructions may begin. */
#ifdef __x86_64__
#define LOAD_STEP 1u
#else
#define LOAD_STEP 4u
#endif

#ifndef PTRACE_GET_RSEQ_CONFIGURATION
#define PTRACE_GET_RSEQ_CONFIGURATION 0x420f
#endif

struct rseq_config {
	u64 addr;
	u32 n_bytes, signature, flags, pad;
};

/* A thread that may be stopped. */
struct candidate {
	pid_t tid;
	u32 rank;      /* the lower the better */
	bool is_asked; /* to stop, and did not in time; the call is from before that */
	struct lull_seen_call call;
};

/* Where the code of the process lies, for unwinding. */
struct code {
	struct lull_files files;
	struct lull_space space;
	struct lull_unwind unwind;
	u8 *stack; /* a copy of the thread's */
	size_t n_stack;
};

static void open_code(struct code *c, pid_t pid)
{
	char path[64];
	struct lull_err ignored;

	lull_files_init(&c->files);
	lull_space_init(&c->space, &c->files, (u32)pid);
	lull_unwind_init(&c->unwind);
	c->stack = lull_alloc(1, STACK_BYTES);
	c->n_stack = 0;
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	lull_space_read_maps(&c->space, path, &ignored);
}

static void close_code(struct code *c)
{
	free(c->stack);
	lull_unwind_release(&c->unwind);
	lull_space_release(&c->space);
	lull_files_release(&c->files);
}

/* Waits that the kernel continues by restart_syscall() when they were interrupted. */
static bool is_continuable(u64 number)
{
#ifdef __x86_64__
	if (number == SYS_poll)
		return true;
#endif
	return number == SYS_nanosleep || number == SYS_clock_nanosleep || number == SYS_futex;
}

static bool is_in_libc(const struct lull_attach_target *target, u64 pc)
{
	return pc - target->libc.start < target->libc.end - target->libc.start;
}

/* No call of Linux has a larger number: what looks like a load is part of something else. */
#define MAX_NUMBER 1024u

/*
 * The number that the last load before this code loads, on aarch64 into this register; 0 if that is
 * none of these waits.
 */
static u64 number_before(const struct lull_attach_target *target, u64 pc, u32 reg)
{
	u8 code[64];
	u32 word, at = sizeof(code) - sizeof(word);
	u64 number = MAX_NUMBER;

	if (!lull_attach_read(target->pid, pc - sizeof(code), code, sizeof(code)))
		return 0;
	while (at >= 5 && number >= MAX_NUMBER) {
		at -= LOAD_STEP;
		memcpy(&word, code + at, sizeof(word));
#ifdef __x86_64__
		/* mov $number, %eax */
		(void)reg;
		number = code[at - 1] == 0xb8 ? word : number;
#else
		/* mov x8, number, or w8 */
		number = (word & 0x7fe0001f) == (0x52800000 | reg) ? word >> 5 & 0xffff : number;
#endif
	}
	return is_continuable(number) ? number : 0;
}

/*
 * glibc 2.41 and later has one function for all waits. It gets the number on the stack, or on
 * aarch64 in x6, which it may need for something else: there its caller tells.
 */
static u64 number_on_stack(const struct lull_attach_target *target,
			   const struct lull_seen_call *call)
{
	u64 words[8], number = 0;

	if (!is_in_libc(target, call->pc) ||
	    !lull_attach_read(target->pid, call->sp, words, sizeof(words)))
		return 0;
	for (u32 i = 0; i + 1 < LULL_COUNT_OF(words) && !number; i++) {
#ifdef __x86_64__
		if (is_in_libc(target, words[i]) && is_continuable(words[i + 1]))
			number = words[i + 1];
#else
		/* Return addresses may be signed in the bits that no address has. */
		u64 back = words[i] & ((1ull << 48) - 1);

		if (is_in_libc(target, back))
			number = number_before(target, back, 6);
#endif
	}
	return number;
}

/*
 * A wait that was interrupted, by a stop or by Ctrl-Z, has the arguments of the call that it was.
 * Which one has to be found.
 */
static void name_continued(const struct lull_attach_target *target, struct lull_seen_call *call)
{
	u64 number = number_before(target, call->pc, 8);

	if (!number)
		number = number_on_stack(target, call);
	if (number)
		call->number = number;
}

/* What the thread does: "running", or "NUMBER ARG... SP PC". */
static void read_call(const struct lull_attach_target *target, pid_t tid,
		      struct lull_seen_call *call)
{
	struct lull_str text = LULL_STR_INIT;
	char path[64];
	i64 number = -1;
	u64 *a = call->args;

	memset(call, 0, sizeof(*call));
	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", (int)target->pid, (int)tid);
	if (lull_file_read(path, &text) &&
	    sscanf(text.at,
		   "%" SCNd64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64
		   " %" SCNx64 " %" SCNx64 " %" SCNx64,
		   &number, &a[0], &a[1], &a[2], &a[3], &a[4], &a[5], &call->sp, &call->pc) == 9 &&
	    number >= 0) {
		call->number = (u64)number;
		call->is_known = true;
		if (call->number == SYS_restart_syscall)
			name_continued(target, call);
	}
	lull_str_release(&text);
}

static char state_of(pid_t pid, pid_t tid)
{
	struct lull_str text = LULL_STR_INIT;
	char path[64], state = '?';
	const char *at;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	if (lull_file_read(path, &text)) {
		at = strrchr(text.at, ')');
		state = at && at[1] ? at[2] : '?';
	}
	lull_str_release(&text);
	return state;
}

/*
 * Threads that wait are best: nobody misses them. Of these not those whose waiting time would begin
 * anew.
 */
static u32 rank_of(const struct lull_seen_call *call)
{
	if (!call->is_known)
		return 2;
	switch (call->number) {
#ifdef __x86_64__
	case SYS_poll:
		return (i32)call->args[2] > 0;
	case SYS_epoll_wait:
#endif
	case SYS_epoll_pwait:
		return (i32)call->args[3] > 0;
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
		return 1;
	case SYS_restart_syscall:
		return 3;
	default:
		return 0;
	}
}

static int by_rank(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	return x->rank != y->rank ? (x->rank < y->rank ? -1 : 1) : x->tid - y->tid;
}

/* What a thread did when it was listed or stopped before, if it has not gone on since. */
static void recall(const struct lull_vec *earlier, struct candidate *c)
{
	const struct candidate *all = earlier->at;

	for (size_t i = earlier->n; i-- > 0 && c->call.number == SYS_restart_syscall;)
		if (all[i].tid == c->tid && all[i].call.sp == c->call.sp &&
		    all[i].call.pc == c->call.pc && is_continuable(all[i].call.number))
			c->call = all[i].call;
}

/* We trace it: it was asked to stop before, and may have done so since. */
static bool is_seized(pid_t tid)
{
	int saved = errno;
	char tracer[32];
	bool is = lull_attach_status(tid, "TracerPid", tracer, sizeof(tracer)) &&
		  atoi(tracer) == (int)getpid();

	errno = saved;
	return is;
}

/*
 * Whether the thread was asked to stop, and has not been looked at since: then what is known of it
 * from before that counts, because one that has stopped does not tell in which call it was.
 */
static bool recall_asked(const struct lull_vec *earlier, struct candidate *c)
{
	const struct candidate *all = earlier->at;

	for (size_t i = 0; i < earlier->n; i++) {
		if (all[i].tid != c->tid || !all[i].is_asked || !is_seized(c->tid))
			continue;
		*c = all[i];
		return true;
	}
	return false;
}

static void list_threads(const struct lull_attach_target *target, const struct lull_vec *earlier,
			 struct lull_vec *list)
{
	pid_t pid = target->pid;
	char path[64];
	struct dirent *e;
	DIR *dir;

	list->n = 0;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (dir && (e = readdir(dir))) {
		pid_t tid = (pid_t)atoi(e->d_name);
		struct candidate c = { .tid = tid };
		char state = tid ? state_of(pid, tid) : '?';

		/* One that had no CPU when it was to stop may wait for us by now. */
		if (!recall_asked(earlier, &c)) {
			if (state != 'S' && state != 'R')
				continue;
			read_call(target, tid, &c.call);
			recall(earlier, &c);
		}
		c.rank = rank_of(&c.call);
		lull_vec_add(list, &c, 1);
	}
	if (dir)
		closedir(dir);
	if (list->n > 1)
		lull_sort(list->at, list->n, list->elem_bytes, by_rank);
}

static bool no(struct lull_tracee *t, const char *why)
{
	snprintf(t->why, sizeof(t->why), "%s", why);
	return false;
}

/* In a restartable sequence: the kernel would begin it anew, but not where we lead the thread. */
static bool is_in_sequence(struct lull_tracee *t)
{
	struct rseq_config config = { 0 };
	u64 cs, part[4], pc = lull_attach_pc(&t->regs);

	if (lull_attach_trace(t, PTRACE_GET_RSEQ_CONFIGURATION, sizeof(config), &config) <= 0 ||
	    !config.addr || !lull_attach_read(t->target->pid, config.addr + 8, &cs, sizeof(cs)) ||
	    !cs || !lull_attach_read(t->target->pid, cs, part, sizeof(part)))
		return false;
	return pc - part[1] < part[2];
}

static struct lull_regs regs_for_unwind(const struct user_regs_struct *r)
{
	struct lull_regs to = { .pc = lull_attach_pc(r) };

#ifdef __x86_64__
	const u64 values[] = { r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp, r->rsp,
			       r->r8,  r->r9,  r->r10, r->r11, r->r12, r->r13, r->r14, r->r15 };

	to.machine = EM_X86_64;
	for (u32 i = 0; i < 16; i++)
		lull_regs_set(&to, i, values[i]);
#else
	to.machine = EM_AARCH64;
	for (u32 i = 0; i < 31; i++)
		lull_regs_set(&to, i, r->regs[i]);
	lull_regs_set(&to, 31, r->sp);
#endif
	return to;
}

/* The stack from its pointer on, as much as there is. */
static void read_stack(const struct lull_tracee *t, struct code *code)
{
	u64 sp = lull_attach_sp(&t->regs);
	size_t n = STACK_BYTES;

	while (n >= 256 && !lull_attach_read(t->target->pid, sp, code->stack, n))
		n /= 2;
	code->n_stack = n >= 256 ? n : 0;
}

static bool is_unsafe_at(const struct lull_attach_target *target, u64 pc)
{
	for (u32 i = 0; i < target->n_unsafe; i++)
		if (pc - target->unsafe[i].start < target->unsafe[i].end - target->unsafe[i].start)
			return true;
	return false;
}

static bool is_sigreturn(const struct lull_attach_target *target, u64 pc)
{
	/* Unwinders step back by one from a return address; the vdso has an instruction before. */
	return pc + 8 - target->calls.sigreturn < 24;
}

/* Calls that the C library makes with its locks held; all others wait, or hold nothing. */
static bool is_of_memory(u64 number)
{
	switch (number) {
	case SYS_mmap:
	case SYS_munmap:
	case SYS_mprotect:
	case SYS_mremap:
	case SYS_madvise:
	case SYS_brk:
	case SYS_clone:
	case SYS_clone3:
	case SYS_exit:
		return true;
	default:
		return false;
	}
}

/* Whether the thread is still in the call in which it was seen, and holds no lock for it. */
static bool is_waiting(const struct lull_tracee *t)
{
	const struct lull_seen_call *seen = &t->seen;

	/* The kernel may have gone back to make the call again. */
	return seen->is_known && !is_of_memory(seen->number) &&
	       seen->sp == lull_attach_sp(&t->regs) && seen->pc - lull_attach_pc(&t->regs) <= 4;
}

/* Look at the functions that the thread is in; its stack is in code->stack. */
static bool is_stack_safe(struct lull_tracee *t, struct code *code)
{
	struct lull_pc frames[MAX_FRAMES];
	struct lull_callstack stack = { .at = frames, .cap = MAX_FRAMES };
	struct lull_regs regs = regs_for_unwind(&t->regs);
	struct lull_stack_bytes piece = { .at = code->stack,
					  .addr = lull_attach_sp(&t->regs),
					  .n_bytes = code->n_stack };
	bool is_safe = true;

	lull_unwind_sample(&code->unwind, &code->space, &regs, &piece, &stack);
	for (size_t i = 0; i < stack.n && is_safe; i++) {
		if (is_unsafe_at(t->target, frames[i].addr))
			is_safe = no(t, "in the loader, the allocator, fork or the start of a "
					"thread");
		else if (is_sigreturn(t->target, frames[i].addr))
			is_safe = no(t, "in a signal handler");
	}
	/*
	 * Most functions of the C library have no name outside of it, and those that have one may
	 * jump into others, as pthread_join() does into one that frees a stack under a lock.
	 */
	if (is_safe && !is_waiting(t) &&
	    (t->target->has_own_malloc || is_in_libc(t->target, regs.pc)))
		is_safe = no(t, "in the C library or an allocator, and does not wait");
	return is_safe;
}

/*
 * Whether the kernel continues a wait by a call of its own, and which one it was is not known: the
 * look before the stop came too early. That call cannot be made again.
 */
static bool is_continued(const struct lull_tracee *t)
{
	return lull_attach_number(&t->regs) == SYS_restart_syscall &&
	       (!t->seen.is_known || t->seen.number == SYS_restart_syscall ||
		t->seen.sp != lull_attach_sp(&t->regs));
}

/*
 * A thread that had no CPU when we looked may have gone back into its wait before it stopped, as
 * after a glimpse. It is the same call if all that is left of it is the same; on aarch64 the first
 * argument is not, and only this tells it.
 */
static void recognise(struct lull_tracee *t)
{
#ifdef __aarch64__
	const struct lull_seen_call *last = &t->last;
	bool is_same = !t->seen.is_known && last->is_known &&
		       (i64)lull_attach_result(&t->regs) == -EINTR &&
		       last->number == lull_attach_number(&t->regs) &&
		       last->sp == lull_attach_sp(&t->regs) && last->pc == lull_attach_pc(&t->regs);

	for (u32 i = 1; i < LULL_COUNT_OF(last->args) && is_same; i++)
		is_same = last->args[i] == t->regs.regs[i];
	if (is_same)
		t->seen = *last;
#else
	(void)t;
#endif
}

static bool read_regs(struct lull_tracee *t)
{
	if (!lull_attach_get_regs(t, &t->regs))
		return false;
	recognise(t);
	return lull_attach_unbreak(t);
}

/* Whether its stack has room for what we do: else that would be written over what lies below. */
static bool has_room(struct lull_tracee *t)
{
	u64 sp = lull_attach_sp(&t->regs);
	u8 byte;

	if (sp - t->stack.start >= t->stack.end - t->stack.start)
		return no(t, "on a stack that is not its own, such as a coroutine's");
	if (sp - t->stack.start < ROOM_BYTES ||
	    !lull_attach_read(t->target->pid, sp - ROOM_BYTES, &byte, 1))
		return no(t, "at the end of its stack");
	return true;
}

static bool is_safe_point(struct lull_tracee *t, struct code *code)
{
	if (!read_regs(t))
		return no(t, "without registers");
	if (!lull_attach_is_native(&t->regs))
		return no(t, "in code for another processor");
	if (!has_room(t))
		return false;
	if (is_continued(t) || (t->seen.is_known && t->seen.number == SYS_restart_syscall))
		return no(t, "in a wait that was interrupted before");
	if (is_in_sequence(t))
		return no(t, "in a restartable sequence");
	read_stack(t, code);
	return is_stack_safe(t, code);
}

/* Wait for the stop that was asked for; false if the thread does not come. */
static bool await_stop(struct lull_tracee *t)
{
	u64 until_ns = lull_now_ns() + STOP_NS;
	int status;

	t->is_asked = true;
	for (;;) {
		pid_t got = waitpid(t->tid, &status, __WALL | WNOHANG);
		bool is_gone = got < 0 || (got == t->tid && !WIFSTOPPED(status));

		t->is_asked = !is_gone && !(got == t->tid && status >> 16 == PTRACE_EVENT_STOP &&
					    WSTOPSIG(status) == SIGTRAP);
		if (is_gone)
			return no(t, "gone");
		if (!t->is_asked)
			return true;
		/* A signal came first: it gets it, and then our stop. */
		if (got == t->tid)
			lull_attach_trace(t, PTRACE_CONT, 0,
					  (void *)(u64)(status >> 16 ? 0 : WSTOPSIG(status)));
		else if (lull_now_ns() > until_ns)
			return no(t, "in a call that cannot be interrupted");
		else
			usleep(20);
	}
}

void lull_attach_let_go(struct lull_tracee *t)
{
	lull_attach_trace(t, PTRACE_DETACH, 0, NULL);
}

static bool stop(struct lull_tracee *t)
{
	struct lull_seen_call before = t->seen;

	if (t->is_asked)
		return await_stop(t);
	/* Once more: it may have gone on since the list was made. */
	read_call(t->target, t->tid, &t->seen);
	/* The kernel continues a wait by a call of its own: this one. */
	if (t->seen.is_known && t->seen.number == SYS_restart_syscall && before.is_known &&
	    before.sp == t->seen.sp && before.pc == t->seen.pc)
		t->seen = before;
	if (t->seen.is_known)
		t->last = t->seen;
	t->stopped_ns = lull_now_ns();
	return lull_attach_trace(t, PTRACE_INTERRUPT, 0, NULL) == 0 && await_stop(t);
}

/*
 * The stack that the kernel gave to the first thread, or the C library to another one, of which the
 * registers are: its variables lie in the same mapping, above it. Coroutines run on others, which
 * may be small, and something else may lie below them.
 */
static struct lull_attach_span find_stack(struct lull_tracee *t, u64 variables)
{
	u64 sp = lull_attach_sp(&t->regs), start, end;
	struct lull_attach_span found = { 0 };
	char path[64], *line = NULL;
	size_t room = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)t->target->pid);
	f = fopen(path, "re");
	while (f && getline(&line, &room, f) > 0) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) != 2 ||
		    sp - start >= end - start)
			continue;
		if (t->tid == t->target->pid && strstr(line, " [stack]"))
			found = (struct lull_attach_span){ start, end };
		else if (t->tid != t->target->pid && sp < variables && variables < end)
			found = (struct lull_attach_span){ start, variables };
		break;
	}
	free(line);
	if (f)
		fclose(f);
	return found;
}

/*
 * Stop the thread for a moment, and unwind its stack when it runs again: the tables that this needs
 * are read from files the first time, which takes milliseconds.
 */
static bool glimpse(struct lull_tracee *t, struct code *code)
{
	u64 variables = 0;

	if (!stop(t))
		return false;
	if (read_regs(t)) {
		variables = lull_attach_variables(t);
		read_stack(t, code);
	}
	if (lull_attach_trace(t, PTRACE_CONT, 0, NULL) != 0)
		return no(t, "gone");
	t->stack = find_stack(t, variables);
	is_stack_safe(t, code);
	return true;
}

/* 1: stopped at a safe point; 0: not; negative: not allowed at all. */
static int try_thread(struct lull_tracee *t, struct candidate *c, struct code *code,
		      struct lull_err *err)
{
	bool has_stopped;

	t->tid = c->tid;
	t->seen = t->last = c->call;
	t->is_asked = c->is_asked;
	t->is_in_call = false;
	if (lull_attach_trace(t, PTRACE_SEIZE, 0, (void *)(u64)PTRACE_O_TRACESYSGOOD) != 0 &&
	    !is_seized(t->tid)) {
		/* A thread that is about to end is refused, too; the first is there to the end. */
		if (errno != EPERM || t->tid != t->target->pid)
			return no(t, "gone");
		return lull_fail(
			err, LULL_E_IO,
			"process %d (%s): the kernel does not let us trace it; run lull as "
			"its user or as root, in a container with --cap-add SYS_PTRACE",
			(int)t->target->pid, t->target->name);
	}
	has_stopped = glimpse(t, code) && stop(t);
	/* What does not stop in time is tried again, and let go when this process ends. */
	c->is_asked = t->is_asked;
	c->call = t->is_asked ? t->seen : c->call;
	if (!has_stopped)
		return 0;
	if (!lull_attach_is_same(t->target)) {
		lull_attach_let_go(t);
		return lull_fail(err, LULL_E_UNSUPPORTED,
				 "process %d (%s) has begun another program meanwhile; try again",
				 (int)t->target->pid, t->target->name);
	}
	if (is_safe_point(t, code))
		return 1;
	lull_attach_let_go(t);
	return 0;
}

static bool is_alive(pid_t pid)
{
	char state[32];

	return lull_attach_status(pid, "State", state, sizeof(state)) && state[0] != 'Z' &&
	       state[0] != 'X';
}

int lull_attach_stop(struct lull_tracee *t, u64 until_ns, u32 *n_tries, struct lull_err *err)
{
	struct lull_vec list, earlier; /* struct candidate */
	struct code code;
	bool is_there;
	int rc = 0;

	snprintf(t->why, sizeof(t->why), "in a call that cannot be interrupted");
	lull_vec_init(&list, sizeof(struct candidate));
	lull_vec_init(&earlier, sizeof(struct candidate));
	open_code(&code, t->target->pid);
	do {
		list_threads(t->target, &earlier, &list);
		for (size_t i = 0; i < list.n && !rc; i++) {
			++*n_tries;
			rc = try_thread(t, lull_vec_get(&list, i), &code, err);
		}
		earlier.n = 0;
		if (list.n)
			lull_vec_add(&earlier, list.at, list.n);
		if (!rc)
			usleep(PAUSE_US);
		/* For a moment there may be none that could be stopped. */
		is_there = list.n || is_alive(t->target->pid);
	} while (!rc && is_there && lull_now_ns() < until_ns);
	if (!rc && !is_there)
		rc = lull_fail(err, LULL_E_NOT_FOUND, "process %d has ended", (int)t->target->pid);
	if (!rc)
		rc = lull_fail(err, LULL_E_UNSUPPORTED,
			       "process %d (%s): no thread came to a point where it can be stopped "
			       "safely; the last one was %s; nothing was changed, try again",
			       (int)t->target->pid, t->target->name, t->why);
	lull_vec_release(&list);
	lull_vec_release(&earlier);
	close_code(&code);
	return rc > 0 ? 0 : rc;
}
