/*
 * osrt_guest - programs whose calls of the C library are known, run by osrt.sh with and without the
 * agent.
 *
 * `osrt_guest SCENARIO` prints what a program can see of its calls (results, errno, signals), which
 * must be the same either way. Lines `expect NAME NS` are about time: a recorded call of that name
 * must have that length.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/time.h"

static int ends[2]; /* of a pipe in which nothing is written unless the scenario does */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t sem;

/* The length of a call as its caller sees it. */
#define TIMED(name, call)                                                             \
	do {                                                                          \
		u64 t0 = lull_now_ns();                                               \
		long r = (long)(call);                                                \
		printf("expect %s %lu\n", name, (unsigned long)(lull_now_ns() - t0)); \
		fprintf(stderr, "%s %ld\n", name, r);                                 \
	} while (0)

static struct timespec after_ms(clockid_t clock, int ms)
{
	u64 at = lull_clock_ns(clock) + (u64)ms * 1000000;

	return (struct timespec){ .tv_sec = (time_t)(at / LULL_NS_PER_S),
				  .tv_nsec = (long)(at % LULL_NS_PER_S) };
}

static _Atomic int is_held; /* all three of them, by the thread below */

static void *hold_for_15_ms(void *unused)
{
	pthread_mutex_lock(&mutex);
	pthread_rwlock_wrlock(&rwlock);
	sem_wait(&sem);
	is_held = 1;
	usleep(15000);
	pthread_mutex_unlock(&mutex);
	usleep(5000);
	pthread_rwlock_unlock(&rwlock);
	usleep(5000);
	sem_post(&sem);
	usleep(5000);
	if (write(ends[1], "x", 1) != 1)
		perror("write");
	return unused;
}

static void lengths(void)
{
	struct timespec ts = { .tv_nsec = 5000000 };
	struct pollfd p = { .fd = ends[0], .events = POLLIN };
	pthread_t thread;
	char byte;

	TIMED("nanosleep", nanosleep(&ts, NULL));
	TIMED("clock_nanosleep", clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL));
	TIMED("usleep", usleep(3000));
	TIMED("poll", poll(&p, 1, 4));
	pthread_create(&thread, NULL, hold_for_15_ms, NULL);
	/* Not before: each would wait for the other. */
	while (!is_held)
		sched_yield();
	TIMED("pthread_mutex_lock", pthread_mutex_lock(&mutex));
	TIMED("pthread_rwlock_rdlock", pthread_rwlock_rdlock(&rwlock));
	TIMED("sem_wait", sem_wait(&sem));
	TIMED("read", read(ends[0], &byte, 1));
	ts = after_ms(CLOCK_REALTIME, 6);
	TIMED("pthread_cond_timedwait", pthread_cond_timedwait(&cond, &mutex, &ts));
	ts = after_ms(CLOCK_MONOTONIC, 6);
	TIMED("pthread_cond_clockwait",
	      pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &ts));
	pthread_join(thread, NULL);
}

static void shorts(void)
{
	int fd = open("/dev/zero", O_RDONLY);
	char byte;

	for (int i = 0; i < 20000; i++) {
		if (read(fd, &byte, 1) != 1)
			abort();
		pthread_mutex_lock(&mutex);
		pthread_mutex_unlock(&mutex);
	}
}

/* A result and the errno behind it; errno is 77 before each call, so one that is not set shows. */
#define SHOW(call)                                           \
	do {                                                 \
		errno = 77;                                  \
		long r = (long)(call);                       \
		int e = errno;                               \
		printf("%s = %ld, errno %d\n", #call, r, e); \
	} while (0)

static void errors(void)
{
	struct timespec bad = { .tv_nsec = -1 }, past = { 0 };
	struct pollfd p = { .fd = ends[0], .events = POLLIN };
	pthread_mutexattr_t attr;
	pthread_mutex_t check;
	char byte;
	int n;

	SHOW(read(-1, &byte, 1));
	SHOW(write(-1, &byte, 1));
	SHOW(open("/no/such", O_RDONLY));
	SHOW(openat(AT_FDCWD, "/no/such", O_CREAT | O_RDWR, 0600));
	SHOW(close(-1));
	SHOW(ioctl(ends[0], FIONREAD, &n));
	SHOW(ioctl(-1, FIONREAD, &n));
	SHOW(fcntl(ends[0], F_GETFD));
	SHOW(fcntl(ends[0], F_SETFD, FD_CLOEXEC));
	SHOW(fcntl(ends[0], F_GETFD));
	SHOW(poll(&p, 1, 2));
	SHOW(nanosleep(&bad, NULL));
	SHOW(nanosleep((struct timespec *)8, NULL));
	SHOW(connect(-1, NULL, 0));
	SHOW(fopen("/no/such", "r") != NULL);
	SHOW(dlopen("no-such.so", RTLD_NOW) != NULL);
	printf("dlerror %d\n", dlerror() != NULL);
	SHOW(sem_wait(&sem));
	SHOW(sem_timedwait(&sem, &past));
	SHOW(sem_timedwait(&sem, &bad));
	SHOW(sem_post(&sem));
	SHOW(sem_timedwait(&sem, &bad));
	SHOW(sem_clockwait(&sem, 99, &past));
	SHOW(pthread_mutex_clocklock(&mutex, 99, &past));
	SHOW(pthread_mutex_timedlock(&mutex, &past));
	SHOW(pthread_mutex_timedlock(&mutex, &past));
	SHOW(pthread_rwlock_wrlock(&rwlock));
	SHOW(pthread_rwlock_rdlock(&rwlock));
	SHOW(pthread_rwlock_timedrdlock(&rwlock, &bad));
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_init(&check, &attr);
	SHOW(pthread_mutex_lock(&check));
	SHOW(pthread_mutex_lock(&check));
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&check, &attr);
	SHOW(pthread_mutex_lock(&check));
	SHOW(pthread_mutex_lock(&check));
}

static pthread_mutex_t robust;

static void *die_with_it(void *unused)
{
	pthread_mutex_lock(&robust);
	return unused;
}

static void owner_died(void)
{
	pthread_mutexattr_t attr;
	pthread_t thread;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&robust, &attr);
	pthread_create(&thread, NULL, die_with_it, NULL);
	pthread_join(thread, NULL);
	SHOW(pthread_mutex_lock(&robust) == EOWNERDEAD);
	SHOW(pthread_mutex_unlock(&robust));
	SHOW(pthread_mutex_lock(&robust) == ENOTRECOVERABLE);
}

static void on_alarm(int sig)
{
	(void)sig;
}

static void alarm_in_ms(int ms, int flags)
{
	struct itimerval value = { .it_value.tv_usec = ms * 1000 };
	struct sigaction act = { .sa_handler = on_alarm, .sa_flags = flags };

	sigaction(SIGALRM, &act, NULL);
	setitimer(ITIMER_REAL, &value, NULL);
}

static void interrupts(void)
{
	struct timespec ts = { .tv_nsec = 50000000 }, left;
	struct pollfd p = { .fd = ends[0], .events = POLLIN };
	pthread_t thread;
	char byte;

	sem_wait(&sem);
	alarm_in_ms(5, 0);
	SHOW(read(ends[0], &byte, 1));
	alarm_in_ms(5, 0);
	SHOW(poll(&p, 1, 50));
	alarm_in_ms(5, 0);
	SHOW(sem_wait(&sem));
	alarm_in_ms(5, 0);
	SHOW(nanosleep(&ts, &left));
	printf("left %d\n", left.tv_nsec > 30000000);
	sem_post(&sem);
	pthread_create(&thread, NULL, hold_for_15_ms, NULL);
	alarm_in_ms(5, SA_RESTART);
	SHOW(read(ends[0], &byte, 1));
	pthread_join(thread, NULL);
}

static void cleanup(void *what)
{
	usleep(2500);
	printf("cleanup %s\n", (const char *)what);
}

static void *wait_read(void *name)
{
	char byte;

	pthread_cleanup_push(cleanup, name);
	if (read(ends[0], &byte, 1) != 1)
		puts("read came back");
	pthread_cleanup_pop(0);
	return NULL;
}

static void *wait_cond(void *name)
{
	pthread_cleanup_push(cleanup, name);
	pthread_mutex_lock(&mutex);
	pthread_cond_wait(&cond, &mutex);
	pthread_cleanup_pop(0);
	return NULL;
}

static void *wait_sem(void *name)
{
	pthread_cleanup_push(cleanup, name);
	sem_wait(&sem);
	pthread_cleanup_pop(0);
	return NULL;
}

static void *sleep_a_little(void *unused)
{
	usleep(3500);
	return unused;
}

static void cancel(void)
{
	void *(*const waits[])(void *) = { wait_read, wait_cond, wait_sem };
	const char *const names[] = { "read", "cond", "sem" };
	pthread_t thread;
	void *result;

	sem_wait(&sem);
	for (int i = 0; i < 3; i++) {
		pthread_create(&thread, NULL, waits[i], (void *)names[i]);
		usleep(10000);
		pthread_cancel(thread);
		pthread_join(thread, &result);
		printf("%s cancelled %d\n", names[i], result == PTHREAD_CANCELED);
	}
	sem_post(&sem);
	pthread_create(&thread, NULL, wait_sem, "free sem");
	pthread_cancel(thread);
	pthread_join(thread, &result);
	pthread_create(&thread, NULL, sleep_a_little, NULL);
	pthread_join(thread, NULL);
}

static sigjmp_buf out_of_it;
static int n_jumps; /* not a local: it has to survive the jump */

static void jump(int sig)
{
	(void)sig;
	siglongjmp(out_of_it, 1);
}

/* Sleep `depth` frames down, each of which overwrites the stack of what ran there before. */
static __attribute__((noinline)) int deep(int depth)
{
	volatile char frame[512];

	memset((char *)frame, depth, sizeof(frame));
	if (!depth)
		return usleep(2500);
	return deep(depth - 1) + frame[0] - frame[1];
}

static void longjmps(void)
{
	struct itimerval value = { .it_value.tv_usec = 5000 };
	char byte;

	signal(SIGALRM, jump);
	for (n_jumps = 0; n_jumps < 3; n_jumps++) {
		if (!sigsetjmp(out_of_it, 1)) {
			setitimer(ITIMER_REAL, &value, NULL);
			if (read(ends[0], &byte, 1) != -1)
				puts("read came back");
		}
		deep(8);
	}
	usleep(2500);
}

static void *start_and_stop(void *unused)
{
	usleep(10);
	return unused;
}

static void threads(void)
{
	static pthread_t all[200];

	for (int round = 0; round < 50; round++) {
		for (int i = 0; i < 200; i++)
			if (pthread_create(&all[i], NULL, start_and_stop, NULL) != 0)
				abort();
		for (int i = 0; i < 200; i++)
			pthread_join(all[i], NULL);
	}
	puts("10000 threads");
}

static char **files; /* what follows the scenario */

static _Atomic int is_loaded;

static void *load(void *file)
{
	void *library = dlopen(file, RTLD_NOW);

	is_loaded = 1;
	return library;
}

/* While a thread loads a file others begin, which makes the agent look at what is loaded. */
static void *load_beside_threads(char *file)
{
	pthread_t loader, other;
	void *library;

	is_loaded = 0;
	pthread_create(&loader, NULL, load, file);
	while (!is_loaded) {
		usleep(1000);
		pthread_create(&other, NULL, start_and_stop, NULL);
		pthread_join(other, NULL);
	}
	pthread_join(loader, &library);
	return library;
}

/* Waits for each kind of lock in each of these files. */
static void libraries(void)
{
	int (*wait)(void *);
	pthread_t thread;

	for (; *files; files++) {
		void *library = load_beside_threads(*files);
		static const struct {
			const char *name;
			void *lock;
		} waits[] = { { "wait_mutex", &mutex },
			      { "wait_rwlock", &rwlock },
			      { "wait_sem", &sem } };

		is_held = 0;
		pthread_create(&thread, NULL, hold_for_15_ms, NULL);
		while (!is_held)
			sched_yield();
		for (size_t i = 0; library && i < sizeof(waits) / sizeof(waits[0]); i++) {
			*(void **)&wait = dlsym(library, waits[i].name);
			printf("%s %d\n", waits[i].name, wait(waits[i].lock));
		}
		pthread_join(thread, NULL);
	}
}

/* Takes a free lock a thousand times, through an entry that is filled in at the first. */
static void lazy_calls(void)
{
	void *library = dlopen(*files, RTLD_LAZY);
	int (*wait)(void *) = NULL;

	if (library)
		*(void **)&wait = dlsym(library, "wait_mutex");
	for (int i = 0; wait && i < 1000; i++)
		wait(&mutex);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} scenarios[] = {
		{ "lengths", lengths },	      { "shorts", shorts },
		{ "errors", errors },	      { "owner_died", owner_died },
		{ "interrupts", interrupts }, { "cancel", cancel },
		{ "longjmps", longjmps },     { "threads", threads },
		{ "libraries", libraries },   { "lazy_calls", lazy_calls },
	};

	if (pipe(ends) != 0 || sem_init(&sem, 0, 1) != 0 || argc < 2)
		return 2;
	files = &argv[2];
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
		if (strcmp(argv[1], scenarios[i].name) == 0) {
			scenarios[i].run();
			return 0;
		}
	return 2;
}
