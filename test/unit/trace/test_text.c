#include "unit/report.h"

/* Write `text`, dump one table, compare. */
static void expect(const struct report_dir *d, const char *text, const char *table,
		   const char *dump)
{
	struct lull_err err;
	char *found;

	report_ok(lull_text_write(text, d->file, &err), &err);
	found = report_dump_file(d->file, table);
	assert_string_equal(found, dump);
	free(found);
	unlink(d->file);
}

static void expect_error(const struct report_dir *d, const char *text, const char *sentence)
{
	struct lull_err err;

	assert_int_equal(lull_text_write(text, d->file, &err), LULL_E_FORMAT);
	assert_string_equal(err.msg, sentence);
	assert_int_not_equal(access(d->file, F_OK), 0);
	assert_int_not_equal(access(d->part, F_OK), 0);
}

static void times_take_units_and_fractions(void **state)
{
	expect(*state,
	       "step start=1 dur=2ns number=1\nstep start=1.5us dur=2ms number=2\n"
	       "step start=1.000000001s dur=0x10 number=3\n",
	       "step",
	       "{\"table\":\"step\",\"start_ns\":1,\"dur_ns\":2,\"lane\":0,"
	       "\"number\":1,\"source\":0}\n"
	       "{\"table\":\"step\",\"start_ns\":1500,\"dur_ns\":2000000,\"lane\":0,"
	       "\"number\":2,\"source\":0}\n"
	       "{\"table\":\"step\",\"start_ns\":1000000001,\"dur_ns\":16,\"lane\":0,"
	       "\"number\":3,\"source\":0}"
	       "\n");
}

static void comments_blank_lines_and_quotes_are_understood(void **state)
{
	expect(*state,
	       "\n# a comment\n  meta key=plain value=\"two words, \\\"quoted\\\"\\n\"  # "
	       "behind\n\n"
	       "\tmeta key=\"\" value=x",
	       "meta",
	       "{\"table\":\"meta\",\"id\":1,\"key\":\"plain\",\"value\":\"two words, "
	       "\\\"quoted\\\"\\n\"}\n"
	       "{\"table\":\"meta\",\"id\":2,\"key\":null,\"value\":\"x\"}\n");
}

static void signed_values_and_column_names_with_units_are_understood(void **state)
{
	expect(*state,
	       "lane tid=1\noscall start_ns=5 dur=1 lane=1 name=read ret=-1 "
	       "arg=0x7fffffffffffffff\n",
	       "oscall",
	       "{\"table\":\"oscall\",\"start_ns\":5,\"dur_ns\":1,\"lane\":1,\"name\":\"read\","
	       "\"ret\":-1,"
	       "\"arg\":9223372036854775807,\"stack\":0}\n");
}

static void mistakes_are_told_with_their_line(void **state)
{
	expect_error(*state, "\nnosuch a=1\n", "line 2: there is no table \"nosuch\"");
	expect_error(*state, "mark colour=1\n", "line 1: table mark has no column colour");
	expect_error(*state, "# x\nmark start=1 payload_type=256\n",
		     "line 2: payload_type=256 is not a u8");
	expect_error(*state, "mark start=soon\n", "line 1: start_ns=soon is not a u64");
	expect_error(*state, "mark start=1d\n", "line 1: start_ns=1d is not a u64");
	expect_error(*state, "mark start=-1\n", "line 1: start_ns=-1 is not a u64");
	expect_error(*state, "mark start\n", "line 1: expected name=value at \"\"");
	expect_error(*state, "meta key=\"open\n", "line 1: a quote is not closed");
	expect_error(*state, "lane tid=1\nlane#2 tid=3\n", "line 2: there is no lane#2");
	expect_error(*state, "mark#1 start=3\n", "line 1: there is no mark#1");
	expect_error(*state, "file epoch=soon\n", "line 1: epoch=soon is not understood");
}

static void the_file_line_fills_the_header(void **state)
{
	const struct report_dir *d = *state;
	struct lull_reader *r;
	struct lull_err err;

	report_ok(lull_text_write("# first\nfile epoch=5s utc=7us flags=1\n", d->file, &err), &err);
	report_ok(lull_reader_open(&r, d->file, &err), &err);
	assert_int_equal(lull_reader_info(r)->epoch_ns, 5000000000);
	assert_int_equal(lull_reader_info(r)->epoch_utc_ns, 7000);
	assert_int_equal(lull_reader_info(r)->flags, LULL_FILE_SIMULATED);
	lull_reader_close(r);
	unlink(d->file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_take_units_and_fractions),
		cmocka_unit_test(comments_blank_lines_and_quotes_are_understood),
		cmocka_unit_test(signed_values_and_column_names_with_units_are_understood),
		cmocka_unit_test(mistakes_are_told_with_their_line),
		cmocka_unit_test(the_file_line_fills_the_header),
	};

	return cmocka_run_group_tests(tests, report_set_up, report_tear_down);
}
