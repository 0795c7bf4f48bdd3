#include "agent/calls/came.h"

#include <poll.h>

#include "agent/calls/stamp.h"
#include "agent/core/sys.h"

/* Higher descriptors are not noted: few servers have so many. */
#define MAX_FDS 8192u

/* In a moment: it is that of the connection, and holds for the first data, too. */
#define IS_FIRST 1u

/* In a moment: a request was told to have come then, and what else was read with it has as well. */
#define IS_SETTLED 2u

/* In a moment: the kernel stamped the data then. */
#define IS_EXACT 4u
#define FLAGS	 ((u64)(IS_FIRST | IS_SETTLED | IS_EXACT))

/* In when a connection was accepted: it is one of TCP. */
#define IS_TCP 1u

/* There: what is read next begins a request, since the last one was answered, or is known. */
#define AWAITS 2u

/* There: nothing was read of it. */
#define IS_UNREAD 4u

/* A wait of more than 0.1 ms is sleep; loops that have work to do ask only what is ready. */
#define SLEEPS_A_SECOND 10000u

_Atomic bool lull_came_is_used;

static _Atomic bool is_watching;
static _Atomic bool has_stamps; /* the kernel gave one, so it gives them */
static _Atomic u64 came[MAX_FDS];
static _Atomic u64 noticed[MAX_FDS];	 /* when that was read */
static _Atomic u64 connections[MAX_FDS]; /* when each was accepted, 0 = it is none */

void lull_came_watch(void)
{
	atomic_store_explicit(&is_watching, true, memory_order_relaxed);
	atomic_store_explicit(&lull_came_is_used, true, memory_order_relaxed);
	if (!atomic_load_explicit(&lull_agent.control->wants_stamps, memory_order_relaxed))
		atomic_store_explicit(&lull_agent.control->wants_stamps, 1, memory_order_relaxed);
}

static bool is_known(i64 fd)
{
	return fd >= 0 && fd < (i64)MAX_FDS;
}

static bool is_noted(i64 fd)
{
	return is_known(fd) && atomic_load_explicit(&is_watching, memory_order_relaxed);
}

static u64 connection(i64 fd)
{
	return is_known(fd) ? atomic_load_explicit(&connections[fd], memory_order_relaxed) : 0;
}

/* Unless somebody closed it meanwhile. */
static void set_awaits(i64 fd, u64 was, bool is_on)
{
	u64 now = is_on ? was | AWAITS : was & ~(u64)(AWAITS | IS_UNREAD);

	if (now != was)
		atomic_compare_exchange_strong_explicit(&connections[fd], &was, now,
							memory_order_relaxed, memory_order_relaxed);
}

static void set_came(i64 fd, u64 moment, u64 flags)
{
	atomic_store_explicit(&came[fd], (moment & ~FLAGS) | flags, memory_order_relaxed);
}

u64 lull_came_at(int fd, enum lull_came_sure *sure)
{
	u64 moment = is_noted(fd) ? atomic_load_explicit(&came[fd], memory_order_relaxed) : 0;

	*sure = moment & IS_EXACT     ? LULL_CAME_EXACT
		: moment & IS_SETTLED ? LULL_CAME_SETTLED
				      : LULL_CAME_UNSURE;
	return moment & ~FLAGS;
}

u64 lull_came_settle(int fd, u64 was, u64 moment)
{
	u64 old = is_noted(fd) ? atomic_load_explicit(&came[fd], memory_order_relaxed) : 0;
	u64 accepted = connection(fd);

	moment &= ~FLAGS;
	/* Unless more was read meanwhile. */
	if (old && (old & ~FLAGS) == was)
		atomic_compare_exchange_strong_explicit(&came[fd], &old, moment | IS_SETTLED,
							memory_order_relaxed, memory_order_relaxed);
	if (accepted)
		set_awaits(fd, accepted, true);
	return moment;
}

u64 lull_came_take(const struct lull_thread *t, int fd, enum lull_came_sure *sure)
{
	u64 moment = lull_came_at(fd, sure), accepted = connection(fd), read_at;

	if (!moment)
		return 0;
	atomic_store_explicit(&came[fd], 0, memory_order_relaxed);
	read_at = atomic_load_explicit(&noticed[fd], memory_order_relaxed);
	if (accepted)
		set_awaits(fd, accepted, true);
	return read_at >= t->came.slept ? moment : 0;
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
	return connection(fd) != 0;
}

bool lull_came_sent(i64 fd)
{
	u64 accepted = connection(fd);

	if (accepted)
		set_awaits(fd, accepted, true);
	return accepted != 0;
}

bool lull_came_closed(i64 fd, u64 start)
{
	u64 accepted = connection(fd);

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
	u64 flags, moment = lull_time() & ~FLAGS;
	bool is_told;

	if (!is_known(fd))
		return false;
	flags = is_noted(fd) && lull_stamp_is_tcp((int)fd) ? IS_TCP | AWAITS | IS_UNREAD : 0;
	atomic_store_explicit(&connections[fd], moment | flags, memory_order_relaxed);
	atomic_store_explicit(&lull_came_is_used, true, memory_order_relaxed);
	if (!is_noted(fd))
		return true;
	/* Now, not when the thread woke up: data often come a little later than the connection. */
	is_told = flags && atomic_load_explicit(&has_stamps, memory_order_relaxed);
	atomic_store_explicit(&came[fd],
			      !is_told && has_data(fd) ? (lull_time() & ~FLAGS) | IS_FIRST : 0,
			      memory_order_relaxed);
	return true;
}

void lull_came_reads(struct lull_thread *t, i64 fd)
{
	u64 accepted = is_noted(fd) ? connection(fd) : 0, moment;

	t->came.empty_fd = -1;
	if ((accepted & (IS_TCP | AWAITS)) != (IS_TCP | AWAITS))
		return;
	switch (lull_stamp_of((int)fd, &moment)) {
	case LULL_STAMP_WAITS:
		atomic_store_explicit(&has_stamps, true, memory_order_relaxed);
		set_came(fd, moment, IS_EXACT);
		set_awaits(fd, accepted, false);
		break;
	case LULL_STAMP_EMPTY:
		t->came.empty_fd = fd;
		break;
	case LULL_STAMP_UNSTAMPED:
		/* A thread for the connection alone: it was started for them. */
		if (!(accepted & IS_UNREAD) || t->came.woke)
			break;
		set_came(fd, accepted, 0);
		set_awaits(fd, accepted, false);
		break;
	case LULL_STAMP_UNKNOWN:
		break;
	}
}

bool lull_came_read(struct lull_thread *t, i64 fd)
{
	u64 accepted = connection(fd), now, moment;

	if (!is_noted(fd))
		return accepted != 0;
	now = lull_time();
	atomic_store_explicit(&noticed[fd], now, memory_order_relaxed);
	moment = atomic_load_explicit(&came[fd], memory_order_relaxed);
	if (accepted & IS_TCP && !(accepted & AWAITS))
		return true; /* the beginning is known, and these are no other's */
	/* The thread slept until they came, and maybe a little longer. */
	if (accepted & IS_TCP && t->came.empty_fd == fd) {
		set_came(fd, now, 0);
		set_awaits(fd, accepted, false);
		return true;
	}
	if (!(moment & IS_FIRST))
		moment = t->came.woke ? t->came.woke : now;
	set_came(fd, moment, 0);
	return accepted != 0;
}
