/*
 * What windows say about the whole run, and how sure that is.
 */
#include <math.h>

#include "unit/report.h"

#include "report/duty_windows.h"

/* Numbers that look random, and are the same each time. */
static f64 noise(u64 *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return (f64)(*state >> 40) / 16777216.0;
}

static void take(struct lull_duty_windows *w, u64 dur_ns, u32 n_steps)
{
	*(struct lull_duty_window *)lull_vec_push(&w->all) =
		(struct lull_duty_window){ w->recorded_ns, dur_ns, n_steps };
	w->recorded_ns += dur_ns;
	w->n_steps += n_steps;
}

static void steps_that_are_alike_give_the_whole_exactly(void **state)
{
	struct lull_duty_windows w = { .elapsed_ns = 1000000, .n_all_steps = 1000 };
	f64 sums[] = { 50, 70, 30 };
	struct lull_duty_estimate e;

	(void)state;
	lull_vec_init(&w.all, sizeof(struct lull_duty_window));
	take(&w, 500, 5);
	take(&w, 900, 7);
	take(&w, 300, 3);
	e = lull_duty_windows_estimate(&w, sums);
	assert_true(fabs(e.value - 10000) < 1e-6);
	assert_true(fabs(e.error) < 1e-6);
	lull_duty_windows_release(&w);
}

static void one_window_does_not_say_how_sure_it_is(void **state)
{
	struct lull_duty_windows w = { .elapsed_ns = 10000 };
	f64 sum = 50;
	struct lull_duty_estimate e;

	(void)state;
	lull_vec_init(&w.all, sizeof(struct lull_duty_window));
	take(&w, 500, 0);
	e = lull_duty_windows_estimate(&w, &sum);
	assert_true(fabs(e.value - 1000) < 1e-6);
	assert_true(isnan(e.error));
	lull_duty_windows_release(&w);
}

/*
 * A run of 20,000 steps whose cost varies, of which windows of 5 steps are seen: the interval holds
 * the truth in about 19 of 20 tries.
 */
static void the_interval_holds_the_truth_as_often_as_it_says(void **state)
{
	enum { N_STEPS = 20000, N_WINDOWS = 30, N_TRIES = 400 };
	static f64 cost[N_STEPS];
	u64 random = 77;
	f64 truth = 0;
	u32 n_held = 0;

	(void)state;
	for (int i = 0; i < N_STEPS; i++) {
		cost[i] = 10 + 5 * noise(&random) + (noise(&random) < 0.05 ? 40 : 0);
		truth += cost[i];
	}
	for (int t = 0; t < N_TRIES; t++) {
		struct lull_duty_windows w = { .elapsed_ns = 1, .n_all_steps = N_STEPS };
		struct lull_duty_estimate e;
		f64 sums[N_WINDOWS] = { 0 };

		lull_vec_init(&w.all, sizeof(struct lull_duty_window));
		for (int i = 0; i < N_WINDOWS; i++) {
			u32 from = (u32)(noise(&random) * (N_STEPS - 5));

			for (u32 k = from; k < from + 5; k++)
				sums[i] += cost[k];
			take(&w, 100, 5);
		}
		e = lull_duty_windows_estimate(&w, sums);
		n_held += fabs(e.value - truth) <= e.error;
		lull_duty_windows_release(&w);
	}
	assert_in_range(n_held, N_TRIES * 90 / 100, N_TRIES * 98 / 100);
}

static void a_time_belongs_to_the_window_that_it_is_in(void **state)
{
	struct lull_duty_windows w = { 0 };

	(void)state;
	lull_vec_init(&w.all, sizeof(struct lull_duty_window));
	take(&w, 500, 0);
	take(&w, 100, 0);
	take(&w, 100, 0);
	assert_int_equal(lull_duty_windows_find(&w, 0), 0);
	assert_int_equal(lull_duty_windows_find(&w, 499), 0);
	assert_int_equal(lull_duty_windows_find(&w, 500), 1);
	assert_int_equal(lull_duty_windows_find(&w, 5000), 2);
	lull_duty_windows_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_that_are_alike_give_the_whole_exactly),
		cmocka_unit_test(one_window_does_not_say_how_sure_it_is),
		cmocka_unit_test(the_interval_holds_the_truth_as_often_as_it_says),
		cmocka_unit_test(a_time_belongs_to_the_window_that_it_is_in),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
