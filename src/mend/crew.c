/*
 * A large copy between places of the host, by several threads: one alone moves less than the bus to
 * a device takes.
 */
#include "mend/mend.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

/*
 * Threads that copy, the caller's among them: a bus takes 50 GB/s, and a thread moves 5 to 9. Of 4
 * CPUs one is left to the program.
 */
#define MOST_HANDS 12
#define SHARE_NUM  3
#define SHARE_DEN  4

/* Less than this is copied sooner than a thread is woken, and fewer shares than all of them. */
#define LEAST_SHARE  ((size_t)256 << 10)
#define LEAST_SHARES 8

#define STACK_BYTES ((size_t)256 << 10)

/* The next piece of the same copy is likely to come soon: this often looked for, before sleep. */
#define N_LOOKS 200

static struct {
	pthread_mutex_t lock;
	pthread_cond_t has_work;
	atomic_uint n_rounds, n_left;
	char *to;
	const char *from;
	size_t bytes;
	unsigned n_hands;  /* 0: not known yet */
	unsigned n_needed; /* for this copy */
	pid_t process;	   /* a child of fork() has no threads but one */
} crew = { .lock = PTHREAD_MUTEX_INITIALIZER, .has_work = PTHREAD_COND_INITIALIZER };

static void copy_share(unsigned hand)
{
	size_t share, first, end;

	if (hand >= crew.n_needed)
		return;
	share = crew.bytes / crew.n_needed;
	first = share * hand;
	end = hand + 1 == crew.n_needed ? crew.bytes : first + share;
	memcpy(crew.to + first, crew.from + first, end - first);
}

/* The number of the round after this one, once it has started. */
static unsigned wait_for_round(unsigned done)
{
	for (int i = 0; i < N_LOOKS; i++) {
		if (atomic_load_explicit(&crew.n_rounds, memory_order_acquire) != done)
			return done + 1;
		sched_yield();
	}
	pthread_mutex_lock(&crew.lock);
	while (atomic_load_explicit(&crew.n_rounds, memory_order_acquire) == done)
		pthread_cond_wait(&crew.has_work, &crew.lock);
	pthread_mutex_unlock(&crew.lock);
	return done + 1;
}

static void *work(void *hand)
{
	for (unsigned round = 0;;) {
		round = wait_for_round(round);
		copy_share((unsigned)(size_t)hand);
		atomic_fetch_sub_explicit(&crew.n_left, 1, memory_order_release);
	}
	return NULL;
}

static unsigned n_cpus(void)
{
	cpu_set_t own;

	return sched_getaffinity(0, sizeof(own), &own) == 0 ? (unsigned)CPU_COUNT(&own) : 1;
}

/* Threads without signals, which are for those of the program. */
static void hire(void)
{
	unsigned share = (n_cpus() * SHARE_NUM + SHARE_DEN - 1) / SHARE_DEN;
	unsigned most = share < MOST_HANDS ? share : MOST_HANDS;
	sigset_t all, before;
	pthread_attr_t how;
	pthread_t thread;

	crew.n_hands = 1;
	crew.process = getpid();
	if (pthread_attr_init(&how) != 0)
		return;
	pthread_attr_setstacksize(&how, STACK_BYTES);
	pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (crew.n_hands < most &&
	       pthread_create(&thread, &how, work, (void *)(size_t)crew.n_hands) == 0)
		crew.n_hands++;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&how);
}

void lull_crew_copy(void *to, const void *from, size_t bytes)
{
	size_t n_shares = bytes / LEAST_SHARE;

	if (n_shares >= LEAST_SHARES && crew.n_hands == 0)
		hire();
	if (n_shares < LEAST_SHARES || crew.n_hands == 1 || crew.process != getpid()) {
		memcpy(to, from, bytes);
		return;
	}
	crew.to = to;
	crew.from = from;
	crew.bytes = bytes;
	crew.n_needed = n_shares < crew.n_hands ? (unsigned)n_shares : crew.n_hands;
	atomic_store_explicit(&crew.n_left, crew.n_hands - 1, memory_order_relaxed);
	pthread_mutex_lock(&crew.lock);
	atomic_fetch_add_explicit(&crew.n_rounds, 1, memory_order_release);
	pthread_cond_broadcast(&crew.has_work);
	pthread_mutex_unlock(&crew.lock);
	copy_share(0);
	while (atomic_load_explicit(&crew.n_left, memory_order_acquire) > 0)
		sched_yield();
}
