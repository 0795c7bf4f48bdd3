/*
 * lock-wait: the launching thread waits for another thread of the program.
 *
 * Signal:  in a gap of at least 150 us the thread is in a call that waits for a mutex or another
 *          lock, a condition, a semaphore or a thread; or it waits for events, or for something
 *          without a name, while other threads of the program are at work.
 * Not it:  Python's interpreter lock (gil); a wait for a batch, which is then copied to the device
 *          (input-pipeline); a wait for a request, while nobody works (no-demand).
 */
#include "cause/cause.h"
#include "cause/evidence.h"
#include "cause/replay.h"
#include "model/thread/doing.h"
#include "model/words.h"

/* Whether it computes on tensors with other threads, and waits for these. */
static bool is_computing(const struct lull_claim *c)
{
	const struct lull_host_event *events = c->subject->host.events.at;

	return (c->inside & LULL_IN_CPU_OP) ||
	       (c->event != LULL_NONE && events[c->event].kind == LULL_HOST_OP);
}

static bool claim(const struct lull_claim *c)
{
	if (!lull_claim_is_other(c) ||
	    (c->inside & (LULL_IN_SOCKET | LULL_IN_SLEEP | LULL_IN_FRAMEWORK)))
		return false;
	if (c->inside & LULL_IN_LOCK)
		return true;
	if (!c->is_own || c->leads_in)
		return false;
	if (c->inside & LULL_IN_QUEUE)
		return true;
	/* Somebody has to be there that it may wait for. */
	return (c->inside & LULL_IN_OTHERS) &&
	       ((c->inside & LULL_IN_EVENTS) || ((c->inside & LULL_IN_WAIT) && !is_computing(c)));
}

static void apply(struct lull_what_if *w)
{
	for (u32 i = 0; i < w->n; i++)
		lull_what_if_drop_slices(w, i, LULL_CAUSE_IX_lock_wait);
}

static void prove(struct lull_why *why, struct lull_finding *f)
{
	if (!lull_show_producer(why, f))
		lull_show_runner(why, f);
}

const struct lull_cause lull_cause_lock_wait = {
	.id = "lock-wait",
	.title = "the launching thread waits for another thread",
	.because = "the launching thread waits for a lock or a result of another thread",
	.why = "A thread that waits for a mutex, a condition, a semaphore or the end of another "
	       "thread launches nothing. Time counts in gaps of at least 150 us in which the "
	       "thread is in such a call of the C library, or in a function of Python that waits "
	       "so. Waits for events (poll, select, epoll), and waits that no call names, count "
	       "only if other threads of the program are on a CPU, lack one, or read for at least "
	       "a quarter of that time. The thread that runs meanwhile is named.",
	.fix = "do less in the other thread while it holds the lock, or hand the data over in a "
	       "queue so that this thread need not wait",
	.assumes = "the thread never waits",
	.kind = LULL_CAUSE_SPECIFIC,
	.nowhere = "a wait for another thread between CUDA calls",
	.family = LULL_FAMILY_HOST,
	.is_ceiling = true,
	.needs = LULL_NEED_WORK | LULL_NEED_CALLS | LULL_NEED_HOST | LULL_NEED_OS,
	.claim = claim,
	.apply = apply,
	.prove = prove,
};
