/*
 * Verdicts: how often they are wrong, and what they say where they cannot know.
 */
#include "unit/unit.h"

#include <stdlib.h>

#include "compare/decide.h"
#include "unit/random.h"

#define N_TRIALS 5000

static const struct lull_decide_rule rule = { .threshold = 0.05, .alpha = LULL_DECIDE_ALPHA };

static void fill(struct lull_samples *s, struct test_random *random, size_t n, f64 mean, f64 noise)
{
	for (size_t i = 0; i < n; i++)
		lull_samples_add(s, mean * (1 + noise * test_random_normal(random)));
	lull_samples_end_run(s);
}

/* Verdicts of so many comparisons of 30 steps a side, the second slower by `factor`. */
static void count_verdicts(f64 factor, f64 noise, u64 seed, size_t n_of[4])
{
	struct test_random random = { seed };

	for (int i = 0; i < N_TRIALS; i++) {
		struct lull_samples a, b;
		struct lull_decision d;

		lull_samples_init(&a);
		lull_samples_init(&b);
		fill(&a, &random, 30, 10, noise);
		fill(&b, &random, 30, 10 * factor, noise);
		lull_decide(&a, &b, &rule, &d);
		n_of[d.verdict]++;
		lull_samples_release(&a);
		lull_samples_release(&b);
	}
}

static void the_same_program_is_rarely_accused(void **state)
{
	size_t n_of[4] = { 0 };

	(void)state;
	count_verdicts(1, 0.05, 1, n_of);
	print_message("%zu false alarms in %d\n", n_of[LULL_REGRESSED], N_TRIALS);
	assert_in_range(n_of[LULL_REGRESSED], 1, N_TRIALS * 2 / 100);
	assert_true(n_of[LULL_PASS] > N_TRIALS * 95 / 100);
}

static void five_percent_are_found_in_thirty_noisy_steps(void **state)
{
	size_t n_of[4] = { 0 };

	(void)state;
	count_verdicts(1.05, 0.05, 2, n_of);
	print_message("%zu of %d found\n", n_of[LULL_REGRESSED], N_TRIALS);
	assert_true(n_of[LULL_REGRESSED] >= N_TRIALS * 95 / 100);
}

static void faster_is_no_regression(void **state)
{
	size_t n_of[4] = { 0 };

	(void)state;
	count_verdicts(0.9, 0.05, 7, n_of);
	assert_int_equal(n_of[LULL_PASS], N_TRIALS);
}

static void noise_that_hides_the_threshold_is_inconclusive(void **state)
{
	struct test_random random = { 3 };
	struct lull_samples a, b;
	struct lull_decision d;

	(void)state;
	lull_samples_init(&a);
	lull_samples_init(&b);
	fill(&a, &random, 12, 10, 0.2);
	fill(&b, &random, 12, 10.3, 0.2);
	lull_decide(&a, &b, &rule, &d);
	assert_int_equal(d.verdict, LULL_INCONCLUSIVE);
	assert_in_range(d.n_needed, 100, 2000);
	/* With as many as it asked for, it can tell; here, that nothing changed. */
	lull_samples_release(&a);
	lull_samples_release(&b);
	fill(&a, &random, 1000, 10, 0.2);
	fill(&b, &random, 1000, 10, 0.2);
	lull_decide(&a, &b, &rule, &d);
	assert_int_equal(d.verdict, LULL_PASS);
	lull_samples_release(&a);
	lull_samples_release(&b);
}

static void decide_constants(f64 before, f64 after, size_t n, struct lull_decision *d)
{
	struct test_random random = { 1 };
	struct lull_samples a, b;

	lull_samples_init(&a);
	lull_samples_init(&b);
	fill(&a, &random, n, before, 0);
	fill(&b, &random, n, after, 0);
	lull_decide(&a, &b, &rule, d);
	lull_samples_release(&a);
	lull_samples_release(&b);
}

static void rare_long_steps_count_in_the_means(void **state)
{
	struct test_random random = { 5 };
	struct lull_samples a, b;
	struct lull_decision d;

	(void)state;
	lull_samples_init(&a);
	lull_samples_init(&b);
	for (int i = 0; i < 100; i++)
		lull_samples_add(&a, i % 10 ? 2 + 0.01 * (i % 7) : 40);
	fill(&b, &random, 100, 2, 0.02);
	lull_decide(&a, &b, &rule, &d);
	assert_true(lull_decide_is_tail(&d));
	assert_float_equal(d.mean_before, 5.8, 0.1);
	assert_float_equal(d.mean_after, 2, 0.1);
	/* Steps that are all alike have one change. */
	lull_samples_release(&a);
	fill(&a, &random, 100, 4, 0.02);
	lull_decide(&a, &b, &rule, &d);
	assert_false(lull_decide_is_tail(&d));
	lull_samples_release(&a);
	lull_samples_release(&b);
}

static void counts_that_never_vary_are_compared_as_they_are(void **state)
{
	struct lull_decision d;

	(void)state;
	decide_constants(118, 118, 20, &d);
	assert_int_equal(d.verdict, LULL_PASS);
	decide_constants(118, 130, 20, &d);
	assert_int_equal(d.verdict, LULL_REGRESSED);
	assert_float_equal(d.change, 12.0 / 118, 1e-9);
	decide_constants(118, 119, 20, &d);
	assert_int_equal(d.verdict, LULL_PASS);
	decide_constants(118, 60, 20, &d);
	assert_int_equal(d.verdict, LULL_PASS);
	decide_constants(0, 4, 20, &d);
	assert_int_equal(d.verdict, LULL_REGRESSED);
}

static void too_little_never_passes(void **state)
{
	struct lull_samples none;
	struct lull_decision d;

	(void)state;
	decide_constants(10, 10, 4, &d);
	assert_int_equal(d.verdict, LULL_INCONCLUSIVE);
	assert_int_equal(d.n_needed, LULL_DECIDE_MIN_VALUES);
	lull_samples_init(&none);
	lull_decide(&none, &none, &rule, &d);
	assert_int_equal(d.verdict, LULL_NOT_COMPARABLE);
	assert_true(*d.why);
	lull_samples_release(&none);
}

/* Three runs a side whose levels differ: steps would "prove" a change that is only the run's. */
static void runs_that_disagree_are_not_pooled(void **state)
{
	static const f64 levels[] = { 10, 11, 10.2 };
	struct test_random random = { 5 };
	struct lull_samples a, b;
	struct lull_decision d;

	(void)state;
	lull_samples_init(&a);
	lull_samples_init(&b);
	for (size_t i = 0; i < 3; i++) {
		fill(&a, &random, 50, levels[i], 0.001);
		fill(&b, &random, 50, levels[i] * 1.01, 0.001);
	}
	lull_decide(&a, &b, &rule, &d);
	assert_int_equal(d.verdict, LULL_INCONCLUSIVE);
	assert_true(d.by_run);
	for (size_t i = 0; i < 3; i++) {
		fill(&a, &random, 50, levels[i] * 1.002, 0.001);
		fill(&b, &random, 50, levels[i] * 1.3, 0.001);
	}
	lull_decide(&a, &b, &rule, &d);
	assert_true(d.by_run);
	assert_int_equal(d.n_before, 6);
	lull_samples_release(&a);
	lull_samples_release(&b);
}

static void says(f64 change, f64 low, f64 high, const char *expected)
{
	struct lull_decision d = { .has_change = true, .change = change, .low = low, .high = high };
	struct lull_str text = LULL_STR_INIT;

	lull_decide_say(&d, &text);
	assert_string_equal(lull_str_text(&text), expected);
	lull_str_release(&text);
}

static void times_and_percents_of_a_sentence_are_of_one_estimate(void **state)
{
	(void)state;
	says(1.864, 0.797, 3.564, "on average 2.86 x slower (+186.4 %, between +79.7 and +356.4)");
	says(-0.5, -0.6, -0.4, "on average 2.00 x faster (-50.0 %, between -60.0 and -40.0)");
	says(0.001, -0.047, 0.05, "no visible change (on average +0.1 %, between -4.7 and +5.0)");
	says(0, 0, 0, "the same");
	says(-1, -1, -1, "on average faster (-100.0 %, between -100.0 and -100.0)");
}

static void what_was_not_compared_has_no_change(void **state)
{
	struct lull_decision d;

	(void)state;
	decide_constants(10, 11, LULL_DECIDE_MIN_VALUES - 1, &d);
	assert_false(d.has_change);
	decide_constants(10, 11, LULL_DECIDE_MIN_VALUES, &d);
	assert_true(d.has_change);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_program_is_rarely_accused),
		cmocka_unit_test(five_percent_are_found_in_thirty_noisy_steps),
		cmocka_unit_test(faster_is_no_regression),
		cmocka_unit_test(noise_that_hides_the_threshold_is_inconclusive),
		cmocka_unit_test(rare_long_steps_count_in_the_means),
		cmocka_unit_test(counts_that_never_vary_are_compared_as_they_are),
		cmocka_unit_test(too_little_never_passes),
		cmocka_unit_test(runs_that_disagree_are_not_pooled),
		cmocka_unit_test(times_and_percents_of_a_sentence_are_of_one_estimate),
		cmocka_unit_test(what_was_not_compared_has_no_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
