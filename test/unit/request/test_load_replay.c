/*
 * Replays of requests whose result is known beforehand.
 */
#include "unit/report.h"

#include "request/load_replay.h"

#define US 1000ull

struct bench {
	struct lull_requests q;
};

static void begin(struct bench *b)
{
	*b = (struct bench){ .q = { .has_work = true } };
	lull_vec_init(&b->q.all, sizeof(struct lull_one_request));
}

/* A request that arrives at `at`, waits for its turn and is served. */
static void add(struct bench *b, u64 at_us, u64 wait_us, u64 service_us)
{
	struct lull_one_request *one = lull_vec_push(&b->q.all);

	one->start_ns = at_us * US;
	one->end_ns = (at_us + wait_us + service_us) * US;
	one->part_ns[LULL_PART_OF_QUEUE] = wait_us * US;
	one->part_ns[LULL_PART_OF_GPU] = service_us * US;
}

static void expect(struct lull_replayed r, u64 p50_us, u64 p99_us)
{
	assert_int_equal(r.p50_ns, p50_us * US);
	assert_int_equal(r.p99_ns, p99_us * US);
}

static void four_at_once_and_one_server(void **state)
{
	struct lull_load_replay r;
	struct bench b;

	(void)state;
	begin(&b);
	for (u64 i = 0; i < 40; i++)
		add(&b, i / 4 * 100, i % 4 * 10, 10);
	lull_load_replay(&r, &b.q);
	assert_true(r.is_known);
	assert_int_equal(r.n_servers, 1);
	assert_true(r.wait_share > 0.59 && r.wait_share < 0.61);
	expect(r.now, 20, 40);
	expect(r.replica, 10, 20);
	expect(r.batches, 10, 10);
	expect(r.more, 20, 40);
	lull_requests_release(&b.q);
}

static void more_load_makes_a_queue(void **state)
{
	struct lull_load_replay r;
	struct bench b;

	(void)state;
	begin(&b);
	for (u64 i = 0; i < 100; i++)
		add(&b, i / 2 * 30, i % 2 * 10, 10);
	lull_load_replay(&r, &b.q);
	assert_true(r.is_known);
	assert_int_equal(r.n_servers, 1);
	expect(r.now, 10, 20);
	expect(r.replica, 10, 10);
	/* Each pair comes 15 us after the one before, takes 20 us, and waits 5 us longer. */
	assert_in_range(r.more.p99_ns, 255 * US, 265 * US);
	lull_requests_release(&b.q);
}

static void what_does_not_fit_is_not_said(void **state)
{
	struct lull_load_replay r;
	struct bench b;

	(void)state;
	begin(&b);
	for (u64 i = 0; i < 40; i++)
		add(&b, i * 1000, 99, 1); /* waits, but there is nobody to wait for */
	lull_load_replay(&r, &b.q);
	assert_false(r.is_known);
	lull_requests_release(&b.q);
	begin(&b);
	for (u64 i = 0; i < 40; i++)
		add(&b, i * 1000, 0, 100); /* how many there is room for is not known */
	lull_load_replay(&r, &b.q);
	assert_false(r.is_known);
	lull_requests_release(&b.q);
	begin(&b);
	add(&b, 0, 0, 10);
	lull_load_replay(&r, &b.q);
	assert_false(r.is_known);
	lull_requests_release(&b.q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(four_at_once_and_one_server),
		cmocka_unit_test(more_load_makes_a_queue),
		cmocka_unit_test(what_does_not_fit_is_not_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
