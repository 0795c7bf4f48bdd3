#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "record/perf/sched.h"

struct rows {
	struct lull_sched_stay at[16];
	size_t n;
};

static void on_row(void *ctx, const struct lull_sched_stay *row)
{
	struct rows *rows = ctx;

	if (rows->n < LULL_COUNT_OF(rows->at))
		rows->at[rows->n] = *row;
	rows->n++;
}

static struct lull_sched_event at(u32 tid, u64 time_ns, u32 cpu)
{
	return (struct lull_sched_event){ .pid = 10, .tid = tid, .time_ns = time_ns, .cpu = cpu };
}

static void expect(const struct lull_sched_stay *row, u64 start_ns, u64 dur_ns,
		   enum lull_sched_end why)
{
	assert_int_equal(row->start_ns, start_ns);
	assert_int_equal(row->dur_ns, dur_ns);
	assert_int_equal(row->end_reason, why);
}

#define IN(tid, time, cpu) lull_sched_in(&s, (struct lull_sched_event[]){ at(tid, time, cpu) })
#define OUT(tid, time, preempt) \
	lull_sched_out(&s, (struct lull_sched_event[]){ at(tid, time, 3) }, preempt)
#define FORK(tid, time) lull_sched_fork(&s, (struct lull_sched_event[]){ at(tid, time, 0) })
#define EXIT(tid, time) lull_sched_exit(&s, (struct lull_sched_event[]){ at(tid, time, 0) })

static void a_stay_lasts_from_in_to_out(void **state)
{
	struct rows rows = { .n = 0 };
	struct lull_sched s;

	(void)state;
	lull_sched_init(&s, 100, on_row, &rows);
	IN(1, 200, 2);
	IN(2, 210, 1);
	OUT(1, 250, true);
	OUT(2, 300, false);
	assert_int_equal(rows.n, 2);
	expect(&rows.at[0], 200, 50, LULL_SCHED_PREEMPTED);
	assert_int_equal(rows.at[0].cpu, 2);
	assert_int_equal(rows.at[0].tid, 1);
	assert_int_equal(rows.at[0].pid, 10);
	expect(&rows.at[1], 210, 90, LULL_SCHED_WAITS);
	lull_sched_release(&s);
}

static void a_thread_first_seen_leaving_ran_since_the_beginning(void **state)
{
	struct rows rows = { .n = 0 };
	struct lull_sched s;

	(void)state;
	lull_sched_init(&s, 100, on_row, &rows);
	OUT(1, 130, false);
	assert_int_equal(rows.n, 1);
	expect(&rows.at[0], 100, 30, LULL_SCHED_WAITS);
	assert_int_equal(rows.at[0].cpu, 3);
	FORK(2, 140); /* born later: nothing is guessed back */
	OUT(2, 150, false);
	assert_int_equal(rows.n, 1);
	lull_sched_release(&s);
}

static void death_ends_a_stay_and_its_last_switch_is_not_another(void **state)
{
	struct rows rows = { .n = 0 };
	struct lull_sched s;

	(void)state;
	lull_sched_init(&s, 100, on_row, &rows);
	IN(1, 200, 0);
	EXIT(1, 260);
	OUT(1, 261, false);
	assert_int_equal(rows.n, 1);
	expect(&rows.at[0], 200, 60, LULL_SCHED_ENDED);
	IN(1, 300, 0); /* the number is used again */
	OUT(1, 310, false);
	assert_int_equal(rows.n, 2);
	expect(&rows.at[1], 300, 10, LULL_SCHED_WAITS);
	lull_sched_release(&s);
}

static void lost_records_never_make_a_stay_too_long(void **state)
{
	struct rows rows = { .n = 0 };
	struct lull_sched s;

	(void)state;
	lull_sched_init(&s, 100, on_row, &rows);
	IN(1, 200, 0);
	lull_sched_lost(&s);
	OUT(1, 900, false);
	assert_int_equal(rows.n, 0);
	IN(1, 1000, 0);
	IN(1, 1100, 1); /* its switch-out is missing */
	OUT(1, 1150, false);
	assert_int_equal(rows.n, 1);
	expect(&rows.at[0], 1100, 50, LULL_SCHED_WAITS);
	OUT(1, 1140, false);
	assert_int_equal(rows.n, 1);
	lull_sched_release(&s);
}

static void a_pause_closes_what_is_open(void **state)
{
	struct rows rows = { .n = 0 };
	struct lull_sched s;

	(void)state;
	lull_sched_init(&s, 100, on_row, &rows);
	IN(1, 200, 0);
	lull_sched_pause(&s, 300);
	assert_int_equal(rows.n, 1);
	expect(&rows.at[0], 200, 100, LULL_SCHED_RECORDING_ENDED);
	lull_sched_resume(&s, 500);
	OUT(1, 520, false);
	expect(&rows.at[1], 500, 20, LULL_SCHED_WAITS);
	lull_sched_pause(&s, 600);
	assert_int_equal(rows.n, 2);
	lull_sched_release(&s);
}

static void memory_follows_the_living(void **state)
{
	struct rows rows = { .n = 0 };
	struct lull_sched s;

	(void)state;
	lull_sched_init(&s, 0, on_row, &rows);
	IN(1, 1, 0); /* lives through it all */
	for (u32 tid = 2; tid < 100000; tid++) {
		FORK(tid, tid);
		IN(tid, tid, 0);
		EXIT(tid, tid + 1);
	}
	assert_true(s.threads.n < 4096);
	assert_true(s.by_tid.cap < 16384);
	OUT(1, 200001, false);
	assert_int_equal(rows.n, 99999);
	lull_sched_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stay_lasts_from_in_to_out),
		cmocka_unit_test(a_thread_first_seen_leaving_ran_since_the_beginning),
		cmocka_unit_test(death_ends_a_stay_and_its_last_switch_is_not_another),
		cmocka_unit_test(lost_records_never_make_a_stay_too_long),
		cmocka_unit_test(a_pause_closes_what_is_open),
		cmocka_unit_test(memory_follows_the_living),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
