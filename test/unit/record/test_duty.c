/*
 * A recording in windows: their times in the report, when they come, and what they cost.
 */
#include "unit/unit.h"

#include "record/axis.h"
#include "record/live/duty.h"

#define MS 1000000ull
#define S  (1000 * MS)

/* ---- the time of the report ---- */

static void windows_follow_each_other_without_the_time_between_them(void **state)
{
	struct lull_axis a;

	(void)state;
	lull_axis_init(&a);
	assert_int_equal(lull_axis_ns(&a, 123), 0);
	lull_axis_open(&a, 1000);
	assert_int_equal(lull_axis_ns(&a, 1000), 0);
	assert_int_equal(lull_axis_ns(&a, 1070), 70);
	lull_axis_close(&a, 1100);
	lull_axis_open(&a, 5000);
	assert_int_equal(lull_axis_ns(&a, 5001), 101);
	lull_axis_close(&a, 5050);
	lull_axis_open(&a, 9000);
	assert_int_equal(lull_axis_ns(&a, 9000), 150);
	/* Before, in and between those that are closed. */
	assert_int_equal(lull_axis_ns(&a, 10), 0);
	assert_int_equal(lull_axis_ns(&a, 1070), 70);
	assert_int_equal(lull_axis_ns(&a, 3000), 100);
	assert_int_equal(lull_axis_ns(&a, 5020), 120);
	assert_int_equal(lull_axis_ns(&a, 8999), 150);
	lull_axis_release(&a);
}

static void a_window_waits_for_the_device_of_the_one_before(void **state)
{
	struct lull_axis a;

	(void)state;
	lull_axis_init(&a);
	lull_axis_open(&a, 1000);
	lull_axis_reach(&a, 140);
	lull_axis_close(&a, 1100);
	lull_axis_open(&a, 5000);
	assert_int_equal(lull_axis_ns(&a, 5000), 140);
	/* What a thread did beyond its window ends with the window. */
	assert_int_equal(lull_axis_ns(&a, 1130), 100);
	lull_axis_release(&a);
}

static void times_never_run_backwards(void **state)
{
	struct lull_axis a;
	u64 last = 0;

	(void)state;
	lull_axis_init(&a);
	for (u64 i = 0; i < 50; i++) {
		lull_axis_open(&a, 1000 + i * 100);
		lull_axis_reach(&a, i * 40 + i % 3 * 7);
		lull_axis_close(&a, 1000 + i * 100 + i % 4 * 10);
	}
	for (u64 t = 900; t < 6200; t++) {
		u64 now = lull_axis_ns(&a, t);

		assert_true(now >= last);
		last = now;
	}
	lull_axis_release(&a);
}

/* ---- when windows come ---- */

/* Run for so long with windows of 200 ms whose steps take `inside_ns`; a tick is 20 ms. */
static u64 run_for(struct lull_duty *d, u64 run_ns, u64 inside_ns, u64 outside_ns)
{
	u64 now = S, begin = now;
	struct lull_duty_count count;

	lull_duty_start(d, now);
	while (now < begin + run_ns) {
		for (u64 t = 0; t < 20 * MS; t += outside_ns)
			lull_duty_add(d, outside_ns, true);
		now += 20 * MS;
		if (!lull_duty_is_due(d, now))
			continue;
		for (u64 t = 0; t < 200 * MS; t += inside_ns)
			lull_duty_add(d, inside_ns, false);
		now += 200 * MS;
		lull_duty_ended(d, 200 * MS, now, &count);
	}
	return now - begin;
}

static void the_share_that_was_asked_for_is_recorded(void **state)
{
	static const f64 shares[] = { 0.005, 0.02, 0.1, 0.3 };

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(shares); i++) {
		struct lull_duty d;
		u64 elapsed;
		f64 share;

		lull_duty_init(&d, shares[i], 0, 42 + i);
		elapsed = run_for(&d, 7200 * S, 10 * MS, 10 * MS);
		share = (f64)d.recorded_ns / (f64)elapsed;
		assert_true(share > 0.93 * shares[i] && share < 1.07 * shares[i]);
	}
}

static void the_budget_is_never_exceeded_for_long(void **state)
{
	static const u64 inside[] = { 10 * MS, 10 * MS + MS / 10, 11 * MS, 20 * MS };

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(inside); i++) {
		struct lull_duty d;
		u64 elapsed, n, true_cost_ns;

		lull_duty_init(&d, 0.25, 0.005, 9);
		elapsed = run_for(&d, 3600 * S, inside[i], 10 * MS);
		n = d.total.n_steps;
		true_cost_ns = n * (inside[i] - 10 * MS);
		assert_true((f64)true_cost_ns <= 0.005 * (f64)elapsed + 200 * MS);
		/* It is used, too: what costs nothing is recorded as often as the share allows. */
		if (inside[i] > 10 * MS)
			assert_true((f64)true_cost_ns > 0.001 * (f64)elapsed);
		else
			assert_true(d.recorded_ns > elapsed / 5);
	}
}

/* CUPTI may take as long to leave as windows are apart: all steps are slow then, and are alike. */
static void a_budget_holds_where_cupti_is_slow_to_leave(void **state)
{
	static const u64 stays[] = { 0, 100 * MS, 400 * MS, 900 * MS };
	const u64 slow = MS / 4, quick = MS / 5;

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(stays); i++) {
		u64 now = S, slow_until = 0, cost_ns = 0;
		struct lull_duty_count count;
		struct lull_duty d;

		lull_duty_init(&d, 0, 0.05, 11);
		lull_duty_start(&d, now);
		while (now < 600 * S) {
			for (u64 end = now + 20 * MS; now < end;) {
				u64 took = now < slow_until ? slow : quick;

				lull_duty_add(&d, took, true);
				cost_ns += took - quick;
				now += took;
			}
			if (!lull_duty_is_due(&d, now))
				continue;
			for (u64 end = now + 200 * MS; now < end; now += slow) {
				lull_duty_add(&d, slow, false);
				cost_ns += slow - quick;
			}
			slow_until = now + stays[i];
			lull_duty_ended(&d, 200 * MS, now, &count);
		}
		assert_true((f64)cost_ns <= 0.055 * 600 * (f64)S);
		assert_true((f64)cost_ns > 0.02 * 600 * (f64)S);
	}
}

/* A period of the program must not meet windows at the same phase again and again. */
static void windows_are_not_in_step_with_the_program(void **state)
{
	u32 by_phase[8] = { 0 };
	struct lull_duty_count count;
	struct lull_duty d;
	u64 now = S;

	(void)state;
	lull_duty_init(&d, 0.1, 0, 5);
	lull_duty_start(&d, now);
	for (u32 n = 0; n < 800; now += MS) {
		if (!lull_duty_is_due(&d, now))
			continue;
		/* Ten seconds: as if it wrote a checkpoint each time. */
		by_phase[now / (10 * S / 8) % 8]++;
		n++;
		now += 200 * MS;
		lull_duty_ended(&d, 200 * MS, now, &count);
	}
	for (size_t i = 0; i < LULL_COUNT_OF(by_phase); i++)
		assert_true(by_phase[i] > 50 && by_phase[i] < 150);
}

static void a_seed_gives_the_same_windows_again(void **state)
{
	struct lull_duty a, b, c;

	(void)state;
	lull_duty_init(&a, 0.1, 0, 5);
	lull_duty_init(&b, 0.1, 0, 5);
	lull_duty_init(&c, 0.1, 0, 6);
	run_for(&a, 60 * S, 10 * MS, 10 * MS);
	run_for(&b, 60 * S, 10 * MS, 10 * MS);
	run_for(&c, 60 * S, 10 * MS, 10 * MS);
	assert_int_equal(a.next_ns, b.next_ns);
	assert_int_not_equal(a.next_ns, c.next_ns);
}

/* ---- what they cost ---- */

static void steps_beside_a_window_are_part_of_its_cost(void **state)
{
	struct lull_duty_count count;
	struct lull_duty d;

	(void)state;
	lull_duty_init(&d, 0.1, 0, 5);
	lull_duty_start(&d, S);
	for (int i = 0; i < 20; i++)
		lull_duty_add(&d, 10 * MS, true);
	lull_duty_add(&d, 14 * MS, true); /* CUPTI comes */
	for (int i = 0; i < 5; i++)
		lull_duty_add(&d, 11 * MS, false);
	lull_duty_ended(&d, 55 * MS, 2 * S, &count);
	assert_int_equal(d.cost_ns, 5 * MS + 4 * MS);
	assert_int_equal(count.n_steps, 5);
	assert_int_equal(count.n_outside, 21);
	lull_duty_add(&d, 13 * MS, true); /* and goes */
	for (int i = 0; i < 4; i++)
		lull_duty_add(&d, 10 * MS, true);
	lull_duty_add(&d, 10 * MS, false);
	lull_duty_ended(&d, 10 * MS, 3 * S, &count);
	assert_int_equal(d.cost_ns, 9 * MS + 3 * MS);
	assert_int_equal(count.n_outside, 5);
}

static void a_window_without_steps_costs_a_tenth(void **state)
{
	struct lull_duty_count count;
	struct lull_duty d;

	(void)state;
	lull_duty_init(&d, 0, 0.01, 5);
	lull_duty_start(&d, S);
	lull_duty_ended(&d, 500 * MS, 2 * S, &count);
	assert_int_equal(d.cost_ns, 50 * MS);
	/* 50 ms are 1 % of 5 s, of which one has passed. */
	assert_true(d.next_ns >= 6 * S);
}

static void a_window_without_steps_costs_what_its_events_do(void **state)
{
	struct lull_duty_count count;
	struct lull_duty d;

	(void)state;
	lull_duty_init(&d, 0, 0.01, 5);
	lull_duty_start(&d, S);
	lull_duty_had(&d, 1000, false);
	lull_duty_ended(&d, 500 * MS, 2 * S, &count);
	assert_int_equal(d.cost_ns, 50 * MS);
	lull_duty_had(&d, 200000, true);
	lull_duty_ended(&d, 500 * MS, 10 * S, &count);
	assert_int_equal(d.cost_ns, 50 * MS + 300 * MS);
	/* What was is not assumed again. */
	lull_duty_ended(&d, 500 * MS, 50 * S, &count);
	assert_int_equal(d.cost_ns, 350 * MS + 50 * MS);
}

static void a_slow_step_asks_for_a_window_at_once(void **state)
{
	struct lull_duty_count count;
	struct lull_duty d;

	(void)state;
	lull_duty_init(&d, 0.001, 0.001, 5);
	lull_duty_start(&d, S);
	lull_duty_ended(&d, 500 * MS, 2 * S, &count);
	assert_false(lull_duty_is_due(&d, 2 * S + MS));
	lull_duty_hurry(&d);
	assert_true(lull_duty_is_due(&d, 2 * S + 2 * MS));
	lull_duty_ended(&d, 500 * MS, 3 * S, &count);
	assert_false(lull_duty_is_due(&d, 3 * S + MS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows_follow_each_other_without_the_time_between_them),
		cmocka_unit_test(a_window_waits_for_the_device_of_the_one_before),
		cmocka_unit_test(times_never_run_backwards),
		cmocka_unit_test(the_share_that_was_asked_for_is_recorded),
		cmocka_unit_test(the_budget_is_never_exceeded_for_long),
		cmocka_unit_test(a_budget_holds_where_cupti_is_slow_to_leave),
		cmocka_unit_test(windows_are_not_in_step_with_the_program),
		cmocka_unit_test(a_seed_gives_the_same_windows_again),
		cmocka_unit_test(steps_beside_a_window_are_part_of_its_cost),
		cmocka_unit_test(a_window_without_steps_costs_a_tenth),
		cmocka_unit_test(a_window_without_steps_costs_what_its_events_do),
		cmocka_unit_test(a_slow_step_asks_for_a_window_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
