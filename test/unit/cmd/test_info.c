#include "unit/report.h"

#include "cmd/info.h"
#include "cmd/schema_print.h"

static const char recorded[] =
	"file utc=1700000000s\n"
	"meta key=container value=none\nmeta key=host.name value=box\nmeta key=cost.events "
	"value=12\n"
	"meta key=host.os value=Debian\nmeta key=environment.HOME value=/root\n"
	"process pid=12 parent_pid=10 name=child start=5us exit_kind=2 exit_code=9\n"
	"process pid=10 parent_pid=1 name=train exit_kind=1 user=3ms max_rss=1048576\n"
	"process pid=11 parent_pid=10 name=early start=1us exit_kind=1\n"
	"lane process=2 tid=10\nlane process=2 tid=13\nlane process=1 tid=12\n"
	"label name=x\nrange start=1ms dur=2ms lane=1 label=1\n"
	"issue issue=6 name=killed severity=1 count=1 text=\"a notice\"\n"
	"issue issue=1 name=buffer_full severity=2 count=1234 text=\"events dropped\" "
	"detail=here\n";

static char *print(const struct report_dir *d, const char *text, bool has_environment)
{
	struct lull_reader *r;
	struct unit_stream s;
	struct lull_err err;

	report_ok(lull_text_write(text, d->file, &err), &err);
	report_ok(lull_reader_open(&r, d->file, &err), &err);
	unit_open(&s);
	report_ok(lull_info_print(r, "a.lull", has_environment, s.to, &err), &err);
	fclose(s.to);
	lull_reader_close(r);
	unlink(d->file);
	return s.text;
}

/* Fails unless the pieces occur in this order. */
static void expect_order(const char *text, const char *const *pieces)
{
	const char *at = text;

	for (; *pieces; pieces++) {
		at = strstr(at, *pieces);
		if (!at)
			fail_msg("\"%s\" is missing, or not in its place, in:\n%s", *pieces, text);
		at += strlen(*pieces);
	}
}

static void info_tells_everything_in_the_order_it_is_asked(void **state)
{
	static const char *const pieces[] = {
		"report        a.lull\n",
		"format 1.0, sealed\n",
		"begin         2023-11-14 22:13:20 UTC\n",
		"duration      2.00 ms\n",
		"container     none\n",
		"\nhost\nname          box\nos            Debian\n",
		"\nprocesses\n",
		" train",
		" 10 ",
		"exit 0",
		"3.00 ms",
		"1.00 MiB",
		" 2\n",
		"   early",
		" 11 ",
		"   child",
		" 12 ",
		"signal 9",
		"\ndevices: none recorded\n",
		"\ntables\n",
		" range ",
		"1.00 ms",
		"3.00 ms",
		"\nlosses and notices\n",
		"  loss    1,234 x",
		"events dropped (here)\n",
		"  notice  1 x",
		"\ncost of recording\nevents        12\n",
		NULL,
	};
	char *text = print(*state, recorded, false);

	expect_order(text, pieces);
	assert_null(strstr(text, "/root"));
	free(text);
	text = print(*state, recorded, true);
	assert_non_null(strstr(text, "\nenvironment\nHOME          /root\n"));
	free(text);
}

static void what_many_processes_say_is_said_once(void **state)
{
	static const char of_one[] =
		"issue issue=6 name=killed severity=1 count=1 text=\"killed\"\n";
	static const char *const pieces[] = { "losses and notices\n", "  loss    1 x lost (here)\n",
					      "  loss    2 x lost (there)\n",
					      "  notice  3 x killed\n", NULL };
	struct lull_str text = LULL_STR_INIT;
	char *printed;

	lull_str_addf(&text, "%s%s", of_one, of_one);
	lull_str_addf(&text, "issue issue=1 severity=2 count=1 text=lost detail=here\n");
	lull_str_addf(&text, "issue issue=1 severity=2 count=2 text=lost detail=there\n%s", of_one);
	printed = print(*state, lull_str_text(&text), false);
	expect_order(printed, pieces);
	assert_null(strstr(strstr(printed, "killed") + 1, "killed"));
	free(printed);
	lull_str_release(&text);
}

static void an_empty_report_is_told_so(void **state)
{
	static const char *const pieces[] = { "begin         unknown\n",
					      "processes: none recorded\n", "tables: empty\n",
					      "losses and notices\n  none\n", NULL };
	char *text = print(*state, "", false);

	expect_order(text, pieces);
	free(text);
}

static void processes_that_are_each_others_parents_are_listed_once(void **state)
{
	const struct report_dir *d = *state;
	struct lull_info_process *all;
	struct lull_reader *r;
	struct lull_err err;
	size_t n;

	report_ok(lull_text_write("process pid=1 parent_pid=2\nprocess pid=2 parent_pid=1\n"
				  "process pid=3 parent_pid=3\n",
				  d->file, &err),
		  &err);
	report_ok(lull_reader_open(&r, d->file, &err), &err);
	all = lull_info_processes(r, &n);
	assert_int_equal(n, 3);
	assert_int_equal(all[0].row->pid + all[1].row->pid + all[2].row->pid, 6);
	free(all);
	lull_reader_close(r);
	unlink(d->file);
}

static void json_holds_the_same(void **state)
{
	static const char *const pieces[] = {
		"\"is_sealed\": true",
		"\"duration_ns\": 2000000",
		"\"host.name\": \"box\"",
		"\"environment.HOME\": \"/root\"",
		"\"name\": \"train\"",
		"\"n_threads\": 2",
		"\"ended\": \"signal 9\"",
		"\"devices\": []",
		"\"name\": \"range\"",
		"\"n_rows\": 1",
		"\"severity\": \"loss\"",
		"\"count\": 1234",
		NULL,
	};
	const struct report_dir *d = *state;
	struct lull_reader *r;
	struct unit_stream s;
	struct lull_err err;

	report_ok(lull_text_write(recorded, d->file, &err), &err);
	report_ok(lull_reader_open(&r, d->file, &err), &err);
	unit_open(&s);
	lull_info_json(r, "a.lull", s.to);
	fclose(s.to);
	expect_order(s.text, pieces);
	free(s.text);
	lull_reader_close(r);
	unlink(d->file);
}

static void csv_quotes_what_needs_it(void **state)
{
	const struct report_dir *d = *state;
	struct lull_export_options options = { .tables = { .elem_bytes = sizeof(char *) } };
	const char *meta = "meta", *nosuch = "nosuch";
	struct lull_reader *r;
	struct unit_stream s;
	struct lull_err err;

	report_ok(lull_text_write("meta key=a value=\"x, \\\"y\\\"\"\nmeta key=b\n", d->file, &err),
		  &err);
	report_ok(lull_reader_open(&r, d->file, &err), &err);
	lull_vec_add(&options.tables, &meta, 1);
	assert_int_equal(lull_export_check_tables(r, &options, &err), 0);
	unit_open(&s);
	report_ok(lull_export_find("csv")->write(r, &options, s.to, &err), &err);
	unit_expect(&s, "id,key,value\n1,a,\"x, \"\"y\"\"\"\n2,b,\n");
	lull_vec_add(&options.tables, &nosuch, 1);
	assert_int_equal(lull_export_check_tables(r, &options, &err), LULL_E_NOT_FOUND);
	lull_vec_release(&options.tables);
	lull_reader_close(r);
	unlink(d->file);
}

static void the_schema_is_printed_for_people_and_for_the_manual(void **state)
{
	struct unit_stream s;
	struct lull_err err;
	const struct lull_table_desc *t = lull_table_find(LULL_TABLE_meta);

	(void)state;
	unit_open(&s);
	report_ok(lull_schema_print(t, 1, s.to, &err), &err);
	unit_expect(&s,
		    "meta: one fact about the machine or the recording\n"
		    " key     str   what, such as host.name\n value   str   its value as text\n");
	unit_open(&s);
	lull_schema_print_markdown(t, 1, s.to);
	unit_expect(
		&s,
		"### meta (10, dim)\n\nOne row is one fact about the machine or the recording.\n\n"
		"| id | column | type | stored as | meaning |\n|--:|---|---|---|---|\n"
		"| 1 | `key` | str | plain | what, such as host.name |\n"
		"| 2 | `value` | str | plain | its value as text |\n\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(info_tells_everything_in_the_order_it_is_asked),
		cmocka_unit_test(what_many_processes_say_is_said_once),
		cmocka_unit_test(an_empty_report_is_told_so),
		cmocka_unit_test(processes_that_are_each_others_parents_are_listed_once),
		cmocka_unit_test(json_holds_the_same),
		cmocka_unit_test(csv_quotes_what_needs_it),
		cmocka_unit_test(the_schema_is_printed_for_people_and_for_the_manual),
	};

	return cmocka_run_group_tests(tests, report_set_up, report_tear_down);
}
