#include "unit/unit.h"

#include "text/opt.h"

static const char *const colours[] = { "red", "green", NULL };

struct values {
	const char *output;
	u64 top;
	i64 shift;
	f64 delay;
	bool list, force;
	int colour;
	struct lull_vec trace;
	int n_calls;
};

static int count_call(void *ctx, const char *value, struct lull_err *err)
{
	struct values *v = ctx;

	assert_null(value);
	v->n_calls++;
	return v->n_calls > 2 ? lull_fail(err, LULL_E_USAGE, "too loud") : LULL_OK;
}

static bool is_program;

static int parse(struct values *v, struct lull_err *err, int argc, char **argv)
{
	const struct lull_opt opts[] = {
		OPT_USAGE("lull test [OPTIONS]", "test"),
		OPT_STR('o', "output", "FILE", &v->output, "where"),
		OPT_U64('n', "top", "N", &v->top, "rows"),
		OPT_I64(0, "shift", "NS", &v->shift, "shift"),
		OPT_F64('y', "delay", "S", &v->delay, "delay"),
		OPT_GROUP("More:"),
		OPT_FLAG('l', "list", &v->list, "list"),
		OPT_BOOL('f', "force-overwrite", &v->force, "overwrite"),
		OPT_ENUM('c', "colour", &v->colour, colours, "colour"),
		OPT_LIST('t', "trace", "LIST", &v->trace, "trace"),
		OPT_CALL('v', "verbose", NULL, count_call, v, "more"),
		OPT_END(),
	};

	memset(v, 0, sizeof(*v));
	lull_vec_init(&v->trace, sizeof(char *));
	return is_program ? lull_opt_parse_program(argc, argv, opts, err)
			  : lull_opt_parse(argc, argv, opts, err);
}

/* Parses the words after the command's name; `v` and `err` are the test's own. */
#define PARSE(...)                                                               \
	parse(&v, &err, (int)LULL_COUNT_OF(((char *[]){ "test", __VA_ARGS__ })), \
	      (char *[]){ "test", __VA_ARGS__, NULL })

static void long_options_take_a_value_behind_equals_or_in_the_next_word(void **state)
{
	struct lull_err err;
	struct values v;

	(void)state;
	assert_int_equal(PARSE("--output=a", "--top", "7", "--shift=-3", "--delay", "0.5"), 7);
	assert_string_equal(v.output, "a");
	assert_int_equal(v.top, 7);
	assert_int_equal(v.shift, -3);
	assert_true(v.delay == 0.5);
}

static void short_options_take_attached_text_or_the_next_word(void **state)
{
	struct lull_err err;
	struct values v;

	(void)state;
	assert_int_equal(PARSE("-oa", "-n", "0x10", "-lv"), 5);
	assert_string_equal(v.output, "a");
	assert_int_equal(v.top, 16);
	assert_true(v.list);
	assert_int_equal(v.n_calls, 1);
}

static void the_last_one_wins(void **state)
{
	struct lull_err err;
	struct values v;

	(void)state;
	assert_int_equal(PARSE("-o", "a", "--output=b"), 4);
	assert_string_equal(v.output, "b");
}

static void the_options_of_a_program_are_left_alone(void **state)
{
	struct lull_err err;
	struct values v;

	(void)state;
	is_program = true;
	assert_int_equal(PARSE("-l", "./app", "-n", "x"), 2);
	assert_int_equal(v.top, 0);
	assert_int_equal(PARSE("-l", "--", "-n"), 3);
	assert_int_equal(PARSE("-", "-l"), 1);
	assert_false(v.list);
	is_program = false;
}

static void options_may_follow_other_words(void **state)
{
	char *words[] = { "test", "a", "-l", "b", "--top", "7", "-", "--", "-n", "c", NULL };
	struct lull_err err;
	struct values v;

	(void)state;
	assert_int_equal(parse(&v, &err, 10, words), 5);
	assert_true(v.list);
	assert_int_equal(v.top, 7);
	assert_string_equal(words[5], "a");
	assert_string_equal(words[6], "b");
	assert_string_equal(words[7], "-");
	assert_string_equal(words[8], "-n");
	assert_string_equal(words[9], "c");
	/* A word that was moved away is nobody's value. */
	assert_int_equal(PARSE("a", "--top"), LULL_E_USAGE);
	assert_int_equal(PARSE("a", "b"), 1);
}

static void a_bool_takes_the_next_word_only_if_it_says_true_or_false(void **state)
{
	struct lull_err err;
	struct values v;

	(void)state;
	assert_int_equal(PARSE("-f", "true", "./app"), 3);
	assert_true(v.force);
	assert_int_equal(PARSE("-f", "./app"), 2);
	assert_true(v.force);
	assert_int_equal(PARSE("-f", "--force-overwrite=false"), 3);
	assert_false(v.force);
	assert_int_equal(PARSE("--force-overwrite", "false"), 3);
	assert_false(v.force);
	assert_int_equal(PARSE("--force-overwrite=maybe"), LULL_E_USAGE);
	assert_string_equal(err.msg, "option --force-overwrite: \"maybe\" is not true or false");
}

static void lists_grow_and_skip_empty_items(void **state)
{
	struct lull_err err;
	struct values v;
	char **items;

	(void)state;
	assert_int_equal(PARSE("-t", "cuda,,nvtx", "--trace=osrt,"), 4);
	assert_int_equal(v.trace.n, 3);
	items = v.trace.at;
	assert_string_equal(items[0], "cuda");
	assert_string_equal(items[1], "nvtx");
	assert_string_equal(items[2], "osrt");
	lull_opt_list_release(&v.trace);
}

static void an_enum_gives_the_index_or_names_the_choices(void **state)
{
	struct lull_err err;
	struct values v;

	(void)state;
	assert_int_equal(PARSE("--colour=green"), 2);
	assert_int_equal(v.colour, 1);
	assert_int_equal(PARSE("-c", "blue"), LULL_E_USAGE);
	assert_string_equal(err.msg, "option -c: \"blue\" is not one of red, green");
}

static void an_unknown_option_is_told_its_nearest_name(void **state)
{
	struct lull_err err;
	struct values v;

	(void)state;
	assert_int_equal(PARSE("--ouput=x"), LULL_E_USAGE);
	assert_string_equal(err.msg, "unknown option --ouput; did you mean --output?");
	assert_int_equal(PARSE("--frobnicate"), LULL_E_USAGE);
	assert_string_equal(err.msg, "unknown option --frobnicate; see --help");
	assert_int_equal(PARSE("-Z"), LULL_E_USAGE);
	assert_string_equal(err.msg, "unknown option -Z; see --help");
}

static void missing_and_bad_values_are_explained(void **state)
{
	struct lull_err err;
	struct values v;

	(void)state;
	assert_int_equal(PARSE("--output"), LULL_E_USAGE);
	assert_string_equal(err.msg, "option --output needs a value: FILE");
	assert_int_equal(PARSE("-n", "-1"), LULL_E_USAGE);
	assert_string_equal(err.msg, "option -n: \"-1\" is not a whole number");
	assert_int_equal(PARSE("--top=99999999999999999999"), LULL_E_USAGE);
	assert_int_equal(PARSE("--delay", "inf"), LULL_E_USAGE);
	assert_string_equal(err.msg, "option --delay: \"inf\" is not a number");
	assert_int_equal(PARSE("--delay", "nan"), LULL_E_USAGE);
	assert_int_equal(PARSE("--list=yes"), LULL_E_USAGE);
	assert_string_equal(err.msg, "option --list takes no value");
	assert_int_equal(PARSE("-vvv"), LULL_E_USAGE);
	assert_string_equal(err.msg, "option -v: too loud");
}

static void help_is_aligned_and_wrapped(void **state)
{
	const char *output;
	bool force;
	const struct lull_opt opts[] = {
		OPT_USAGE("lull test [OPTIONS]", "Test it."),
		OPT_STR('o', "output", "FILE", &output,
			"where the answer goes, which may be nowhere"),
		OPT_GROUP("More:"),
		OPT_BOOL(0, "force-overwrite", &force, "overwrite"),
		OPT_END(),
	};
	struct unit_stream s;

	(void)state;
	unit_open(&s);
	lull_opt_help(s.to, opts, 60);
	unit_expect(&s, "usage: lull test [OPTIONS]\n"
			"\n"
			"Test it.\n"
			"\n"
			"  -o, --output=FILE         where the answer goes, which may\n"
			"                            be nowhere\n"
			"\n"
			"More:\n"
			"      --force-overwrite[=true|false]\n"
			"                            overwrite\n"
			"  -h, --help                show this help and exit\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(long_options_take_a_value_behind_equals_or_in_the_next_word),
		cmocka_unit_test(short_options_take_attached_text_or_the_next_word),
		cmocka_unit_test(the_last_one_wins),
		cmocka_unit_test(the_options_of_a_program_are_left_alone),
		cmocka_unit_test(options_may_follow_other_words),
		cmocka_unit_test(a_bool_takes_the_next_word_only_if_it_says_true_or_false),
		cmocka_unit_test(lists_grow_and_skip_empty_items),
		cmocka_unit_test(an_enum_gives_the_index_or_names_the_choices),
		cmocka_unit_test(an_unknown_option_is_told_its_nearest_name),
		cmocka_unit_test(missing_and_bad_values_are_explained),
		cmocka_unit_test(help_is_aligned_and_wrapped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
