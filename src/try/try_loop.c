/*
 * Steps of a program that marks none.
 *
 * A recording shows its loop, as `lull why` finds it (model/rounds.h), or as its calls repeat
 * (try_period.c). In other runs nothing is
 * recorded, but calls can be counted (mend/count.c): so we look for a kind of call that each round
 * makes equally often. Remedies do not change what the program calls, so a step is the same work
 * with all of them.
 *
 * It does not matter where in a round a step starts, only that all are a round long.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/convert.h"
#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "cause/why.h"
#include "import/import.h"
#include "text/progress.h"
#include "try/try_int.h"
#include "wire/vocabulary.h"

/* Fewer steady rounds than this are no loop that could be measured. */
#define LEAST_ROUNDS 8

/* The share of rounds that must have the same number of calls: some do more now and then. */
#define ALIKE 0.9

/* Blocks of which a run should have two, even if warm-up takes long: see fit_blocks(). */
#define SAFE_BLOCKS 8

/* How long a block is measured: far longer than to wait for the device at its end. */
#define BLOCK_NS 50e6

/* What mend/count.c counts, the best first: launches are the program's work itself. */
static const struct {
	const char *word;	/* of LULL_TRY_COUNT */
	const char *one, *many; /* for a person */
	enum lull_call_kind kind;
} countable[] = {
	{ "launches", "kernel launch", "kernel launches", LULL_KIND_OF_LAUNCH },
	{ "copies", "copy", "copies", LULL_KIND_OF_COPY },
	{ "waits", "wait for the device", "waits for the device", LULL_KIND_OF_SYNC },
};

/* Calls of these kinds that it does not count. */
static bool is_counted(const char *name)
{
	static const char *const others[] = { "Memset", "HostFunc", "MultiDevice", "2D",
					      "3D",	"Peer",	    "Batch",	   "Array" };

	for (size_t i = 0; i < LULL_COUNT_OF(others); i++)
		if (strstr(name, others[i]))
			return false;
	return true;
}

static bool is_of(const struct lull_subject *s, const struct lull_node *node,
		  enum lull_call_kind kind)
{
	return node->kind == kind && is_counted(lull_reader_string(s->reader, node->name, NULL));
}

/* How often each round makes such calls; returns how many come before all rounds. */
static u64 count_calls(const struct lull_subject *s, enum lull_call_kind kind, u64 *counts)
{
	const struct lull_round *rounds = s->rounds.all.at;
	u64 before = 0;

	memset(counts, 0, s->rounds.all.n * sizeof(*counts));
	for (u32 i = 0; i < s->chain.n; i++) {
		const struct lull_node *node = &s->chain.nodes[i];

		if (!is_of(s, node, kind))
			continue;
		if (node->round != LULL_NONE)
			counts[node->round]++;
		else
			before += node->begin_ns < rounds[0].mark_ns;
	}
	return before;
}

/* The number that most of the values are; 0 if they differ too much. */
static u64 usual(u64 *values, size_t n)
{
	u64 middle;
	size_t n_same = 0;

	lull_sort_u64(values, n);
	middle = values[n / 2];
	for (size_t i = 0; i < n; i++)
		n_same += values[i] == middle;
	return (f64)n_same >= ALIKE * (f64)n ? middle : 0;
}

static void say_steps(struct lull_try *t, size_t what, u64 n, const char *since)
{
	lull_str_puts(&t->steps_by, "Steps: every ");
	if (n == 1)
		lull_str_puts(&t->steps_by, countable[what].one);
	else
		lull_str_addf(&t->steps_by, "%llu %s", (unsigned long long)n, countable[what].many);
	lull_str_addf(&t->steps_by, ", %s.", since);
}

/*
 * Rounds may be short, and there may be few of them: measure for some time, unless the user says
 * how many; but leave enough of them that two blocks are measured even if warm-up takes long.
 */
static void fit_blocks(struct lull_try *t, u64 most_rounds, f64 round_ns)
{
	u64 n_blocks = t->how.n_steps / t->how.n_block, n_block = t->how.n_block;
	u64 n_left = most_rounds > t->how.n_warmup ? most_rounds - t->how.n_warmup : 0;

	if (t->options->is_timed && BLOCK_NS > round_ns * (f64)n_block)
		n_block = lull_u64_of(BLOCK_NS / fmax(round_ns, 1));
	if (n_block > n_left / SAFE_BLOCKS)
		n_block = n_left / SAFE_BLOCKS;
	t->how.n_block = n_block ? n_block : 1;
	t->how.n_steps = t->how.n_block * n_blocks;
}

/* Choose what to count; false if the rounds differ in all of it. */
static bool choose_calls(struct lull_try *t, const struct lull_subject *s, bool is_all,
			 f64 round_ns)
{
	size_t n = s->rounds.all.n, first = s->rounds.first_steady;
	u64 *counts = lull_alloc(n, sizeof(*counts)), per_round = 0;

	for (size_t i = 0; i < LULL_COUNT_OF(countable) && !per_round; i++) {
		u64 before = count_calls(s, countable[i].kind, counts), warm_up = 0;

		for (size_t k = 0; k < first; k++)
			warm_up += counts[k];
		/* The last round may be cut short, or have what follows the loop. */
		per_round = usual(counts + first, n - first - 1);
		if (!per_round)
			continue;
		lull_str_addf(&t->count, "%s:%llu:%llu", countable[i].word,
			      (unsigned long long)per_round,
			      (unsigned long long)(is_all ? before + warm_up % per_round : 0));
		say_steps(t, i, per_round, "a round of the loop that lull why finds");
	}
	free(counts);
	if (per_round)
		fit_blocks(t, is_all ? n : UINT64_MAX, round_ns);
	return per_round;
}

/* How many such calls a period usually has; *n_all of them are in the recording. */
static u64 count_repeated(const struct lull_subject *s, const struct lull_try_repeat *r,
			  enum lull_call_kind kind, u64 *n_all)
{
	u32 n = r->n / r->period;
	u64 *counts = lull_alloc(n, sizeof(*counts)), per_period;

	*n_all = 0;
	for (u32 i = 0; i < s->chain.n; i++) {
		if (!is_of(s, &s->chain.nodes[i], kind))
			continue;
		++*n_all;
		if (i >= r->first && i - r->first < n * r->period)
			counts[(i - r->first) / r->period]++;
	}
	per_period = usual(counts, n);
	free(counts);
	return per_period;
}

/* The same where rounds are no help: how many calls there are in a period of all of them. */
static bool choose_repeated(struct lull_try *t, const struct lull_subject *s, bool is_all)
{
	const struct lull_node *nodes = s->chain.nodes;
	struct lull_try_repeat r;
	u64 n_all = 0;

	if (!lull_try_repeat(&r, s, LEAST_ROUNDS))
		return false;
	for (size_t i = 0; i < LULL_COUNT_OF(countable); i++) {
		u64 n = count_repeated(s, &r, countable[i].kind, &n_all);

		if (!n)
			continue;
		lull_str_addf(&t->count, "%s:%llu:0", countable[i].word, (unsigned long long)n);
		say_steps(t, i, n, "after which its calls of CUDA repeat");
		fit_blocks(t, is_all ? n_all / n : UINT64_MAX,
			   (f64)(nodes[r.first + r.n - 1].end_ns - nodes[r.first].begin_ns) *
				   (f64)r.period / (f64)r.n);
		return true;
	}
	return false;
}

bool lull_try_loop_look(struct lull_try *t, struct lull_reader *r, struct lull_try_loop *loop)
{
	struct lull_err err = { LULL_OK, "" };
	struct lull_why why;
	int rc = lull_why_run(&why, r, NULL, &err);
	const struct lull_rounds *rounds = rc ? NULL : &why.lead->rounds;
	bool is_all = !rc && lull_try_records_all(t) && why.window.to_ns == UINT64_MAX;
	bool has_rounds = !rc && rounds->source != LULL_ROUNDS_NONE &&
			  lull_rounds_n_steady(rounds) > LEAST_ROUNDS;
	bool is_found = (has_rounds && choose_calls(t, why.lead, is_all, why.step_ns)) ||
			(!rc && choose_repeated(t, why.lead, is_all));

	loop->is_idle = rc == LULL_E_NOT_FOUND;
	snprintf(loop->why_not, sizeof(loop->why_not), "%.180s",
		 loop->is_idle ? "it does nothing on a GPU"
		 : rc	       ? err.msg
		 : has_rounds  ? "the rounds of its loop make different numbers of CUDA calls"
			       : "no loop with enough rounds was found");
	lull_why_release(&why);
	return is_found;
}

bool lull_try_loop_find(struct lull_try *t, struct lull_try_loop *loop)
{
	const struct lull_trial_change none = { NULL, 0 };
	struct lull_err err = { LULL_OK, "" };
	struct lull_progress p;
	struct lull_reader *r;
	bool is_found;

	lull_progress_init(&p, t->options->is_quiet);
	lull_progress_say(&p, "the program marks no steps: recording it, to find its loop");
	t->is_unmarked = true;
	lull_str_addf(&t->recorded, "%s/loop.lull", t->folder.at);
	if (lull_try_record(t, &none, t->recorded.at, &err) ||
	    lull_import_open(t->recorded.at, &r, &err)) {
		lull_str_clear(&t->recorded);
		snprintf(loop->why_not, sizeof(loop->why_not), "%.180s", err.msg);
		return false;
	}
	is_found = lull_try_loop_look(t, r, loop);
	lull_reader_close(r);
	if (is_found)
		t->how.count = t->count.at;
	return is_found;
}
