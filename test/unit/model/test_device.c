#include "unit/report.h"

#include "model/busy.h"
#include "model/link.h"
#include "model/nest.h"
#include "model/step.h"

/* A reader of this readable report. */
static struct lull_reader *open_text(const struct report_dir *d, const char *text)
{
	struct lull_reader *r;
	struct lull_err err;

	report_ok(lull_text_write(text, d->file, &err), &err);
	report_ok(lull_reader_open(&r, d->file, &err), &err);
	return r;
}

static void close_report(const struct report_dir *d, struct lull_reader *r)
{
	lull_reader_close(r);
	unlink(d->file);
}

#define TWO_PROCESSES                                  \
	"process pid=10\n"                             \
	"process pid=20\n"                             \
	"device process=1 device_id=0 name=a uuid=x\n" \
	"device process=2 device_id=3 name=a uuid=x\n" \
	"device process=2 device_id=1 name=b\n"        \
	"lane kind=1 process=1 tid=10\n"               \
	"lane kind=2 process=1 device=1 stream_id=7\n" \
	"lane kind=1 process=2 tid=20\n"               \
	"lane kind=2 process=2 device=2 stream_id=7\n" \
	"lane kind=2 process=2 device=3 stream_id=7\n" \
	"launch name=k\n"

static void a_call_is_found_by_process_and_number(void **state)
{
	struct lull_reader *r = open_text(*state, TWO_PROCESSES
					  "cuda_call start=10 dur=5 lane=1 name=a correlation=1\n"
					  "cuda_call start=20 dur=5 lane=3 name=b correlation=1\n");
	struct lull_work work = { .start_ns = 18, .dur_ns = 4, .process = 1, .correlation = 1 };
	const struct lull_call *call;
	struct lull_link link;

	lull_link_init(&link, r);
	call = lull_link_find(&link, &work);
	assert_int_equal(call->lane, 1);
	assert_int_equal(lull_link_queue_ns(call, &work), 3);
	assert_int_equal(lull_link_total_ns(call, &work), 12);
	work.process = 2;
	call = lull_link_find(&link, &work);
	assert_int_equal(call->lane, 3);
	assert_int_equal(lull_link_queue_ns(call, &work), 0);
	assert_int_equal(lull_link_total_ns(call, &work), 5);
	work.correlation = 2;
	assert_null(lull_link_find(&link, &work));
	lull_link_release(&link);
	close_report(*state, r);
}

static void a_call_without_a_number_launched_nothing_that_is_known(void **state)
{
	struct lull_reader *r =
		open_text(*state, TWO_PROCESSES "cuda_call start=10 dur=5 lane=1 name=a\n");
	struct lull_work work = { .start_ns = 18, .dur_ns = 4, .process = 1 };
	struct lull_link link;

	lull_link_init(&link, r);
	assert_null(lull_link_find(&link, &work));
	lull_link_release(&link);
	close_report(*state, r);
}

#define TWO_THREADS                      \
	"process pid=10\n"               \
	"lane kind=1 process=1 tid=10\n" \
	"lane kind=1 process=1 tid=11\n" \
	"lane kind=1 process=1 tid=12\n"

/* Rows of a block are by thread: the first of a number in the file is not the first in time. */
static void of_calls_with_one_number_the_first_counts(void **state)
{
	struct lull_reader *r = open_text(*state, TWO_THREADS
					  "cuda_call start=20 dur=5 lane=1 name=a correlation=1\n"
					  "cuda_call start=10 dur=2 lane=2 name=b correlation=1\n"
					  "cuda_call start=10 dur=5 lane=3 name=c correlation=1\n");
	struct lull_link link;

	lull_link_init(&link, r);
	assert_int_equal(lull_link_find_key(&link, lull_link_key(1, 1))->lane, 3);
	lull_link_release(&link);
	close_report(*state, r);
}

static void calls_are_found_by_the_keys_that_were_asked_for(void **state)
{
	struct lull_reader *r = open_text(*state, TWO_PROCESSES
					  "cuda_call start=10 dur=5 lane=1 name=a correlation=1\n"
					  "cuda_call start=20 dur=5 lane=3 name=b correlation=1\n"
					  "cuda_call start=30 dur=5 lane=3 name=c correlation=2\n"
					  "cuda_call start=25 dur=5 lane=3 name=c correlation=2\n");
	const u64 asked[] = { 0, lull_link_key(2, 2), lull_link_key(2, 7), lull_link_key(2, 2) };
	struct lull_link link;
	struct lull_vec keys;

	lull_vec_init(&keys, sizeof(u64));
	lull_vec_add(&keys, asked, LULL_COUNT_OF(asked));
	lull_link_init_keys(&link, r, &keys);
	assert_int_equal(lull_link_find_key(&link, asked[1])->start_ns, 25);
	assert_null(lull_link_find_key(&link, asked[0]));
	assert_null(lull_link_find_key(&link, asked[2]));
	assert_null(lull_link_find_key(&link, lull_link_key(1, 1)));
	lull_link_release(&link);
	lull_vec_release(&keys);
	close_report(*state, r);
}

static void work_without_a_process_is_its_streams(void **state)
{
	struct lull_reader *r =
		open_text(*state, TWO_PROCESSES "kernel start=1 dur=1 lane=4 launch=1\n");
	struct lull_work_cursor c;
	struct lull_work work;

	lull_work_begin(&c, r, LULL_WORK_ALL, LULL_WORK_WANT_CALL, LULL_SPAN_ALL);
	assert_true(lull_work_next(&c, &work));
	assert_int_equal(work.process, 2);
	assert_false(lull_work_next(&c, &work));
	lull_work_end(&c);
	close_report(*state, r);
}

/* Ranges 1 and 2 are of two domains and overlap; 3 is a start/end range; 4 is on another thread. */
static void ranges_that_overlap_are_all_found(void **state)
{
	struct lull_reader *r =
		open_text(*state, TWO_PROCESSES "label name=a\nlabel name=b domain=d\n"
						"range start=0 dur=50 lane=1 label=1\n"
						"range start=10 dur=80 lane=1 label=2\n"
						"range start=20 dur=100 lane=1 label=1 flags=4\n"
						"range start=30 dur=10 lane=1 label=1 depth=1\n"
						"range start=0 dur=500 lane=3 label=1\n");
	const struct lull_span early = { 32, 40 }, late = { 60, 61 }, last = { 121, 122 };
	struct lull_nest nest;
	u32 number;

	lull_nest_init(&nest, r, LULL_SPAN_ALL, LULL_NEST_ONE_THREAD);
	number = lull_nest_find(&nest, 1, early);
	assert_int_equal(lull_nest_get(&nest, number)->start_ns, 30);
	assert_int_equal(lull_nest_get(&nest, number)->level, 1);
	number = lull_nest_outside(&nest, number, early);
	assert_int_equal(lull_nest_get(&nest, number)->start_ns, 20);
	number = lull_nest_outside(&nest, number, early);
	assert_int_equal(lull_nest_get(&nest, number)->start_ns, 10);
	number = lull_nest_outside(&nest, number, early);
	assert_int_equal(lull_nest_get(&nest, number)->start_ns, 0);
	assert_int_equal(lull_nest_outside(&nest, number, early), 0);
	number = lull_nest_outside(&nest, lull_nest_find(&nest, 1, late), late);
	assert_int_equal(lull_nest_get(&nest, number)->start_ns, 10);
	assert_int_equal(lull_nest_outside(&nest, number, late), 0);
	assert_int_equal(lull_nest_find(&nest, 1, last), 0);
	assert_int_equal(lull_nest_find(&nest, 2, early), 0);
	lull_nest_release(&nest);
	close_report(*state, r);
}

/* "track from-to running" of each piece. */
static void print_piece(void *ctx, const struct lull_busy_piece *piece)
{
	fprintf(ctx, "%u %llu-%llu %u\n", piece->track, (unsigned long long)piece->span.from_ns,
		(unsigned long long)piece->span.to_ns, piece->running);
}

static void expect_pieces(struct lull_reader *r, u32 *tracks, struct lull_span window,
			  const char *expect)
{
	struct unit_stream s;

	unit_open(&s);
	lull_busy_run(r, tracks, window, print_piece, s.to);
	unit_expect(&s, expect);
	free(tracks);
}

static void pieces_add_up_to_the_time_of_a_track(void **state)
{
	struct lull_reader *r =
		open_text(*state, TWO_PROCESSES "kernel start=10 dur=10 lane=2 launch=1\n"
						"kernel start=20 dur=5 lane=2 launch=1\n"
						"memcpy start=15 dur=20 lane=4 size_bytes=1\n"
						"kernel start=40 dur=2 lane=4 launch=1\n"
						"kernel start=12 dur=1 lane=5 launch=1\n");

	expect_pieces(r, lull_busy_devices(r), LULL_SPAN_ALL,
		      "3 12-13 1\n1 10-15 1\n1 15-25 3\n1 25-35 2\n1 35-40 0\n1 40-42 1\n");
	expect_pieces(r, lull_busy_processes(r), LULL_SPAN_ALL,
		      "2 12-13 1\n2 13-15 0\n1 10-25 1\n2 15-35 2\n2 35-40 0\n2 40-42 1\n");
	expect_pieces(r, lull_busy_devices(r), (struct lull_span){ 20, 41 },
		      "1 20-25 3\n1 25-35 2\n1 35-40 0\n1 40-41 1\n");
	close_report(*state, r);
}

static void a_step_has_the_work_of_its_process(void **state)
{
	struct lull_reader *r =
		open_text(*state, TWO_PROCESSES "step start=0 dur=20 lane=1 number=0\n"
						"step start=20 dur=20 lane=1 number=1\n"
						"kernel start=10 dur=20 lane=2 launch=1\n"
						"memset start=25 dur=10 lane=2 size_bytes=8\n"
						"kernel start=0 dur=40 lane=4 launch=1\n");
	const struct lull_step *step;
	struct lull_steps steps;

	lull_steps_init(&steps, r, LULL_SPAN_ALL);
	assert_true(steps.has_work);
	assert_int_equal(steps.all.n, 2);
	step = steps.all.at;
	assert_int_equal(step[0].busy_ns, 10);
	assert_int_equal(step[0].n_launches, 1);
	assert_int_equal(step[0].size_bytes, 0);
	assert_int_equal(step[1].busy_ns, 15);
	assert_int_equal(step[1].n_launches, 0);
	assert_int_equal(step[1].size_bytes, 8);
	lull_steps_release(&steps);
	close_report(*state, r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_is_found_by_process_and_number),
		cmocka_unit_test(a_call_without_a_number_launched_nothing_that_is_known),
		cmocka_unit_test(of_calls_with_one_number_the_first_counts),
		cmocka_unit_test(calls_are_found_by_the_keys_that_were_asked_for),
		cmocka_unit_test(work_without_a_process_is_its_streams),
		cmocka_unit_test(ranges_that_overlap_are_all_found),
		cmocka_unit_test(pieces_add_up_to_the_time_of_a_track),
		cmocka_unit_test(a_step_has_the_work_of_its_process),
	};

	return cmocka_run_group_tests(tests, report_set_up, report_tear_down);
}
