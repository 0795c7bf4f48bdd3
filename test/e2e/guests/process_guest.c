/*
 * process_guest - families of processes, and users of SIGPROF; run by test_osrt.py with and without
 * the agent.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/time.h"
#include "lull.h"

static char *const nothing[] = { NULL };

static void reap(const char *what, pid_t pid)
{
	int status = 0;

	if (waitpid(pid, &status, 0) != pid)
		perror("waitpid");
	printf("%s: status %d\n", what, status);
}

static void family(void)
{
	char *const sh[] = { "sh", "-c", "exit 5", NULL };
	siginfo_t info;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(3);
	reap("fork", pid);
	pid = vfork();
	if (!pid) {
		execve("/bin/sh", sh, nothing);
		_exit(127);
	}
	reap("vfork", pid);
	pid = vfork();
	if (!pid) {
		execve("/no/such", sh, nothing);
		_exit(126);
	}
	reap("vfork of nothing", pid);
	printf("posix_spawn %d\n", posix_spawn(&pid, "/bin/sh", NULL, NULL, sh, nothing));
	reap("posix_spawn", pid);
	printf("posix_spawnp %d\n", posix_spawnp(&pid, "sh", NULL, NULL, sh, NULL));
	reap("posix_spawnp", pid);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		execle("/bin/sh", "sh", "-c", "exit 6", (char *)NULL, nothing);
		_exit(127);
	}
	reap("execle", pid);
	pid = fork();
	if (!pid) {
		clearenv();
		execlp("sh", "sh", "-c", "exit 7", (char *)NULL);
		_exit(127);
	}
	reap("execlp", pid);
	pid = fork();
	if (!pid) {
		kill(getpid(), SIGKILL);
		_exit(127);
	}
	if (waitid(P_PID, (id_t)pid, &info, WEXITED) != 0)
		perror("waitid");
	printf("waitid: %d %d\n", info.si_code == CLD_KILLED, info.si_status);
	printf("execv of nothing %d", execv("/no/such", sh));
	printf(" errno %d\n", errno);
}

/* Children that do something, by themselves and after a fork of their own. */
static void forks(void)
{
	char *const sh[] = { "sh", "-c", "exit 5", NULL };
	pid_t pid, inner;

	for (int i = 0; i < 2; i++) {
		fflush(stdout);
		pid = fork();
		if (!pid) {
			inner = i ? fork() : -1;
			if (inner <= 0) {
				usleep(3000);
				exit(4);
			}
			_exit(waitpid(inner, NULL, 0) == inner ? 0 : 1);
		}
		reap("fork", pid);
	}
	/* What a vfork does is of the process in whose memory it runs, which has no image yet. */
	fflush(stdout);
	pid = fork();
	if (!pid) {
		inner = vfork();
		if (!inner) {
			execve("/bin/sh", sh, nothing);
			_exit(127);
		}
		_exit(waitpid(inner, NULL, 0) == inner ? 6 : 1);
	}
	reap("vfork in a fork", pid);
}

/* All of them are there at the same time. */
static void many(void)
{
	int ends[2], n = 0;
	char byte;

	if (pipe(ends) != 0)
		return;
	fflush(stdout);
	for (int i = 0; i < 100; i++)
		if (fork() == 0) {
			close(ends[1]);
			syscall(SYS_read, ends[0], &byte, 1);
			kill(getpid(), SIGKILL);
		}
	close(ends[1]);
	while (wait(NULL) > 0)
		n++;
	printf("%d children\n", n);
}

static void *name_me(void *unused)
{
	prctl(PR_SET_NAME, "by-prctl");
	pthread_setname_np(pthread_self(), "by-pthread");
	return unused;
}

static void names(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, name_me, NULL);
	pthread_join(thread, NULL);
}

static volatile unsigned sink;

#define BURN_NS 1000000000u /* of CPU time */

static __attribute__((noinline)) void burn_a(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		sink += i * 7;
}

static __attribute__((noinline)) void burn_b(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		sink += i * 9;
}

/*
 * About 70 % of the time in burn_a, 30 % in burn_b. Prints who did it, where they are, how long
 * each took by the clock of the thread's CPU time, and what that clock says in the end.
 */
static void *split(void *unused)
{
	u64 a_ns = 0, b_ns = 0;
	unsigned seed = 1;

	while (a_ns + b_ns < BURN_NS) {
		u64 t0 = lull_clock_ns(CLOCK_THREAD_CPUTIME_ID), t1;
		unsigned length;

		/* Rounds of different lengths, so that none keeps step with the kernel's tick. */
		seed = seed * 1103515245 + 12345;
		length = 50000 + (seed >> 16) % 100000;
		burn_a(length * 7);
		t1 = lull_clock_ns(CLOCK_THREAD_CPUTIME_ID);
		burn_b(length * 3);
		a_ns += t1 - t0;
		b_ns += lull_clock_ns(CLOCK_THREAD_CPUTIME_ID) - t1;
	}
	printf("burn %d %d %lx %lx %lu %lu %lu\n", getpid(), gettid(), (unsigned long)burn_a,
	       (unsigned long)burn_b, (unsigned long)a_ns, (unsigned long)b_ns,
	       (unsigned long)lull_clock_ns(CLOCK_THREAD_CPUTIME_ID));
	return unused;
}

static void sampled(void)
{
	pthread_t thread;
	pid_t pid;

	while (getenv("LISTEN_LATE") && !lull_is_recording())
		usleep(1000);
	split(NULL);
	pthread_create(&thread, NULL, split, NULL);
	pthread_join(thread, NULL);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		split(NULL);
		fflush(stdout);
		_exit(0);
	}
	reap("child", pid);
}

static volatile sig_atomic_t n_signals;

static void count(int sig)
{
	(void)sig;
	n_signals++;
}

/* Time for samples, if somebody took some; they wait where SIGPROF is blocked. */
static void burn(void)
{
	u64 until = lull_clock_ns(CLOCK_PROCESS_CPUTIME_ID) + 100000000;

	while (lull_clock_ns(CLOCK_PROCESS_CPUTIME_ID) < until)
		burn_a(1000);
}

static void own_sigprof(void)
{
	struct itimerval value = { .it_interval.tv_usec = 10000, .it_value.tv_usec = 10000 };
	struct sigaction act = { .sa_handler = count }, old = { .sa_handler = count };

	burn();
	sigaction(SIGPROF, NULL, &old);
	printf("before: default %d, flags %d\n", old.sa_handler == SIG_DFL, old.sa_flags);
	printf("signal(SIG_DFL): default %d\n", signal(SIGPROF, SIG_DFL) == SIG_DFL);
	sigaction(SIGPROF, &act, &old);
	printf("set: default %d\n", old.sa_handler == SIG_DFL);
	sigaction(SIGPROF, NULL, &old);
	printf("after: ours %d\n", old.sa_handler == count);
	setitimer(ITIMER_PROF, &value, NULL);
	while (n_signals < 10)
		burn_a(1000);
	puts("10 signals");
}

static void *take_all(void *set)
{
	int sig = 0;

	sigwait(set, &sig);
	printf("a thread for signals: %s\n", sig == SIGPROF ? "SIGPROF" : "another");
	return NULL;
}

/* Each way to wait for SIGPROF gets what was sent, and nothing else. */
static void wait_sigprof(void)
{
	struct timespec soon = { .tv_nsec = 1000000 };
	siginfo_t info = { 0 };
	pthread_t thread;
	sigset_t set;
	int sig = 0;

	sigfillset(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	pthread_create(&thread, NULL, take_all, &set);
	burn();
	kill(getpid(), SIGPROF);
	pthread_join(thread, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGPROF);
	burn();
	printf("none: %d\n", sigtimedwait(&set, NULL, &soon) == -1 && errno == EAGAIN);
	kill(getpid(), SIGPROF);
	printf("sigwait %d, SIGPROF %d\n", sigwait(&set, &sig), sig == SIGPROF);
	burn();
	kill(getpid(), SIGPROF);
	sig = sigwaitinfo(&set, &info);
	printf("sigwaitinfo %d, by us %d\n", sig == SIGPROF, info.si_pid == getpid());
	burn();
	kill(getpid(), SIGPROF);
	sig = sigtimedwait(&set, &info, NULL);
	printf("sigtimedwait %d, by us %d\n", sig == SIGPROF, info.si_pid == getpid());
}

/* A descriptor for SIGPROF has what was sent, and nothing else. */
static void read_sigprof(void)
{
	struct signalfd_siginfo info = { 0 };
	sigset_t set;
	int fd;

	sigfillset(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_NONBLOCK);
	burn();
	printf("none: %d\n", read(fd, &info, sizeof(info)) == -1 && errno == EAGAIN);
	kill(getpid(), SIGPROF);
	printf("read %d, by us %d\n", read(fd, &info, sizeof(info)) == sizeof(info),
	       (pid_t)info.ssi_pid == getpid());
}

/* A library that only this program's RUNPATH leads to. */
static void runpath(void)
{
	void *handle = dlopen("libprocess_guest_part.so", RTLD_NOW | RTLD_LOCAL);

	printf("runpath %d\n", handle != NULL);
	printf("dlerror %d\n", dlerror() != NULL);
}

static void *do_nothing(void *arg)
{
	return arg;
}

static void run_threads(int n)
{
	pthread_t thread;

	for (int i = 0; i < n; i++)
		if (pthread_create(&thread, NULL, do_nothing, NULL) == 0)
			pthread_join(thread, NULL);
}

/* The same after many threads, and a name for what comes after the next of them. */
static void runpath_late(void)
{
	run_threads(200);
	runpath();
	run_threads(1);
	prctl(PR_SET_NAME, "after");
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} scenarios[] = {
		{ "family", family },
		{ "forks", forks },
		{ "many", many },
		{ "names", names },
		{ "sampled", sampled },
		{ "own_sigprof", own_sigprof },
		{ "runpath", runpath },
		{ "runpath_late", runpath_late },
		{ "wait_sigprof", wait_sigprof },
		{ "read_sigprof", read_sigprof },
	};

	for (size_t i = 0; argc > 1 && i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
		if (strcmp(argv[1], scenarios[i].name) == 0) {
			scenarios[i].run();
			return 0;
		}
	return 2;
}
