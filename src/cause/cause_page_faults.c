/*
 * page-faults: the launching thread touches fresh memory in each step.
 *
 * Signal:  in a gap of at least 150 us most native samples are in the Linux kernel, which maps,
 *          clears or takes away pages; or, where its functions were not recorded, most samples fill
 *          or copy memory, and large mappings come and go there.
 * Not it:  pages of managed memory (unified-memory) or of files (storage-read).
 */
#include "cause/cause.h"
#include "cause/evidence.h"
#include "cause/replay/replay.h"
#include "model/thread/doing.h"
#include "model/words.h"

static bool claim(const struct lull_claim *c)
{
	const u32 fresh = LULL_IN_TOUCH | LULL_IN_MAPS;

	if (!lull_claim_is_other(c) || (c->inside & LULL_IN_CPU_OP))
		return false;
	return (c->inside & LULL_IN_FAULT) || (c->inside & fresh) == fresh;
}

static void apply(struct lull_what_if *w)
{
	for (u32 i = 0; i < w->n; i++)
		lull_what_if_drop_slices(w, i, LULL_CAUSE_IX_page_faults);
}

const struct lull_cause lull_cause_page_faults = {
	.id = "page-faults",
	.title = "the launching thread touches fresh memory",
	.because = "the launching thread allocates memory afresh, and the system has to map and "
		   "clear its pages",
	.why = "Memory that was just allocated has no pages. The first touch of each page enters "
	       "the Linux kernel, which finds a page and clears it: about 1 GB/s, a tenth of what "
	       "memory can do. Large blocks go back to the system when they are freed, so a loop "
	       "that allocates pays each time. Counted are gaps of at least 150 us in which more "
	       "than half of the native samples are in such functions of the kernel; where the "
	       "kernel was not sampled, in functions that fill or copy memory, with large "
	       "mappings made or removed in the gap.",
	.fix = "allocate buffers once and reuse them (for NumPy: out=), or keep freed memory: "
	       "MALLOC_TOP_PAD_, MALLOC_MMAP_THRESHOLD_, huge pages",
	.assumes = "all of the work on that memory is the cost of its pages",
	.kind = LULL_CAUSE_SPECIFIC,
	.nowhere = "in page faults between CUDA calls",
	.family = LULL_FAMILY_HOST,
	.is_ceiling = true,
	.needs = LULL_NEED_WORK | LULL_NEED_CALLS | LULL_NEED_HOST,
	.claims_at = LULL_AT(GAP),
	.claim = claim,
	.apply = apply,
	.prove = lull_show_samples,
};
