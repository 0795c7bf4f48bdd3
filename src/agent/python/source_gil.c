/*
 * gil: waits for Python's interpreter lock, CPython 3.9 to 3.14.
 *
 * A thread that wants the lock sleeps on a condition variable inside _PyRuntime, in slices of the
 * switch interval (5 ms), each of which may end with or without the lock:
 *
 *	take_gil:  timedwait(gil.cond) .. timedwait(gil.cond) .. got it: signal(gil.switch_cond)
 *	drop_gil:  signal(gil.cond) .. wait(gil.switch_cond) until somebody else has it
 *
 * So a wait goes on through all slices that follow each other closely, and is over when the same
 * thread signals. It is held back in struct lull_gil_state until then, or until something else
 * shows that it is over.
 *
 * Not covered: sub-interpreters with a lock of their own (it is on the heap), free-threaded builds
 * (no lock).
 */
#include "agent/python/gil.h"

#include <errno.h>

#include "agent/calls/oscall.h"
#include "agent/core/source.h"

/*
 * Slices farther apart belong to different waits; between two slices of one lie a few instructions.
 */
#define SAME_WAIT_US 100u

static LULL_EARLY struct {
	u64 start_addr;
	_Atomic u64 size_bytes; /* 0: there is no Python, or nobody asked */
	bool is_on;
} gil;

static inline bool is_gil(const pthread_cond_t *cond)
{
	/* Acquire: a size that is not 0 comes with its address. */
	u64 size_bytes = atomic_load_explicit(&gil.size_bytes, memory_order_acquire);

	return __builtin_expect((u64)cond - gil.start_addr < size_bytes, 0);
}

void lull_gil_watch(u64 start_addr, u64 size_bytes)
{
	if (!gil.is_on)
		return;
	gil.start_addr = start_addr;
	atomic_store_explicit(&gil.size_bytes, size_bytes, memory_order_release);
}

void lull_gil_emit(struct lull_thread *t, const struct lull_wire_regs *regs)
{
	struct lull_control *control = lull_agent.control;
	u64 dur_ticks = t->gil.end - t->gil.start;
	struct lull_wire_gil_wait e = {
		.head.counter = t->gil.start,
		.head.type = LULL_EVENT_gil_wait,
		.head.size_bytes = sizeof(e),
		.head.a = (u32)t->gil.n_slices,
		.dur_ticks = dur_ticks,
	};

	t->gil.n_slices = 0;
	lull_stack_emit(t, &e.head, regs,
			regs && dur_ticks >= control->backtrace_ticks ? control->backtrace_bytes
								      : 0);
}

/* A slice has ended: part of the wait held back, or the start of another. */
static void add_slice(u64 start, u64 end)
{
	struct lull_thread *t = lull_recording();
	u64 apart_ticks = lull_agent.control->tick_hz / 1000000 * SAME_WAIT_US;
	int saved = errno;

	if (!t)
		return;
	if (start - t->gil.end > apart_ticks)
		lull_gil_flush(t);
	if (!t->gil.n_slices)
		t->gil.start = start;
	t->gil.end = end;
	t->gil.n_slices++;
	errno = saved;
}

/* The three waits differ in their arguments only. */
#define COND_WAIT(name, params, args)               \
	static int gil_##name params                \
	{                                           \
		u64 start = lull_time();            \
		int r = lull_real.name args;        \
                                                    \
		add_slice(start, lull_time());      \
		return r;                           \
	}                                           \
	LULL_EXPORT int name params                 \
	{                                           \
		if (is_gil(cond))                   \
			return gil_##name args;     \
		if (!lull_oscall_is_on())           \
			return lull_real.name args; \
		return lull_timed_##name args;      \
	}

COND_WAIT(pthread_cond_wait, (pthread_cond_t * cond, pthread_mutex_t *mutex), (cond, mutex))
COND_WAIT(pthread_cond_timedwait,
	  (pthread_cond_t * cond, pthread_mutex_t *mutex, const struct timespec *until),
	  (cond, mutex, until))
COND_WAIT(pthread_cond_clockwait,
	  (pthread_cond_t * cond, pthread_mutex_t *mutex, clockid_t clock,
	   const struct timespec *until),
	  (cond, mutex, clock, until))

/* The thread has got the lock, or gives it away: whatever it waited for is over. */
static __attribute__((noinline)) int gil_signal(pthread_cond_t *cond)
{
	struct lull_thread *t = lull_self;
	struct lull_wire_regs regs = LULL_CALLER_REGS();
	int saved = errno;

	if (t && t->magic == LULL_WIRE_MAGIC && t->gil.n_slices)
		lull_gil_emit(t, &regs);
	errno = saved;
	return lull_real.pthread_cond_signal(cond);
}

LULL_EXPORT int pthread_cond_signal(pthread_cond_t *cond)
{
	if (is_gil(cond))
		return gil_signal(cond);
	return lull_real.pthread_cond_signal(cond);
}

LULL_AT_START static void start(void)
{
	gil.is_on = true; /* the next source of the list finds Python, and tells lull_gil_watch() */
}

const struct lull_source lull_source_gil = {
	.start = start,
};
