/*
 * osrt: calls of the C library that take longer than a threshold.
 *
 * The wrappers are made here from wire/osrt.def, except for those of kind HAND, which live where
 * their other job is: osrt_variadic.c, source_gil.c, source_process.c, process_exec.c,
 * source_timer.c, timer_signal.c.
 *
 * Locks and semaphores are tried before they are timed: a free lock costs no look at the clock.
 * That changes nothing the guest can see, because a try that succeeds is a lock that succeeds, and
 * any other answer than "busy" (owner died, not recoverable, too many recursions) is what the lock
 * would have said. "Busy" is always asked again of the real lock, which knows a deadlock when it
 * sees one.
 *
 * Not seen: calls that libc makes within itself (they do not pass through the names it exports),
 * direct system calls, and static programs.
 */
#include "agent/calls/oscall.h"

#include "agent/calls/came.h"
#include "agent/python/gil.h"
#include "agent/core/source.h"
#include "agent/core/sys.h"

#define LARGE_MAPPING_BYTES (1u << 20) /* smaller ones take no time and are many */

static const _Atomic u32 never;

struct lull_osrt lull_osrt = { .record = &never };

static i64 ns_of(const struct timespec *ts)
{
	return (i64)ts->tv_sec * (i64)LULL_NS_PER_S + ts->tv_nsec;
}

/* Not fileno(), which would set errno. */
static int fd_of(const FILE *stream)
{
	return stream ? stream->_fileno : -1;
}

/*
 * A timed lock answers EINVAL to a clock it does not know or to nanoseconds out of range, even if
 * the lock is free. So only sane requests are tried first.
 */
static bool is_sane(clockid_t clock, const struct timespec *until)
{
	return (clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC) && until->tv_nsec >= 0 &&
	       until->tv_nsec < (long)LULL_NS_PER_S;
}

/* 0 if the semaphore could be taken at once, else EBUSY. A cancellation point, as all waits are. */
static int try_sem(sem_t *sem)
{
	int saved = errno;

	pthread_testcancel();
	if (sem_trywait(sem) == 0)
		return 0;
	errno = saved;
	return EBUSY;
}

#define SANELY(clock, try)	       (is_sane(clock, until) ? (try) : EBUSY)
#define TRY_pthread_mutex_lock	       pthread_mutex_trylock(mutex)
#define TRY_pthread_mutex_timedlock    SANELY(CLOCK_REALTIME, pthread_mutex_trylock(mutex))
#define TRY_pthread_mutex_clocklock    SANELY(clock, pthread_mutex_trylock(mutex))
#define TRY_pthread_rwlock_rdlock      pthread_rwlock_tryrdlock(rwlock)
#define TRY_pthread_rwlock_wrlock      pthread_rwlock_trywrlock(rwlock)
#define TRY_pthread_rwlock_timedrdlock SANELY(CLOCK_REALTIME, pthread_rwlock_tryrdlock(rwlock))
#define TRY_pthread_rwlock_timedwrlock SANELY(CLOCK_REALTIME, pthread_rwlock_trywrlock(rwlock))
#define TRY_pthread_rwlock_clockrdlock SANELY(clock, pthread_rwlock_tryrdlock(rwlock))
#define TRY_pthread_rwlock_clockwrlock SANELY(clock, pthread_rwlock_trywrlock(rwlock))
#define TRY_pthread_spin_lock	       pthread_spin_trylock(lock)
#define TRY_sem_wait		       try_sem(sem)
#define TRY_sem_timedwait	       SANELY(CLOCK_REALTIME, try_sem(sem))
#define TRY_sem_clockwait	       SANELY(clock, try_sem(sem))
#define IF_mmap			       (n >= LARGE_MAPPING_BYTES)
#define IF_mmap64		       (n >= LARGE_MAPPING_BYTES)
#define IF_munmap		       (n >= LARGE_MAPPING_BYTES)

bool lull_oscall_is_inside(struct lull_thread *t)
{
	struct lull_oscall seen;
	int saved = errno;
	u32 n = lull_stack_copy(&seen, t->osrt.call, sizeof(seen));

	errno = saved;
	return n == sizeof(seen) && seen.t == t && seen.start == t->osrt.start;
}

void lull_oscall_record(const struct lull_oscall *call, u64 dur_ticks,
			const struct lull_wire_oscall *e, const struct lull_wire_regs *regs)
{
	struct lull_control *control = lull_agent.control;
	struct lull_wire_oscall whole = *e;
	struct lull_thread *t = lull_recording();
	int saved = errno;

	/*
	 * Another thread block than before: a signal handler has forked meanwhile and this is the
	 * child.
	 */
	if (!t || t != call->t)
		return;
	lull_gil_flush(t);
	whole.head.counter = call->start;
	whole.head.type = LULL_EVENT_oscall;
	whole.head.size_bytes = sizeof(whole);
	whole.dur_ticks = dur_ticks;
	lull_stack_emit(t, &whole.head, regs,
			dur_ticks >= control->backtrace_ticks ? control->backtrace_bytes : 0);
	errno = saved;
}

enum {
#define OSCALL(ix, kind, nest, type, name, params, args, worth) AT_##name = ix,
#include "wire/osrt.def"
#undef OSCALL
};

/* Whether a call may read from a connection. Only what `ix` needs is compiled. */
static inline bool is_reading(u32 ix)
{
	switch (ix) {
	case AT_read:
	case AT_readv:
	case AT___read_chk:
	case AT_recv:
	case AT_recvfrom:
	case AT_recvmsg:
	case AT___recv_chk:
	case AT___recvfrom_chk:
		return true;
	default:
		return false;
	}
}

/* Such a call begins. */
static inline void note_reading(u32 ix, const struct lull_oscall *call, i64 fd)
{
	if (is_reading(ix) && lull_came_has_any())
		lull_came_reads(call->t, fd);
}

/*
 * What a call tells about sockets; true if it is recorded however short it is, because requests are
 * taken from it where nobody says more. Only what `ix` needs is compiled.
 */
static inline bool note_sockets(u32 ix, const struct lull_oscall *call, u64 dur_ticks,
				const struct lull_wire_oscall *e)
{
	switch (ix) {
	case AT_poll:
	case AT_ppoll:
	case AT___poll_chk:
	case AT___ppoll_chk:
	case AT_select:
	case AT_pselect:
	case AT_epoll_wait:
	case AT_epoll_pwait:
		lull_came_waited(call->t, call->start + dur_ticks, dur_ticks, e->ret > 0);
		return lull_came_has_any() && e->ret > 0;
	case AT_accept:
	case AT_accept4:
		return e->ret >= 0 && lull_came_accepted(e->ret);
	case AT_write:
	case AT_writev:
	case AT_send:
	case AT_sendto:
	case AT_sendmsg:
	case AT_sendmmsg:
		return lull_came_has_any() && lull_came_sent(e->arg);
	case AT_close:
		return lull_came_has_any() && lull_came_closed(e->arg, call->start);
	default:
		if (!is_reading(ix) || !lull_came_has_any() || e->ret < 0)
			return false;
		return e->ret ? lull_came_read(call->t, e->arg) : lull_came_is_connection(e->arg);
	}
}

/*
 * The timed form of each call. Not inlined, so that a wrapper with nothing to time needs no frame.
 */
#define OSCALL(ix, kind, nest, type, name, params, args, worth)                               \
	__attribute__((noinline)) type lull_timed_##name params                               \
	{                                                                                     \
		struct lull_oscall call;                                                      \
		u64 dur_ticks;                                                                \
		bool is_needed;                                                               \
		type r = (type)0;                                                             \
                                                                                              \
		if (!lull_oscall_begin(&call, nest))                                          \
			return lull_real.name args;                                           \
		note_reading(ix, &call, (i64)(worth));                                        \
		r = lull_real.name args;                                                      \
		dur_ticks = lull_oscall_end(&call, nest);                                     \
		is_needed = note_sockets(                                                     \
			ix, &call, dur_ticks,                                                 \
			&(struct lull_wire_oscall){ .ret = (i64)r, .arg = (i64)(worth) });    \
		if (__builtin_expect(dur_ticks >= lull_agent.control->osrt_threshold_ticks || \
					     is_needed,                                       \
				     0)) {                                                    \
			struct lull_wire_regs regs = LULL_CALLER_REGS();                      \
			struct lull_wire_oscall e = { .head.a = ix,                           \
						      .ret = (i64)r,                          \
						      .arg = (i64)(worth) };                  \
                                                                                              \
			lull_oscall_record(&call, dur_ticks, &e, &regs);                      \
		}                                                                             \
		return r;                                                                     \
	}
#include "wire/osrt.def"
#undef OSCALL

/*
 * Whether no handler of a signal calls it. A handler may have come while its thread was in the
 * driver or in the allocator, and there the agent must not detach.
 */
static inline bool is_never_in_handlers(u32 ix, enum lull_call_nest nest)
{
	switch (ix) {
	case AT_epoll_wait:
	case AT_epoll_pwait:
	case AT_nanosleep:
	case AT_clock_nanosleep:
	case AT_usleep:
	case AT_pthread_barrier_wait:
	case AT_pthread_join:
	case AT_pthread_timedjoin_np:
	case AT_pthread_clockjoin_np:
		return true;
	default:
		return nest == OUTER; /* the allocator is in them */
	}
}

#define WRAP_PLAIN(ix, nest, type, name, params, args) \
	LULL_EXPORT type name params                   \
	{                                              \
		if (!lull_oscall_is_on())              \
			return lull_real.name args;    \
		if (is_never_in_handlers(ix, nest))    \
			lull_osrt_point();             \
		return lull_timed_##name args;         \
	}
#define WRAP_TRY(ix, nest, type, name, params, args)            \
	LULL_EXPORT type name params                            \
	{                                                       \
		int r;                                          \
                                                                \
		if (!lull_oscall_is_on())                       \
			return lull_real.name args;             \
		r = TRY_##name;                                 \
		return r != EBUSY ? r : lull_timed_##name args; \
	}
#define WRAP_IF(ix, nest, type, name, params, args)     \
	LULL_EXPORT type name params                    \
	{                                               \
		if (!lull_oscall_is_on() || !IF_##name) \
			return lull_real.name args;     \
		return lull_timed_##name args;          \
	}
#define WRAP_HAND(ix, nest, type, name, params, args)

#define OSCALL(ix, kind, nest, type, name, params, args, worth) \
	WRAP_##kind(ix, nest, type, name, params, args)
#include "wire/osrt.def"
#undef OSCALL

/* The wrappers are there in any case, so locks are spared in any case. */
static void spare(void)
{
	if (lull_agent.is_late)
		lull_osrt_enter();
	lull_osrt_spare(lull_agent.is_late);
}

LULL_AT_START static void start(void)
{
	if (lull_agent.control->sources & LULL_SOURCE_OSRT)
		lull_osrt.record = &lull_agent.control->record;
	spare();
}

/* Calls that are on their way end in wrappers, which find nothing to do. */
static void withdraw(void)
{
	lull_osrt.record = &never;
	lull_osrt_withdraw();
}

const struct lull_source lull_source_osrt = {
	.start = start,
	.loaded = spare,
	.withdraw = withdraw,
};
