/*
 * osrt_guest - programs whose calls of the C library are known, run by test_osrt.py with and
 * without the agent.
 *
 * `osrt_guest SCENARIO` prints what a program can see of its calls (results, errno, signals), which
 * must be the same either way. Lines `expect NAME TID FROM TO MIN_NS MOMENT` are about time: the
 * thread has made one such call between these two moments, it took at least so long, and the third
 * moment, if it is not 0, was during the call.
 *
 * Who lets a thread go, or interrupts it, waits until it sleeps: the order of things is the same on
 * any machine.
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
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/time.h"
#include "own_image.h"

#define MS	1000000u /* in ns */
#define FOREVER 3600	 /* in s: nobody waits so long */

static int ends[2]; /* of a pipe in which nothing is written unless the scenario does */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t sem;

/* By the clock of the recorder. */
static u64 moment(void)
{
	return getenv("LISTEN_CLOCK") ? lull_now_ns() : lull_counter();
}

/* A call as its caller sees it; going into the kernel keeps the readings on their sides of it. */
#define TIMED(name, min_ns, call)                                                               \
	do {                                                                                    \
		u64 from = moment(), to;                                                        \
		syscall(SYS_getppid);                                                           \
		long r = (long)(call);                                                          \
		syscall(SYS_getppid);                                                           \
		to = moment();                                                                  \
		printf("expect %s %d %lu %lu %lu %lu\n", name, gettid(), from, to,              \
		       (unsigned long)(min_ns), (unsigned long)atomic_exchange(&let_go_at, 0)); \
		fprintf(stderr, "%s %ld\n", name, r);                                           \
	} while (0)

/* ---- threads that do something when another one sleeps ---- */

/* Whether it sleeps, and how often it fell asleep. */
static int look_at(pid_t tid, unsigned long *n_sleeps)
{
	char path[64], line[256], state = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", (int)tid);
	f = fopen(path, "r");
	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f)) {
		sscanf(line, "State: %c", &state);
		sscanf(line, "voluntary_ctxt_switches: %lu", n_sleeps);
	}
	fclose(f);
	return state == 'S';
}

/* Until it sleeps, and does so for a while: it is in the call that it waits in. */
static void until_asleep(pid_t tid)
{
	unsigned long before = 0, now = 0;

	do {
		while (!look_at(tid, &before))
			usleep(1000);
		usleep(3000);
	} while (!look_at(tid, &now) || now != before);
}

static _Atomic u64 let_go_at; /* when the thread that waits was let go */

static void unlock_mutex(void)
{
	pthread_mutex_unlock(&mutex);
}

static void unlock_rwlock(void)
{
	pthread_rwlock_unlock(&rwlock);
}

static void post_sem(void)
{
	sem_post(&sem);
}

static void write_byte(void)
{
	if (write(ends[1], "x", 1) != 1)
		perror("write");
}

static void signal_cond(void)
{
	pthread_mutex_lock(&mutex);
	pthread_cond_signal(&cond);
	pthread_mutex_unlock(&mutex);
}

static pthread_t main_thread;

static void interrupt(void)
{
	pthread_kill(main_thread, SIGALRM);
}

/* What another thread does, one after the other, each when the main thread has gone to sleep. */
typedef void deed(void);
static deed *const *deeds;
static _Atomic int n_told, is_held;

static void *do_deeds(void *unused)
{
	pthread_mutex_lock(&mutex);
	pthread_rwlock_wrlock(&rwlock);
	sem_wait(&sem);
	is_held = 1;
	for (int i = 0; deeds[i]; i++) {
		while (n_told <= i)
			usleep(1000);
		until_asleep(getpid());
		let_go_at = moment();
		deeds[i]();
	}
	return unused;
}

/* With all three locks in its hands. */
static pthread_t start_deeds(deed *const *list)
{
	pthread_t thread;

	deeds = list;
	n_told = is_held = 0;
	pthread_create(&thread, NULL, do_deeds, NULL);
	while (!is_held)
		usleep(1000);
	return thread;
}

/* The next deed may be done. */
static int next(void)
{
	n_told++;
	return 0;
}

static void lengths(void)
{
	static deed *const list[] = { unlock_mutex, unlock_rwlock, post_sem, write_byte,
				      signal_cond,  signal_cond,   NULL };
	struct timespec ts = { .tv_nsec = 5 * MS };
	struct pollfd p = { .fd = ends[0], .events = POLLIN };
	pthread_t thread;
	char byte;

	TIMED("nanosleep", 5 * MS, nanosleep(&ts, NULL));
	TIMED("clock_nanosleep", 5 * MS, clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL));
	TIMED("usleep", 3 * MS, usleep(3000));
	TIMED("poll", 4 * MS, poll(&p, 1, 4));
	thread = start_deeds(list);
	TIMED("pthread_mutex_lock", 0, next() || pthread_mutex_lock(&mutex));
	TIMED("pthread_rwlock_rdlock", 0, next() || pthread_rwlock_rdlock(&rwlock));
	TIMED("sem_wait", 0, next() || sem_wait(&sem));
	TIMED("read", 0, next() || read(ends[0], &byte, 1));
	ts = (struct timespec){ .tv_sec = time(NULL) + FOREVER };
	TIMED("pthread_cond_timedwait", 0, next() || pthread_cond_timedwait(&cond, &mutex, &ts));
	ts.tv_sec = (time_t)(lull_now_ns() / LULL_NS_PER_S) + FOREVER;
	TIMED("pthread_cond_clockwait", 0,
	      next() || pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &ts));
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

/* A result and its errno; errno is 77 before each call, so one that is not set shows. */
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

static void handle_alarm(int flags)
{
	struct sigaction act = { .sa_handler = on_alarm, .sa_flags = flags };

	sigaction(SIGALRM, &act, NULL);
}

static void interrupts(void)
{
	static deed *const list[] = { interrupt, interrupt,  interrupt, interrupt,
				      interrupt, write_byte, NULL };
	struct timespec ts = { .tv_sec = FOREVER }, left = { 0 };
	struct pollfd p = { .fd = ends[0], .events = POLLIN };
	pthread_t thread = start_deeds(list);
	char byte;

	handle_alarm(0);
	next();
	SHOW(read(ends[0], &byte, 1));
	next();
	SHOW(poll(&p, 1, FOREVER * 1000));
	next();
	SHOW(sem_wait(&sem));
	next();
	SHOW(nanosleep(&ts, &left));
	printf("left %d\n", left.tv_sec > 0);
	/* It goes on to wait after the first, and gets its byte by the second. */
	handle_alarm(SA_RESTART);
	next();
	next();
	SHOW(read(ends[0], &byte, 1));
	pthread_join(thread, NULL);
}

static void cleanup(void *what)
{
	usleep(2500);
	printf("cleanup %s\n", (const char *)what);
}

static _Atomic pid_t waiter;

static void *wait_read(void *name)
{
	char byte;

	waiter = gettid();
	pthread_cleanup_push(cleanup, name);
	if (read(ends[0], &byte, 1) != 1)
		puts("read came back");
	pthread_cleanup_pop(0);
	return NULL;
}

static void *wait_cond(void *name)
{
	waiter = gettid();
	pthread_cleanup_push(cleanup, name);
	pthread_mutex_lock(&mutex);
	pthread_cond_wait(&cond, &mutex);
	pthread_cleanup_pop(0);
	return NULL;
}

static void *wait_sem(void *name)
{
	waiter = gettid();
	pthread_cleanup_push(cleanup, name);
	sem_wait(&sem);
	pthread_cleanup_pop(0);
	return NULL;
}

static _Atomic int is_cancelled;

/* The request is there before the call is. */
static void *wait_cancelled(void *name)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	while (!is_cancelled)
		usleep(1000);
	pthread_setcancelstate(state, NULL);
	return wait_sem(name);
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
		waiter = 0;
		pthread_create(&thread, NULL, waits[i], (void *)names[i]);
		while (!waiter)
			usleep(1000);
		until_asleep(waiter);
		pthread_cancel(thread);
		pthread_join(thread, &result);
		printf("%s cancelled %d\n", names[i], result == PTHREAD_CANCELED);
	}
	sem_post(&sem);
	pthread_create(&thread, NULL, wait_cancelled, "free sem");
	pthread_cancel(thread);
	is_cancelled = 1;
	pthread_join(thread, &result);
	printf("free sem cancelled %d\n", result == PTHREAD_CANCELED);
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

/*
 * 10,000 of them; the places of those that have ended are free when the recorder has seen it. Not
 * so many at once that their events need more shared memory than a container has.
 */
static void threads(void)
{
	struct lull_image *image = own_image();
	static pthread_t all[200];

	for (int round = 0; round < 50; round++) {
		for (int i = 0; i < 200; i++)
			if (pthread_create(&all[i], NULL, start_and_stop, NULL) != 0)
				abort();
		for (int i = 0; i < 200; i++)
			pthread_join(all[i], NULL);
		while (image && own_slots(image) > 200)
			usleep(1000);
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
	static deed *const list[] = { unlock_mutex, unlock_rwlock, post_sem, NULL };
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

		if (!library) {
			printf("%s\n", dlerror());
			return;
		}
		thread = start_deeds(list);
		for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
			*(void **)&wait = dlsym(library, waits[i].name);
			next();
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

	main_thread = pthread_self();
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
