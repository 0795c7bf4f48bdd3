#include "agent/calls/came.h"

#include <poll.h>

#include "agent/core/sys.h"

/* Higher descriptors are not noted: few servers have so many. */
#define MAX_FDS 8192u

/* In a moment: it is that of the connection, and holds for the first data, too. */
#define IS_FIRST 1u

/* In a moment: a request was told to have come then, and what else was read with it has as well. */
#define IS_SETTLED 2u
#define FLAGS	   ((u64)(IS_FIRST | IS_SETTLED))

/* A wait of more than 0.1 ms is sleep; loops that have work to do ask only what is ready. */
#define SLEEPS_A_SECOND 10000u

_Atomic bool lull_came_is_used;

static _Atomic bool is_watching;
static _Atomic u64 came[MAX_FDS];
static _Atomic u64 connections[MAX_FDS]; /* when each was accepted, 0 = it is none */

void lull_came_watch(void)
{
	atomic_store_explicit(&is_watching, true, memory_order_relaxed);
	atomic_store_explicit(&lull_came_is_used, true, memory_order_relaxed);
}

static bool is_known(i64 fd)
{
	return fd >= 0 && fd < (i64)MAX_FDS;
}

static bool is_noted(i64 fd)
{
	return is_known(fd) && atomic_load_explicit(&is_watching, memory_order_relaxed);
}

u64 lull_came_at(int fd, bool *is_settled)
{
	u64 moment = is_noted(fd) ? atomic_load_explicit(&came[fd], memory_order_relaxed) : 0;

	*is_settled = (moment & IS_SETTLED) != 0;
	return moment & ~FLAGS;
}

u64 lull_came_settle(int fd, u64 was, u64 moment)
{
	u64 old = is_noted(fd) ? atomic_load_explicit(&came[fd], memory_order_relaxed) : 0;

	moment &= ~FLAGS;
	/* Unless more was read meanwhile. */
	if (old && (old & ~FLAGS) == was)
		atomic_compare_exchange_strong_explicit(&came[fd], &old, moment | IS_SETTLED,
							memory_order_relaxed, memory_order_relaxed);
	return moment;
}

u64 lull_came_take(const struct lull_thread *t, int fd)
{
	u64 moment =
		is_noted(fd) ? atomic_exchange_explicit(&came[fd], 0, memory_order_relaxed) : 0;

	moment &= ~FLAGS;
	return moment >= t->came.slept ? moment : 0;
}

void lull_came_waited(struct lull_thread *t, u64 end, u64 dur_ticks, bool is_ready)
{
	if (is_ready)
		t->came.woke = end;
	if (dur_ticks > lull_agent.control->tick_hz / SLEEPS_A_SECOND)
		t->came.slept = end;
}

bool lull_came_is_connection(i64 fd)
{
	return is_known(fd) && atomic_load_explicit(&connections[fd], memory_order_relaxed) != 0;
}

bool lull_came_closed(i64 fd, u64 start)
{
	u64 accepted =
		is_known(fd) ? atomic_load_explicit(&connections[fd], memory_order_relaxed) : 0;

	/* Another thread may have got a new one with this number meanwhile. */
	return accepted && accepted < start &&
	       atomic_compare_exchange_strong_explicit(&connections[fd], &accepted, 0,
						       memory_order_relaxed, memory_order_relaxed);
}

static bool has_data(i64 fd)
{
	struct pollfd at = { .fd = (int)fd, .events = POLLIN };
	struct timespec at_once = { 0 };
	int saved = errno;
	bool is_there = syscall(SYS_ppoll, &at, 1L, &at_once, NULL, 0L) > 0;

	errno = saved;
	return is_there;
}

bool lull_came_accepted(i64 fd)
{
	if (!is_known(fd))
		return false;
	atomic_store_explicit(&connections[fd], lull_time(), memory_order_relaxed);
	atomic_store_explicit(&lull_came_is_used, true, memory_order_relaxed);
	/* Now, not when the thread woke up: data often come a little later than the connection. */
	if (is_noted(fd))
		atomic_store_explicit(&came[fd],
				      has_data(fd) ? (lull_time() & ~FLAGS) | IS_FIRST : 0,
				      memory_order_relaxed);
	return true;
}

bool lull_came_read(const struct lull_thread *t, i64 fd)
{
	u64 moment;

	if (!is_noted(fd))
		return lull_came_is_connection(fd);
	moment = atomic_load_explicit(&came[fd], memory_order_relaxed);
	if (!(moment & IS_FIRST))
		moment = t->came.woke ? t->came.woke : lull_time();
	atomic_store_explicit(&came[fd], moment & ~FLAGS, memory_order_relaxed);
	return lull_came_is_connection(fd);
}
