/*
 * came - connections of a server, and when data in them were there that it reads now.
 *
 * A request begins with the first data that is read of a connection after it was accepted, or after
 * something was sent on it. Of TCP the kernel says when they came (stamp.h); if there are none yet,
 * the call that reads waits for them, and they came shortly before it returned.
 *
 * Where the kernel does not say it: an event loop learns of many sockets in one call (poll,
 * epoll_wait), then reads one after the other, and what it reads was there when that call returned.
 * What a connection has when it is accepted was there then, too, even if the loop reads it some
 * rounds later. What other threads read is noted as well, but may be as old as their last wait.
 *
 * Threads:    any; a descriptor belongs to whoever reads it.
 * Costs:      a load for each call that reads or sends, two once there was a connection; after
 *             lull_came_watch() also a few stores, and system calls for each connection and each
 *             request.
 */
#ifndef LULL_AGENT_CALLS_CAME_H
#define LULL_AGENT_CALLS_CAME_H

#include <stdatomic.h>

#include "agent/core/ring.h"

/* Begin to note when data came. Again is fine. */
void lull_came_watch(void);

/* How much is known of such a moment. */
enum lull_came_sure {
	LULL_CAME_UNSURE,  /* they were there then, maybe before */
	LULL_CAME_SETTLED, /* a request of these data was told to have come then */
	LULL_CAME_EXACT,   /* they came then, and begin a request that nobody was told of yet */
};

/* When the data came that were read from this descriptor, as lull_time() gives it; 0 = unknown. */
u64 lull_came_at(int fd, enum lull_came_sure *sure);
u64 lull_came_settle(int fd, u64 was, u64 moment); /* the moment, as it is told again */

/*
 * The same if the thread has had something to do ever since they were read, else 0: where it slept
 * meanwhile, it waited for more than these data. Only once for the same data.
 */
u64 lull_came_take(const struct lull_thread *t, int fd, enum lull_came_sure *sure);

/*
 * Whether there ever was a connection or somebody watches: most programs are no servers, and their
 * reads and writes need not ask more.
 */
extern _Atomic bool lull_came_is_used;

static inline bool lull_came_has_any(void)
{
	return __builtin_expect(atomic_load_explicit(&lull_came_is_used, memory_order_relaxed), 0);
}

/* Whether accept() gave this descriptor, and nobody closed it. */
bool lull_came_is_connection(i64 fd);

/* The thread has waited for some descriptors until `end`; whether one is ready. */
void lull_came_waited(struct lull_thread *t, u64 end, u64 dur_ticks, bool is_ready);

/* The thread is about to read from this descriptor. Keeps errno. */
void lull_came_reads(struct lull_thread *t, i64 fd);

/*
 * This connection was accepted just now; the thread has read from this descriptor, or sent; a call
 * that began at `start` has closed it. True if it is, or was, a connection. They keep errno.
 */
bool lull_came_accepted(i64 fd);
bool lull_came_read(struct lull_thread *t, i64 fd);
bool lull_came_sent(i64 fd);
bool lull_came_closed(i64 fd, u64 start);

#endif
