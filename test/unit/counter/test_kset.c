/*
 * Sets, sections and metrics of kernels: the lists fit together, and become what agents read.
 */
#include "unit/unit.h"

#include <string.h>

#include "counter/kset.h"

static size_t n_lines(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

static void keys_are_unique_and_every_metric_has_a_name(void **state)
{
	(void)state;
	for (size_t i = 0; i < lull_n_kmetrics; i++) {
		const struct lull_kmetric_desc *m = &lull_kmetrics[i];

		assert_ptr_equal(lull_kmetric_find(m->key), m);
		assert_non_null(m->names[0]);
		assert_true(*m->meaning);
		for (size_t k = 0; k < LULL_KMETRIC_NAMES && m->names[k]; k++)
			assert_non_null(strstr(m->names[k], "__"));
	}
}

/* Each word of a list, by a function that has to find it. */
static void every_word(const char *list, void (*check)(const char *word))
{
	char word[64];

	while (*(list += strspn(list, " "))) {
		size_t n = strcspn(list, " ");

		assert_true(n < sizeof(word));
		memcpy(word, list, n);
		word[n] = '\0';
		check(word);
		list += n;
	}
}

static void check_key(const char *word)
{
	struct lull_kset set;
	struct lull_err err;

	lull_kset_init(&set);
	if (lull_kset_add_metric(&set, word, &err) != 0 || set.others.n)
		fail_msg("sets.def: there is no metric %s", word);
	lull_kset_release(&set);
}

static void check_section(const char *word)
{
	struct lull_kset set;
	struct lull_err err;

	lull_kset_init(&set);
	if (lull_kset_add_section(&set, word, &err) != 0)
		fail_msg("sets.def: there is no section %s", word);
	lull_kset_release(&set);
}

static void sets_name_sections_and_sections_name_metrics(void **state)
{
	(void)state;
	for (size_t i = 0; i < lull_n_ksections; i++)
		every_word(lull_ksections[i].members, check_key);
	for (size_t i = 0; i < lull_n_ksets; i++)
		every_word(lull_ksets[i].members, check_section);
}

static void a_metric_is_taken_once(void **state)
{
	struct lull_kset set;
	struct lull_err err;
	size_t n;

	(void)state;
	lull_kset_init(&set);
	assert_int_equal(lull_kset_add_set(&set, "full", &err), 0);
	n = set.metrics.n;
	assert_int_equal(lull_kset_add_set(&set, "basic", &err), 0);
	assert_int_equal(lull_kset_add_metric(&set, "dram_bytes", &err), 0);
	assert_int_equal(set.metrics.n, n);
	lull_kset_release(&set);
}

static void it_is_written_as_agents_read_it(void **state)
{
	static char text[65536];
	struct lull_kset set;
	struct lull_err err;

	(void)state;
	lull_kset_init(&set);
	assert_int_equal(lull_kset_add_metric(&set, "dram_throughput", &err), 0);
	assert_int_equal(lull_kset_add_metric(&set, "lts__t_tag_requests.sum", &err), 0);
	assert_int_equal(lull_kset_write(&set, text, sizeof(text), &err), 0);
	assert_int_equal(n_lines(text), set.metrics.n + 1);
	assert_non_null(strstr(text, "duration\tgpu__time_duration.sum\n"));
	assert_non_null(strstr(text, "\ndram_throughput\tgpu__dram_throughput.avg.pct_of_peak_"
				     "sustained_elapsed\tdram__throughput.avg"));
	assert_non_null(strstr(text, "\n\tlts__t_tag_requests.sum\n"));
	assert_int_equal(lull_kset_write(&set, text, 100, &err), LULL_E_USAGE);
	assert_non_null(strstr(err.msg, "fewer"));
	lull_kset_release(&set);
}

static void names_of_another_tool_mean_ours(void **state)
{
	struct lull_kset ours, theirs;
	struct lull_err err;

	(void)state;
	lull_kset_init(&ours);
	lull_kset_init(&theirs);
	assert_int_equal(lull_kset_add_section(&ours, "speed", &err), 0);
	assert_int_equal(lull_kset_add_section(&theirs, "SpeedOfLight", &err), 0);
	assert_int_equal(ours.metrics.n, theirs.metrics.n);
	assert_int_equal(lull_kset_add_section(&theirs, "SourceCounters", &err), 0);
	assert_true(theirs.has_source);
	assert_false(ours.has_source);
	lull_kset_release(&ours);
	lull_kset_release(&theirs);
}

static void what_is_not_there_is_refused_with_what_is(void **state)
{
	struct lull_kset set;
	struct lull_err err;

	(void)state;
	lull_kset_init(&set);
	assert_int_equal(lull_kset_add_set(&set, "huge", &err), LULL_E_USAGE);
	assert_non_null(strstr(err.msg, "basic, roofline, full"));
	assert_int_equal(lull_kset_add_section(&set, "huge", &err), LULL_E_USAGE);
	assert_non_null(strstr(err.msg, "roofline"));
	assert_int_equal(lull_kset_add_metric(&set, "huge", &err), LULL_E_USAGE);
	assert_non_null(strstr(err.msg, "--list-metrics"));
	assert_int_equal(lull_kset_add_metric(&set, "a__b\tc", &err), LULL_E_USAGE);
	lull_kset_release(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_are_unique_and_every_metric_has_a_name),
		cmocka_unit_test(sets_name_sections_and_sections_name_metrics),
		cmocka_unit_test(a_metric_is_taken_once),
		cmocka_unit_test(it_is_written_as_agents_read_it),
		cmocka_unit_test(names_of_another_tool_mean_ours),
		cmocka_unit_test(what_is_not_there_is_refused_with_what_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
