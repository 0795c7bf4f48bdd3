/* Reports of other versions: what is new is skipped or listed, what is known is read. */
#include "unit/report.h"

#include "base/bytes.h"
#include "trace/crc.h"
#include "trace/encode.h"
#include "trace/part.h"

/* A later version: `mark` has lost `data`, gained `weight`; there is a table `kernel`. */
struct future_mark {
	u64 start_ns;
	u32 lane, label;
	u8 payload_type;
	u64 payload;
	f64 weight;
};
#define MARK_COL(id_, ctype, type_, name_, enc, is_f)                                            \
	{                                                                                        \
		.id = (id_), .size_bytes = sizeof(ctype), .encoding = (enc), .is_float = (is_f), \
		.row_off = offsetof(struct future_mark, name_), .name = #name_, .type = type_,   \
		.doc = "x"                                                                       \
	}
static const struct lull_col_desc mark_cols[] = {
	MARK_COL(1, u64, "u64", start_ns, LULL_ENC_DELTA, false),
	MARK_COL(2, u32, "lane", lane, LULL_ENC_LANE, false),
	MARK_COL(3, u32, "label", label, LULL_ENC_PLAIN, false),
	MARK_COL(4, u8, "u8", payload_type, LULL_ENC_PLAIN, false),
	MARK_COL(5, u64, "u64", payload, LULL_ENC_DELTA, false),
	MARK_COL(99, f64, "f64", weight, LULL_ENC_PLAIN, true),
};
static const struct lull_table_desc future_marks = {
	.id = LULL_TABLE_mark,
	.kind = LULL_KIND_FACT,
	.n_cols = LULL_COUNT_OF(mark_cols),
	.row_bytes = sizeof(struct future_mark),
	.name = "mark",
	.doc = "x",
	.cols = mark_cols,
};

struct future_kernel {
	u64 start_ns, dur_ns;
};
static const struct lull_col_desc kernel_cols[] = {
	{ .id = 1,
	  .size_bytes = 8,
	  .encoding = LULL_ENC_GAP,
	  .row_off = 0,
	  .name = "start_ns",
	  .type = "u64" },
	{ .id = 2, .size_bytes = 8, .row_off = 8, .name = "dur_ns", .type = "u64" },
};
static const struct lull_table_desc future_kernels = {
	.id = 61,
	.kind = LULL_KIND_FACT,
	.n_cols = 2,
	.row_bytes = sizeof(struct future_kernel),
	.name = "kernel",
	.cols = kernel_cols,
};

static const char *const future_schema[] = {
	"table\t21\tmark\tfact\ta moment",
	"column\t21\t1\tu64\tstart_ns\tdelta\twhen",
	"column\t21\t2\tlane\tlane\tlane\tthread",
	"column\t21\t3\tlabel\tlabel\tplain\tname",
	"column\t21\t4\tu8\tpayload_type\tplain\tx",
	"column\t21\t5\tu64\tpayload\tdelta\tx",
	"column\t21\t99\tf64\tweight\tplain\tnew",
	"column\t21\t100\tu128\thuge\tplain\ta type of a later version",
	"table\t3\tlane\tdim\ta thread",
	"column\t3\t1\tu8\tkind\tplain\tx",
	"table\t7\tlabel\tdim\ta label",
	"table\t61\tkernel\tfact\ta kernel",
	"column\t61\t1\tu64\tstart_ns\tgap\tbegin",
	"column\t61\t2\tu64\tdur_ns\tplain\tduration",
	"relation\tnot understood",
};

struct future {
	struct lull_part part;
	struct lull_encoder *encoder;
};

static void append(struct future *f, const struct lull_encoded *block)
{
	struct lull_err err;

	report_ok(lull_part_append(&f->part, block->at, &block->head, &err), &err);
}

/* Append the block with a change of its head, made right again. */
static void append_changed(struct future *f, struct lull_encoded block, size_t off, u8 value)
{
	u8 *copy = malloc(block.head.size_bytes);
	struct lull_encoded changed = { .at = copy };

	memcpy(copy, block.at, block.head.size_bytes);
	copy[off] = value;
	lull_put_u32(copy + 60, lull_block_head_crc(copy, block.head.head_bytes));
	assert_true(lull_block_get_head(copy, block.head.size_bytes, &changed.head));
	append(f, &changed);
	free(copy);
}

static struct lull_encoded encode_schema(struct future *f)
{
	struct lull_str bytes = LULL_STR_INIT;
	u32 lens[LULL_COUNT_OF(future_schema)];
	struct lull_texts texts = { .lens = lens, .n = LULL_COUNT_OF(lens) };
	struct lull_encoded block;

	for (size_t i = 0; i < texts.n; i++) {
		lens[i] = (u32)strlen(future_schema[i]);
		lull_str_puts(&bytes, future_schema[i]);
	}
	texts.bytes = (const u8 *)lull_str_text(&bytes);
	block = lull_encode_texts(f->encoder, LULL_BLOCK_SCHEMA, &texts, f->part.next_seq);
	lull_str_release(&bytes);
	return block;
}

static void future_begin(struct future *f, const char *path)
{
	struct lull_file_info info = { 0 };
	struct lull_lane_row lane = { .kind = 1 };
	struct lull_encoded block;
	struct lull_err err;
	u32 id = 1;

	f->encoder = lull_encoder_new();
	report_ok(lull_part_create(&f->part, path, &info, &err), &err);
	block = encode_schema(f);
	append(f, &block);
	block = lull_encode_dims(f->encoder, lull_table_find(LULL_TABLE_lane), &lane, &id, 1,
				 f->part.next_seq);
	append(f, &block);
}

static struct lull_encoded encode_marks(struct future *f)
{
	struct future_mark rows[] = { { .start_ns = 5, .lane = 1, .payload = 50, .weight = 0.5 },
				      { .start_ns = 9, .lane = 1, .payload = 51, .weight = 1.5 } };

	return lull_encode_facts(f->encoder, &future_marks, rows, 2, 0, f->part.next_seq);
}

static void future_end(struct future *f)
{
	struct lull_err err;

	report_ok(lull_part_seal(&f->part, &err), &err);
	lull_part_close(&f->part);
	lull_encoder_free(f->encoder);
}

static void unknown_columns_are_skipped_and_missing_ones_are_zero(void **state)
{
	const struct report_dir *d = *state;
	struct lull_mark_cols cols;
	struct lull_encoded block;
	struct lull_cursor c;
	struct lull_reader *r;
	struct lull_err err;
	struct future f;
	char *dump;

	future_begin(&f, d->file);
	block = encode_marks(&f);
	append(&f, &block);
	future_end(&f);
	report_ok(lull_reader_open(&r, d->file, &err), &err);
	lull_cursor_init(&c, r, LULL_TABLE_mark, 0, UINT64_MAX);
	assert_int_equal(lull_cursor_next(&c, &cols), 2);
	assert_int_equal(cols.start_ns[1], 9);
	assert_int_equal(cols.payload[1], 51);
	assert_int_equal(cols.lane[0], 1);
	assert_int_equal(cols.data[0], 0);
	lull_cursor_release(&c);
	assert_int_equal(lull_reader_n_damaged(r), 0);
	/* The generic way knows the new column, and leaves out the type it has never heard of. */
	dump = report_dump(r, "mark");
	assert_string_equal(
		dump,
		"{\"table\":\"mark\",\"start_ns\":5,\"lane\":1,\"label\":0,\"payload_type\":0,"
		"\"payload\":50,\"weight\":0.5}\n"
		"{\"table\":\"mark\",\"start_ns\":9,\"lane\":1,\"label\":0,\"payload_type\":0,"
		"\"payload\":51,\"weight\":1.5}\n");
	free(dump);
	lull_reader_close(r);
	unlink(d->file);
}

static void unknown_tables_are_listed_and_dumped(void **state)
{
	const struct report_dir *d = *state;
	struct future_kernel rows[] = { { 10, 5 }, { 20, 7 } };
	struct lull_encoded block;
	struct lull_reader *r;
	struct lull_err err;
	struct future f;
	char *dump;

	future_begin(&f, d->file);
	block = lull_encode_facts(f.encoder, &future_kernels, rows, 2, 0, f.part.next_seq);
	append(&f, &block);
	future_end(&f);
	report_ok(lull_reader_open(&r, d->file, &err), &err);
	assert_null(lull_table_find(61));
	assert_string_equal(lull_schema_find(lull_reader_schema(r), 61)->name, "kernel");
	assert_int_equal(lull_reader_stats(r, 61).n_rows, 2);
	dump = report_dump(r, "kernel");
	assert_string_equal(dump, "{\"table\":\"kernel\",\"start_ns\":10,\"dur_ns\":5}\n"
				  "{\"table\":\"kernel\",\"start_ns\":20,\"dur_ns\":7}\n");
	free(dump);
	lull_reader_close(r);
	unlink(d->file);
}

#define KIND_OFF  6
#define FLAGS_OFF 7
/* `mark` is written as lane, runs, start_ns, label, payload_type, payload, weight. */
#define PREDICTOR_OFF(col_ix) (64 + 48 * (col_ix) + 3)

static void unknown_kinds_are_skipped_unless_they_must_be_known(void **state)
{
	const struct report_dir *d = *state;
	struct lull_encoded block;
	struct lull_reader *r;
	struct lull_err err;
	struct future f;

	future_begin(&f, d->file);
	append_changed(&f, encode_marks(&f), KIND_OFF, 77);
	block = encode_marks(&f);
	append(&f, &block);
	future_end(&f);
	report_ok(lull_reader_open(&r, d->file, &err), &err);
	assert_int_equal(lull_reader_verify(r), 0);
	free(report_dump(r, "mark"));
	assert_int_equal(lull_reader_n_damaged(r), 0);
	lull_reader_close(r);
	unlink(d->file);

	future_begin(&f, d->file);
	block = encode_marks(&f);
	block.head.kind = 77;
	block.head.flags =
		LULL_BLOCK_MUST_KNOW; /* in the index; the block itself is never looked at */
	append(&f, &block);
	future_end(&f);
	assert_int_equal(lull_reader_open(&r, d->file, &err), LULL_E_UNSUPPORTED);
	assert_non_null(strstr(err.msg, "blocks of kind 77"));
	unlink(d->file);
}

static void a_column_of_a_later_encoding_is_zero_and_named(void **state)
{
	const struct report_dir *d = *state;
	struct lull_mark_cols cols;
	struct lull_cursor c;
	struct lull_reader *r;
	struct lull_err err;
	struct future f;

	future_begin(&f, d->file);
	append_changed(&f, encode_marks(&f), PREDICTOR_OFF(5), 9);
	future_end(&f);
	report_ok(lull_reader_open(&r, d->file, &err), &err);
	lull_cursor_init(&c, r, LULL_TABLE_mark, 0, UINT64_MAX);
	assert_null(lull_reader_warning(r));
	assert_int_equal(lull_cursor_next(&c, &cols), 2);
	assert_int_equal(cols.start_ns[1], 9);
	assert_int_equal(cols.payload[1], 0);
	assert_non_null(strstr(lull_reader_warning(r), "column payload of table mark"));
	assert_int_equal(lull_reader_n_damaged(r), 0);
	lull_cursor_release(&c);
	lull_reader_close(r);
	unlink(d->file);
}

static void rows_whose_start_is_of_a_later_encoding_are_absent(void **state)
{
	const struct report_dir *d = *state;
	struct lull_mark_cols cols;
	struct lull_cursor c;
	struct lull_reader *r;
	struct lull_err err;
	struct future f;

	future_begin(&f, d->file);
	append_changed(&f, encode_marks(&f), PREDICTOR_OFF(2), 9);
	future_end(&f);
	report_ok(lull_reader_open(&r, d->file, &err), &err);
	lull_cursor_init(&c, r, LULL_TABLE_mark, 0, UINT64_MAX);
	assert_int_equal(lull_cursor_next(&c, &cols), 0);
	assert_non_null(strstr(lull_reader_warning(r), "start_ns"));
	lull_cursor_release(&c);
	lull_reader_close(r);
	unlink(d->file);
}

static void a_later_major_version_is_refused(void **state)
{
	const struct report_dir *d = *state;
	unsigned char *bytes;
	struct lull_reader *r;
	struct lull_err err;
	size_t len;

	report_ok(lull_text_write("", d->file, &err), &err);
	bytes = report_load(d->file, &len);
	lull_put_u16(bytes + 12, 2 << 8);
	lull_put_u32(bytes + 60, lull_crc32c(0, bytes, 60));
	report_store(d->file, bytes, len);
	assert_int_equal(lull_reader_open(&r, d->file, &err), LULL_E_UNSUPPORTED);
	assert_non_null(strstr(err.msg, "format 2.0"));
	free(bytes);
	unlink(d->file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unknown_columns_are_skipped_and_missing_ones_are_zero),
		cmocka_unit_test(unknown_tables_are_listed_and_dumped),
		cmocka_unit_test(unknown_kinds_are_skipped_unless_they_must_be_known),
		cmocka_unit_test(a_column_of_a_later_encoding_is_zero_and_named),
		cmocka_unit_test(rows_whose_start_is_of_a_later_encoding_are_absent),
		cmocka_unit_test(a_later_major_version_is_refused),
	};

	return cmocka_run_group_tests(tests, report_set_up, report_tear_down);
}
