#include "unit/unit.h"

#include "text/progress.h"
#include "base/time.h"

static struct lull_progress phase(const char *unit, u64 total)
{
	struct lull_progress p;

	lull_progress_init(&p, true);
	lull_progress_begin(&p, "reading", unit, total);
	return p;
}

static void expect(const struct lull_progress *p, u64 done, u64 dur_ns, const char *line)
{
	struct lull_str text = LULL_STR_INIT;

	lull_progress_format(&text, p, done, dur_ns);
	assert_string_equal(lull_str_text(&text), line);
	lull_str_release(&text);
}

static void a_line_has_share_rate_and_time_left(void **state)
{
	struct lull_progress p = phase("rows", 40000000);

	(void)state;
	expect(&p, 10000000, 2 * LULL_NS_PER_S, "reading  25 %  5.00 M rows/s  6.00 s left");
	expect(&p, 0, LULL_NS_PER_S, "reading  0 %  0 rows/s");
	expect(&p, 40000000, LULL_NS_PER_S, "reading  100 %  40.0 M rows/s");
	expect(&p, 50000000, LULL_NS_PER_S, "reading  100 %  50.0 M rows/s");
	expect(&p, 1, UINT64_MAX, "reading  0 %  0 rows/s");
}

static void an_unknown_total_leaves_the_rate(void **state)
{
	struct lull_progress p = phase(NULL, 0);

	(void)state;
	expect(&p, 4718592, LULL_NS_PER_S, "reading  4.50 MiB/s");
}

static void nothing_is_drawn_when_quiet(void **state)
{
	struct lull_progress p = phase("rows", 10);

	(void)state;
	p.begin_ns = 0;
	lull_progress_at(&p, 5);
	assert_false(p.is_drawn);
	lull_progress_clear(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_has_share_rate_and_time_left),
		cmocka_unit_test(an_unknown_total_leaves_the_rate),
		cmocka_unit_test(nothing_is_drawn_when_quiet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
