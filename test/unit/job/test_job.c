/*
 * A job as a whole, on recordings of two and four ranks (test/data/ranks).
 */
#include "unit/unit.h"

#include "text/json.h"
#include "job/heat.h"
#include "job/job_json.h"

#define SLOW "test/data/ranks/slow4"

/* The job that most tests read; opening it takes longest. */
static struct lull_job slow;

static void open_slow(struct lull_job *job, u64 max_meetings)
{
	const struct lull_job_options options = { .max_meetings = max_meetings };
	struct lull_err err;

	if (lull_job_open(job, SLOW, &options, &err) || lull_job_run(job, &err))
		fail_msg("%s", err.msg);
}

static int set_up(void **state)
{
	(void)state;
	open_slow(&slow, 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	lull_job_release(&slow);
	return 0;
}

static void parts_of_steps_add_up(void **state)
{
	const struct lull_job_rank *all;
	u32 n;

	(void)state;
	all = slow.ranks.at;
	assert_int_equal(slow.ranks.n, 4);
	assert_int_equal(slow.thinned, 1);
	for (size_t i = 0; i < slow.ranks.n; i++) {
		const struct lull_job_step *s = lull_job_steps(&slow, &all[i], &n);

		assert_int_equal(n, 11);
		for (u32 k = 0; k < n; k++) {
			assert_int_equal(s[k].compute_ns + s[k].wait_ns + s[k].transfer_ns +
						 s[k].bubble_ns + s[k].copy_ns + s[k].idle_ns,
					 s[k].dur_ns);
			assert_int_equal(s[k].number, k);
		}
	}
}

/* Lateness is measured against the others, so what one gains the others lose. */
static void the_late_rank_is_the_one_that_waits_least(void **state)
{
	const struct lull_job_straggler *late;
	const struct lull_job_rank *all;

	(void)state;
	late = slow.stragglers.at;
	all = slow.ranks.at;
	assert_int_equal(slow.stragglers.n, 1);
	assert_int_equal(late->rank_ix, 1);
	for (u32 i = 0; i < 4; i++)
		assert_true(i == 1 || all[i].wait_ns > 5 * all[1].wait_ns);
}

/* Whole steps are left out, so that what is left is not less late. */
static void too_many_collectives_are_thinned_and_nobody_else_is_blamed(void **state)
{
	struct lull_job job;
	const struct lull_job_straggler *late;

	(void)state;
	open_slow(&job, 70);
	late = job.stragglers.at;
	assert_true(job.thinned >= 2);
	assert_true(job.n_met <= 70);
	/* Few steps may be left: then nobody is named, but never another one. */
	assert_true(!job.stragglers.n || late->rank_ix == 1);
	lull_job_release(&job);
}

static void the_picture_shows_the_largest_of_what_it_covers(void **state)
{
	struct lull_heat small, large;

	(void)state;
	lull_heat_init(&large, &slow, LULL_HEAT_LATE, 100, 100);
	lull_heat_init(&small, &slow, LULL_HEAT_LATE, 2, 3);
	assert_int_equal(large.n_rows, 4);
	assert_int_equal(large.n_columns, 11);
	assert_int_equal(small.n_rows, 2);
	assert_int_equal(small.n_columns, 3);
	assert_true(small.most_ns == large.most_ns);
	assert_true(small.ns[2] >= large.ns[large.n_columns + 10]);
	lull_heat_release(&small);
	lull_heat_release(&large);
}

static void bandwidth_is_that_of_nccl_tests(void **state)
{
	struct lull_job_kind kind = {
		.name = "AllReduce", .n_ranks = 4, .timed_bytes = 1000, .transfer_ns = 100
	};

	(void)state;
	assert_float_equal(lull_job_algorithm_bandwidth(&kind), 10, 1e-9);
	assert_float_equal(lull_job_bus_bandwidth(&kind), 15, 1e-9);
	strcpy(kind.name, "AllGather");
	assert_float_equal(lull_job_bus_bandwidth(&kind), 7.5, 1e-9);
	strcpy(kind.name, "Broadcast");
	assert_float_equal(lull_job_bus_bandwidth(&kind), 10, 1e-9);
	kind.transfer_ns = 0;
	assert_float_equal(lull_job_algorithm_bandwidth(&kind), 0, 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_of_steps_add_up),
		cmocka_unit_test(the_late_rank_is_the_one_that_waits_least),
		cmocka_unit_test(too_many_collectives_are_thinned_and_nobody_else_is_blamed),
		cmocka_unit_test(the_picture_shows_the_largest_of_what_it_covers),
		cmocka_unit_test(bandwidth_is_that_of_nccl_tests),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
