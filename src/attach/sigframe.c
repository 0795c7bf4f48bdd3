/*
 * sigframe - a signal frame for a thread that was stopped, as the kernel makes it for a handler.
 *
 * Whoever returns into rt_sigreturn() with the stack pointer at the frame continues as if nothing
 * had happened: general registers, floating point and vector registers, signal mask. The system
 * call in which the thread was is made again; the frame has the registers for that.
 *
 * Alternate stacks are left alone: flags that the kernel does not know make it ignore that part.
 */
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>

#ifdef __x86_64__
#include <cpuid.h>
#endif

#include "attach/attach_int.h"

/* What the kernel says inside of itself of a system call that was interrupted. */
#define RESTART_SYS	 512
#define RESTART_NOINTR	 513
#define RESTART_NOHAND	 514
#define RESTART_BY_BLOCK 516

/* No mode of sigaltstack(2). */
#define NO_SUCH_STACK 0x10

#ifndef NT_ARM_SYSTEM_CALL
#define NT_ARM_SYSTEM_CALL 0x404
#endif
#ifndef NT_ARM_SVE
#define NT_ARM_SVE 0x405
#endif

bool lull_attach_get_regs(struct lull_tracee *t, struct user_regs_struct *r)
{
	struct iovec v = { r, sizeof(*r) };

	return lull_attach_trace(t, PTRACE_GETREGSET, NT_PRSTATUS, &v) == 0;
}

bool lull_attach_set_regs(struct lull_tracee *t, const struct user_regs_struct *r)
{
	struct iovec v = { (void *)r, sizeof(*r) };

	return lull_attach_trace(t, PTRACE_SETREGSET, NT_PRSTATUS, &v) == 0;
}

static bool read_mask(struct lull_tracee *t, u64 *mask)
{
	return lull_attach_trace(t, PTRACE_GETSIGMASK, sizeof(*mask), mask) == 0;
}

static bool make_restartable(struct lull_tracee *t, struct user_regs_struct *r);

/*
 * Whether a call that waits was broken off by our stop alone, and is to be made again although the
 * kernel would not: it says so to programs that a signal interrupts, and there was none.
 */
static bool is_waiting_call(u64 number)
{
	switch (number) {
#ifdef __x86_64__
	case SYS_epoll_wait:
#endif
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
	case SYS_rt_sigtimedwait:
	case SYS_semtimedop:
	case SYS_semop:
	case SYS_io_getevents:
	case SYS_io_uring_enter:
	/* Of sockets that have a timeout. */
	case SYS_read:
	case SYS_readv:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_write:
	case SYS_writev:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_accept:
	case SYS_accept4:
		return true;
	default:
		return false;
	}
}

bool lull_attach_unbreak(struct lull_tracee *t)
{
	struct user_regs_struct r = t->regs;

	if ((i64)lull_attach_result(&r) != -EINTR || !make_restartable(t, &r))
		return true;
	t->regs = r;
	return lull_attach_set_regs(t, &r);
}

/*
 * What is left of a sleep is where the program wants to find it, if it does: the address with which
 * the call is to be made again. The thread may just not have begun to sleep, so the time is looked
 * at.
 */
static u64 sleep_left(const struct lull_tracee *t, u64 wanted_addr, u64 left_addr)
{
	struct timespec wanted = { 0 }, left = { 0 };

	if (!left_addr || !lull_attach_read(t->target->pid, wanted_addr, &wanted, sizeof(wanted)) ||
	    !lull_attach_read(t->target->pid, left_addr, &left, sizeof(left)) ||
	    (!left.tv_sec && !left.tv_nsec) || left.tv_sec > wanted.tv_sec ||
	    (left.tv_sec == wanted.tv_sec && left.tv_nsec >= wanted.tv_nsec))
		return wanted_addr;
	return left_addr;
}

#ifdef __x86_64__

u64 lull_attach_pc(const struct user_regs_struct *r)
{
	return r->rip;
}

u64 lull_attach_sp(const struct user_regs_struct *r)
{
	return r->rsp;
}

u64 lull_attach_variables(struct lull_tracee *t)
{
	return t->regs.fs_base;
}

bool lull_attach_is_native(const struct user_regs_struct *r)
{
	return r->cs == 0x33;
}

u64 lull_attach_number(const struct user_regs_struct *r)
{
	return r->orig_rax;
}

u64 lull_attach_result(const struct user_regs_struct *r)
{
	return r->rax;
}

bool lull_attach_skip(struct lull_tracee *t)
{
	(void)t;
	return true; /* lull_attach_call_regs() has another one */
}

/* The registers with which the interrupted system call is made again. */
static void rewind_call(struct lull_tracee *t, struct user_regs_struct *r)
{
	i64 result = (i64)r->rax;

	if ((i64)r->orig_rax < 0)
		return;
	/* Continued by the kernel: that call cannot be made again, the one before it can. */
	if (r->orig_rax == SYS_restart_syscall && t->seen.is_known && t->seen.sp == r->rsp)
		r->orig_rax = t->seen.number;
	if (result != -RESTART_SYS && result != -RESTART_NOINTR && result != -RESTART_NOHAND &&
	    result != -RESTART_BY_BLOCK && !(result == -EINTR && is_waiting_call(r->orig_rax)))
		return;
	if (result == -RESTART_BY_BLOCK && r->orig_rax == SYS_nanosleep)
		r->rdi = sleep_left(t, r->rdi, r->rsi);
	if (result == -RESTART_BY_BLOCK && r->orig_rax == SYS_clock_nanosleep)
		r->rdx = sleep_left(t, r->rdx, r->r10);
	r->rax = r->orig_rax;
	r->rip -= 2;
}

/* The kernel makes it again if no handler is to run, and tells of the interruption if one is. */
static bool make_restartable(struct lull_tracee *t, struct user_regs_struct *r)
{
	(void)t;
	if ((i64)r->orig_rax < 0 || !is_waiting_call(r->orig_rax))
		return false;
	r->rax = (u64)-RESTART_NOHAND;
	return true;
}

#define XSTATE_MAX (64u << 10)
#define TILE_DATA  (1ull << 18)

/* Bytes of the state with these features, by the layout of the processor. */
static u32 xstate_bytes(u64 features)
{
	u32 n_bytes = 576, a, b, c, d;

	for (u32 i = 2; i < 63; i++) {
		if (!(features >> i & 1))
			continue;
		__cpuid_count(0xd, i, a, b, c, d);
		if (a + b > n_bytes)
			n_bytes = a + b;
	}
	return n_bytes;
}

/* What a signal frame has at byte 464 of the floating point state. */
struct sw_bytes {
	u32 magic1, extended_bytes;
	u64 features;
	u32 xstate_bytes, pad[7];
};

/* Read floating point and vector registers as a frame has them; how many bytes, 0: not. */
static u32 read_xstate(struct lull_tracee *t, u8 *to)
{
	struct iovec v = { to, XSTATE_MAX };
	const u32 magic2 = 0x46505845;
	u64 features, used;
	struct sw_bytes sw = { .magic1 = 0x46505853 };

	if (lull_attach_trace(t, PTRACE_GETREGSET, NT_X86_XSTATE, &v) != 0 || v.iov_len < 576)
		return 0;
	memcpy(&features, to + 464, 8); /* what the system has */
	memcpy(&used, to + 512, 8);
	/* Tiles are only of threads that asked for them, and large. */
	if (!(used & TILE_DATA))
		features &= ~TILE_DATA;
	sw.features = features;
	sw.xstate_bytes = xstate_bytes(features);
	sw.extended_bytes = sw.xstate_bytes + (u32)sizeof(magic2);
	if (sw.xstate_bytes > v.iov_len || sw.extended_bytes > XSTATE_MAX)
		return 0;
	memcpy(to + 464, &sw, sizeof(sw));
	memcpy(to + sw.xstate_bytes, &magic2, sizeof(magic2));
	return sw.extended_bytes;
}

static void fill_context(ucontext_t *uc, const struct user_regs_struct *r, u64 mask, u64 fp_addr)
{
	greg_t *g = uc->uc_mcontext.gregs;

	uc->uc_flags = 1 | 2 | 4; /* extended state; a stack segment, to be restored strictly */
	uc->uc_stack.ss_flags = NO_SUCH_STACK;
	g[REG_R8] = (greg_t)r->r8;
	g[REG_R9] = (greg_t)r->r9;
	g[REG_R10] = (greg_t)r->r10;
	g[REG_R11] = (greg_t)r->r11;
	g[REG_R12] = (greg_t)r->r12;
	g[REG_R13] = (greg_t)r->r13;
	g[REG_R14] = (greg_t)r->r14;
	g[REG_R15] = (greg_t)r->r15;
	g[REG_RDI] = (greg_t)r->rdi;
	g[REG_RSI] = (greg_t)r->rsi;
	g[REG_RBP] = (greg_t)r->rbp;
	g[REG_RBX] = (greg_t)r->rbx;
	g[REG_RDX] = (greg_t)r->rdx;
	g[REG_RAX] = (greg_t)r->rax;
	g[REG_RCX] = (greg_t)r->rcx;
	g[REG_RSP] = (greg_t)r->rsp;
	g[REG_RIP] = (greg_t)r->rip;
	g[REG_EFL] = (greg_t)r->eflags;
	g[REG_CSGSFS] = (greg_t)((r->cs & 0xffff) | r->ss << 48);
	uc->uc_mcontext.fpregs = (void *)fp_addr;
	memcpy(&uc->uc_sigmask, &mask, sizeof(mask));
}

#define RED_ZONE 128u

int lull_attach_frame(struct lull_tracee *t, struct lull_err *err)
{
	struct {
		u64 return_addr;
		ucontext_t uc;
	} __attribute__((packed)) head = { .return_addr = t->target->calls.sigreturn };
	struct user_regs_struct r = t->regs;
	u8 *xstate = malloc(XSTATE_MAX);
	u32 fp_bytes = xstate ? read_xstate(t, xstate) : 0;
	u64 mask = 0, fp_addr, frame_addr;
	bool is_written;
	ucontext_t uc;

	fp_addr = (r.rsp - RED_ZONE - fp_bytes) & ~(u64)63;
	frame_addr = ((fp_addr - sizeof(head)) & ~(u64)15) - 8;
	rewind_call(t, &r);
	memset(&uc, 0, sizeof(uc));
	is_written = fp_bytes && read_mask(t, &mask);
	fill_context(&uc, &r, mask, fp_addr);
	memcpy(&head.uc, &uc, sizeof(uc));
	is_written = is_written && lull_attach_write(t, fp_addr, xstate, fp_bytes) &&
		     lull_attach_write(t, frame_addr, &head, sizeof(head));
	free(xstate);
	if (!is_written)
		return lull_fail(err, LULL_E_IO, "its registers cannot be kept on its stack");
	t->call = t->regs;
	t->call.rsp = frame_addr;
	t->call.eflags &= ~(u64)0x400; /* functions are called with this flag cleared */
	t->call.orig_rax = (u64)-1;
	t->frame_addr = frame_addr + 8; /* the return takes the address off the stack */
	return 0;
}

struct user_regs_struct lull_attach_call_regs(const struct lull_tracee *t, u64 function,
					      const u64 *args, u32 n_args)
{
	struct user_regs_struct r = t->call;
	u64 a[6] = { 0 };

	memcpy(a, args, n_args * sizeof(*a));
	r.rdi = a[0];
	r.rsi = a[1];
	r.rdx = a[2];
	r.rcx = a[3];
	r.r8 = a[4];
	r.r9 = a[5];
	r.rax = 0;
	r.rip = function;
	/*
	 * In place of rt_sigreturn(), at whose entry it is: filters (seccomp) that end a program
	 * for each number that they do not know would do so for -1, too.
	 */
	if (t->is_in_call)
		r.orig_rax = SYS_getpid;
	return r;
}

#else /* aarch64 */

u64 lull_attach_pc(const struct user_regs_struct *r)
{
	return r->pc;
}

u64 lull_attach_sp(const struct user_regs_struct *r)
{
	return r->sp;
}

u64 lull_attach_variables(struct lull_tracee *t)
{
	u64 at = 0;
	struct iovec v = { &at, sizeof(at) };

	return lull_attach_trace(t, PTRACE_GETREGSET, NT_ARM_TLS, &v) == 0 ? at : 0;
}

bool lull_attach_is_native(const struct user_regs_struct *r)
{
	return !(r->pstate & 0x10); /* no 32-bit code */
}

u64 lull_attach_number(const struct user_regs_struct *r)
{
	return r->regs[8];
}

u64 lull_attach_result(const struct user_regs_struct *r)
{
	return r->regs[0];
}

bool lull_attach_skip(struct lull_tracee *t)
{
	int none = -1;
	struct iovec v = { &none, sizeof(none) };

	return lull_attach_trace(t, PTRACE_SETREGSET, NT_ARM_SYSTEM_CALL, &v) == 0;
}

/*
 * The kernel has set pc and x0 for another try already, unless it would not try again. What the
 * call was is known from a look before the stop.
 */
static void rewind_call(struct lull_tracee *t, struct user_regs_struct *r)
{
	const struct lull_seen_call *seen = &t->seen;
	u64 *x = (u64 *)r->regs;

	if (!seen->is_known || seen->sp != r->sp)
		return;
	/* Continued by the kernel: that call cannot be made again, the one before it can. */
	if (x[8] == SYS_restart_syscall)
		x[8] = seen->number;
	if (seen->number != x[8])
		return;
	if (seen->pc == r->pc + 4) {
		if (x[8] == SYS_nanosleep)
			x[0] = sleep_left(t, x[0], x[1]);
		if (x[8] == SYS_clock_nanosleep && !(x[1] & 1))
			x[2] = sleep_left(t, x[2], x[3]);
	} else if (seen->pc == r->pc && (i64)x[0] == -EINTR && is_waiting_call(x[8])) {
		x[0] = seen->args[0];
		r->pc -= 4;
	}
}

/* The signals of a line of the thread's status. */
static u64 signals_of(const struct lull_tracee *t, const char *key)
{
	char text[32];

	return lull_attach_status(t->tid, key, text, sizeof(text)) ? strtoull(text, NULL, 16) : 0;
}

/* Unless a signal came as well: then the program is to hear of it. */
static bool make_restartable(struct lull_tracee *t, struct user_regs_struct *r)
{
	u64 pc = r->pc;

	if ((signals_of(t, "SigPnd") | signals_of(t, "ShdPnd")) & ~signals_of(t, "SigBlk"))
		return false;
	rewind_call(t, r);
	return r->pc != pc;
}

/* Parts of a frame: fpsimd_context and sve_context of the kernel. */
struct part {
	u32 magic, n_bytes;
};

struct fpsimd_part {
	struct part head;
	u32 fpsr, fpcr;
	__uint128_t v[32];
};

struct sve_head { /* of the regset */
	u32 n_bytes, max_bytes;
	u16 vl, max_vl, flags, reserved;
};

#define SVE_BYTES_MAX 8192u

/* Append the wide registers, if the thread uses them now; false if they do not fit. */
static bool add_sve(struct lull_tracee *t, u8 *to, size_t room)
{
	_Alignas(16) u8 bytes[SVE_BYTES_MAX];
	struct iovec v = { bytes, sizeof(bytes) };
	struct sve_head head;
	u32 n_regs, size;
	u16 vl[4] = { 0 };

	/* At a system call only the lower halves are kept, by the rules of the machine. */
	if (lull_attach_trace(t, PTRACE_GETREGSET, NT_ARM_SVE, &v) != 0 || v.iov_len < 16)
		return true;
	memcpy(&head, bytes, sizeof(head));
	if (!(head.flags & 1))
		return true;
	n_regs = head.vl / 16u * (512 + 32 + 2);
	size = (16 + n_regs + 15) & ~15u;
	if (16 + n_regs > v.iov_len || size + sizeof(struct part) > room)
		return false;
	memcpy(to, &(struct part){ SVE_MAGIC, size }, sizeof(struct part));
	vl[0] = head.vl;
	memcpy(to + sizeof(struct part), vl, sizeof(vl));
	memcpy(to + 16, bytes + 16, n_regs);
	return true;
}

static bool read_fp(struct lull_tracee *t, u8 *to, size_t room)
{
	struct user_fpsimd_struct fp;
	struct iovec v = { &fp, sizeof(fp) };
	struct fpsimd_part part = { .head = { FPSIMD_MAGIC, sizeof(part) } };

	if (lull_attach_trace(t, PTRACE_GETREGSET, NT_PRFPREG, &v) != 0)
		return false;
	part.fpsr = fp.fpsr;
	part.fpcr = fp.fpcr;
	memcpy(part.v, fp.vregs, sizeof(part.v));
	memcpy(to, &part, sizeof(part));
	/* After the last one is a head of zeros, which is there. */
	return add_sve(t, to + sizeof(part), room - sizeof(part) - sizeof(struct part));
}

#define BRANCH_TYPE (3ull << 10)

int lull_attach_frame(struct lull_tracee *t, struct lull_err *err)
{
	struct {
		u8 info[128];
		ucontext_t uc;
	} frame;
	struct user_regs_struct r = t->regs;
	mcontext_t *m = &frame.uc.uc_mcontext;
	u64 mask = 0, addr = (r.sp - 256 - sizeof(frame)) & ~(u64)15;

	memset(&frame, 0, sizeof(frame));
	rewind_call(t, &r);
	memcpy(m->regs, r.regs, sizeof(m->regs));
	m->sp = r.sp;
	m->pc = r.pc;
	m->pstate = r.pstate;
	frame.uc.uc_stack.ss_flags = NO_SUCH_STACK;
	if (!read_mask(t, &mask) || !read_fp(t, m->__reserved, sizeof(m->__reserved)))
		return lull_fail(err, LULL_E_IO, "its registers cannot be read");
	memcpy(&frame.uc.uc_sigmask, &mask, sizeof(mask));
	if (!lull_attach_write(t, addr, &frame, sizeof(frame)))
		return lull_fail(err, LULL_E_IO, "its registers cannot be kept on its stack");
	t->call = t->regs;
	t->call.sp = addr;
	t->call.regs[29] = 0;
	t->call.regs[30] = t->target->calls.sigreturn;
	t->call.pstate &= ~BRANCH_TYPE;
	t->frame_addr = addr;
	return 0;
}

struct user_regs_struct lull_attach_call_regs(const struct lull_tracee *t, u64 function,
					      const u64 *args, u32 n_args)
{
	struct user_regs_struct r = t->call;

	memcpy(r.regs, args, n_args * sizeof(*args));
	r.pc = function;
	return r;
}

#endif
