/*
 * storage-write: the launching thread writes a checkpoint, a log or results, and the device waits.
 *
 * Signal:  in a gap of at least 150 us the thread is inside a range or function that saves, or in a
 *          call that writes or sends, or most native samples are in the Linux kernel's code that
 *          writes files; copies and waits made there are included, and so is a copy to
 *          the host of at least 4 KiB with a write after it, and what the function that writes does
 *          between opening the file and its last write.
 * Not it:  another thread that writes; a write while the device has work queued; what a compiler
 *          writes (recompile).
 */
#include "cause/cause.h"
#include "cause/gaps.h"
#include "cause/replay/replay.h"
#include "cause/thresholds.h"

static bool claim(const struct lull_claim *c)
{
	const struct lull_node *node = lull_claim_node(c);
	bool is_saving = c->inside & LULL_IN_STORAGE;

	switch (c->place) {
	case LULL_PLACE_GAP:
		return c->gap_ns >= LULL_TN(gap_long_ns) && c->pause != LULL_HOST_GIL &&
		       !c->stall && !(c->inside & (LULL_IN_LOADER | LULL_IN_COMPILE)) &&
		       (is_saving || (c->inside & LULL_IN_WRITE));
	case LULL_PLACE_CALL:
	case LULL_PLACE_COPY:
		return is_saving || (node && (node->flags & LULL_NODE_SAVED));
	default:
		return false;
	}
}

static void apply(struct lull_what_if *w)
{
	for (u32 i = 0; i < w->n; i++) {
		lull_what_if_drop_slices(w, i, LULL_CAUSE_IX_storage_write);
		if ((w->nodes[i].flags & LULL_NODE_SAVED) ||
		    ((w->nodes[i].inside & LULL_IN_STORAGE) &&
		     w->nodes[i].kind != LULL_KIND_OF_LAUNCH))
			lull_what_if_remove(w, i);
	}
}

const struct lull_cause lull_cause_storage_write = {
	.id = "storage-write",
	.title = "the launching thread writes a checkpoint, a log or results",
	.because = "the launching thread writes or sends data itself",
	.why = "A thread that serialises and writes a checkpoint, or that writes to a pipe or a "
	       "socket which nobody empties, launches nothing in the meantime. Time counts in gaps "
	       "of at least 150 us between calls in which the thread is inside a range or function "
	       "with a name like save, checkpoint, write or dump (not dumps, which makes a "
	       "string), or in a C library call that "
	       "writes or sends (write, fsync, puts, send, ...), or most native samples are in the "
	       "Linux kernel's code that writes files. Copies and waits made there, and copies to "
	       "the host right before it, are included. So is what a function does between opening "
	       "a file and its last write to it, if most samples in those writes, and most of "
	       "those "
	       "in between, are in that function: it makes what it writes.",
	.fix = "write from another thread or process (asynchronous checkpoint), or less often",
	.assumes = "no part of the write stays on the thread",
	.kind = LULL_CAUSE_SPECIFIC,
	.family = LULL_FAMILY_DATA,
	.owns_copies = true,
	.is_ceiling = true,
	.moves = true,
	.needs = LULL_NEED_WORK | LULL_NEED_CALLS | LULL_NEED_HOST,
	.claims_at = LULL_AT(COPY) | LULL_AT(CALL) | LULL_AT(GAP),
	.claim = claim,
	.apply = apply,
};
