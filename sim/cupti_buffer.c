#include "cupti_int.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/*
 * Records are appended to the current buffer. A buffer that is full, or that a flush closed, goes
 * to the list. The worker gives it to the program when the last of its records is finished, since
 * the times of a record are known only then; a forced flush does not wait for that. Until then a
 * flush takes the mark off the kinds of those that are finished, in their order (as libcupti 13.0
 * does).
 *
 * No lock is held while the program's functions run: they may take locks that others hold who call
 * us.
 */

struct buffer {
	struct buffer *next;
	u8 *at;
	size_t size, used;
	size_t n_records, max_records; /* max_records 0 = as many as fit */
	size_t done;		       /* so many bytes are of finished records, and told */
	u64 end_ns;		       /* when the last record is finished */
};

/* Of the kind of a record in a buffer that we have: its work is unfinished for all we told. */
#define UNFINISHED 0x80000000u

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	cupti_request_fn *request;
	cupti_complete_fn *complete;
	pthread_t worker;
	pid_t pid; /* where the worker is; a forked child has none */
	bool must_zero;
	struct buffer *current;
	struct buffer *closed, **last;
	u64 n_dropped;
	u64 n_out;		 /* buffers that we have of the program */
	u64 n_delivered;	 /* records in those that it has back */
	u64 n_wanted, n_flushed; /* flushes asked for, and done */
	bool is_forced;
} buffers = { .lock = PTHREAD_MUTEX_INITIALIZER,
	      .changed = PTHREAD_COND_INITIALIZER,
	      .must_zero = true };

/* ---- giving back: the worker ---- */

static u64 load64(const u8 *at)
{
	u64 value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static void store64(u8 *at, u64 value)
{
	memcpy(at, &value, sizeof(value));
}

/* Times of one record from the model's to the program's. What has not happened yet is 0. */
static void translate(u8 *record, u32 kind, u64 now_ns)
{
	size_t off = lull_cupti_times_off(kind);
	bool is_device = kind != CUPTI_SYNC && kind != CUPTI_OVERHEAD && kind != CUPTI_MEMORY &&
			 kind != CUPTI_JIT;
	size_t n = kind == CUPTI_MEMORY ? 1 : 2;

	for (size_t i = 0; off && i < n; i++, off += 8) {
		u64 ns = load64(record + off);

		if (ns)
			store64(record + off,
				ns > now_ns ? 0 : lull_cupti_clock_translate(ns, is_device));
	}
	/* After the end of a kernel is when it completed. */
	if (kind == CUPTI_KERNEL || kind == CUPTI_CONCURRENT_KERNEL)
		store64(record + off, load64(record + off - 8));
}

static u32 kind_at(const struct buffer *buffer, size_t off)
{
	u32 kind;

	memcpy(&kind, buffer->at + off, sizeof(kind));
	return kind & ~UNFINISHED;
}

static bool is_finished(const u8 *record, u32 kind, u64 now_ns)
{
	size_t off = lull_cupti_times_off(kind);

	return !off || kind == CUPTI_MEMORY || load64(record + off + 8) <= now_ns;
}

/* Tell of the records in their order, up to the first that is unfinished unless it is about all. */
static void tell(struct buffer *buffer, bool is_all)
{
	u64 now_ns = sim_now_ns();

	while (buffer->done < buffer->used) {
		u8 *record = buffer->at + buffer->done;
		u32 kind = kind_at(buffer, buffer->done);

		if (!is_all && !is_finished(record, kind, now_ns))
			return;
		translate(record, kind, now_ns);
		/* Whoever looks at it meanwhile sees the mark or the times. */
		__atomic_store_n((u32 *)record, kind, __ATOMIC_RELEASE);
		buffer->done += lull_cupti_record_bytes(kind);
	}
}

static void give_back(struct buffer *buffer)
{
	lull_cupti_clock_compare();
	tell(buffer, true);
	buffers.complete(NULL, 0, buffer->at, buffer->size, buffer->used);
	pthread_mutex_lock(&buffers.lock);
	buffers.n_delivered += buffer->n_records;
	free(buffer);
	buffers.n_out--;
	pthread_mutex_unlock(&buffers.lock);
}

/* A flush: what is finished of the buffers that are held back. Call with the lock held. */
static void tell_finished(void)
{
	pthread_mutex_unlock(&buffers.lock);
	lull_cupti_clock_compare();
	pthread_mutex_lock(&buffers.lock);
	for (struct buffer *b = buffers.closed; b; b = b->next)
		tell(b, false);
}

/* The first closed buffer that may be given back; `wake_ns` is when the next one may. */
static struct buffer *take_ready(u64 *wake_ns)
{
	u64 now_ns = sim_now_ns();

	*wake_ns = UINT64_MAX;
	for (struct buffer **p = &buffers.closed; *p; p = &(*p)->next) {
		struct buffer *buffer = *p;

		if (buffer->end_ns > now_ns && !buffers.is_forced) {
			*wake_ns = buffer->end_ns < *wake_ns ? buffer->end_ns : *wake_ns;
			continue;
		}
		*p = buffer->next;
		if (!*p)
			buffers.last = p;
		return buffer;
	}
	return NULL;
}

static void wait_until(u64 wake_ns)
{
	struct timespec until = { .tv_sec = (time_t)(wake_ns / 1000000000u),
				  .tv_nsec = (long)(wake_ns % 1000000000u) };

	if (wake_ns == UINT64_MAX)
		pthread_cond_wait(&buffers.changed, &buffers.lock);
	else
		pthread_cond_clockwait(&buffers.changed, &buffers.lock, CLOCK_MONOTONIC, &until);
}

static void *work(void *unused)
{
	(void)unused;
	pthread_setname_np(pthread_self(), "sim-cupti");
	pthread_mutex_lock(&buffers.lock);
	for (;;) {
		u64 wake_ns;
		struct buffer *buffer = take_ready(&wake_ns);

		if (buffer) {
			pthread_mutex_unlock(&buffers.lock);
			give_back(buffer);
			pthread_mutex_lock(&buffers.lock);
			continue;
		}
		if (buffers.n_flushed < buffers.n_wanted) {
			u64 n_wanted = buffers.n_wanted;

			tell_finished();
			/* Another flush may have come meanwhile, and buffers. */
			if (n_wanted == buffers.n_wanted) {
				buffers.n_flushed = n_wanted;
				buffers.is_forced = false;
				pthread_cond_broadcast(&buffers.changed);
			}
			continue;
		}
		wait_until(wake_ns);
	}
	return NULL;
}

bool lull_cupti_buffers_open(cupti_request_fn *request, cupti_complete_fn *complete)
{
	sigset_t all, before;
	int error = 0;

	pthread_mutex_lock(&buffers.lock);
	buffers.request = request;
	buffers.complete = complete;
	if (buffers.pid != getpid()) {
		buffers.last = &buffers.closed;
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &before);
		error = pthread_create(&buffers.worker, NULL, work, NULL);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
		buffers.pid = error ? 0 : getpid();
	}
	pthread_mutex_unlock(&buffers.lock);
	return error == 0;
}

void lull_cupti_buffers_zero(bool must_zero)
{
	buffers.must_zero = must_zero;
}

/* ---- filling: the threads that call CUDA ---- */

/* Call with the lock held. */
static void close_current(void)
{
	struct buffer *buffer = buffers.current;

	if (!buffer)
		return;
	buffers.current = NULL;
	buffer->next = NULL;
	*buffers.last = buffer;
	buffers.last = &buffer->next;
	pthread_cond_broadcast(&buffers.changed);
}

static bool has_room(const struct buffer *buffer, size_t bytes)
{
	return buffer && buffer->size - buffer->used >= bytes &&
	       (!buffer->max_records || buffer->n_records < buffer->max_records);
}

static void put(struct buffer *buffer, const u8 *record, size_t bytes, u64 end_ns)
{
	u32 kind;

	memcpy(&kind, record, sizeof(kind));
	kind |= UNFINISHED;
	memcpy(buffer->at + buffer->used + sizeof(kind), record + sizeof(kind),
	       bytes - sizeof(kind));
	__atomic_store_n((u32 *)(buffer->at + buffer->used), kind, __ATOMIC_RELEASE);
	buffer->used += bytes;
	buffer->n_records++;
	if (end_ns > buffer->end_ns)
		buffer->end_ns = end_ns;
}

/* Ask the program for a buffer; NULL if it gives none. That this took time is a record, too. */
static struct buffer *request(void)
{
	struct buffer *buffer = calloc(1, sizeof(*buffer));
	u8 record[CUPTI_MAX_RECORD_BYTES];
	u64 start_ns = sim_now_ns();
	size_t bytes;

	if (!buffer)
		return NULL;
	buffers.request(&buffer->at, &buffer->size, &buffer->max_records);
	if (!buffer->at || !buffer->size) {
		free(buffer);
		return NULL;
	}
	if (buffers.must_zero)
		memset(buffer->at, 0, buffer->size);
	bytes = lull_cupti_write_overhead(record, 7u << 16, start_ns, sim_now_ns());
	if (lull_cupti_wants(CUPTI_OVERHEAD) && has_room(buffer, bytes))
		put(buffer, record, bytes, 0);
	return buffer;
}

void lull_cupti_append(const u8 *record, size_t bytes, u64 end_ns)
{
	pthread_mutex_lock(&buffers.lock);
	if (!buffers.request || buffers.pid != getpid()) {
		pthread_mutex_unlock(&buffers.lock);
		return;
	}
	while (!has_room(buffers.current, bytes)) {
		struct buffer *fresh;

		pthread_mutex_unlock(&buffers.lock);
		fresh = request();
		pthread_mutex_lock(&buffers.lock);
		buffers.n_out += fresh != NULL;
		if (!fresh) {
			buffers.n_dropped++;
			pthread_mutex_unlock(&buffers.lock);
			return;
		}
		/* If another thread was faster, its buffer is given back with little in it. */
		close_current();
		buffers.current = fresh;
	}
	put(buffers.current, record, bytes, end_ns);
	pthread_mutex_unlock(&buffers.lock);
}

u64 lull_cupti_delivered(void)
{
	u64 n;

	pthread_mutex_lock(&buffers.lock);
	n = buffers.n_delivered;
	pthread_mutex_unlock(&buffers.lock);
	return n;
}

u64 lull_cupti_buffers_out(void)
{
	u64 n;

	pthread_mutex_lock(&buffers.lock);
	n = buffers.n_out;
	pthread_mutex_unlock(&buffers.lock);
	return n;
}

void lull_cupti_drop(u64 n)
{
	pthread_mutex_lock(&buffers.lock);
	buffers.n_dropped += n;
	pthread_mutex_unlock(&buffers.lock);
}

u64 lull_cupti_take_dropped(void)
{
	u64 n;

	pthread_mutex_lock(&buffers.lock);
	n = buffers.n_dropped;
	buffers.n_dropped = 0;
	pthread_mutex_unlock(&buffers.lock);
	return n;
}

int lull_cupti_flush(bool is_forced)
{
	u64 mine;

	pthread_mutex_lock(&buffers.lock);
	if (!buffers.complete || buffers.pid != getpid()) {
		pthread_mutex_unlock(&buffers.lock);
		return CUPTI_E_UNINITIALIZED;
	}
	close_current();
	buffers.is_forced |= is_forced;
	mine = ++buffers.n_wanted;
	pthread_cond_broadcast(&buffers.changed);
	/* The program's functions may call this, and only the worker calls those. */
	while (buffers.n_flushed < mine && !pthread_equal(pthread_self(), buffers.worker))
		pthread_cond_wait(&buffers.changed, &buffers.lock);
	pthread_mutex_unlock(&buffers.lock);
	return CUPTI_OK;
}
