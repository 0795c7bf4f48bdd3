/*
 * Requests of a server, counted while it is recorded.
 */
#include "unit/report.h"

#include "record/live/live_requests.h"

#define MS 1000000ull

static void mark(struct lull_live_requests *q, u32 process, u64 id, enum lull_request_kind kind,
		 u64 at_ms)
{
	lull_live_requests_add(
		q, &(struct lull_live_mark){
			   .id = id, .at_ns = at_ms * MS, .process = process, .kind = kind });
}

static void end_badly(struct lull_live_requests *q, u64 id, enum lull_live_end end, u64 at_ms)
{
	lull_live_requests_add(q, &(struct lull_live_mark){ .id = id,
							    .at_ns = at_ms * MS,
							    .process = 1,
							    .kind = LULL_REQUEST_ENDED,
							    .end = end });
}

static void counts_latency_and_tokens(void **state)
{
	struct lull_live_requests q = { 0 };
	struct lull_str text = LULL_STR_INIT;

	(void)state;
	lull_live_requests_write(&q, &text);
	assert_int_equal(text.len, 0);
	mark(&q, 1, 7, LULL_REQUEST_ARRIVED, 100);
	mark(&q, 2, 7, LULL_REQUEST_ARRIVED, 101); /* the same id in another process */
	mark(&q, 1, 7, LULL_REQUEST_TOKEN, 130);
	mark(&q, 1, 7, LULL_REQUEST_TOKEN, 134);
	mark(&q, 1, 7, LULL_REQUEST_ENDED, 140);
	assert_int_equal(q.latency.n, 1);
	assert_int_equal(q.latency.sum_ns, 40 * MS);
	assert_int_equal(q.first_token.sum_ns, 30 * MS);
	assert_int_equal(q.between.sum_ns, 4 * MS);
	lull_live_requests_write(&q, &text);
	assert_non_null(strstr(text.at, "lull_request_seconds_bucket{le=\"0.02\"} 0\n"));
	assert_non_null(strstr(text.at, "lull_request_seconds_bucket{le=\"0.05\"} 1\n"));
	assert_non_null(strstr(text.at, "lull_request_seconds_sum 0.040000000\n"));
	assert_non_null(strstr(text.at, "lull_requests_total{end=\"answered\"} 1\n"));
	assert_non_null(strstr(text.at, "\nlull_requests_open 1\n"));
	assert_non_null(strstr(text.at, "\nlull_request_tokens_total 2\n"));
	lull_str_release(&text);
	lull_live_requests_release(&q);
}

static void marks_may_come_in_any_order(void **state)
{
	struct lull_live_requests q = { 0 };

	(void)state;
	mark(&q, 1, 3, LULL_REQUEST_ENDED, 50);
	mark(&q, 1, 3, LULL_REQUEST_TOKEN, 30);
	assert_int_equal(q.latency.n, 0);
	mark(&q, 1, 3, LULL_REQUEST_ARRIVED, 10);
	assert_int_equal(q.latency.sum_ns, 40 * MS);
	assert_int_equal(q.first_token.sum_ns, 20 * MS);
	assert_int_equal(q.n_arrived - q.n_closed, 0);
	lull_live_requests_release(&q);
}

static void those_that_end_badly_have_no_latency(void **state)
{
	struct lull_live_requests q = { 0 };

	(void)state;
	assert_int_equal(lull_live_end_of("200"), LULL_LIVE_ANSWERED);
	assert_int_equal(lull_live_end_of("503"), LULL_LIVE_FAILED);
	assert_int_equal(lull_live_end_of("hung up"), LULL_LIVE_HUNG_UP);
	for (u64 id = 1; id <= 2; id++)
		mark(&q, 1, id, LULL_REQUEST_ARRIVED, id);
	end_badly(&q, 1, LULL_LIVE_HUNG_UP, 10);
	end_badly(&q, 2, LULL_LIVE_FAILED, 10);
	assert_int_equal(q.latency.n, 0);
	assert_int_equal(q.n_ended[LULL_LIVE_HUNG_UP], 1);
	assert_int_equal(q.n_ended[LULL_LIVE_FAILED], 1);
	lull_live_requests_release(&q);
}

static void more_than_there_is_room_for(void **state)
{
	struct lull_live_requests q = { 0 };

	(void)state;
	for (u64 id = 1; id <= 40000; id++)
		mark(&q, 1, id, LULL_REQUEST_ARRIVED, id);
	assert_int_equal(q.n_arrived - q.n_closed, 16384);
	for (u64 id = 1; id <= 40000; id++)
		mark(&q, 1, id, LULL_REQUEST_ENDED, id + 1);
	assert_int_equal(q.latency.n, 16384);
	lull_live_requests_forget(&q);
	assert_int_equal(q.n_arrived - q.n_closed, 0);
	lull_live_requests_release(&q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_latency_and_tokens),
		cmocka_unit_test(marks_may_come_in_any_order),
		cmocka_unit_test(those_that_end_badly_have_no_latency),
		cmocka_unit_test(more_than_there_is_room_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
