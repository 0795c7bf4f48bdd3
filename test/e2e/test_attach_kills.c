/*
 * Attaching leaves a program as it was, wherever it is broken off: the tracer is killed at each of
 * its steps, and the program computes, waits and sleeps on as if nothing had been.
 *
 * The folder of the session does not exist, so the agent says no and leaves: all steps are taken.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/attach.h"
#include "base/time.h"
#include "support/skip.h"

/* What the guest tells of itself, in shared memory. */
struct told {
	_Atomic u64 n_rounds; /* of the thread that is looked at */
	_Atomic u64 n_bad;    /* things that were not as they must be */
	_Atomic u64 n_broken; /* waits for events that ended without one */
	_Atomic u32 is_over;
	_Atomic u32 is_late, is_deaf; /* a stop is to come late; it cannot come now */
	int event_fd;
	int pipe[2];
};

static struct told *told;
static char agent_path[PATH_MAX];

/* Registers with known values, for a while; 0 if they are the same afterwards. */
static u64 keep_registers(void)
{
	u64 wrong;

#ifdef __aarch64__
	__asm__ volatile("mov x7, #7\n mov x9, #9\n mov x12, #12\n mov x16, #16\n mov x17, #17\n"
			 "mov x18, #0\n mov x20, #20\n mov x28, #28\n mov x15, #15\n"
			 "dup v0.2d, x7\n dup v17.2d, x16\n dup v31.2d, x28\n"
			 "mov x10, #20000\n"
			 "1: subs x10, x10, #1\n b.ne 1b\n"
			 "cset x11, ne\n"
			 "sub x9, x9, #9\n sub x7, x7, #7\n orr x11, x11, x7\n orr x11, x11, x9\n"
			 "sub x12, x12, #12\n sub x16, x16, #16\n sub x17, x17, #17\n"
			 "orr x11, x11, x12\n orr x11, x11, x16\n orr x11, x11, x17\n"
			 "sub x20, x20, #20\n sub x28, x28, #28\n sub x15, x15, #15\n"
			 "orr x11, x11, x20\n orr x11, x11, x28\n orr x11, x11, x15\n"
			 "umov x12, v0.d[1]\n sub x12, x12, #7\n orr x11, x11, x12\n"
			 "umov x12, v17.d[0]\n sub x12, x12, #16\n orr x11, x11, x12\n"
			 "umov x12, v31.d[1]\n sub x12, x12, #28\n orr x11, x11, x12\n"
			 "mov %0, x11\n"
			 : "=r"(wrong)
			 :
			 : "x7", "x9", "x10", "x11", "x12", "x15", "x16", "x17", "x20", "x28", "v0",
			   "v17", "v31", "cc");
#else
	__asm__ volatile("mov $8, %%r8\n mov $9, %%r9\n mov $11, %%r11\n mov $12, %%r12\n"
			 "mov $15, %%r15\n mov $20, %%rdx\n movq %%r8, %%xmm0\n"
			 "movq %%r15, %%xmm15\n punpcklqdq %%xmm15, %%xmm15\n"
			 "mov $20000, %%ecx\n"
			 "1: dec %%ecx\n jne 1b\n"
			 "setne %%al\n movzbl %%al, %%eax\n"
			 "sub $8, %%r8\n sub $9, %%r9\n sub $11, %%r11\n sub $12, %%r12\n"
			 "sub $15, %%r15\n sub $20, %%rdx\n"
			 "or %%r8, %%rax\n or %%r9, %%rax\n or %%r11, %%rax\n or %%r12, %%rax\n"
			 "or %%r15, %%rax\n or %%rdx, %%rax\n"
			 "movq %%xmm0, %%r8\n sub $8, %%r8\n or %%r8, %%rax\n"
			 "psrldq $8, %%xmm15\n movq %%xmm15, %%r8\n sub $15, %%r8\n"
			 "or %%r8, %%rax\n mov %%rax, %0\n"
			 : "=r"(wrong)
			 :
			 : "rax", "rcx", "rdx", "r8", "r9", "r11", "r12", "r15", "xmm0", "xmm15",
			   "cc");
#endif
	return wrong;
}

static void note(bool is_good)
{
	if (!is_good)
		atomic_fetch_add(&told->n_bad, 1);
	atomic_fetch_add(&told->n_rounds, 1);
}

static void round_busy(void)
{
	note(keep_registers() == 0);
}

/* Waits for the test, which writes a byte now and then. */
static void round_read(void)
{
	char byte = 0;

	note(read(told->pipe[0], &byte, 1) == 1 && byte == 'x');
}

static void round_epoll(void)
{
	int fd = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event e = { .events = EPOLLIN };
	char byte;
	int n;

	epoll_ctl(fd, EPOLL_CTL_ADD, told->pipe[0], &e);
	while ((n = epoll_wait(fd, &e, 1, -1)) < 0 && errno == EINTR)
		atomic_fetch_add(&told->n_broken, 1);
	note(n == 1 && read(told->pipe[0], &byte, 1) == 1);
	close(fd);
}

/* Not shorter, and no error. */
static void round_sleep(void)
{
	struct timespec time = { 0, 3000000 }, left = { 0, 0 };
	u64 before_ns = lull_now_ns();
	int rc = nanosleep(&time, &left);

	note(rc == 0 && lull_now_ns() - before_ns >= 3000000);
}

/* A child that ends at once, and memory, and a file that is loaded. */
static void round_mixed(void)
{
	static const char *const files[] = { "libm.so.6", "libresolv.so.2", "libutil.so.1" };
	static u32 n;
	void *block = malloc(100 + n % 5000), *handle;
	int status = 0;
	pid_t child;

	memset(block, 1, 100);
	handle = dlopen(files[n % 3], RTLD_NOW);
	child = n % 16 ? 0 : fork();
	if (n % 16 == 0 && child == 0)
		_exit(7);
	note(keep_registers() == 0 && (n % 16 || (waitpid(child, &status, 0) == child &&
						  WIFEXITED(status) && WEXITSTATUS(status) == 7)));
	if (handle)
		dlclose(handle);
	free(block);
	n++;
}

/* Until its child ends, nothing stops the thread: as one that gets no CPU. */
static void round_late(void)
{
	struct timespec time = { 0, 500000000 };

	if (atomic_exchange(&told->is_late, 0) && vfork() == 0) {
		atomic_store(&told->is_deaf, 1);
		syscall(SYS_nanosleep, &time, NULL);
		_exit(0);
	}
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	note(keep_registers() == 0);
}

static void on_alarm(int signal)
{
	(void)signal;
	for (volatile u32 i = 0; i < 5000; i++)
		;
}

/* Signals most of the time. */
static void round_signals(void)
{
	static bool is_set;
	struct itimerval each = { { 0, 300 }, { 0, 300 } };
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };

	if (!is_set) {
		sigaction(SIGALRM, &action, NULL);
		setitimer(ITIMER_REAL, &each, NULL);
		is_set = true;
	}
	note(keep_registers() == 0);
}

static void *wait_always(void *unused)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	for (;;)
		pause();
	return unused;
}

static int run_guest(void (*round)(void), u32 n_waiting)
{
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (u32 i = 0; i < n_waiting; i++)
		pthread_create(&thread, NULL, wait_always, NULL);
	while (!atomic_load(&told->is_over))
		round();
	return atomic_load(&told->n_bad) ? 1 : 42;
}

static pid_t start(void (*round)(void), u32 n_waiting)
{
	pid_t pid;

	memset(told, 0, sizeof(*told));
	assert_int_equal(pipe(told->pipe), 0);
	pid = fork();
	if (pid == 0)
		_exit(run_guest(round, n_waiting));
	return pid;
}

static void poke(void)
{
	assert_int_equal(write(told->pipe[1], "x", 1), 1);
}

/* The guest goes on: it makes rounds, all good. */
static void await_rounds(pid_t pid, u64 n)
{
	u64 until_ns = lull_now_ns() + 60 * LULL_NS_PER_S;
	u64 from = atomic_load(&told->n_rounds);

	while (atomic_load(&told->n_rounds) < from + n) {
		poke();
		assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
		assert_true(lull_now_ns() < until_ns);
		usleep(500);
	}
	assert_int_equal(atomic_load(&told->n_bad), 0);
}

static void end(pid_t pid)
{
	int status = 0;

	atomic_store(&told->is_over, 1);
	poke();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 42);
	close(told->pipe[0]);
	close(told->pipe[1]);
}

static void die_at(void *ctx, u32 step)
{
	if (step == *(u32 *)ctx)
		kill(getpid(), SIGKILL);
}

/* Just before it is to stop for the first time; it is seized already. */
static void be_late_once(void *ctx, u32 step)
{
	(void)ctx;
	if (step != 2)
		return;
	atomic_store(&told->is_late, 1);
	while (!atomic_load(&told->is_deaf))
		usleep(1000);
}

/* Enter, with this done at each step; the error's text says what became of it. */
static void enter_with(pid_t pid, void (*on_step)(void *ctx, u32 step), void *ctx,
		       struct lull_err *err)
{
	struct lull_attach_wish wish = {
		.agent_path = agent_path,
		.folder = "/nowhere",
		.python_path = "",
		.on_step = on_step,
		.ctx = ctx,
	};
	struct lull_attach_target target;
	struct lull_attach_done done;

	if (lull_attach_inspect(&target, pid, err) == 0)
		lull_attach_enter(&target, &wish, &done, err);
}

/* Enter and die at this step. */
static void enter(pid_t pid, u32 step, struct lull_err *err)
{
	enter_with(pid, die_at, &step, err);
}

/* Kill the tracer at every `stride`-th step, until it comes to its end. */
static void kill_at_steps(void (*round)(void), u32 n_waiting, u32 stride)
{
	pid_t pid = start(round, n_waiting);
	struct lull_err err = { 0 };
	u32 n_killed = 0;

	await_rounds(pid, 2);
	for (u32 step = 0; !strstr(err.msg, "no room"); step += stride) {
		enter(pid, step, &err);
		await_rounds(pid, 2);
		n_killed += strstr(err.msg, "broken off") != NULL;
		if (!strstr(err.msg, "broken off") && !strstr(err.msg, "no room"))
			fail_msg("step %u: %s", step, err.msg);
		assert_true(step < 2000);
	}
	/* It takes more than a few steps, or nothing was tried. */
	assert_true(n_killed * stride >= 40);
	end(pid);
}

static void a_busy_thread_keeps_its_registers(void **state)
{
	(void)state;
	kill_at_steps(round_busy, 0, 1);
}

static void a_read_goes_on(void **state)
{
	(void)state;
	kill_at_steps(round_read, 0, 1);
}

static void a_wait_for_events_goes_on(void **state)
{
	(void)state;
	kill_at_steps(round_epoll, 0, 3);
}

/*
 * Only a tracer that dies between stop and repair leaves an EINTR, as any signal may; and now and
 * then one that stops a thread which began to wait after the look before. Without repair all do.
 */
static void a_wait_for_events_is_not_broken_off(void **state)
{
	pid_t pid = start(round_epoll, 0);
	struct lull_err err = { 0 };

	(void)state;
	await_rounds(pid, 2);
	for (u32 i = 0; i < 20; i++) {
		enter(pid, UINT32_MAX, &err);
		assert_non_null(strstr(err.msg, "no room"));
		await_rounds(pid, 1);
	}
	assert_in_range(atomic_load(&told->n_broken), 0, 3);
	end(pid);
}

static void a_sleep_is_not_cut_short(void **state)
{
	(void)state;
	kill_at_steps(round_sleep, 0, 3);
}

static void forks_loads_and_allocations_go_on(void **state)
{
	(void)state;
	kill_at_steps(round_mixed, 1, 3);
}

static void signals_go_on(void **state)
{
	(void)state;
	kill_at_steps(round_signals, 0, 5);
}

/* On a busy machine: it stops when it gets a CPU, and the tracer comes back for it. */
static void a_thread_that_stops_late_is_not_given_up(void **state)
{
	pid_t pid = start(round_late, 0);
	struct lull_err err = { 0 };

	(void)state;
	await_rounds(pid, 2);
	enter_with(pid, be_late_once, NULL, &err);
	assert_int_equal(atomic_load(&told->is_deaf), 1);
	if (!strstr(err.msg, "no room"))
		fail_msg("%s", err.msg);
	await_rounds(pid, 2);
	end(pid);
}

/* Whether another process has its CPU for itself. */
static bool favour(pid_t hog, bool is_on)
{
	struct sched_param how = { .sched_priority = is_on };

	return sched_setscheduler(hog, is_on ? SCHED_FIFO : SCHED_OTHER, &how) == 0;
}

/* From the first stop on until the thread is tried again it has no CPU. */
static void starve_for_a_while(void *ctx, u32 step)
{
	if (step == 2 || step == 4)
		favour(*(pid_t *)ctx, step == 2);
}

/* From the glimpse until it was looked at it has no CPU: it waits again after that, and stops. */
static void starve_while_looked_at(void *ctx, u32 step)
{
	if (step == 8 || step == 10)
		favour(*(pid_t *)ctx, step == 8);
	if (step == 10)
		usleep(50000);
}

static pid_t start_hog(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			keep_registers();
	}
	return pid;
}

/* It has to be known in which call a thread is, and one that has stopped does not tell. */
static void check_waits(void (*on_step)(void *ctx, u32 step))
{
	cpu_set_t before, one, others;
	struct lull_err err = { 0 };
	pid_t hog, pid;

	sched_getaffinity(0, sizeof(before), &before);
	CPU_ZERO(&one);
	CPU_SET((size_t)sched_getcpu(), &one);
	CPU_XOR(&others, &before, &one);
	sched_setaffinity(0, sizeof(one), &one);
	hog = start_hog();
	pid = start(round_epoll, 0);
	sched_setaffinity(0, sizeof(others), &others);
	if (!CPU_COUNT(&others) || !favour(hog, true)) {
		kill(hog, SIGKILL);
		kill(pid, SIGKILL);
		sched_setaffinity(0, sizeof(before), &before);
		test_skip("two CPUs are needed, and the right to take one for oneself");
	}
	favour(hog, false);
	await_rounds(pid, 2);
	for (u32 i = 0; i < 5; i++) {
		enter_with(pid, on_step, &hog, &err);
		if (!strstr(err.msg, "no room"))
			fail_msg("%s", err.msg);
		await_rounds(pid, 1);
	}
	/* As in a_wait_for_events_is_not_broken_off(). */
	assert_in_range(atomic_load(&told->n_broken), 0, 2);
	end(pid);
	kill(hog, SIGKILL);
	waitpid(hog, NULL, 0);
	sched_setaffinity(0, sizeof(before), &before);
}

static void a_wait_goes_on_after_a_late_stop(void **state)
{
	(void)state;
	check_waits(starve_for_a_while);
}

static void a_wait_goes_on_that_was_not_seen(void **state)
{
	(void)state;
	check_waits(starve_while_looked_at);
}

static int set_up(void **state)
{
	char exe[PATH_MAX], *slash;
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	(void)state;
	exe[n > 0 ? n : 0] = '\0';
	for (int i = 0; i < 2 && (slash = strrchr(exe, '/')); i++)
		*slash = '\0';
	snprintf(agent_path, sizeof(agent_path), "%.4000s/liblull-agent.so", exe);
	told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return told == MAP_FAILED;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_busy_thread_keeps_its_registers),
		cmocka_unit_test(a_read_goes_on),
		cmocka_unit_test(a_wait_for_events_goes_on),
		cmocka_unit_test(a_wait_for_events_is_not_broken_off),
		cmocka_unit_test(a_sleep_is_not_cut_short),
		cmocka_unit_test(forks_loads_and_allocations_go_on),
		cmocka_unit_test(signals_go_on),
		cmocka_unit_test(a_thread_that_stops_late_is_not_given_up),
		cmocka_unit_test(a_wait_goes_on_after_a_late_stop),
		cmocka_unit_test(a_wait_goes_on_that_was_not_seen),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
