/*
 * recompile: device code is compiled again in the middle of the loop.
 *
 * Signal:  in a gap of at least 150 us of a steady step the thread is in a compiler's code
 *          (torch.compile, Triton, NVRTC), or a call there loads a module.
 * Not it:  the first steps, which are warm-up; what CUDA itself loads in a call (lazy-init).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "cause/cause.h"
#include "cause/evidence.h"
#include "cause/replay/replay.h"
#include "model/thread/compile_note.h"
#include "model/thread/doing.h"
#include "model/words.h"
#include "cause/thresholds.h"

#define FIX_TORCH                                                                         \
	"mark what changes (torch._dynamo.mark_dynamic, torch.compile(dynamic=True)) or " \
	"pad to a few sizes"

static bool claim(const struct lull_claim *c)
{
	const struct lull_node *node = lull_claim_node(c);

	if (!(c->inside & LULL_IN_COMPILE))
		return false;
	if (c->place == LULL_PLACE_GAP)
		return c->gap_ns >= LULL_TN(gap_long_ns);
	return c->place == LULL_PLACE_CALL && node->kind == LULL_KIND_OF_MODULE;
}

static void apply(struct lull_what_if *w)
{
	for (u32 i = 0; i < w->n; i++) {
		lull_what_if_drop_slices(w, i, LULL_CAUSE_IX_recompile);
		if (w->nodes[i].kind == LULL_KIND_OF_MODULE &&
		    (w->nodes[i].inside & LULL_IN_COMPILE))
			lull_what_if_remove(w, i);
	}
}

/* XLA compiles for JAX; where cuDNN compiles, no compiler of PyTorch can be told anything. */
static void suit(const struct lull_why *why, bool is_torch, struct lull_advice *advice)
{
	if (lull_subject_is_xla(why->lead)) {
		snprintf(advice->fix, sizeof(advice->fix),
			 "jax.jit compiles for each new shape, type and static argument: pad to a "
			 "few sizes, make the function once, outside of the loop; "
			 "JAX_EXPLAIN_CACHE_MISSES=1 says what changed");
		return;
	}
	if (!lull_samples_of(why->lead, LULL_CAUSE_IX_recompile, "libcudnn"))
		return;
	snprintf(advice->fix, sizeof(advice->fix), "%s",
		 is_torch ? "cuDNN compiles for each new shape, and again in each new thread: pad "
			    "to a few sizes, keep the threads; while shapes change, no "
			    "torch.backends.cudnn.benchmark, and for attention "
			    "torch.backends.cuda.enable_cudnn_sdp(False)"
			  : "cuDNN compiles for each new shape: pad to a few sizes, keep its "
			    "plans and reuse them");
}

/* ---- why, as torch.compile says ---- */

#define MAX_REASONS 3

struct reason {
	u64 n;
	u32 label;
};

static int by_n(const void *a, const void *b)
{
	const struct reason *x = a, *y = b;

	if (x->n != y->n)
		return x->n < y->n ? 1 : -1;
	return (x->label > y->label) - (x->label < y->label);
}

/* How often each mark was made after warm-up. */
static void count(const struct lull_subject *s, struct reason *by_label)
{
	const struct lull_round *rounds = s->rounds.all.at;
	u64 from_ns = rounds[s->rounds.first_steady].mark_ns;
	struct lull_mark_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, s->reader, LULL_TABLE_mark, from_ns, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			if (cols.start_ns[i] < from_ns)
				continue;
			by_label[cols.label[i]].label = cols.label[i];
			by_label[cols.label[i]].n++;
		}
	}
	lull_cursor_release(&c);
}

static void show(struct lull_finding *f, const struct lull_compile_note *note, u64 n)
{
	const char *slash = memrchr(note->file, '/', note->n_file);
	size_t skip = slash ? (size_t)(slash + 1 - note->file) : 0;
	char often[32];

	snprintf(often, sizeof(often), n > 1 ? "again %llu times" : "again", (unsigned long long)n);
	lull_show(f, "mark", NULL, "%.*s:%u %.*s is compiled %s: %s", (int)(note->n_file - skip),
		  note->file + skip, note->line, (int)note->n_function, note->function, often,
		  note->reason);
}

/* The guards that failed, most frequent first. */
static void prove(struct lull_why *why, struct lull_finding *f)
{
	struct lull_subject *s = why->lead;
	struct lull_compile_note note;
	struct reason *by_label;
	u32 n_shown = 0;
	size_t n;

	if (!lull_rounds_n_steady(&s->rounds))
		return;
	lull_reader_dim(s->reader, LULL_TABLE_label, &n);
	by_label = lull_alloc(n + 1, sizeof(*by_label));
	count(s, by_label);
	lull_sort(by_label, n + 1, sizeof(*by_label), by_n);
	for (size_t i = 0; i <= n && by_label[i].n && n_shown < MAX_REASONS; i++) {
		if (!lull_compile_note_of(s->reader, by_label[i].label, &note) ||
		    note.kind != LULL_NOTE_RECOMPILE)
			continue;
		show(f, &note, by_label[i].n);
		n_shown++;
	}
	free(by_label);
	if (n_shown)
		snprintf(f->advice.fix, sizeof(f->advice.fix), "%s", FIX_TORCH);
}

const struct lull_cause lull_cause_recompile = {
	.id = "recompile",
	.title = "device code is compiled again in the middle of the loop",
	.because = "device code is compiled again in the middle of the loop",
	.because_once = "device code is compiled",
	.why = "torch.compile and Triton compile a function again when a shape, a type or a value "
	       "that they took for constant changes; cuDNN does so for attention and while it "
	       "searches for the fastest convolution; programs with NVRTC do so when they ask "
	       "for it. In the first steps that is normal: step 0, and the steps right after it "
	       "that "
	       "take more than 1.5 times the median, are left out. Counted are gaps of at least "
	       "150 us in which ranges or most samples are in a compiler's code, and the loading "
	       "of modules there.",
	.fix = "compile for all shapes once: pad to a few sizes, keep compiled code and reuse it",
	.fix_torch = FIX_TORCH "; TORCH_LOGS=recompiles says what changed",
	.assumes = "nothing is compiled after warm-up",
	.kind = LULL_CAUSE_SPECIFIC,
	.nowhere = "in a compiler",
	.family = LULL_FAMILY_LAUNCH,
	.needs = LULL_NEED_WORK | LULL_NEED_CALLS | LULL_NEED_HOST,
	.claims_at = LULL_AT(CALL) | LULL_AT(GAP),
	.claim = claim,
	.apply = apply,
	.prove = prove,
	.suit = suit,
};
