/*
 * What becomes of a process whose agent told only a part of what there is.
 */
#include "unit/report.h"

#include "record/decode/decode_event.h"
#include "record/recording.h"

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

/* A text, under a hash of its own. */
static void tell_text(struct recorder *r, u64 hash, const char *text)
{
	struct {
		struct lull_wire_string e;
		char bytes[32];
	} string = { .e = { .head = { .type = LULL_EVENT_string,
				      .size_bytes = sizeof(string),
				      .a = (u32)strlen(text) },
			    .hash = hash } };

	memcpy(string.bytes, text, strlen(text));
	assert_true(lull_decode(&r->recording, r->task, 0, &string.e.head));
}

static void tell_category(struct recorder *r, struct lull_task *task, u64 name)
{
	struct lull_wire_category e = {
		.head = { .type = LULL_EVENT_category, .size_bytes = sizeof(e), .a = 7 },
		.name = name,
	};

	assert_true(lull_decode(&r->recording, task, 0, &e.head));
}

/* Workers that are forked anew with each epoch say what their parent said, all of them. */
static void what_forked_children_repeat_takes_no_room(void **state)
{
	const struct report_dir *d = *state;
	struct lull_wire_schema schema = {
		.head = { .type = LULL_EVENT_schema, .size_bytes = sizeof(schema) },
		.schema_id = 1,
	};
	struct lull_reader *reader;
	struct recorder r;

	begin(&r, d);
	tell_text(&r, 11, "first");
	tell_text(&r, 12, "second");
	for (u32 pid = 10; pid < 110; pid++) {
		struct lull_task *task =
			lull_tree_task(lull_tree_get(&r.tree, pid, 10, pid), pid, pid);

		assert_true(lull_decode(&r.recording, task, 0, &schema.head));
		tell_category(&r, task, 11);
	}
	tell_category(&r, r.task, 12);
	assert_int_equal(r.recording.categories.n, 1);
	assert_string_equal(((struct lull_category *)r.recording.categories.at)->name, "second");
	assert_int_equal(r.recording.schema_texts.offsets.n, 1);
	reader = finish(&r, d);
	assert_int_equal(lull_reader_n_dim(reader, LULL_TABLE_payload_schema), 100);
	lull_reader_close(reader);
}

static void tell_name(struct recorder *r, enum lull_event_type type, u32 tid, const char *name)
{
	struct {
		struct lull_wire_thread_name e;
		char bytes[24];
	} event = { .e = { .head = { .type = (u16)type,
				     .size_bytes = sizeof(event),
				     .a = (u32)strlen(name) },
			   .tid = tid } };

	memcpy(event.bytes, name, strlen(name));
	assert_true(lull_decode(&r->recording, r->task, 0, &event.e.head));
}

/* PyTorch gives all its workers the same name, after we have told them apart. */
static void the_label_of_a_thread_stays_when_the_program_names_it(void **state)
{
	const struct report_dir *d = *state;
	struct lull_task *other;
	struct recorder r;

	begin(&r, d);
	tell_name(&r, LULL_EVENT_thread_name, 0, "python3");
	assert_string_equal(r.task->name, "python3");
	tell_name(&r, LULL_EVENT_thread_label, 0, "data worker 0");
	tell_name(&r, LULL_EVENT_thread_name, 0, "pt_data_worker");
	assert_string_equal(r.task->name, "data worker 0");
	tell_name(&r, LULL_EVENT_thread_label, 11, "loader");
	tell_name(&r, LULL_EVENT_thread_name, 11, "pool-1");
	other = lull_tree_find_task(r.task->process, 11);
	assert_non_null(other);
	assert_string_equal(other->name, "loader");
	/* Among labels, and among names, the last one counts. */
	tell_name(&r, LULL_EVENT_thread_label, 0, "images");
	assert_string_equal(r.task->name, "images");
	tell_name(&r, LULL_EVENT_thread_name, 12, "first");
	tell_name(&r, LULL_EVENT_thread_name, 12, "second");
	assert_string_equal(lull_tree_find_task(r.task->process, 12)->name, "second");
	lull_reader_close(finish(&r, d));
}

static void tell_range(struct recorder *r, u64 label, u64 name, u64 at)
{
	struct lull_wire_label define = {
		.head = { .type = LULL_EVENT_label, .size_bytes = sizeof(define) },
		.hash = label,
		.name = name,
		.api = 1,
	};
	struct lull_wire_range push = {
		.head = { .type = LULL_EVENT_push, .size_bytes = sizeof(push), .counter = at },
		.label = label,
	};
	struct lull_wire_pop pop = {
		.head = { .type = LULL_EVENT_pop, .size_bytes = sizeof(pop), .counter = at + 1 },
	};

	assert_true(lull_decode(&r->recording, r->task, 0, &define.head));
	assert_true(lull_decode(&r->recording, r->task, 0, &push.head));
	assert_true(lull_decode(&r->recording, r->task, 0, &pop.head));
}

/* PyTorch's emit_nvtx() numbers them: without that, each would be the only one of its name. */
static void ranges_of_operators_share_a_name(void **state)
{
	static const char *const data[] = { "{\"op_id\":7}", "{\"op_id\":8}", "" };
	const struct report_dir *d = *state;
	const struct lull_label_row *labels;
	struct lull_range_cols cols;
	struct lull_reader *reader;
	struct lull_cursor c;
	struct recorder r;
	size_t n;

	begin(&r, d);
	tell_text(&r, 1, "aten::mm, op_id = 7");
	tell_text(&r, 2, "aten::mm, op_id = 8");
	tell_text(&r, 3, "forward");
	tell_range(&r, 21, 1, 10);
	tell_range(&r, 22, 2, 20);
	tell_range(&r, 23, 3, 30);
	reader = finish(&r, d);
	labels = lull_reader_dim(reader, LULL_TABLE_label, &n);
	assert_int_equal(n, 2);
	assert_string_equal(lull_reader_string(reader, labels[0].name, NULL), "aten::mm");
	assert_string_equal(lull_reader_string(reader, labels[1].name, NULL), "forward");
	lull_cursor_init(&c, reader, LULL_TABLE_range, 0, UINT64_MAX);
	assert_int_equal(lull_cursor_next(&c, &cols), 3);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(cols.label[i], i < 2 ? 1 : 2);
		assert_int_equal(cols.payload_type[i], i < 2 ? 10 : 0);
		assert_string_equal(lull_reader_string(reader, cols.data[i], NULL), data[i]);
	}
	lull_cursor_release(&c);
	lull_reader_close(reader);
}

/* One byte less than its struct, for each event; and types that are none. */
static void an_event_that_is_too_short_is_refused(void **state)
{
	static const struct {
		u16 type;
		size_t layout_bytes;
	} all[] = {
#define EVENT(id, name, layout, doc) { id, sizeof(struct lull_wire_##layout) },
#include "wire/wire.def"
#undef EVENT
		{ 0, UINT16_MAX + 1 },
		{ 29, UINT16_MAX + 1 },
		{ UINT16_MAX, UINT16_MAX + 1 },
	};
	const struct report_dir *d = *state;
	struct recorder r;

	begin(&r, d);
	for (size_t i = 0; i < LULL_COUNT_OF(all); i++) {
		struct lull_event e = { .type = all[i].type,
					.size_bytes = (u16)(all[i].layout_bytes - 1) };

		assert_false(lull_decode(&r.recording, r.task, 0, &e));
	}
	lull_reader_close(finish(&r, d));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_context_without_its_device_is_told),
		cmocka_unit_test(an_event_that_is_too_short_is_refused),
		cmocka_unit_test(ranges_of_operators_share_a_name),
		cmocka_unit_test(the_label_of_a_thread_stays_when_the_program_names_it),
		cmocka_unit_test(what_forked_children_repeat_takes_no_room),
	};

	return cmocka_run_group_tests(tests, report_set_up, report_tear_down);
}
