/*
 * storage-read: the launching thread reads files.
 *
 * Signal:  in a gap of at least 150 us the thread is in a call that reads a file, or most native
 *          samples are in the Linux kernel's code that reads files.
 * Not it:  reading in code with a name of loading (input-pipeline); pipes and sockets.
 */
#include "cause/cause.h"
#include "cause/evidence.h"
#include "cause/replay/replay.h"
#include "model/thread/doing.h"
#include "model/words.h"

static bool claim(const struct lull_claim *c)
{
	return lull_claim_is_other(c) && (c->inside & LULL_IN_FILE);
}

static void apply(struct lull_what_if *w)
{
	for (u32 i = 0; i < w->n; i++)
		lull_what_if_drop_slices(w, i, LULL_CAUSE_IX_storage_read);
}

const struct lull_cause lull_cause_storage_read = {
	.id = "storage-read",
	.title = "the launching thread reads files",
	.because = "the launching thread reads files itself",
	.why = "Reading blocks the thread for as long as storage takes, and copies the data even "
	       "if they are in memory already. Counted are gaps of at least 150 us in which the "
	       "thread is in a call that reads a file (read, pread, fread, getline), outside of "
	       "ranges and functions with a name of loading, which are input-pipeline. A read is "
	       "one of a file if the file was opened in the recording, if the call says so by its "
	       "name, or if it gave more than a pipe can hold.",
	.fix = "read ahead in another thread, or keep in memory what is read again",
	.assumes = "reading keeps up with the rest of the step",
	.kind = LULL_CAUSE_SPECIFIC,
	.family = LULL_FAMILY_DATA,
	.is_ceiling = true,
	.moves = true,
	.needs = LULL_NEED_WORK | LULL_NEED_CALLS | LULL_NEED_HOST | LULL_NEED_OS,
	.claims_at = LULL_AT(GAP),
	.claim = claim,
	.apply = apply,
};
