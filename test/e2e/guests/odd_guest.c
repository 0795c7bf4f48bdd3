/*
 * odd_guest - programs that do what most do not, and say how they fared.
 *
 *	odd_guest WHAT
 *
 * Each prints one line and ends with a status of its own; a recorded one must do the same.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <link.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define CUDA_CALLS(CALL)                                       \
	CALL(cuInit, init, (unsigned))                         \
	CALL(cuDevicePrimaryCtxRetain, retain, (void **, int)) \
	CALL(cuCtxSetCurrent, set_current, (void *))           \
	CALL(cuMemAlloc_v2, alloc, (uint64_t *, size_t))       \
	CALL(cuMemsetD32Async, set_async, (uint64_t, unsigned, size_t, void *))

#include "support/cuda_guest.h"

static int end_of(pid_t pid)
{
	int status = 0;

	if (waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ---- forks while other threads hold the loader's lock ---- */

static int visit(struct dl_phdr_info *file, size_t size, void *arg)
{
	(void)file, (void)size, (void)arg;
	return 0;
}

static void *walk(void *arg)
{
	for (;;)
		dl_iterate_phdr(visit, NULL);
	return arg;
}

static void *nothing(void *arg)
{
	return arg;
}

static int walkers(void)
{
	pthread_t threads[2], thread;
	int n = 0;

	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, walk, NULL);
	for (int i = 0; i < 100; i++) {
		pid_t pid = fork();

		if (pid == 0 && i % 2)
			_exit(3);
		if (pid == 0) {
			/* A thread, a library that is there already, and the long way out. */
			pthread_create(&thread, NULL, nothing, NULL);
			pthread_join(thread, NULL);
			exit(dlopen("libm.so.6", RTLD_NOW | RTLD_NOLOAD) ? 3 : 4);
		}
		n += end_of(pid) == 3;
	}
	printf("%d children\n", n);
	return 5;
}

/* ---- the way out taken in a signal handler, in the middle of a CUDA call ---- */

static void leave(int sig)
{
	(void)sig;
	_exit(7);
}

static int handler_exit(void)
{
	struct itimerval soon = { .it_value = { 0, 150000 } };
	uint64_t at;
	void *context;

	if (cuda_guest_find())
		return 77;
	DO(init, 0);
	DO(retain, &context, 0);
	DO(set_current, context);
	DO(alloc, &at, 4096);
	signal(SIGALRM, leave);
	puts("working");
	fflush(stdout);
	setitimer(ITIMER_REAL, &soon, NULL);
	for (;;)
		cuda.set_async(at, 1, 64, NULL);
}

/* ---- functions that many threads look up at once ---- */

#define FUNCTIONS(F)                                                                           \
	F(sin)                                                                                 \
	F(cos)                                                                                 \
	F(tan)                                                                                 \
	F(asin)                                                                                \
	F(acos)                                                                                \
	F(atan) F(sinh) F(cosh) F(tanh) F(exp) F(log) F(sqrt) F(cbrt) F(floor) F(ceil) F(rint) \
		F(erf) F(tgamma) F(exp2) F(log2) F(log10) F(expm1)

#define AS_NAME(name) #name,
static const char *const names[] = { FUNCTIONS(AS_NAME) };
#define AS_ADDRESS(name) name,
static double (*const functions[])(double) = { FUNCTIONS(AS_ADDRESS) };
#define N_FUNCTIONS (sizeof(names) / sizeof(names[0]))
#define N_SEEKERS   2

static _Atomic int n_wrong, n_there;

/* All at the same moment: nobody sleeps, unless another one has no CPU. */
static void meet(int round)
{
	n_there++;
	for (int i = 0; n_there < (round + 1) * N_SEEKERS; i++)
		if (i > 100000)
			sched_yield();
}

static void *seek(void *arg)
{
	size_t from = (size_t)arg;

	for (size_t i = 0; i < N_FUNCTIONS; i++) {
		size_t ix = (from * 5 + i * 7) % N_FUNCTIONS;
		double (*found)(double), direct = functions[ix](0.5);

		meet((int)i);
		*(void **)&found = dlsym(RTLD_DEFAULT, names[ix]);
		if (!found || found(0.5) != direct)
			n_wrong++;
	}
	return NULL;
}

static int symbols(void)
{
	pthread_t threads[N_SEEKERS];

	for (size_t i = 0; i < N_SEEKERS; i++)
		pthread_create(&threads[i], NULL, seek, (void *)i);
	for (size_t i = 0; i < N_SEEKERS; i++)
		pthread_join(threads[i], NULL);
	printf("%d wrong\n", n_wrong);
	return 0;
}

/* ---- everything closed ---- */

static int closed(void)
{
	pid_t pid;

	for (int fd = 0; fd < 1024; fd++)
		close(fd);
	pid = fork();
	if (pid == 0)
		_exit(usleep(2000) ? 1 : 2);
	return 10 + end_of(pid);
}

/* ---- a sandbox that kills who asks for more than a few system calls ---- */

#define ALLOW(name)                                            \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static int sandbox(bool is_direct)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(read),
		ALLOW(write),
		ALLOW(exit_group),
		ALLOW(clock_nanosleep),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog filter = { sizeof(code) / sizeof(code[0]), code };
	struct timespec moment = { 0, 1000 };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    (is_direct ? syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter)
		       : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)))
		return 77;
	for (int i = 0; i < 5000; i++)
		clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, NULL);
	if (write(1, "inside\n", 7) != 7)
		return 1;
	_exit(6);
}

/* ---- a large environment and a small stack ---- */

#define N_VARIABLES 16000

extern char **environ;

static void *start_child(void *arg)
{
	static char *words[] = { "/bin/true", NULL };
	static char text[N_VARIABLES][16], *list[N_VARIABLES + 1];
	pid_t pid;

	for (int i = 0; i < N_VARIABLES; i++) {
		snprintf(text[i], sizeof(text[i]), "ODD_%d=1", i);
		list[i] = text[i];
	}
	*(int *)arg = posix_spawn(&pid, words[0], NULL, NULL, words, list) ? 1 : end_of(pid);
	pid = vfork();
	if (pid == 0) {
		execve(words[0], words, list);
		_exit(127);
	}
	*(int *)arg += end_of(pid);
	return NULL;
}

static int small_stack(void)
{
	pthread_attr_t attr;
	pthread_t thread;
	int status = -1;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, (size_t)sysconf(_SC_THREAD_STACK_MIN));
	if (pthread_create(&thread, &attr, start_child, &status))
		return 77;
	pthread_join(thread, NULL);
	printf("ended with %d\n", status);
	return status;
}

/* ---- more threads than there are places for ---- */

static pthread_barrier_t all_there;

static void *be_there(void *arg)
{
	pthread_barrier_wait(&all_there);
	usleep(1000);
	return arg;
}

static int crowd(void)
{
	enum { N = 4500 };
	static pthread_t threads[N];
	pthread_attr_t attr;
	int n = 0;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, (size_t)sysconf(_SC_THREAD_STACK_MIN));
	pthread_barrier_init(&all_there, NULL, N + 1);
	for (; n < N; n++)
		if (pthread_create(&threads[n], &attr, be_there, NULL))
			_exit(77);
	pthread_barrier_wait(&all_there);
	for (n = 0; n < N; n++)
		pthread_join(threads[n], NULL);
	printf("%d threads\n", n);
	return 9;
}

/* ---- memory as much as a limit allows ---- */

static int memory(const char *megabytes)
{
	size_t n = (size_t)atoi(megabytes) << 20;
	char *at = malloc(n);

	printf("%s\n", at ? "got it" : strerror(errno));
	return at ? 0 : 1;
}

/* ---- another user in another root ---- */

static int stranger(const char *root)
{
	pid_t pid;

	if (chroot(root) || chdir("/") || setgid(65534) || setuid(65534))
		return 77;
	pid = fork();
	if (pid == 0)
		_exit(usleep(2000) ? 1 : 8);
	printf("child %d\n", end_of(pid));
	return 8;
}

/* ---- system calls made directly ---- */

static int direct(void)
{
	int fd = (int)syscall(SYS_memfd_create, "direct", 0);
	char *at;
	long r;

	/* What libseccomp asks: is there such a call? */
	r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL);
	printf("%ld %s\n", r, strerror(errno));
	if (fd < 0 || pwrite(fd, "there", 6, 1 << 16) != 6)
		return 77;
	/* Six arguments, the last of which counts. */
	at = (char *)syscall(SYS_mmap, 0L, 4096L, (long)PROT_READ, (long)MAP_PRIVATE, (long)fd,
			     1L << 16);
	printf("%s\n", at);
	r = syscall(SYS_close, -1);
	printf("%ld %s\n", r, strerror(errno));
	return 10;
}

/* ---- a child started from a handler on a small stack ---- */

static char **handler_env;

static void start_echo(int sig)
{
	static char *argv[] = { "/bin/echo", "from the handler", NULL };
	pid_t pid = vfork();

	(void)sig;
	if (pid == 0) {
		execve(argv[0], argv, handler_env);
		_exit(9);
	}
	_exit(20 + end_of(pid));
}

static int signal_stack(bool is_bare)
{
	static char *none[] = { NULL };
	enum { GUARD = 1 << 16, STACK = 8192 };
	char *at = mmap(NULL, GUARD + STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);
	stack_t stack = { .ss_sp = at + GUARD, .ss_size = STACK };
	struct sigaction action = { .sa_handler = start_echo, .sa_flags = SA_ONSTACK };

	handler_env = is_bare ? none : environ;
	if (at == MAP_FAILED || mprotect(at, GUARD, PROT_NONE) || sigaltstack(&stack, NULL) ||
	    sigaction(SIGUSR1, &action, NULL))
		return 77;
	raise(SIGUSR1);
	return 1;
}

/* ---- what is handed over is not there ---- */

static char *volatile nowhere = (char *)8; /* not for the compiler to see */

static int unreadable(void)
{
	char *good[] = { "/bin/true", NULL }, *with_bad[] = { "A=1", nowhere, NULL };
	char **bad = (char **)nowhere, **edge, **envs[] = { bad, with_bad, NULL };
	pid_t pid;

	/* Ends where no memory is, without a NULL. */
	edge = mmap(NULL, 1 << 17, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (edge == MAP_FAILED || munmap((char *)edge + (1 << 16), 1 << 16))
		return 77;
	edge += (1 << 16) / sizeof(char *) - 1;
	*edge = "B=2";
	envs[2] = edge;
	for (int i = 0; i < 3; i++) {
		errno = 0;
		printf("execve %d", execve(good[0], good, envs[i]));
		printf(" %s, posix_spawn ", strerror(errno));
		puts(strerror(posix_spawn(&pid, good[0], NULL, NULL, good, envs[i])));
	}
	printf("argv %d", execve(good[0], bad, environ));
	printf(" %s, path", strerror(errno));
	printf(" %d", execve(nowhere, good, environ));
	printf(" %s, ", strerror(errno));
	puts(strerror(posix_spawn(&pid, nowhere, NULL, NULL, good, environ)));
	return 13;
}

/* ---- as many arguments as the kernel takes ---- */

enum { WORD = 100000 };

/* True if `true` can be started with n long words and one of `rest` letters, without variables. */
static bool takes(char *word, int n, int rest, bool is_spawn)
{
	char **argv = calloc((size_t)n + 3, sizeof(char *)), *none[] = { NULL };
	pid_t pid = 0;
	int status = 0;

	argv[0] = "/bin/true";
	for (int i = 0; i < n; i++)
		argv[i + 1] = word;
	argv[n + 1] = word + WORD - rest;
	if (is_spawn) {
		status = posix_spawn(&pid, argv[0], NULL, NULL, argv, none);
	} else if ((pid = fork()) == 0) {
		execve(argv[0], argv, none);
		_exit(7);
	}
	free(argv);
	return status == 0 && end_of(pid) == 0;
}

static int full(bool is_spawn)
{
	char *word = malloc(WORD + 1);
	int n = 0, rest = 0;

	memset(word, 'x', WORD);
	word[WORD] = '\0';
	for (int step = 64; step; step /= 2)
		n += takes(word, n + step, 0, is_spawn) ? step : 0;
	for (int step = 1 << 16; step; step /= 2)
		rest += rest + step <= WORD && takes(word, n, rest + step, is_spawn) ? step : 0;
	printf("%d words and %d letters\n", n, rest);
	free(word);
	return 11;
}

/* ---- who an orphan's parent is ---- */

static int orphan(void)
{
	int pipe_fds[2], parent = 0;
	pid_t pid;

	if (pipe(pipe_fds))
		return 77;
	pid = fork();
	if (pid == 0) {
		if (fork())
			_exit(0);
		for (int i = 0; i < 2000 && (parent = getppid()) != 1; i++)
			usleep(1000);
		_exit(write(pipe_fds[1], &parent, sizeof(parent)) < 0);
	}
	end_of(pid);
	if (read(pipe_fds[0], &parent, sizeof(parent)) != sizeof(parent))
		return 1;
	printf("%d, and ours %s\n", parent, getppid() > 1 ? "another" : "the same");
	return parent == 1 ? 12 : 77;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "walkers"))
		return walkers();
	if (!strcmp(what, "handler_exit"))
		return handler_exit();
	if (!strcmp(what, "symbols"))
		return symbols();
	if (!strcmp(what, "closed"))
		return closed();
	if (!strcmp(what, "sandbox"))
		return sandbox(false);
	if (!strcmp(what, "seccomp"))
		return sandbox(true);
	if (!strcmp(what, "direct"))
		return direct();
	if (!strcmp(what, "signal_stack"))
		return signal_stack(argc > 2);
	if (!strcmp(what, "full"))
		return full(argc > 2);
	if (!strcmp(what, "unreadable"))
		return unreadable();
	if (!strcmp(what, "orphan"))
		return orphan();
	if (!strcmp(what, "small_stack"))
		return small_stack();
	if (!strcmp(what, "crowd"))
		return crowd();
	if (!strcmp(what, "memory") && argc > 2)
		return memory(argv[2]);
	if (!strcmp(what, "stranger") && argc > 2)
		return stranger(argv[2]);
	return 2;
}
