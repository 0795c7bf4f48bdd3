/*
 * no-demand: nobody asks the program for anything.
 *
 * Signal:  in a gap of at least 150 us the thread waits for a connection; or for a client's data,
 *          for events or, in a server, for a queue, while no other thread of the program works.
 *          In a server that makes a thread for each request, also the time before the next thread
 *          exists.
 * Not it:  a wait while a thread or a process prepares what is waited for (input-pipeline,
 *          lock-wait); a wait for a batch that is then copied, in a program that is no server.
 */
#include "cause/cause.h"
#include "model/thread/doing.h"
#include "model/words.h"

/* In the call that takes a connection: no thread of the program can make one come sooner. */
static bool is_accepting(const struct lull_claim *c)
{
	const struct lull_host_event *events = c->subject->host.events.at;

	return c->event != LULL_NONE && events[c->event].kind == LULL_HOST_OSCALL &&
	       (events[c->event].inside & LULL_IN_DEMAND);
}

static bool claim(const struct lull_claim *c)
{
	if (!lull_claim_is_other(c))
		return false;
	if (is_accepting(c))
		return true;
	if (c->inside & LULL_IN_OTHERS)
		return false;
	if (c->inside & LULL_IN_DEMAND)
		return true;
	if (c->subject->host.is_server)
		return c->is_own && (c->inside & (LULL_IN_EVENTS | LULL_IN_QUEUE));
	return c->is_own && (c->inside & LULL_IN_EVENTS) && !c->leads_in;
}

const struct lull_cause lull_cause_no_demand = {
	.id = "no-demand",
	.title = "there is no request to work on",
	.because = "the program waits for a request, and nobody makes one",
	.why = "A server has nothing to do until somebody asks. Counted are gaps of at least 150 "
	       "us "
	       "in which the launching thread waits for a connection; or for data of a client, for "
	       "events (poll, select, epoll) or, in a program that accepts connections, for a "
	       "queue, while the other threads of the "
	       "program are on a CPU or read files for less than a quarter of that time. If such a "
	       "program makes a "
	       "thread for each request, the time before that thread exists counts, too. That is "
	       "no fault of the program, and nothing is predicted: the load decides.",
	.fix = "none is needed: send more requests to see what the program can do",
	.kind = LULL_CAUSE_SPECIFIC,
	.nowhere = "a wait for a request",
	.family = LULL_FAMILY_OTHER,
	.needs = LULL_NEED_WORK | LULL_NEED_CALLS | LULL_NEED_HOST | LULL_NEED_OS,
	.claims_at = LULL_AT(GAP),
	.claim = claim,
};
