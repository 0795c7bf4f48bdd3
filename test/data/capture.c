/*
 * capture - a program that writes down its own registers, stack and mappings, for tests of the
 * unwinder.
 *
 *	capture MODE FILE
 *
 * MODE  signal    the registers that a signal interrupted, below a qsort callback handler
 *       the registers of the signal handler itself, so that the signal frame has to be crossed
 *       altstack  the same on an alternate stack timer     a busy leaf function, interrupted by a
 *       timer vdso      the clock being read, interrupted in the vdso by a timer thread    like
 *       signal, in another thread deep      like signal, below 40 recursive calls
 *
 * FILE receives struct lull_regs, the stack's address and size, and its bytes; FILE.maps the
 * mappings. The file compiles as C and as C++.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <elf.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "symbol/regs.h"

#define NOINLINE  __attribute__((noinline, noclone))
#define STACK_MAX 65536

/* Keeps the compiler from turning a call into a jump, which would take the frame away. */
#define KEEP_FRAME() __asm__ volatile("" ::: "memory")

static const char *mode, *path;
static volatile int n_calls;
static volatile sig_atomic_t is_done, is_in_leaf;

static struct lull_regs regs_of(const ucontext_t *uc)
{
	struct lull_regs r;

	memset(&r, 0, sizeof(r));
#if defined(__x86_64__)
	static const int order[] = { REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
				     REG_RBP, REG_RSP, REG_R8,	REG_R9,	 REG_R10, REG_R11,
				     REG_R12, REG_R13, REG_R14, REG_R15 };

	r.machine = EM_X86_64;
	for (u32 i = 0; i < 16; i++)
		lull_regs_set(&r, i, (u64)uc->uc_mcontext.gregs[order[i]]);
	r.pc = (u64)uc->uc_mcontext.gregs[REG_RIP];
#else
	r.machine = EM_AARCH64;
	for (u32 i = 0; i < 31; i++)
		lull_regs_set(&r, i, uc->uc_mcontext.regs[i]);
	lull_regs_set(&r, 31, uc->uc_mcontext.sp);
	r.pc = uc->uc_mcontext.pc;
#endif
	return r;
}

/* As much of the stack as there is; the kernel copies up to the first page that is not there. */
static size_t copy_stack(u64 sp, char *to)
{
	size_t n = 0;

	while (n < STACK_MAX) {
		size_t part = 4096 - (sp + n) % 4096;
		struct iovec here = { to + n, part }, there = { (void *)(sp + n), part };

		if (n + part > STACK_MAX ||
		    process_vm_readv(getpid(), &here, 1, &there, 1, 0) != (ssize_t)part)
			break;
		n += part;
	}
	return n;
}

static void copy_maps(void)
{
	char name[4096], buffer[4096];
	FILE *from = fopen("/proc/self/maps", "r"), *to;
	size_t n;

	snprintf(name, sizeof(name), "%s.maps", path);
	to = fopen(name, "w");
	while (from && to && (n = fread(buffer, 1, sizeof(buffer), from)) > 0)
		fwrite(buffer, 1, n, to);
	fclose(from);
	fclose(to);
}

static void write_down(const struct lull_regs *r, u64 sp)
{
	static char stack[STACK_MAX];
	u64 n = copy_stack(sp, stack);
	FILE *f = fopen(path, "w");

	fwrite(r, sizeof(*r), 1, f);
	fwrite(&sp, sizeof(sp), 1, f);
	fwrite(&n, sizeof(n), 1, f);
	fwrite(stack, 1, n, f);
	fclose(f);
	copy_maps();
	is_done = 1;
}

static u64 sp_of(const struct lull_regs *r)
{
	return r->at[r->machine == EM_X86_64 ? 7 : 31];
}

/* The handler's own frame: its unwinding has to cross the signal frame. */
static NOINLINE void write_handler(void)
{
	ucontext_t uc;
	struct lull_regs r;

	getcontext(&uc);
	r = regs_of(&uc);
	write_down(&r, sp_of(&r));
	KEEP_FRAME();
}

/* True in the four pages, at most, of the vdso. */
static int is_vdso(u64 pc)
{
	return pc - getauxval(AT_SYSINFO_EHDR) < 16384;
}

static void on_signal(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	if (is_done)
		return;
	if (!strcmp(mode, "handler") || !strcmp(mode, "altstack")) {
		write_handler();
	} else {
		struct lull_regs r = regs_of((ucontext_t *)context);

		if (!strcmp(mode, "vdso") && !is_vdso(r.pc))
			return;
		if (!strcmp(mode, "timer") && !is_in_leaf)
			return;
		write_down(&r, sp_of(&r));
	}
	KEEP_FRAME();
}

static NOINLINE void busy_leaf(void)
{
	is_in_leaf = 1;
	while (!is_done)
		n_calls++;
}

static NOINLINE void clock_reader(void)
{
	struct timespec ts;

	while (!is_done)
		clock_gettime(CLOCK_MONOTONIC, &ts);
}

static NOINLINE void interrupted(void)
{
	if (!strcmp(mode, "timer"))
		busy_leaf();
	else if (!strcmp(mode, "vdso"))
		clock_reader();
	else
		raise(SIGPROF);
	KEEP_FRAME();
}

static NOINLINE int compare(const void *a, const void *b)
{
	if (!n_calls++)
		interrupted();
	return *(const int *)a - *(const int *)b;
}

static NOINLINE void sorter(void)
{
	int numbers[] = { 5, 3, 8, 1, 9, 2 };

	qsort(numbers, sizeof(numbers) / sizeof(numbers[0]), sizeof(numbers[0]), compare);
	KEEP_FRAME();
}

/* A frame of a size that is only known at run time, so that it cannot be found from sp alone. */
static NOINLINE void dynamic_frame(int n)
{
	volatile char *room = (volatile char *)__builtin_alloca((size_t)n * 100 + 16);

	room[0] = (char)n;
	sorter();
	room[n] = 1;
}

static NOINLINE int recursive(int depth)
{
	int below = 0;

	if (depth)
		below = recursive(depth - 1);
	else
		dynamic_frame(n_calls + 3);
	KEEP_FRAME();
	return below + 1;
}

static NOINLINE void *thread_body(void *argument)
{
	recursive(!strcmp(mode, "deep") ? 40 : 1);
	KEEP_FRAME();
	return argument;
}

static void install(void)
{
	static char room[65536];
	stack_t alternate;
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	memset(&alternate, 0, sizeof(alternate));
	action.sa_sigaction = on_signal;
	action.sa_flags = SA_SIGINFO;
	if (!strcmp(mode, "altstack")) {
		alternate.ss_sp = room;
		alternate.ss_size = sizeof(room);
		sigaltstack(&alternate, NULL);
		action.sa_flags |= SA_ONSTACK;
	}
	sigaction(SIGPROF, &action, NULL);
}

int main(int argc, char **argv)
{
	struct itimerval timer = { { 0, 1000 }, { 0, 1000 } };
	pthread_t thread;

	if (argc != 3)
		return 2;
	mode = argv[1];
	path = argv[2];
	install();
	if (!strcmp(mode, "timer") || !strcmp(mode, "vdso"))
		setitimer(ITIMER_PROF, &timer, NULL);
	if (!strcmp(mode, "thread")) {
		pthread_create(&thread, NULL, thread_body, NULL);
		pthread_join(thread, NULL);
	} else {
		thread_body(NULL);
	}
	return is_done ? 0 : 1;
}
