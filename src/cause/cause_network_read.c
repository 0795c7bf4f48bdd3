/*
 * network-read: the launching thread waits for data from a socket.
 *
 * Signal:  in a gap of at least 150 us the thread is in a call that reads from a socket, or that
 *          looks up a name.
 * Not it:  a connection that a client made (no-demand); reading in code with a name of loading
 *          (input-pipeline); connections to other processes of the recording, and pairs of sockets
 *          between its threads, which are as queues (lock-wait, input-pipeline).
 */
#include "cause/cause.h"
#include "cause/evidence.h"
#include "cause/replay/replay.h"
#include "model/thread/doing.h"
#include "model/words.h"

static bool claim(const struct lull_claim *c)
{
	return lull_claim_is_other(c) && (c->inside & LULL_IN_SOCKET) &&
	       !(c->inside & LULL_IN_DEMAND);
}

static void apply(struct lull_what_if *w)
{
	for (u32 i = 0; i < w->n; i++)
		lull_what_if_drop_slices(w, i, LULL_CAUSE_IX_network_read);
}

const struct lull_cause lull_cause_network_read = {
	.id = "network-read",
	.title = "the launching thread waits for the network",
	.because = "the launching thread waits for data from another machine or program",
	.why = "A thread that receives blocks until the other side has sent. Counted are gaps of "
	       "at least 150 us in which the thread is in a call that reads from a socket (recv, "
	       "or read on a descriptor that was used as a socket), in Python's code that does, or "
	       "in "
	       "getaddrinfo, which asks a server for a name. "
	       "A connection that the program accepted is a client's, and waiting for that is "
	       "no-demand. Connections to other processes of the recording are as queues, and so "
	       "are sockets that neither connected nor accepted, if what one got is what another "
	       "one of the recording sent (socketpair): their other side is lock-wait or "
	       "input-pipeline.",
	.fix = "receive ahead in another thread, ask for several things at once, or keep in memory "
	       "what is asked for again",
	.assumes = "receiving keeps up with the rest of the step",
	.kind = LULL_CAUSE_SPECIFIC,
	.family = LULL_FAMILY_DATA,
	.is_ceiling = true,
	.moves = true,
	.needs = LULL_NEED_WORK | LULL_NEED_CALLS | LULL_NEED_HOST | LULL_NEED_OS,
	.claims_at = LULL_AT(GAP),
	.claim = claim,
	.apply = apply,
};
