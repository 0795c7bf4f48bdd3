#include "unit/unit.h"

#include "text/out.h"

static const struct lull_out_column columns[] = {
	{ .name = "Time", .kind = LULL_OUT_PERCENT },
	{ .name = "Total Time", .kind = LULL_OUT_NS },
	{ .name = "Avg", .kind = LULL_OUT_NS, .decimals = 1 },
	{ .name = "Size", .kind = LULL_OUT_FLOAT, .unit = "MB", .decimals = 3 },
	{ .name = "Name", .kind = LULL_OUT_TEXT },
};

static void fill(struct lull_out *out)
{
	lull_out_init(out, columns, LULL_COUNT_OF(columns));
	lull_out_row(out);
	lull_out_f64(out, 2.5);
	lull_out_i64(out, 25000);
	lull_out_f64(out, 1250.25);
	lull_out_f64(out, 0.5);
	lull_out_text(out, "copy, \"pinned\"");
	lull_out_row(out);
	lull_out_f64(out, 97.5);
	lull_out_i64(out, 1234567);
	lull_out_skip(out);
	lull_out_f64(out, 0.0 / 0.0);
	lull_out_text(out, "gemm");
}

static void expect(struct lull_out_options options, const char *text)
{
	struct lull_out out;
	struct lull_err err;
	struct unit_stream s;

	fill(&out);
	unit_open(&s);
	assert_int_equal(lull_out_write(&out, &options, s.to, &err), LULL_OK);
	unit_expect(&s, text);
	lull_out_release(&out);
}

static void column_aligns_and_groups_digits(void **state)
{
	struct lull_out_options options = LULL_OUT_OPTIONS_INIT;

	(void)state;
	expect(options, " Time (%)  Total Time (ns)  Avg (ns)  Size (MB)  Name\n"
			" --------  ---------------  --------  ---------  --------------\n"
			"      2.5           25,000   1,250.2      0.500  copy, \"pinned\"\n"
			"     97.5        1,234,567                       gemm\n");
}

static void what_rounds_to_zero_has_no_sign(void **state)
{
	static const f64 values[] = { -0.04, -0.06, -0.0, 0.04 };
	static const char *const texts[] = { "0.0", "-0.1", "0.0", "0.0" };
	struct lull_str text = LULL_STR_INIT;

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(values); i++) {
		lull_str_clear(&text);
		lull_str_add_fixed(&text, values[i], 1);
		assert_string_equal(lull_str_text(&text), texts[i]);
	}
	lull_str_release(&text);
}

static void human_numbers_carry_their_unit(void **state)
{
	struct lull_out_options options = LULL_OUT_OPTIONS_INIT;

	(void)state;
	options.is_human = true;
	options.has_no_header = true;
	expect(options, "      2.5     25.0 us  1.25 us  488 KiB  copy, \"pinned\"\n"
			"     97.5     1.23 ms                    gemm\n");
}

static void moments_of_one_second_are_told_apart(void **state)
{
	static const struct lull_out_column one[] = {
		{ .name = "Start", .kind = LULL_OUT_NS, .is_moment = true }
	};
	static const i64 starts_ns[] = { 3561234, 999999400, 23412345678, 23412346678 };
	struct lull_out_options options = LULL_OUT_OPTIONS_INIT;
	struct lull_out out;
	struct lull_err err;
	struct unit_stream s;

	(void)state;
	options.is_human = true;
	lull_out_init(&out, one, LULL_COUNT_OF(one));
	for (size_t i = 0; i < LULL_COUNT_OF(starts_ns); i++) {
		lull_out_row(&out);
		lull_out_i64(&out, starts_ns[i]);
	}
	unit_open(&s);
	assert_int_equal(lull_out_write(&out, &options, s.to, &err), LULL_OK);
	unit_expect(&s, "       Start\n -----------\n    3.561 ms\n  999.999 ms\n"
			" 23.412346 s\n 23.412347 s\n");
	lull_out_release(&out);
}

static void rows_are_sorted_and_cut(void **state)
{
	struct lull_out_options options = LULL_OUT_OPTIONS_INIT;

	(void)state;
	options.format = LULL_OUT_FORMAT_csv;
	options.sort_ix = 1;
	options.top = 1;
	expect(options, "Time (%),Total Time (ns),Avg (ns),Size (MB),Name\n97.5,1234567,,,gemm\n");
	options.is_ascending = true;
	options.has_no_header = true;
	expect(options, "2.5,25000,1250.2,0.500,\"copy, \"\"pinned\"\"\"\n");
}

static void table_draws_boxes(void **state)
{
	static const struct lull_out_column two[] = {
		{ .name = "N", .kind = LULL_OUT_INT },
		{ .name = "Name", .kind = LULL_OUT_TEXT },
	};
	struct lull_out_options options = LULL_OUT_OPTIONS_INIT;
	struct lull_out out;
	struct lull_err err;
	struct unit_stream s;

	(void)state;
	options.format = LULL_OUT_FORMAT_table;
	lull_out_init(&out, two, LULL_COUNT_OF(two));
	lull_out_row(&out);
	lull_out_i64(&out, -1000);
	lull_out_text(&out, "a\033b");
	unit_open(&s);
	assert_int_equal(lull_out_write(&out, &options, s.to, &err), LULL_OK);
	unit_expect(&s, "+--------+------+\n"
			"|      N | Name |\n"
			"+--------+------+\n"
			"| -1,000 | a b  |\n"
			"+--------+------+\n");
	assert_int_equal(lull_out_find(&out, "name"), 1);
	assert_int_equal(lull_out_find(&out, "nothing"), -1);
	lull_out_release(&out);
}

static void tsv_turns_tabs_into_blanks(void **state)
{
	static const struct lull_out_column one[] = { { .name = "Name" }, { .name = "B" } };
	struct lull_out_options options = LULL_OUT_OPTIONS_INIT;
	struct lull_out out;
	struct lull_err err;
	struct unit_stream s;

	(void)state;
	options.format = LULL_OUT_FORMAT_tsv;
	lull_out_init(&out, one, LULL_COUNT_OF(one));
	lull_out_row(&out);
	lull_out_text(&out, "a\tb\nc");
	unit_open(&s);
	assert_int_equal(lull_out_write(&out, &options, s.to, &err), LULL_OK);
	unit_expect(&s, "Name\tB\na b c\t\n");
	lull_out_release(&out);
}

static void json_keys_carry_units_and_empty_cells_are_empty_texts(void **state)
{
	struct lull_out_options options = LULL_OUT_OPTIONS_INIT;

	(void)state;
	options.format = LULL_OUT_FORMAT_json;
	options.top = 1;
	options.sort_ix = 0;
	expect(options, "[\n"
			"  {\n"
			"    \"Time (%)\": 97.5,\n"
			"    \"Total Time (ns)\": 1234567,\n"
			"    \"Avg (ns)\": \"\",\n"
			"    \"Size (MB)\": \"\",\n"
			"    \"Name\": \"gemm\"\n"
			"  }\n"
			"]\n");
}

static void times_change_their_unit_without_losing_a_digit(void **state)
{
	struct lull_out_options options = LULL_OUT_OPTIONS_INIT;

	(void)state;
	options.format = LULL_OUT_FORMAT_csv;
	options.top = 1;
	options.time = LULL_OUT_TIME_MS;
	expect(options, "Time (%),Total Time (ms),Avg (ms),Size (MB),Name\n"
			"2.5,0.025000,0.001250,0.500,\"copy, \"\"pinned\"\"\"\n");
}

static void a_narrow_terminal_loses_text_then_spare_columns(void **state)
{
	static const struct lull_out_column wide[] = {
		{ .name = "Total", .kind = LULL_OUT_NS },
		{ .name = "Med", .kind = LULL_OUT_NS, .is_spare = true },
		{ .name = "Max", .kind = LULL_OUT_NS },
		{ .name = "StdDev", .kind = LULL_OUT_NS, .is_spare = true },
		{ .name = "Name", .kind = LULL_OUT_TEXT },
	};
	struct lull_out_options options = LULL_OUT_OPTIONS_INIT;
	struct lull_out out;
	struct lull_err err;
	struct unit_stream s;

	(void)state;
	lull_out_init(&out, wide, LULL_COUNT_OF(wide));
	for (int row = 0; row < 3; row++) {
		lull_out_row(&out);
		for (int c = 0; c < 4; c++)
			lull_out_i64(&out, 1000 + row);
		lull_out_text(&out, "void a_kernel_with_a_long_name<float>");
	}
	options.width = 51;
	options.top = 1;
	unit_open(&s);
	assert_int_equal(lull_out_write(&out, &options, s.to, &err), LULL_OK);
	unit_expect(&s, " Total (ns)  Max (ns)  Name\n"
			" ----------  --------  ----------------------------\n"
			"      1,000     1,000  a_kernel_with_a_long_name<…>\n"
			" ... 2 more rows\n"
			" not shown, the terminal is too narrow: Med, StdDev\n");
	lull_out_release(&out);
}

static void what_somebody_asked_for_stays(void **state)
{
	static const struct lull_out_column wide[] = {
		{ .name = "Total", .kind = LULL_OUT_NS },
		{ .name = "Name", .kind = LULL_OUT_TEXT },
		{ .name = "Instances", .kind = LULL_OUT_INT },
		{ .name = "Stack", .kind = LULL_OUT_TEXT, .is_wanted = true },
	};
	struct lull_out_options options = LULL_OUT_OPTIONS_INIT;
	struct lull_out out;
	struct lull_err err;
	struct unit_stream s;

	(void)state;
	lull_out_init(&out, wide, LULL_COUNT_OF(wide));
	lull_out_row(&out);
	lull_out_i64(&out, 1000);
	lull_out_text(&out, "aten::to");
	lull_out_i64(&out, 12);
	lull_out_text(&out, "/srv/train/train.py(79): train; /srv/train/train.py(102): main");
	options.width = 44;
	unit_open(&s);
	assert_int_equal(lull_out_write(&out, &options, s.to, &err), LULL_OK);
	unit_expect(&s, " Total (ns)  Name      Stack\n"
			" ----------  --------  ---------------------\n"
			"      1,000  aten::to  train.py(79): train;…\n"
			" not shown, the terminal is too narrow: Instances\n");
	lull_out_release(&out);
}

static void the_sorted_column_stays_and_names_stay_different(void **state)
{
	static const struct lull_out_column wide[] = {
		{ .name = "Total of everything that was measured here", .kind = LULL_OUT_NS },
		{ .name = "Largest", .kind = LULL_OUT_NS, .is_spare = true },
		{ .name = "A column of much text in the header", .kind = LULL_OUT_INT },
		{ .name = "Name", .kind = LULL_OUT_TEXT },
	};
	struct lull_out_options options = LULL_OUT_OPTIONS_INIT;
	struct lull_out out;
	struct lull_err err;
	struct unit_stream s;

	(void)state;
	lull_out_init(&out, wide, LULL_COUNT_OF(wide));
	for (int row = 0; row < 2; row++) {
		lull_out_row(&out);
		for (int c = 0; c < 3; c++)
			lull_out_i64(&out, 1000 + row);
		lull_out_text(&out, row ? "aten::a_long_operator_one_of_them"
					: "aten::a_long_operator_two_of_them");
	}
	options.width = 30;
	options.kept_ix = 2;
	unit_open(&s);
	assert_int_equal(lull_out_write(&out, &options, s.to, &err), LULL_OK);
	unit_expect(&s,
		    " Largest (ns)  Name\n"
		    " ------------  ----------------\n"
		    "        1,000  aten::a_lo…_them\n"
		    "        1,001  aten::a_…them #2\n"
		    " not shown, the terminal is too narrow: Total of everything that was measured "
		    "here,\n  A column of much text in the header\n");
	lull_out_release(&out);
}

static int open_stream(void *ctx, FILE **to, struct lull_err *err)
{
	(void)err;
	*to = ctx;
	return LULL_OK;
}

static void a_stream_prints_what_a_table_would(void **state)
{
	static const struct lull_out_column two[] = {
		{ .name = "N", .kind = LULL_OUT_INT },
		{ .name = "Name", .kind = LULL_OUT_TEXT },
	};
	struct lull_out_options options = LULL_OUT_OPTIONS_INIT;
	const int n_rows = 2 * LULL_OUT_BATCH_ROWS + 5;
	struct unit_stream kept, streamed;
	struct lull_out a, b;
	struct lull_err err;

	(void)state;
	for (options.format = 0; lull_out_format_names[options.format]; options.format++) {
		options.top = options.format % 2 ? 0 : LULL_OUT_BATCH_ROWS + 7;
		unit_open(&kept);
		unit_open(&streamed);
		lull_out_init(&a, two, LULL_COUNT_OF(two));
		lull_out_init(&b, two, LULL_COUNT_OF(two));
		lull_out_stream(&b, &options, open_stream, streamed.to);
		for (int i = 0; i < n_rows; i++) {
			for (struct lull_out *out = &a; out; out = out == &a ? &b : NULL) {
				lull_out_row(out);
				lull_out_i64(out, 1000 + i % 10);
				lull_out_text(out, i % 3 ? "text" : "x, y");
			}
		}
		assert_int_equal(lull_out_len(&b), n_rows);
		assert_int_equal(lull_out_finish(&b, &err), LULL_OK);
		assert_int_equal(lull_out_write(&a, &options, kept.to, &err), LULL_OK);
		fclose(kept.to);
		unit_expect(&streamed, kept.text);
		free(kept.text);
		lull_out_release(&a);
		lull_out_release(&b);
	}
}

/* A row whose cells at the end are left out, and others that are the same for each key. */
static void put_memo_row(struct lull_out *out, struct lull_out_memo *memo, int i)
{
	u64 key = i % 7 ? (u64)i % 7 : 1ULL << 40;

	lull_out_row(out);
	lull_out_i64(out, i % 2 ? -i : (i64)i * 1000003);
	if (!lull_out_recall(out, memo, key)) {
		lull_out_f64(out, (f64)key / 8);
		lull_out_text(out, i % 7 == 3 ? "a \"b\", c\td" : "name");
		lull_out_skip(out);
		lull_out_remember(out, memo, key);
	}
	if (i % 5)
		lull_out_i64(out, i % 5);
}

static void cells_that_are_recalled_print_as_before(void **state)
{
	static const struct lull_out_column five[] = {
		{ .name = "T", .kind = LULL_OUT_NS },
		{ .name = "F", .kind = LULL_OUT_FLOAT, .decimals = 3 },
		{ .name = "Name", .kind = LULL_OUT_TEXT },
		{ .name = "Empty", .kind = LULL_OUT_INT },
		{ .name = "N", .kind = LULL_OUT_PERCENT },
	};
	static const int formats[] = { LULL_OUT_FORMAT_csv, LULL_OUT_FORMAT_tsv,
				       LULL_OUT_FORMAT_json };
	struct lull_out_options options = LULL_OUT_OPTIONS_INIT;
	struct unit_stream kept, streamed;
	struct lull_out_memo memo;
	struct lull_out a, b;
	struct lull_err err;

	(void)state;
	for (int run = 0; run < 2 * (int)LULL_COUNT_OF(formats); run++) {
		options.format = formats[run / 2];
		options.time = run % 2 ? LULL_OUT_TIME_US : LULL_OUT_TIME_NS;
		unit_open(&kept);
		unit_open(&streamed);
		lull_out_memo_init(&memo);
		lull_out_init(&a, five, LULL_COUNT_OF(five));
		lull_out_init(&b, five, LULL_COUNT_OF(five));
		lull_out_stream(&b, &options, open_stream, streamed.to);
		for (int i = 0; i < 20000; i++) {
			put_memo_row(&a, &memo, i);
			put_memo_row(&b, &memo, i);
		}
		assert_int_equal(lull_out_len(&b), 20000);
		assert_int_equal(lull_out_finish(&b, &err), LULL_OK);
		assert_int_equal(lull_out_write(&a, &options, kept.to, &err), LULL_OK);
		fclose(kept.to);
		unit_expect(&streamed, kept.text);
		free(kept.text);
		lull_out_release(&a);
		lull_out_release(&b);
		lull_out_memo_release(&memo);
	}
}

static void digits_are_those_of_printf(void **state)
{
	struct lull_str ours = LULL_STR_INIT, theirs = LULL_STR_INIT;

	(void)state;
	for (int shift = 0; shift < 64; shift++) {
		for (int add = -2; add <= 2; add++) {
			i64 value = (i64)((1ULL << shift) * 5 / 4 + (u64)add);

			lull_str_add_i64(&ours, value);
			lull_str_addf(&theirs, "%lld", (long long)value);
		}
	}
	for (u64 power = 1; power < 10000000000000000000u; power *= 10) {
		for (int add = -1; add <= 1; add++) {
			i64 value = (i64)power + add;

			lull_str_add_i64(&ours, value);
			lull_str_add_i64(&ours, -value);
			lull_str_addf(&theirs, "%lld%lld", (long long)value, (long long)-value);
		}
	}
	lull_str_add_i64(&ours, INT64_MIN);
	lull_str_addf(&theirs, "%lld", (long long)INT64_MIN);
	assert_string_equal(ours.at, theirs.at);
	lull_str_release(&ours);
	lull_str_release(&theirs);
}

static int refuse(void *ctx, FILE **to, struct lull_err *err)
{
	(void)ctx;
	(void)to;
	return lull_fail(err, LULL_E_IO, "no");
}

static void a_stream_without_rows_opens_nothing(void **state)
{
	static const struct lull_out_column one[] = { { .name = "N", .kind = LULL_OUT_INT } };
	struct lull_out_options options = LULL_OUT_OPTIONS_INIT;
	struct lull_err err;
	struct lull_out out;

	(void)state;
	lull_out_init(&out, one, 1);
	lull_out_stream(&out, &options, refuse, NULL);
	assert_int_equal(lull_out_finish(&out, &err), LULL_OK);
	lull_out_stream(&out, &options, refuse, NULL);
	lull_out_row(&out);
	assert_int_equal(lull_out_finish(&out, &err), LULL_E_IO);
	assert_string_equal(err.msg, "no");
	lull_out_release(&out);
}

static void equal_rows_are_settled_by_their_other_cells(void **state)
{
	static const struct lull_out_column two[] = {
		{ .name = "N", .kind = LULL_OUT_INT },
		{ .name = "Name", .kind = LULL_OUT_TEXT },
	};
	static const struct {
		i64 n;
		const char *name;
	} rows[] = { { 9, "b" }, { 5, "c" }, { 5, "a" }, { 5, "b" }, { 5, NULL }, { 1, "z" } };
	struct lull_out_options options = { .format = LULL_OUT_FORMAT_csv,
					    .sort_ix = LULL_OUT_UNSORTED };
	struct unit_stream s;
	struct lull_err err;
	struct lull_out out;

	(void)state;
	lull_out_init(&out, two, LULL_COUNT_OF(two));
	for (size_t i = 0; i < LULL_COUNT_OF(rows); i++) {
		lull_out_row(&out);
		lull_out_i64(&out, rows[i].n);
		lull_out_text(&out, rows[i].name);
	}
	lull_out_settle(&out, 0);
	unit_open(&s);
	assert_int_equal(lull_out_write(&out, &options, s.to, &err), LULL_OK);
	unit_expect(&s, "N,Name\n9,b\n5,\n5,a\n5,b\n5,c\n1,z\n");
	lull_out_release(&out);
}

static void widths_can_be_given_and_long_texts_are_cut(void **state)
{
	static const struct lull_out_column three[] = {
		{ .name = "N", .kind = LULL_OUT_INT },
		{ .name = "M", .kind = LULL_OUT_INT },
		{ .name = "Name", .kind = LULL_OUT_TEXT },
	};
	struct lull_out_options options = LULL_OUT_OPTIONS_INIT;
	struct unit_stream s;
	struct lull_err err;
	struct lull_out out;
	char text[112];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	lull_out_init(&out, three, LULL_COUNT_OF(three));
	lull_out_row(&out);
	lull_out_i64(&out, 1);
	lull_out_i64(&out, 2);
	lull_out_text(&out, text);
	assert_int_equal(lull_out_options_parse(&options, "column:nohdr:4:0:5", &err), LULL_OK);
	unit_open(&s);
	assert_int_equal(lull_out_write(&out, &options, s.to, &err), LULL_OK);
	unit_expect(&s, "    1  xxx…x\n");
	options.widths = "0:0:.";
	unit_open(&s);
	assert_int_equal(lull_out_write(&out, &options, s.to, &err), LULL_OK);
	fclose(s.to);
	assert_memory_equal(s.text + 1, text, 66);
	assert_memory_equal(s.text + 67, "…", strlen("…"));
	text[33] = 0;
	assert_string_equal(strtok(s.text + 67 + strlen("…"), "\n"), text);
	free(s.text);
	lull_out_release(&out);
}

static void html_escapes_what_would_be_a_tag(void **state)
{
	static const struct lull_out_column two[] = {
		{ .name = "N", .kind = LULL_OUT_INT },
		{ .name = "Name", .kind = LULL_OUT_TEXT },
	};
	struct lull_out_options options = LULL_OUT_OPTIONS_INIT;
	struct lull_out out;
	struct lull_err err;
	struct unit_stream s;

	(void)state;
	options.format = LULL_OUT_FORMAT_htable;
	lull_out_init(&out, two, LULL_COUNT_OF(two));
	lull_out_row(&out);
	lull_out_i64(&out, 1000);
	lull_out_text(&out, "a<b> & \"c\"");
	unit_open(&s);
	assert_int_equal(lull_out_write(&out, &options, s.to, &err), LULL_OK);
	unit_expect(&s, "<table>\n"
			"<tr><th class=\"number\">N</th><th>Name</th></tr>\n"
			"<tr><td class=\"number\">1,000</td>"
			"<td>a&lt;b&gt; &amp; &quot;c&quot;</td></tr>\n"
			"</table>\n");
	lull_out_release(&out);
}

static void formats_are_parsed_with_their_arguments(void **state)
{
	struct lull_out_options options = LULL_OUT_OPTIONS_INIT;
	struct lull_err err;

	(void)state;
	assert_int_equal(lull_out_options_parse(&options, "tsv:nohdr:esc", &err), LULL_OK);
	assert_int_equal(options.format, LULL_OUT_FORMAT_tsv);
	assert_true(options.has_no_header);
	assert_true(options.has_escapes);
	assert_int_equal(lull_out_options_parse(&options, "hdoc:title=a: b", &err), LULL_OK);
	assert_string_equal(options.title, "a: b");
	assert_int_equal(lull_out_options_parse(&options, "colum", &err), LULL_E_USAGE);
	assert_string_equal(err.msg, "no format colum; did you mean column?");
	assert_int_equal(lull_out_options_parse(&options, "csv:esc", &err), LULL_E_USAGE);
	assert_string_equal(err.msg, "format csv takes no argument \"esc\", only: nohdr");
	assert_int_equal(lull_out_options_parse(&options, "json:nohdr", &err), LULL_E_USAGE);
	assert_string_equal(err.msg, "format json takes no argument \"nohdr\"");
}

static void a_full_disk_is_an_error(void **state)
{
	struct lull_out_options options = LULL_OUT_OPTIONS_INIT;
	FILE *full = fopen("/dev/full", "w");
	struct lull_out out;
	struct lull_err err;

	(void)state;
	assert_non_null(full);
	setvbuf(full, NULL, _IONBF, 0);
	fill(&out);
	assert_int_equal(lull_out_write(&out, &options, full, &err), LULL_E_IO);
	fclose(full);
	lull_out_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(column_aligns_and_groups_digits),
		cmocka_unit_test(what_rounds_to_zero_has_no_sign),
		cmocka_unit_test(human_numbers_carry_their_unit),
		cmocka_unit_test(moments_of_one_second_are_told_apart),
		cmocka_unit_test(rows_are_sorted_and_cut),
		cmocka_unit_test(table_draws_boxes),
		cmocka_unit_test(tsv_turns_tabs_into_blanks),
		cmocka_unit_test(json_keys_carry_units_and_empty_cells_are_empty_texts),
		cmocka_unit_test(times_change_their_unit_without_losing_a_digit),
		cmocka_unit_test(a_narrow_terminal_loses_text_then_spare_columns),
		cmocka_unit_test(what_somebody_asked_for_stays),
		cmocka_unit_test(the_sorted_column_stays_and_names_stay_different),
		cmocka_unit_test(a_stream_prints_what_a_table_would),
		cmocka_unit_test(cells_that_are_recalled_print_as_before),
		cmocka_unit_test(digits_are_those_of_printf),
		cmocka_unit_test(a_stream_without_rows_opens_nothing),
		cmocka_unit_test(equal_rows_are_settled_by_their_other_cells),
		cmocka_unit_test(widths_can_be_given_and_long_texts_are_cut),
		cmocka_unit_test(html_escapes_what_would_be_a_tag),
		cmocka_unit_test(formats_are_parsed_with_their_arguments),
		cmocka_unit_test(a_full_disk_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
