/*
 * Training loops that `lull why` was not written for (test/gpu/unseen.py), and parts of recordings
 * of other people's programs, recorded on an H200: the first cause is right, or nothing is said.
 */
#include "unit/report.h"

#include <math.h>

#include "cause/opportunity.h"
#include "cause/why.h"

#define FOLDER "test/data/unseen/"

static const struct loop {
	const char *name;
	const char *labels; /* which may be first */
	f64 recorded_ms;    /* a step of the recording, as the program measured it; 0: of parts */
	const char *opportunity; /* the largest one; NULL: any */
} loops[] = {
	{ "few_workers", "input-pipeline", 30.208, NULL },
	{ "graphs_partly", "launch-bound", 18.490, NULL },
	{ "small_batch", "launch-bound", 17.041, NULL },
	{ "tokenizer", "input-pipeline host-compute", 26.258, NULL },
	{ "bookrisk", "gpu-bound", 0, "small-grids" },
	{ "dcn_ctr", "gil", 0, NULL },
	{ "ddpm_train", "storage-write", 0, NULL },
	{ "kwstrain", "host-compute", 0, NULL },
	{ "proofsheet", "lock-wait", 0, NULL },
};

struct answer {
	struct lull_reader *reader;
	struct lull_why why;
};

static void ask(struct answer *a, const char *name, u32 without)
{
	struct lull_why_options options = { .without = without };
	struct lull_err err;
	char path[256];

	snprintf(path, sizeof(path), FOLDER "%s.lull", name);
	report_ok(lull_reader_open(&a->reader, path, &err), &err);
	report_ok(lull_why_run(&a->why, a->reader, &options, &err), &err);
}

static void forget(struct answer *a)
{
	lull_why_release(&a->why);
	lull_reader_close(a->reader);
}

/* Whether the id is one of the labels, which blanks part. */
static bool is_label(const char *labels, const char *id)
{
	const char *at = strstr(labels, id);
	size_t len = strlen(id);

	return at && (at == labels || at[-1] == ' ') && (!at[len] || at[len] == ' ');
}

static void check_opportunity(const struct lull_why *why, const struct loop *loop)
{
	const struct lull_opportunity *o = why->opportunities.at;

	if (!loop->opportunity)
		return;
	assert_true(why->opportunities.n > 0);
	assert_string_equal(o->kind->id, loop->opportunity);
	/* It is the fix that is named first. */
	assert_non_null(strstr(lull_why_first(why)->advice.fix, loop->opportunity));
}

static void check_all(u32 without, bool may_abstain)
{
	u32 n_abstained = 0;

	for (size_t i = 0; i < LULL_COUNT_OF(loops); i++) {
		const struct lull_finding *f;
		struct answer a;

		ask(&a, loops[i].name, without);
		f = lull_why_first(&a.why);
		n_abstained += !f;
		if (f && !is_label(loops[i].labels, lull_causes[f->cause]->id))
			fail_msg("%s: %s instead of %s", loops[i].name, lull_causes[f->cause]->id,
				 loops[i].labels);
		if (!f && !may_abstain && !is_label(loops[i].labels, "nothing"))
			fail_msg("%s: nothing instead of %s; %s", loops[i].name, loops[i].labels,
				 a.why.cannot);
		assert_true(fabs(a.why.replay.error) <= 0.03);
		check_opportunity(&a.why, &loops[i]);
		forget(&a);
	}
	print_message("%zu of %zu loops are told%s\n", LULL_COUNT_OF(loops) - n_abstained,
		      LULL_COUNT_OF(loops), without ? ", ranges stripped" : "");
}

static void loops_that_were_not_seen_before_are_told(void **state)
{
	(void)state;
	check_all(0, false);
}

static void without_ranges_they_are_told_or_not_at_all(void **state)
{
	(void)state;
	check_all(LULL_WITHOUT_RANGES | LULL_WITHOUT_STEPS, true);
}

/* The program's own clock says so. The first step, which is left out here, is in its mean. */
static void their_steps_are_as_long_as_the_program_measured(void **state)
{
	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(loops); i++) {
		struct answer a;
		f64 off;

		if (!loops[i].recorded_ms)
			continue;
		ask(&a, loops[i].name, 0);
		off = a.why.step_ns / 1e6 / loops[i].recorded_ms - 1;
		print_message("%s: %.2f ms, %.2f ms measured (%+.1f %%)\n", loops[i].name,
			      a.why.step_ns / 1e6, loops[i].recorded_ms, off * 100);
		assert_true(fabs(off) <= 0.03);
		forget(&a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loops_that_were_not_seen_before_are_told),
		cmocka_unit_test(without_ranges_they_are_told_or_not_at_all),
		cmocka_unit_test(their_steps_are_as_long_as_the_program_measured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
