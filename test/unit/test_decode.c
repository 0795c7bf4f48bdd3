/*
 * What becomes of a process whose agent told only a part of what there is.
 */
#include "unit/report.h"

#include "launch/decode.h"
#include "launch/recording.h"

/* A recorder with one process of one thread and an open report. */
struct recorder {
	struct lull_clock clock;
	struct lull_tree tree;
	struct lull_recording recording;
	struct lull_task *task;
};

static void begin(struct recorder *r, const struct report_dir *d)
{
	struct lull_process *p;
	struct lull_err err;

	lull_clock_init(&r->clock);
	lull_tree_init(&r->tree);
	lull_recording_init(&r->recording, &r->clock, &r->tree);
	report_ok(lull_recording_begin(&r->recording, d->file, 1, &err), &err);
	p = lull_tree_get(&r->tree, 10, 1, 2);
	r->task = lull_tree_task(p, 10, 2);
}

static struct lull_reader *finish(struct recorder *r, const struct report_dir *d)
{
	struct lull_reader *reader;
	struct lull_err err;

	report_ok(lull_recording_finish(&r->recording, 100, &err), &err);
	lull_recording_release(&r->recording);
	lull_tree_release(&r->tree);
	lull_clock_release(&r->clock);
	report_ok(lull_reader_open(&reader, d->file, &err), &err);
	return reader;
}

static void a_context_without_its_device_is_told(void **state)
{
	const struct report_dir *d = *state;
	struct lull_wire_cuda_context context = {
		.head = { .type = LULL_EVENT_cuda_context, .size_bytes = sizeof(context), .a = 1 },
		.device = 3,
	};
	struct lull_reader *reader;
	struct recorder r;

	begin(&r, d);
	assert_true(lull_decode(&r.recording, r.task, 0, &context.head));
	reader = finish(&r, d);
	assert_int_equal(lull_reader_n_dim(reader, LULL_TABLE_cuda_context), 1);
	assert_int_equal(lull_reader_n_dim(reader, LULL_TABLE_device), 1);
	lull_reader_close(reader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_context_without_its_device_is_told),
	};

	return cmocka_run_group_tests(tests, report_set_up, report_tear_down);
}
