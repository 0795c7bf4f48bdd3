#include "cuda_int.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

/*
 * Work is done by one thread in the order in which it was queued. A correct program cannot tell
 * this order from a parallel one: whatever must come first was queued first. Times are not taken
 * here but from the model; who waits, waits for both.
 */

struct entry {
	struct entry *next;
	struct sim_job job;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool is_started;
	struct entry *first, **last;
	u64 n_queued, n_done;
} executor = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void set(const struct sim_job *job)
{
	u32 *words = job->dst;

	if (job->value_bytes == 1) {
		memset(job->dst, (int)job->value, job->size_bytes);
		return;
	}
	for (u64 i = 0; i < job->size_bytes / 4; i++)
		words[i] = job->value;
}

static void do_job(const struct sim_job *job)
{
	if (job->kind == SIM_MEMCPY)
		memmove(job->dst, job->src, job->size_bytes);
	else if (job->kind == SIM_MEMSET)
		set(job);
	else
		job->kernel->run(job);
}

static void *run(void *unused)
{
	(void)unused;
	pthread_setname_np(pthread_self(), "sim-device");
	pthread_mutex_lock(&executor.lock);
	for (;;) {
		struct entry *entry = executor.first;

		if (!entry) {
			pthread_cond_wait(&executor.changed, &executor.lock);
			continue;
		}
		executor.first = entry->next;
		if (!executor.first)
			executor.last = &executor.first;
		pthread_mutex_unlock(&executor.lock);
		do_job(&entry->job);
		free(entry);
		pthread_mutex_lock(&executor.lock);
		executor.n_done++;
		pthread_cond_broadcast(&executor.changed);
	}
	return NULL;
}

/* Signals are the program's business. */
static bool start(void)
{
	sigset_t all, before;
	pthread_t thread;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&thread, NULL, run, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error)
		return false;
	pthread_detach(thread);
	executor.last = &executor.first;
	return true;
}

u64 lull_sim_execute(const struct sim_job *job)
{
	struct entry *entry;
	u64 ticket = 0;

	if (job->kind == SIM_KERNEL && (!job->kernel || !job->kernel->run))
		return 0;
	entry = malloc(sizeof(*entry));
	if (!entry)
		return 0;
	*entry = (struct entry){ .job = *job };
	pthread_mutex_lock(&executor.lock);
	if (!executor.is_started)
		executor.is_started = start();
	if (executor.is_started) {
		*executor.last = entry;
		executor.last = &entry->next;
		ticket = ++executor.n_queued;
		pthread_cond_broadcast(&executor.changed);
	} else {
		free(entry);
	}
	pthread_mutex_unlock(&executor.lock);
	return ticket;
}

void lull_sim_execute_wait(u64 ticket)
{
	pthread_mutex_lock(&executor.lock);
	while (executor.n_done < ticket)
		pthread_cond_wait(&executor.changed, &executor.lock);
	pthread_mutex_unlock(&executor.lock);
}

bool lull_sim_execute_is_done(u64 ticket)
{
	bool is_done;

	pthread_mutex_lock(&executor.lock);
	is_done = executor.n_done >= ticket;
	pthread_mutex_unlock(&executor.lock);
	return is_done;
}
