/*
 * Contests on simulated programs: false gains, gains that are found, whose turn it is.
 */
#include "unit/unit.h"

#include "try/contest.h"
#include "unit/random.h"

#define N_CONTESTS 500
#define N_BLOCKS   4

/* A machine: each run has its own luck, some are much slower, and all drift. */
struct machine {
	struct test_random random;
	f64 noise;	/* of a block */
	f64 luck;	/* of a run */
	f64 slow_share; /* of runs that take 1.6 times as long */
	f64 drift;	/* of each run, over the last */
	f64 now;
	bool is_short; /* there is no time for all */
	bool is_long;  /* runs take long */
};

static void run(struct machine *m, struct lull_contest *c, size_t side, f64 step)
{
	f64 values[N_BLOCKS];
	bool is_slow = test_random_share(&m->random) < m->slow_share;

	step *= m->now * exp(m->luck * test_random_normal(&m->random)) * (is_slow ? 1.6 : 1);
	m->now *= 1 + m->drift;
	for (size_t i = 0; i < N_BLOCKS; i++)
		values[i] = step * exp(m->noise * test_random_normal(&m->random));
	lull_contest_add(c, side, values, N_BLOCKS);
	((struct lull_side *)c->sides.at)[side].is_long = m->is_long;
}

/* Hold a contest of n sides, of which side 1 takes `step` and all others 10; returns its runs. */
static u32 hold(struct lull_contest *c, struct machine *m, size_t n, f64 step)
{
	u32 n_runs = 0;
	int side;

	m->now = 1;
	lull_contest_init(c, n, LULL_DECIDE_MIN_RUNS);
	c->is_short = m->is_short;
	while ((side = lull_contest_next(c)) >= 0) {
		run(m, c, (size_t)side, side == 1 ? step : 10);
		n_runs++;
		assert_true(n_runs < 1000);
	}
	lull_contest_judge(c);
	return n_runs;
}

static size_t count_gains(const struct lull_contest *c)
{
	const struct lull_side *sides = c->sides.at;
	size_t n = 0;

	for (size_t i = 1; i < c->sides.n; i++)
		n += sides[i].gain.verdict == LULL_GAIN_YES;
	return n;
}

static void nothing_gains_where_nothing_changed(void **state)
{
	const struct machine machines[] = {
		{ { 1 }, 0.01, 0.005, 0, 0, 1, false, false },
		{ { 2 }, 0.02, 0.02, 0, 0, 1, false, false },
		{ { 3 }, 0.05, 0.10, 0, 0, 1, false, false },
		{ { 4 }, 0.02, 0.02, 0.1, 0, 1, false, false },
		{ { 5 }, 0.02, 0.02, 0, 0.005, 1, false, false },
		{ { 6 }, 0.02, 0.02, 0, -0.005, 1, false, false },
		{ { 7 }, 0.001, 0.03, 0.3, 0.002, 1, false, false },
		{ { 8 }, 0.01, 0.03, 0.5, 0, 1, false, false },
		{ { 9 }, 0.02, 0.02, 0, 0, 1, true, false },
		{ { 10 }, 0.05, 0.10, 0, 0, 1, true, false },
		{ { 11 }, 0.02, 0.02, 0, 0.005, 1, true, false },
		{ { 12 }, 0.02, 0.02, 0, -0.005, 1, true, false },
		{ { 13 }, 0.01, 0.03, 0.3, 0.002, 1, true, false },
		{ { 14 }, 0.02, 0.02, 0.1, 0, 1, true, false },
		{ { 25 }, 0.01, 0.03, 0.5, 0, 1, false, false },
		{ { 36 }, 0.01, 0.03, 0.5, 0, 1, true, false },
		{ { 17 }, 0.01, 0.03, 0.4, 0, 1, false, false },
	};

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(machines); i++) {
		struct machine m = machines[i];
		size_t n_false = 0, n = N_CONTESTS;

		for (size_t k = 0; k < n; k++) {
			struct lull_contest c;

			hold(&c, &m, i % 2 && !m.is_short ? 2 : 9, 10);
			n_false += count_gains(&c) > 0;
			lull_contest_release(&c);
		}
		print_message("machine %zu: %zu false gains in %zu contests\n", i, n_false, n);
		assert_true(n_false <= n * 2 / 100);
	}
}

static void gains_are_found(void **state)
{
	static const struct {
		f64 factor, luck;
	} cases[] = { { 1.1, 0.01 }, { 1.35, 0.03 }, { 2, 0.10 } };

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(cases); i++) {
		struct machine m = { { 11 + i }, 0.02, cases[i].luck, 0, 0, 1, false, false };
		size_t n_found = 0, n = 100;
		f64 sum = 0;

		for (size_t k = 0; k < n; k++) {
			struct lull_contest c;
			const struct lull_side *sides;

			hold(&c, &m, 5, 10 / cases[i].factor);
			sides = c.sides.at;
			n_found += sides[1].gain.verdict == LULL_GAIN_YES;
			sum += sides[1].gain.ratio;
			lull_contest_release(&c);
		}
		print_message("%.2f x: %zu of %zu found, %.3f x on average\n", cases[i].factor,
			      n_found, n, sum / (f64)n);
		assert_true(n_found >= n * 90 / 100);
		assert_float_equal(sum / (f64)n, cases[i].factor, 0.03 * cases[i].factor);
	}
}

static void sides_run_by_turns_and_each_round_starts_with_the_first(void **state)
{
	static const int order[] = { 0, 1, 2, 3, 0, 2, 3, 1, 0, 3, 1, 2, 0, 1, 2, 3 };
	struct lull_contest c;
	const f64 values[] = { 10, 10.1, 9.9 }, fast[] = { 6, 6.1, 5.9 };

	(void)state;
	lull_contest_init(&c, 4, 4);
	for (size_t i = 0; i < LULL_COUNT_OF(order); i++) {
		assert_int_equal(lull_contest_next(&c), order[i]);
		lull_contest_add(&c, (size_t)order[i], order[i] ? fast : values, 3);
	}
	assert_int_equal(lull_contest_next(&c), -1);
	assert_int_equal(count_gains(&c), 3);
	lull_contest_release(&c);
}

static void a_side_that_is_not_faster_is_out_after_two_rounds(void **state)
{
	struct machine m = { { 21 }, 0.001, 0.001, 0, 0, 1, false, false };
	struct lull_contest c;
	const struct lull_side *sides;

	(void)state;
	hold(&c, &m, 2, 12);
	sides = c.sides.at;
	assert_int_equal(sides[1].n_runs, 2);
	assert_int_equal(sides[1].gain.verdict, LULL_GAIN_NONE);
	lull_contest_release(&c);
}

/* Where runs are short, that may have been luck, and another one costs little. */
static void a_long_side_that_is_far_slower_is_out_at_once(void **state)
{
	(void)state;
	for (u32 is_long = 0; is_long < 2; is_long++) {
		struct machine m = { { 22 }, 0.001, 0.001, 0, 0, 1, false, is_long };
		struct lull_contest c;
		const struct lull_side *sides;

		hold(&c, &m, 2, 31);
		sides = c.sides.at;
		assert_int_equal(sides[1].n_runs, is_long ? 1 : 2);
		assert_int_equal(sides[1].gain.verdict, LULL_GAIN_NONE);
		lull_contest_release(&c);
	}
}

static void where_the_time_is_short_the_fastest_come_first(void **state)
{
	/* Side 2 is slower, side 3 the fastest. */
	static const int order[] = { 0, 1, 2, 3, 0, 3, 1, 0, 3, 1, 0, 3, 1 };
	static const f64 steps[][3] = {
		{ 10, 10.1, 9.9 }, { 9, 9.1, 8.9 }, { 11, 11.1, 10.9 }, { 8, 8.1, 7.9 }
	};
	struct lull_contest c;

	(void)state;
	lull_contest_init(&c, 4, 4);
	for (size_t i = 0; i < LULL_COUNT_OF(order); i++) {
		c.is_short = true;
		assert_int_equal(lull_contest_next(&c), order[i]);
		lull_contest_add(&c, (size_t)order[i], steps[order[i]], 3);
	}
	assert_int_equal(lull_contest_next(&c), -1);
	assert_int_equal(count_gains(&c), 2);
	lull_contest_release(&c);
}

static void a_clear_gain_needs_few_runs(void **state)
{
	static const struct {
		f64 step;
		u32 n_runs;
	} cases[] = { { 4, 2 }, { 5.5, 3 }, { 7, 4 } };

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(cases); i++) {
		struct machine m = { { 31 + i }, 0.001, 0.001, 0, 0, 1, false, false };
		struct lull_contest c;
		const struct lull_side *sides;

		hold(&c, &m, 2, cases[i].step);
		sides = c.sides.at;
		assert_int_equal(sides[1].n_runs, cases[i].n_runs);
		assert_int_equal(sides[1].gain.verdict, LULL_GAIN_YES);
		assert_float_equal(sides[1].gain.ratio, 10 / cases[i].step, 0.01);
		assert_true(sides[1].gain.low <= sides[1].gain.ratio);
		assert_true(sides[1].gain.high >= sides[1].gain.ratio);
		lull_contest_release(&c);
	}
}

static void a_side_that_failed_does_not_run_again(void **state)
{
	const f64 value[] = { 10, 10, 10 };
	struct lull_contest c;

	(void)state;
	lull_contest_init(&c, 2, 4);
	assert_int_equal(lull_contest_next(&c), 0);
	lull_contest_add(&c, 0, value, 3);
	assert_int_equal(lull_contest_next(&c), 1);
	lull_contest_drop(&c, 1);
	assert_int_equal(lull_contest_next(&c), -1);
	lull_contest_judge(&c);
	assert_int_equal(count_gains(&c), 0);
	assert_int_equal(lull_contest_left(&c), 3);
	lull_contest_release(&c);
}

static void few_runs_prove_nothing(void **state)
{
	const f64 slow[] = { 10, 10.1, 9.9, 10, 10 }, fast[] = { 5, 5.1, 4.9, 5, 5 };
	struct lull_contest c;
	const struct lull_side *sides;

	(void)state;
	lull_contest_init(&c, 2, 4);
	lull_contest_add(&c, 0, slow, 5);
	lull_contest_add(&c, 1, fast, 5);
	lull_contest_judge(&c);
	sides = c.sides.at;
	assert_int_equal(sides[1].gain.verdict, LULL_GAIN_UNKNOWN);
	assert_float_equal(sides[1].gain.ratio, 2, 0.05);
	lull_contest_release(&c);
}

/* Others used the machine while side 0 ran; in an earlier contest they did not. */
static void what_was_fast_before_is_no_gain(void **state)
{
	const f64 busy[] = { 20, 20, 20, 20 }, alone[] = { 9, 9, 9, 9 };
	const f64 fastest[] = { 0, 19, 9.5 };

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(fastest); i++) {
		struct lull_contest c;
		const struct lull_side *sides;
		int side;

		lull_contest_init(&c, 2, LULL_DECIDE_MIN_RUNS);
		c.fastest = fastest[i];
		for (int n = 0; n < 4 && (side = lull_contest_next(&c)) >= 0; n++)
			lull_contest_add(&c, (size_t)side, side ? alone : busy, N_BLOCKS);
		lull_contest_judge(&c);
		sides = c.sides.at;
		assert_int_equal(sides[1].gain.verdict, i < 2 ? LULL_GAIN_YES : LULL_GAIN_UNKNOWN);
		lull_contest_release(&c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_gains_where_nothing_changed),
		cmocka_unit_test(gains_are_found),
		cmocka_unit_test(sides_run_by_turns_and_each_round_starts_with_the_first),
		cmocka_unit_test(a_side_that_is_not_faster_is_out_after_two_rounds),
		cmocka_unit_test(a_long_side_that_is_far_slower_is_out_at_once),
		cmocka_unit_test(where_the_time_is_short_the_fastest_come_first),
		cmocka_unit_test(a_clear_gain_needs_few_runs),
		cmocka_unit_test(a_side_that_failed_does_not_run_again),
		cmocka_unit_test(few_runs_prove_nothing),
		cmocka_unit_test(what_was_fast_before_is_no_gain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
