/*
 * filters - whether filters of system calls (seccomp) let the agent do its work.
 *
 * A filter that ends the program for a call that it does not expect would end it for ours. The
 * kernel gives the filters of a stopped thread to root; they are run here, on each call that the
 * agent, the loader and a new thread make. A call that only fails harms nobody.
 */
#include <elf.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "attach/attach_int.h"

#ifndef PTRACE_SECCOMP_GET_FILTER
#define PTRACE_SECCOMP_GET_FILTER 0x420c
#endif

#ifdef __x86_64__
#define MACHINE AUDIT_ARCH_X86_64
#else
#define MACHINE AUDIT_ARCH_AARCH64
#endif

#define THREAD                                                                              \
	(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | \
	 CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID)

static const struct {
	const char *name;
	u32 number;
	u64 args[6]; /* those that filters look at */
} calls[] = {
#define CALL(name, ...)             \
	{                           \
#name, SYS_##name,  \
		{                   \
			__VA_ARGS__ \
		}                   \
	}
	CALL(mmap, 0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1ull, 0),
	CALL(mmap, 0, 8192, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_DENYWRITE, 3, 0),
	CALL(mmap, 0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, 3, 0),
	CALL(mprotect, 0, 4096, PROT_READ | PROT_EXEC),
	CALL(mprotect, 0, 4096, PROT_READ | PROT_WRITE),
	CALL(munmap, 0, 8192),
	CALL(madvise, 0, 4096, MADV_DONTNEED),
	CALL(madvise, 0, 4096, 23 /* MADV_POPULATE_WRITE */),
	CALL(mremap, 0, 4096, 8192, MREMAP_MAYMOVE),
	CALL(brk, 0),
	CALL(clone, THREAD),
	CALL(clone3, 0, 88),
	CALL(set_robust_list, 0, 24),
	CALL(rseq, 0, 32),
	CALL(exit, 0),
	CALL(futex, 0, 0),
	CALL(futex, 0, 128, 0),
	CALL(openat, -100ull, 0, 0),
	CALL(openat, -100ull, 0, 02000102 /* read and write, make, O_CLOEXEC */, 0600),
	CALL(read, 3),
	CALL(pread64, 3),
	CALL(write, 3),
	CALL(close, 3),
	CALL(fstat, 3),
	CALL(newfstatat, -100ull),
	CALL(lseek, 3),
	CALL(fcntl, 3, 2, 1),
	CALL(ftruncate, 3, 4096),
	CALL(fallocate, 3, 0, 0, 4096),
	CALL(readlinkat, -100ull),
	CALL(unlinkat, -100ull),
	CALL(faccessat, -100ull),
	CALL(getdents64, 3),
	CALL(rt_sigprocmask, 2),
	CALL(rt_sigaction, 27),
	CALL(rt_sigreturn),
	CALL(clock_nanosleep, 1),
	CALL(clock_gettime, 1),
	CALL(sched_yield),
	CALL(sched_getaffinity),
	CALL(prctl, 15 /* PR_SET_NAME */),
	CALL(prlimit64),
	CALL(getrusage),
	CALL(getpid),
	CALL(getppid),
	CALL(gettid),
	CALL(kill, 1, 0),
	CALL(tgkill, 1, 1, 0),
	CALL(getrandom, 0, 8),
#ifndef __x86_64__
	/* A call that the tracer has the kernel skip goes through filters as this. */
	{ "-1", (u32)-1, { 0 } },
#endif
};

/* What a filter computes with. */
struct machine {
	const struct seccomp_data *data;
	u32 a, x, memory[BPF_MEMWORDS];
};

static u32 load(const struct machine *m, const struct sock_filter *at)
{
	u32 word;

	switch (BPF_MODE(at->code)) {
	case BPF_ABS:
		if (at->k > sizeof(*m->data) - sizeof(word))
			return 0; /* the kernel takes no such filter */
		memcpy(&word, (const u8 *)m->data + at->k, sizeof(word));
		return word;
	case BPF_MEM:
		return m->memory[at->k % BPF_MEMWORDS];
	case BPF_LEN:
		return sizeof(*m->data);
	default:
		return at->k; /* BPF_IMM */
	}
}

static u32 compute(u16 op, u32 a, u32 by)
{
	switch (op) {
	case BPF_ADD:
		return a + by;
	case BPF_SUB:
		return a - by;
	case BPF_MUL:
		return a * by;
	case BPF_DIV:
		return by ? a / by : 0;
	case BPF_AND:
		return a & by;
	case BPF_OR:
		return a | by;
	case BPF_XOR:
		return a ^ by;
	case BPF_LSH:
		return by < 32 ? a << by : 0;
	case BPF_RSH:
		return by < 32 ? a >> by : 0;
	default:
		return 0 - a; /* BPF_NEG */
	}
}

/* How many instructions are jumped over. */
static u32 jump(const struct sock_filter *at, u32 a, u32 by)
{
	switch (BPF_OP(at->code)) {
	case BPF_JA:
		return at->k;
	case BPF_JEQ:
		return a == by ? at->jt : at->jf;
	case BPF_JGT:
		return a > by ? at->jt : at->jf;
	case BPF_JGE:
		return a >= by ? at->jt : at->jf;
	default:
		return a & by ? at->jt : at->jf; /* BPF_JSET */
	}
}

/* One instruction that is no end; returns how many are jumped over. */
static u32 step(struct machine *m, const struct sock_filter *at)
{
	u32 by = BPF_SRC(at->code) == BPF_X ? m->x : at->k;

	switch (BPF_CLASS(at->code)) {
	case BPF_LD:
		m->a = load(m, at);
		break;
	case BPF_LDX:
		m->x = load(m, at);
		break;
	case BPF_ST:
		m->memory[at->k % BPF_MEMWORDS] = m->a;
		break;
	case BPF_STX:
		m->memory[at->k % BPF_MEMWORDS] = m->x;
		break;
	case BPF_ALU:
		m->a = compute(BPF_OP(at->code), m->a, by);
		break;
	case BPF_JMP:
		return jump(at, m->a, by);
	default: /* BPF_MISC */
		if (BPF_MISCOP(at->code) == BPF_TAX)
			m->x = m->a;
		else
			m->a = m->x;
	}
	return 0;
}

/* The filter's answer. */
static u32 run(const struct sock_filter *code, long n, const struct seccomp_data *data)
{
	struct machine m = { .data = data };

	for (u64 i = 0; i < (u64)n; i++) {
		if (BPF_CLASS(code[i].code) == BPF_RET)
			return BPF_RVAL(code[i].code) == BPF_A ? m.a : code[i].k;
		i += step(&m, &code[i]);
	}
	return SECCOMP_RET_KILL_PROCESS; /* without an end it is none */
}

/* Such a call ends the thread or the program, or asks somebody who may do so. */
static bool is_harmful(u32 answer)
{
	u32 action = answer & SECCOMP_RET_ACTION_FULL;

	return action != SECCOMP_RET_ALLOW && action != SECCOMP_RET_LOG &&
	       action != SECCOMP_RET_ERRNO;
}

const char *lull_attach_harmful_call(const struct sock_filter *code, long n)
{
	for (size_t i = 0; i < LULL_COUNT_OF(calls); i++) {
		struct seccomp_data data = { .nr = (int)calls[i].number, .arch = MACHINE };

		memcpy(data.args, calls[i].args, sizeof(data.args));
		if (is_harmful(run(code, n, &data)))
			return calls[i].name;
	}
	return NULL;
}

int lull_attach_check_filters(struct lull_tracee *t, struct lull_err *err)
{
	struct sock_filter *code = malloc(BPF_MAXINSNS * sizeof(*code));
	const char *harmful = NULL;
	long n = -1;

	/* The last one comes first; after the first one there is none. */
	for (u64 i = 0; code && !harmful; i++) {
		n = lull_attach_trace(t, PTRACE_SECCOMP_GET_FILTER, i, code);
		if (n < 0)
			break;
		harmful = lull_attach_harmful_call(code, n);
	}
	free(code);
	if (harmful)
		return lull_fail(err, LULL_E_UNSUPPORTED,
				 "process %d (%s) has a filter (seccomp) that would end it for the "
				 "system call %s, which the agent needs; nothing was changed",
				 (int)t->target->pid, t->target->name, harmful);
	if (n < 0 && errno == ENOENT)
		return 0;
	return lull_fail(err, LULL_E_UNSUPPORTED,
			 "process %d (%s) has filters of system calls (seccomp), which might end "
			 "it with the agent in it; only root (CAP_SYS_ADMIN) may see whether they "
			 "would",
			 (int)t->target->pid, t->target->name);
}
