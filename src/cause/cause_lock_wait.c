/*
 * lock-wait: the launching thread waits for another thread of the program.
 *
 * Signal:  in a gap of at least 150 us the thread is in a call that waits for a mutex or another
 *          lock, a condition, a semaphore, a thread or a child process; or it waits for events, or
 *          for something without a name, while other threads of the program are at work.
 * Not it:  Python's interpreter lock (gil); a wait for a batch, which is then copied to the device
 *          (input-pipeline); a wait for a request, while nobody works (no-demand).
 */
#include <stdio.h>
#include <string.h>

#include "cause/cause.h"
#include "cause/children.h"
#include "cause/evidence.h"
#include "cause/replay/replay.h"
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
	/* A process that ends hands no data over, even if a copy to the device is next. */
	if (c->inside & (LULL_IN_LOCK | LULL_IN_CHILD))
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

/* Whether it waits for somebody to end or to send something: no lock is held. */
static bool is_for_result(const struct lull_subject *s)
{
	const struct lull_host_event *events = s->host.events.at;
	const struct lull_where *at = s->wheres.at;
	const char *call;
	size_t i = 0;

	while (i < s->wheres.n && at[i].cause != LULL_CAUSE_IX_lock_wait)
		i++;
	if (i == s->wheres.n || at[i].event == LULL_NONE ||
	    events[at[i].event].kind != LULL_HOST_OSCALL)
		return false;
	call = lull_host_name(&events[at[i].event], s->reader);
	/* Locks are made of these, too. */
	return !(events[at[i].event].inside & LULL_IN_LOCK) && strncmp(call, "sem_", 4) != 0 &&
	       strncmp(call, "pthread_cond_", 13) != 0;
}

static void prove(struct lull_why *why, struct lull_finding *f)
{
	if (is_for_result(why->lead))
		lull_advise_others(why, f);
	if (lull_show_producer(why, f) || lull_show_runner(why, f) || lull_show_giver(why, f))
		return;
	/* A command for each step takes long to start, whatever it does. */
	if (is_for_result(why->lead) && lull_show_children(why, f))
		snprintf(f->advice.fix, sizeof(f->advice.fix),
			 "start the other process once and keep it, do its work in this one, or "
			 "start it a step ahead");
}

const struct lull_cause lull_cause_lock_wait = {
	.id = "lock-wait",
	.title = "the launching thread waits for another thread",
	.because = "the launching thread waits for a lock, or for another thread or process",
	.why = "A thread that waits for a mutex, a lock of a file, a condition, a semaphore or the "
	       "end of another thread or process launches nothing. Time counts in gaps of at least "
	       "150 us in "
	       "which the "
	       "thread is in such a call of the C library, or in a function of Python that waits "
	       "so. Waits for events (poll, select, epoll), and waits that no call names, count "
	       "only if other threads of the program are on a CPU, lack one, or read for at least "
	       "a quarter of that time. The thread that runs meanwhile is named.",
	.fix = "do less in the other thread or process before it lets this one go on, share its "
	       "work among several, or hand the data over in a queue, so that this thread need not "
	       "wait",
	.fix_more =
		"let the other thread or process start earlier, do less, or work ahead, so that "
		"its result is there when this thread needs it",
	.assumes = "the thread never waits",
	.kind = LULL_CAUSE_SPECIFIC,
	.nowhere = "a wait for another thread between CUDA calls",
	.family = LULL_FAMILY_HOST,
	.is_ceiling = true,
	.moves = true,
	.needs = LULL_NEED_WORK | LULL_NEED_CALLS | LULL_NEED_HOST | LULL_NEED_OS,
	.claims_at = LULL_AT(GAP),
	.claim = claim,
	.apply = apply,
	.prove = prove,
};
