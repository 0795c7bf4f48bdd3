/*
 * clock: offsets and drifts of made-up hosts are found, and what cannot be fitted is refused.
 */
#include "unit/unit.h"

#include <math.h>

#include "job/job_int.h"

#define MAX_RANKS 8
#define N_POINTS  400

/* A job whose rank i has its own host with this clock. */
struct made {
	struct lull_job job;
	struct lull_vec samples[MAX_RANKS];
};

static u64 noise(u64 *state, u64 most)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (*state >> 33) % (most + 1);
}

static void make(struct made *m, u32 n)
{
	memset(m, 0, sizeof(*m));
	lull_vec_init(&m->job.ranks, sizeof(struct lull_job_rank));
	for (u32 i = 0; i < n; i++) {
		struct lull_job_rank *rank = lull_vec_push(&m->job.ranks);

		rank->rank = i;
		rank->epoch_ns = (i + 1) * 1000000000000ULL;
		snprintf(rank->host, sizeof(rank->host), "node%u", i);
		snprintf(rank->file, sizeof(rank->file), "rank%u.lull", i);
		lull_vec_init(&m->samples[i], sizeof(struct lull_job_sample));
	}
}

static void free_made(struct made *m)
{
	for (u32 i = 0; i < MAX_RANKS; i++)
		lull_vec_release(&m->samples[i]);
	lull_vec_release(&m->job.ranks);
}

/* A collective that ends at `true_ns` and lasts 100 us, as this rank's clock shows it. */
static void add(struct made *m, u32 rank, u64 key, f64 true_ns, f64 drift, u64 off_ns)
{
	struct lull_job_sample *s = lull_vec_push(&m->samples[rank]);
	const struct lull_job_rank *r = lull_vec_get(&m->job.ranks, rank);

	s->key = key;
	s->end_ns = r->epoch_ns + (u64)llround(true_ns * (1 + drift)) + off_ns;
	s->start_ns = s->end_ns - 100000;
}

static void offset_and_drift_are_found(void **state)
{
	struct made m;
	const struct lull_job_rank *rank;
	u64 seed = 1;

	(void)state;
	make(&m, 2);
	for (u64 i = 0; i < N_POINTS; i++) {
		f64 at = 1e6 + (f64)i * 1e7;

		add(&m, 0, i + 1, at, 0, noise(&seed, 8000));
		/* One in ten is far off: a rank that was held up on its way out. */
		add(&m, 1, i + 1, at, 40e-6, 5000000 + noise(&seed, 8000) + (i % 10 ? 0 : 900000));
	}
	lull_job_fit(&m.job, m.samples);
	rank = lull_vec_get(&m.job.ranks, 1);
	assert_int_equal(m.job.clocks, LULL_CLOCKS_FITTED);
	assert_true(fabs(rank->clock.offset_ns + 5e6) < 2000);
	assert_true(fabs(rank->clock.drift + 40e-6) < 1e-6);
	assert_true(rank->clock.residual_ns < 10000 && rank->clock.residual_ns > 100);
	assert_true(llabs(lull_job_time(rank, 5000000 + 2000080000) - 2000000000) < 5000);
	free_made(&m);
}

static void a_host_is_reached_through_another(void **state)
{
	struct made m;
	const struct lull_job_rank *rank;

	(void)state;
	make(&m, 3);
	for (u64 i = 0; i < 50; i++) {
		add(&m, 0, i + 1, 1e6 * (f64)(i + 1), 0, 0);
		add(&m, 1, i + 1, 1e6 * (f64)(i + 1), 0, 700);
		add(&m, 1, i + 1001, 1e6 * (f64)(i + 1) + 5e5, 0, 700);
		add(&m, 2, i + 1001, 1e6 * (f64)(i + 1) + 5e5, 0, 31000);
	}
	lull_job_fit(&m.job, m.samples);
	rank = lull_vec_get(&m.job.ranks, 2);
	assert_int_equal(m.job.clocks, LULL_CLOCKS_FITTED);
	assert_true(fabs(rank->clock.offset_ns + 31000) < 10);
	free_made(&m);
}

static void who_has_nothing_in_common_is_named(void **state)
{
	struct made m;

	(void)state;
	make(&m, 3);
	for (u64 i = 0; i < 50; i++) {
		add(&m, 0, i + 1, 1e6 * (f64)(i + 1), 0, 0);
		add(&m, 1, i + 1, 1e6 * (f64)(i + 1), 0, 0);
		add(&m, 2, i + 1001, 1e6 * (f64)(i + 1), 0, 0);
	}
	lull_job_fit(&m.job, m.samples);
	assert_int_equal(m.job.clocks, LULL_CLOCKS_DURATIONS);
	assert_non_null(
		strstr(m.job.clocks_why, "rank 2 (rank2.lull) has no collective in common"));
	free_made(&m);
}

static void a_fit_worse_than_what_is_measured_is_refused(void **state)
{
	struct made m;
	u64 seed = 1;

	(void)state;
	make(&m, 2);
	for (u64 i = 0; i < N_POINTS; i++) {
		add(&m, 0, i + 1, 1e6 * (f64)(i + 1), 0, 0);
		add(&m, 1, i + 1, 1e6 * (f64)(i + 1), 0, noise(&seed, 5000000));
	}
	lull_job_fit(&m.job, m.samples);
	assert_int_equal(m.job.clocks, LULL_CLOCKS_DURATIONS);
	assert_non_null(strstr(m.job.clocks_why, "collectives last 100 us"));
	free_made(&m);
}

static void no_collectives_at_all_is_said(void **state)
{
	struct made m;

	(void)state;
	make(&m, 2);
	lull_job_fit(&m.job, m.samples);
	assert_int_equal(m.job.clocks, LULL_CLOCKS_NONE);
	assert_non_null(strstr(m.job.clocks_why, "no collectives from which clocks can be fitted"));
	free_made(&m);
}

/* Ranks that leave one after the other, always in the same order: the bounds move the line. */
static void nobody_leaves_before_the_last_one_came(void **state)
{
	struct made m;
	const struct lull_job_rank *rank;

	(void)state;
	make(&m, 2);
	for (u64 i = 0; i < 50; i++) {
		struct lull_job_sample *s;

		add(&m, 0, i + 1, 1e6 * (f64)(i + 1), 0, 0);
		add(&m, 1, i + 1, 1e6 * (f64)(i + 1), 0, 500000);
		/* Rank 1 leaves half a millisecond late, but came when rank 0 left. */
		s = lull_vec_get(&m.samples[1], i);
		s->start_ns = s->end_ns - 500000;
	}
	lull_job_fit(&m.job, m.samples);
	rank = lull_vec_get(&m.job.ranks, 1);
	assert_true(rank->clock.bound_ns > 0);
	assert_true(rank->clock.offset_ns <= 1);
	assert_true(rank->clock.offset_ns >= -500001);
	free_made(&m);
}

static void ranks_of_one_host_share_a_clock(void **state)
{
	struct made m;
	struct lull_job_rank *all;

	(void)state;
	make(&m, 4);
	all = m.job.ranks.at;
	for (u32 i = 0; i < 4; i++) {
		snprintf(all[i].host, sizeof(all[i].host), "node0");
		all[i].epoch_ns = 5000000 + i * 1000;
	}
	lull_job_fit(&m.job, m.samples);
	assert_int_equal(m.job.clocks, LULL_CLOCKS_SAME);
	assert_int_equal(lull_job_time(&all[3], 0) - lull_job_time(&all[1], 0), 2000);
	free_made(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(offset_and_drift_are_found),
		cmocka_unit_test(a_host_is_reached_through_another),
		cmocka_unit_test(who_has_nothing_in_common_is_named),
		cmocka_unit_test(a_fit_worse_than_what_is_measured_is_refused),
		cmocka_unit_test(no_collectives_at_all_is_said),
		cmocka_unit_test(nobody_leaves_before_the_last_one_came),
		cmocka_unit_test(ranks_of_one_host_share_a_clock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
