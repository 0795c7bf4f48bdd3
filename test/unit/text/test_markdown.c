/*
 * Manual pages as text: nothing of Markdown is left, lines fit, code stays as it is.
 */
#include "unit/unit.h"

#include "text/markdown.h"

static void expect(const char *page, int width, bool is_styled, const char *text)
{
	struct unit_stream s;

	unit_open(&s);
	lull_markdown_print(s.to, page, width, is_styled);
	unit_expect(&s, text);
}

static void paragraphs_are_joined_and_wrapped(void **state)
{
	(void)state;
	expect("## NAME\n\none two\nthree `four five` *SIX*\n", 22, false,
	       "NAME\n\n    one two three four\n    five SIX\n");
}

static void styles_end_with_their_line(void **state)
{
	(void)state;
	expect("a **bold word** and *x*\n", 12, true,
	       "    a \033[1mbold\033[0m\n    \033[1mword\033[0m and\n    \033[4mx\033[0m\n");
}

static void terms_stand_before_what_they_mean(void **state)
{
	(void)state;
	expect("`-o`, `--output`=*FILE*\n:   Where to\n    write.\n\n    More.\n\nAnd on.\n", 60,
	       false,
	       "    -o, --output=FILE\n        Where to write.\n\n        More.\n\n    And on.\n");
}

static void lists_hang(void **state)
{
	(void)state;
	expect("Some:\n\n- one two three\n- four\n\n1. first\n   of it\n2. second\n", 18, false,
	       "    Some:\n\n    - one two\n      three\n    - four\n\n    1. first of it\n"
	       "    2. second\n");
	/* The end of a sentence is no list. */
	expect("from 1 to\n9. More\n", 60, false, "    from 1 to 9. More\n");
}

static void code_is_left_alone(void **state)
{
	(void)state;
	expect("Try:\n\n    lull `x` *y*   z\n      a\n\n```\nfenced\n```\n", 20, false,
	       "    Try:\n\n        lull `x` *y*   z\n          a\n\n    fenced\n");
}

static void tables_are_aligned_and_their_cells_wrapped(void **state)
{
	(void)state;
	expect("| a | what |\n|---|---|\n| `x|y` | one two |\n| z | |\n", 60, false,
	       "    a    what\n    ---  -------\n    x|y  one two\n    z\n");
	expect("| a | what |\n|---|---|\n| z | one two three four |\n| y | LONG_WORD_HERE |\n", 20,
	       false,
	       "    a  what\n    -  -------------\n    z  one two three\n       four\n"
	       "    y  LONG_WORD_\n       HERE\n");
}

static void what_is_no_markdown_is_text(void **state)
{
	(void)state;
	expect("2 * 3 * 4, a_b, \\*x\\*, [*A*] [x](y.md) [z](https://z.org)\n", 80, false,
	       "    2 * 3 * 4, a_b, *x*, [A] x z <https://z.org>\n");
	expect("a `b\n", 80, false, "    a `b\n");
	expect("`f(`*x*`, `*y*`)`\n", 80, false, "    f(x, y)\n");
	expect("", 80, false, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paragraphs_are_joined_and_wrapped),
		cmocka_unit_test(styles_end_with_their_line),
		cmocka_unit_test(terms_stand_before_what_they_mean),
		cmocka_unit_test(lists_hang),
		cmocka_unit_test(code_is_left_alone),
		cmocka_unit_test(tables_are_aligned_and_their_cells_wrapped),
		cmocka_unit_test(what_is_no_markdown_is_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
