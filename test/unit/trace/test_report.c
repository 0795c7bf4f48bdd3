/* What goes into a writer comes out of a reader. */
#include "unit/report.h"

#include "trace/file_frame.h"

static u64 next_random(u64 *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

#define N_DIMS 5u

/*
 * A row of random values that a reader must give back: times that do not wrap, references that
 * exist.
 */
static void random_row(const struct lull_table_desc *t, u8 *row, u64 *seed)
{
	memset(row, 0, t->row_bytes);
	for (unsigned c = 0; c < t->n_cols; c++) {
		const struct lull_col_desc *col = &t->cols[c];
		u64 v = next_random(seed);

		v >>= next_random(seed) % 60;
		if (strcmp(col->name, "start_ns") == 0)
			v %= 1ULL << 40;
		else if (strcmp(col->name, "dur_ns") == 0)
			v %= 200000000; /* some are tall */
		else if (strcmp(col->name, "depth") == 0)
			v %= 6;
		else if (lull_block_type(col) == LULL_TYPE_REF)
			v %= t->kind == LULL_KIND_DIM ? 1 : N_DIMS + 1;
		memcpy(row + col->row_off, &v, col->size_bytes);
	}
}

static int compare_bytes_n;
static int compare_bytes(const void *a, const void *b)
{
	return memcmp(a, b, (size_t)compare_bytes_n);
}

/* All rows of a FACT table as row structs, in the order of the reader. */
static u8 *read_rows(struct lull_reader *r, const struct lull_table_desc *t, size_t n)
{
	u8 *rows = calloc(n, t->row_bytes);
	const u8 *cols[LULL_MAX_COLS];
	struct lull_cursor cursor;
	size_t at = 0, got;

	lull_cursor_init(&cursor, r, (enum lull_table)t->id, 0, UINT64_MAX);
	while ((got = lull_cursor_next(&cursor, cols)) > 0) {
		assert_true(at + got <= n);
		for (size_t i = 0; i < got; i++, at++)
			for (unsigned c = 0; c < t->n_cols; c++)
				memcpy(rows + at * t->row_bytes + t->cols[c].row_off,
				       cols[c] + i * t->cols[c].size_bytes, t->cols[c].size_bytes);
	}
	lull_cursor_release(&cursor);
	assert_int_equal(at, n);
	return rows;
}

static void check_table(struct lull_reader *r, const struct lull_table_desc *t, u8 *rows, size_t n)
{
	u8 *found = read_rows(r, t, n);

	compare_bytes_n = (int)t->row_bytes;
	qsort(rows, n, t->row_bytes, compare_bytes);
	qsort(found, n, t->row_bytes, compare_bytes);
	assert_memory_equal(rows, found, n * t->row_bytes);
	assert_int_equal(lull_reader_stats(r, t->id).n_rows, n);
	free(found);
}

static void every_table_comes_back_row_by_row(void **state)
{
	static const size_t counts[] = { 1, 3000, 70000 }; /* 70000: more than one block */
	const struct report_dir *d = *state;
	u8 *rows[64] = { 0 };
	size_t n_rows[64] = { 0 };
	struct lull_writer *w;
	struct lull_reader *r;
	struct lull_err err;
	u64 seed = 4711;

	report_ok(lull_writer_open(&w, d->file, &(struct lull_file_info){ 0 }, &err), &err);
	for (const struct lull_table_desc *t = lull_tables; t->name; t++) {
		size_t n = t->kind == LULL_KIND_DIM ? N_DIMS : counts[t->id % 3];

		rows[t->id] = calloc(n, t->row_bytes);
		n_rows[t->id] = n;
		for (size_t i = 0; i < n; i++) {
			u8 *row = rows[t->id] + i * t->row_bytes;

			random_row(t, row, &seed);
			if (t->kind == LULL_KIND_DIM)
				assert_int_equal(
					lull_writer_add_dim(w, (enum lull_table)t->id, row), i + 1);
			else
				lull_writer_add(w, (enum lull_table)t->id, row);
		}
	}
	report_ok(lull_writer_seal(w, &err), &err);
	report_ok(lull_reader_open(&r, d->file, &err), &err);
	assert_true(lull_reader_is_sealed(r));
	for (const struct lull_table_desc *t = lull_tables; t->name; t++) {
		size_t n;

		if (t->kind == LULL_KIND_FACT)
			check_table(r, t, rows[t->id], n_rows[t->id]);
		else
			assert_memory_equal(lull_reader_dim(r, (enum lull_table)t->id, &n),
					    rows[t->id], N_DIMS * t->row_bytes);
		free(rows[t->id]);
	}
	assert_int_equal(lull_reader_n_damaged(r), 0);
	assert_int_equal(lull_reader_n_dangling(r), 0);
	assert_null(lull_reader_warning(r));
	lull_reader_close(r);
	unlink(d->file);
}

static void rows_of_a_block_are_sorted_by_lane_start_and_length(void **state)
{
	const struct report_dir *d = *state;
	struct lull_err err;
	char *dump;

	report_ok(lull_text_write("lane tid=1\nlane tid=2\n"
				  "range start=30 dur=5 lane=2\n"
				  "range start=20 dur=5 lane=1\n"
				  "range start=10 dur=3 depth=1 lane=1\n"
				  "range start=10 dur=90 lane=1\n",
				  d->file, &err),
		  &err);
	dump = report_dump_file(d->file, "range");
	assert_non_null(strstr(dump, "\"start_ns\":10,\"dur_ns\":90"));
	assert_true(strstr(dump, "\"dur_ns\":90") < strstr(dump, "\"dur_ns\":3,"));
	assert_true(strstr(dump, "\"dur_ns\":3,") < strstr(dump, "\"start_ns\":20"));
	assert_true(strstr(dump, "\"start_ns\":20") < strstr(dump, "\"start_ns\":30"));
	free(dump);
	unlink(d->file);
}

static void the_last_version_of_a_dimension_row_wins(void **state)
{
	const struct report_dir *d = *state;
	const struct lull_lane_row *lanes;
	struct lull_reader *r;
	struct lull_err err;
	size_t n;

	report_ok(lull_text_write("lane tid=1 name=first\nlane tid=2 name=second\nflush\n"
				  "lane#1 name=renamed\nflush\nlane tid=3\nlane#2 end=5us\n",
				  d->file, &err),
		  &err);
	report_ok(lull_reader_open(&r, d->file, &err), &err);
	lanes = lull_reader_dim(r, LULL_TABLE_lane, &n);
	assert_int_equal(n, 3);
	assert_int_equal(lanes[0].tid, 1);
	assert_string_equal(lull_reader_string(r, lanes[0].name, NULL), "renamed");
	assert_string_equal(lull_reader_string(r, lanes[1].name, NULL), "second");
	assert_int_equal(lanes[1].end_ns, 5000);
	assert_int_equal(lanes[2].tid, 3);
	lull_reader_close(r);
	unlink(d->file);
}

static void strings_hold_any_bytes_and_unknown_ids_are_question_marks(void **state)
{
	static const char odd[] = "a\0b\xff\n";
	const struct report_dir *d = *state;
	struct lull_writer *w;
	struct lull_reader *r;
	struct lull_err err;
	size_t len;

	report_ok(lull_writer_open(&w, d->file, &(struct lull_file_info){ 0 }, &err), &err);
	assert_int_equal(lull_writer_string(w, odd, sizeof(odd)), 1);
	assert_int_equal(lull_writer_string(w, "x", 1), 2);
	assert_int_equal(lull_writer_string(w, odd, sizeof(odd)), 1);
	assert_int_equal(lull_writer_string(w, "", 0), 0);
	assert_int_equal(lull_writer_string(w, NULL, 0), 0);
	report_ok(lull_writer_seal(w, &err), &err);
	report_ok(lull_reader_open(&r, d->file, &err), &err);
	assert_memory_equal(lull_reader_string(r, 1, &len), odd, sizeof(odd));
	assert_int_equal(len, sizeof(odd));
	assert_string_equal(lull_reader_string(r, 2, NULL), "x");
	assert_string_equal(lull_reader_string(r, 0, &len), "");
	assert_int_equal(len, 0);
	assert_string_equal(lull_reader_string(r, 3, &len), "?");
	assert_string_equal(lull_reader_string(r, UINT32_MAX, NULL), "?");
	lull_reader_close(r);
	unlink(d->file);
}

static void too_many_texts_become_other_and_are_counted(void **state)
{
	const struct report_dir *d = *state;
	size_t len = 1 << 20;
	char *text = malloc(len);
	struct lull_writer *w;
	struct lull_reader *r;
	struct lull_err err;
	u32 other = 0;

	report_ok(lull_writer_open(&w, d->file, &(struct lull_file_info){ 0 }, &err), &err);
	memset(text, 'x', len);
	for (int i = 0; i < 70; i++) {
		memcpy(text, &i, sizeof(i));
		other = lull_writer_string(w, text, len);
	}
	assert_int_equal(lull_writer_stats(w).n_other, 70 - 64);
	assert_int_equal(other, 65);
	report_ok(lull_writer_seal(w, &err), &err);
	report_ok(lull_reader_open(&r, d->file, &err), &err);
	assert_string_equal(lull_reader_string(r, other, NULL), "(other)");
	lull_reader_close(r);
	free(text);
	unlink(d->file);
}

static void references_that_point_nowhere_are_zero_and_counted(void **state)
{
	const struct report_dir *d = *state;
	const struct lull_stack_row *stacks;
	struct lull_range_cols cols;
	struct lull_cursor c;
	struct lull_reader *r;
	struct lull_err err;
	size_t n;

	report_ok(lull_text_write("lane tid=1\nframe line=1\n"
				  "stack parent=2 frame=1\nstack parent=2 frame=7\n"
				  "range start=1 dur=1 lane=1 label=9\n",
				  d->file, &err),
		  &err);
	report_ok(lull_reader_open(&r, d->file, &err), &err);
	lull_cursor_init(&c, r, LULL_TABLE_range, 0, UINT64_MAX);
	assert_int_equal(lull_cursor_next(&c, &cols), 1);
	assert_int_equal(cols.lane[0], 1);
	assert_int_equal(cols.label[0], 0);
	lull_cursor_release(&c);
	assert_int_equal(lull_reader_n_dangling(r), 1);
	stacks = lull_reader_dim(r, LULL_TABLE_stack, &n);
	assert_int_equal(n, 2);
	/* Parents must come before: these two would make a walk to the root endless. */
	assert_int_equal(stacks[0].parent, 0);
	assert_int_equal(stacks[1].parent, 0);
	assert_int_equal(stacks[0].frame, 1);
	assert_int_equal(stacks[1].frame, 0);
	assert_int_equal(lull_reader_n_dangling(r), 4);
	lull_reader_close(r);
	unlink(d->file);
}

/* Ranges 10 us long, one every 20 us, in blocks of 100, and one that spans everything. */
static void write_windows(const char *path)
{
	struct lull_range_row row = { .dur_ns = 10000, .lane = 1 };
	struct lull_lane_row lane = { .tid = 1 };
	struct lull_writer *w;
	struct lull_err err;

	report_ok(lull_writer_open(&w, path, &(struct lull_file_info){ 0 }, &err), &err);
	lull_writer_add_dim(w, LULL_TABLE_lane, &lane);
	for (u64 i = 0; i < 1000; i++) {
		row.start_ns = i * 20000;
		lull_writer_add(w, LULL_TABLE_range, &row);
		if (i == 10) {
			struct lull_range_row tall = { .start_ns = 5,
						       .dur_ns = 200000000,
						       .lane = 1 };

			lull_writer_add(w, LULL_TABLE_range, &tall);
		}
		if (i % 100 == 99)
			report_ok(lull_writer_flush(w, &err), &err);
	}
	report_ok(lull_writer_seal(w, &err), &err);
}

static void a_window_touches_only_the_blocks_that_overlap_it(void **state)
{
	const struct report_dir *d = *state;
	struct lull_range_cols cols;
	struct lull_cursor c;
	struct lull_reader *r;
	struct lull_err err;
	size_t n, total = 0, n_blocks = 0;

	write_windows(d->file);
	report_ok(lull_reader_open(&r, d->file, &err), &err);
	assert_int_equal(lull_reader_stats(r, LULL_TABLE_range).n_blocks, 11);
	lull_cursor_init(&c, r, LULL_TABLE_range, 450 * 20000, 460 * 20000);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		total += n;
		n_blocks++;
	}
	lull_cursor_release(&c);
	/* One block of 100, and the tall row in a block of its own. */
	assert_int_equal(n_blocks, 2);
	assert_int_equal(total, 101);
	lull_cursor_init(&c, r, LULL_TABLE_range, 300000000, UINT64_MAX);
	assert_int_equal(lull_cursor_next(&c, &cols), 0);
	assert_int_equal(lull_cursor_next(&c, &cols), 0);
	lull_cursor_release(&c);
	lull_reader_close(r);
	unlink(d->file);
}

static void only_the_columns_that_are_wanted_are_given(void **state)
{
	const struct report_dir *d = *state;
	struct lull_range_cols cols;
	struct lull_cursor c;
	struct lull_reader *r;
	struct lull_err err;

	write_windows(d->file);
	report_ok(lull_reader_open(&r, d->file, &err), &err);
	lull_cursor_init(&c, r, LULL_TABLE_range, 20000, UINT64_MAX);
	lull_cursor_want(&c, "start_ns");
	lull_cursor_want(&c, "lane");
	assert_int_equal(lull_cursor_next(&c, &cols), 100);
	assert_null(cols.dur_ns);
	assert_null(cols.label);
	assert_int_equal(cols.start_ns[99], 99 * 20000);
	assert_int_equal(cols.lane[0], 1);
	lull_cursor_release(&c);
	lull_reader_close(r);
	unlink(d->file);
}

static void the_header_comes_back(void **state)
{
	const struct report_dir *d = *state;
	struct lull_file_info info = { .flags = LULL_FILE_SIMULATED,
				       .epoch_ns = 123,
				       .epoch_utc_ns = 456,
				       .id = "0123456789abcde" };
	struct lull_writer *w;
	struct lull_reader *r;
	struct lull_err err;

	report_ok(lull_writer_open(&w, d->file, &info, &err), &err);
	report_ok(lull_writer_seal(w, &err), &err);
	report_ok(lull_reader_open(&r, d->file, &err), &err);
	assert_int_equal(lull_reader_info(r)->flags, info.flags);
	assert_int_equal(lull_reader_info(r)->epoch_ns, 123);
	assert_int_equal(lull_reader_info(r)->epoch_utc_ns, 456);
	assert_memory_equal(lull_reader_info(r)->id, info.id, sizeof(info.id));
	assert_int_equal(lull_reader_format(r), LULL_FORMAT);
	lull_reader_close(r);
	unlink(d->file);
}

static void a_part_that_is_there_is_not_overwritten(void **state)
{
	const struct report_dir *d = *state;
	struct lull_writer *w;
	struct lull_err err;

	report_store(d->part, "precious", 8);
	assert_int_equal(lull_writer_open(&w, d->file, &(struct lull_file_info){ 0 }, &err),
			 LULL_E_IO);
	assert_non_null(strstr(err.msg, "lull recover"));
	assert_int_equal(access(d->part, F_OK), 0);
	unlink(d->part);
}

static void discarding_leaves_nothing(void **state)
{
	const struct report_dir *d = *state;
	struct lull_writer *w;
	struct lull_err err;

	report_ok(lull_writer_open(&w, d->file, &(struct lull_file_info){ 0 }, &err), &err);
	assert_int_equal(access(d->part, F_OK), 0);
	lull_writer_discard(w);
	assert_int_not_equal(access(d->part, F_OK), 0);
	assert_int_not_equal(access(d->file, F_OK), 0);
}

static void a_part_is_readable_while_it_is_written(void **state)
{
	const struct report_dir *d = *state;
	struct lull_writer *w;
	struct lull_reader *r;
	struct lull_err err;

	report_ok(lull_writer_open(&w, d->file, &(struct lull_file_info){ 0 }, &err), &err);
	report_ok(lull_text_add(w,
				"lane tid=1\nmark start=1 lane=1\nmark start=2 lane=1\nflush\n"
				"mark start=3 lane=1\n",
				&err),
		  &err);
	report_ok(lull_reader_open(&r, d->part, &err), &err);
	assert_false(lull_reader_is_sealed(r));
	assert_int_equal(lull_reader_lost_bytes(r), 0);
	assert_int_equal(lull_reader_stats(r, LULL_TABLE_mark).n_rows, 2);
	lull_reader_close(r);
	lull_writer_discard(w);
}

/* ---- reopening ---- */

static void reopening_cuts_behind_the_last_checkpoint_and_goes_on(void **state)
{
	const struct report_dir *d = *state;
	struct lull_writer *w;
	struct lull_err err;
	char *dump;

	report_ok(lull_writer_open(&w, d->file, &(struct lull_file_info){ 0 }, &err), &err);
	report_ok(
		lull_text_add(
			w,
			"lane tid=1 name=one\nmark start=1 lane=1\n"
			"checkpoint start=1 chunk_seq=7\nflush\n"
			"lane tid=2 name=behind\nlane#1 name=changed\nmark start=2 lane=2\nflush\n",
			&err),
		&err);
	/* The recorder dies here: the writer is gone, its part stays. */
	link(d->part, d->other);
	lull_writer_discard(w);
	rename(d->other, d->part);

	report_ok(lull_writer_reopen(&w, d->file, &err), &err);
	assert_int_equal(lull_writer_n_dim(w, LULL_TABLE_lane), 1);
	assert_int_equal(lull_writer_stats(w).n_rows, 2);
	assert_int_equal(lull_writer_string(w, "one", 3), 1);
	report_ok(lull_text_add(w, "lane tid=3 name=three\nmark start=3 lane=2\n", &err), &err);
	report_ok(lull_writer_seal(w, &err), &err);

	dump = report_dump_file(d->file, "lane");
	assert_non_null(
		strstr(dump, "\"id\":1,\"kind\":0,\"process\":0,\"tid\":1,\"name\":\"one\""));
	assert_non_null(
		strstr(dump, "\"id\":2,\"kind\":0,\"process\":0,\"tid\":3,\"name\":\"three\""));
	assert_null(strstr(dump, "behind"));
	free(dump);
	dump = report_dump_file(d->file, "mark");
	assert_non_null(strstr(dump, "\"start_ns\":1,"));
	assert_null(strstr(dump, "\"start_ns\":2,"));
	assert_non_null(strstr(dump, "\"start_ns\":3,\"lane\":2"));
	free(dump);
	unlink(d->file);
}

static void reopening_without_a_checkpoint_keeps_what_came_before_facts(void **state)
{
	const struct report_dir *d = *state;
	struct lull_writer *w;
	struct lull_err err;
	char *dump;

	report_ok(lull_writer_open(&w, d->file, &(struct lull_file_info){ 0 }, &err), &err);
	report_ok(lull_text_add(
			  w, "meta key=a value=b\nflush\nlane tid=1\nmark start=1 lane=1\nflush\n",
			  &err),
		  &err);
	link(d->part, d->other);
	lull_writer_discard(w);
	rename(d->other, d->part);
	report_ok(lull_writer_reopen(&w, d->file, &err), &err);
	report_ok(lull_writer_seal(w, &err), &err);
	dump = report_dump_file(d->file, NULL);
	assert_non_null(strstr(dump, "\"key\":\"a\",\"value\":\"b\""));
	assert_null(strstr(dump, "\"table\":\"mark\""));
	free(dump);
	unlink(d->file);
}

static void checkpoints_are_written_behind_everything_else(void **state)
{
	const struct report_dir *d = *state;
	const struct lull_entry *e;
	struct lull_reader *r;
	struct lull_err err;
	u32 checkpoint_seq = 0, last_seq = 0;
	size_t n;

	report_ok(
		lull_text_write(
			"checkpoint start=1\nlane tid=1\nopen_range start=1 lane=1\nstep start=1\n",
			d->file, &err),
		&err);
	report_ok(lull_reader_open(&r, d->file, &err), &err);
	e = lull_reader_blocks(r, &n);
	for (size_t i = 0; i < n; i++) {
		last_seq = e[i].seq > last_seq ? e[i].seq : last_seq;
		if (e[i].table_id == LULL_TABLE_checkpoint)
			checkpoint_seq = e[i].seq;
	}
	assert_int_equal(checkpoint_seq, last_seq);
	lull_reader_close(r);
	unlink(d->file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_table_comes_back_row_by_row),
		cmocka_unit_test(rows_of_a_block_are_sorted_by_lane_start_and_length),
		cmocka_unit_test(the_last_version_of_a_dimension_row_wins),
		cmocka_unit_test(strings_hold_any_bytes_and_unknown_ids_are_question_marks),
		cmocka_unit_test(too_many_texts_become_other_and_are_counted),
		cmocka_unit_test(references_that_point_nowhere_are_zero_and_counted),
		cmocka_unit_test(a_window_touches_only_the_blocks_that_overlap_it),
		cmocka_unit_test(only_the_columns_that_are_wanted_are_given),
		cmocka_unit_test(the_header_comes_back),
		cmocka_unit_test(a_part_that_is_there_is_not_overwritten),
		cmocka_unit_test(discarding_leaves_nothing),
		cmocka_unit_test(a_part_is_readable_while_it_is_written),
		cmocka_unit_test(reopening_cuts_behind_the_last_checkpoint_and_goes_on),
		cmocka_unit_test(reopening_without_a_checkpoint_keeps_what_came_before_facts),
		cmocka_unit_test(checkpoints_are_written_behind_everything_else),
	};

	return cmocka_run_group_tests(tests, report_set_up, report_tear_down);
}
