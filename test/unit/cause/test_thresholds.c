/*
 * Every threshold of src/cause/thresholds.def and src/model/limits.def decides something that a
 * test would notice: with it doubled, and with it halved, a test that its line names answers
 * something else.
 *
 * Tests are the golden ones of `lull why`, by what it prints, and the reports of test/data, by the
 * lines of test/data/answers.txt: first cause, confidence, predicted step, order of the causes; and
 * once more as NAME-unmarked: the steps that are found without steps, ranges and operators.
 * Recordings of the corpus are asked where a line names them. LULL_TEST_ACCEPT=1 writes that file;
 * LULL_TEST_SEARCH=1 prints for each threshold all golden tests that notice, and LULL_TEST_SEARCH=F
 * those whose names are in the file F, in one line.
 */
#include "unit/report.h"

#include <glob.h>

#include "cause/thresholds.h"
#include "cause/why.h"
#include "cmd/why_print.h"

#define MAX_CASES 1000
#define WIDTH	  80

/* One golden test of `lull why`, or one report. */
struct golden {
	char name[96]; /* as thresholds.def has it */
	char expect[PATH_MAX];
	struct lull_reader *reader;
	struct lull_why_options options;
	char *questions[4];
	size_t n_questions;
	bool has_all, is_json, is_exact; /* exact: nothing but this command is in `expect` */
	bool is_report,
		is_of_corpus; /* a report: `expect` is its path, and opened when it is asked */
	bool is_unmarked;     /* a report: only its steps, by what repeats in its calls */
	char *said;	      /* with all thresholds as they are */
};

static struct golden cases[MAX_CASES];
static size_t n_cases;

static char *read_file(const char *folder, const char *name)
{
	char path[PATH_MAX], *text = NULL;
	size_t size = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "r");
	if (!f)
		return NULL;
	if (getdelim(&text, &size, '\0', f) < 0)
		*text = '\0';
	fclose(f);
	return text;
}

static u32 source_of(const char *word)
{
	return !strcmp(word, "steps")	? LULL_WITHOUT_STEPS
	       : !strcmp(word, "calls") ? LULL_WITHOUT_CALLS
					: 0;
}

/* The first command of the line, as far as it asks `lull why` about the trace; else false. */
static bool parse(struct golden *g, char *line)
{
	char *end = line + strcspn(line, ";|\n"), *save = NULL, *word;

	g->is_exact = *end != ';' && *end != '|';
	*end = '\0';
	if (strncmp(line, "lull why ", 9) != 0)
		return false;
	for (word = strtok_r(line + 9, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		if (!strcmp(word, "--all")) {
			g->has_all = true;
		} else if (!strcmp(word, "-f")) {
			g->is_json = !strcmp(strtok_r(NULL, " ", &save), "json");
		} else if (!strcmp(word, "--step-time")) {
			g->options.unrecorded_ns =
				(u64)(strtod(strtok_r(NULL, " ", &save), NULL) * 1e6);
		} else if (!strcmp(word, "--without")) {
			g->options.without = source_of(strtok_r(NULL, " ", &save));
		} else if (!strcmp(word, "--what-if") &&
			   g->n_questions < LULL_COUNT_OF(g->questions)) {
			g->questions[g->n_questions++] = strdup(strtok_r(NULL, " ", &save));
		} else if (strcmp(word, "trace.lull") != 0) {
			return false;
		}
	}
	return true;
}

static void load_case(const char *folder, const char *file)
{
	struct golden *g = &cases[n_cases];
	char *line = read_file(folder, "cmd"), *text = read_file(folder, "trace.txt");
	const char *name = strstr(folder, "golden/") + strlen("golden/");
	struct lull_err err;

	assert_true(n_cases < MAX_CASES);
	if (!line || !text)
		fail_msg("%s holds no cmd and trace.txt: what is it for?", folder);
	memset(g, 0, sizeof(*g));
	snprintf(g->name, sizeof(g->name), "%s", name);
	snprintf(g->expect, sizeof(g->expect), "%s", folder);
	g->options.path = "trace.lull";
	if (parse(g, line)) {
		report_ok(lull_text_write(text, file, &err), &err);
		report_ok(lull_reader_open(&g->reader, file, &err), &err);
		unlink(file);
		n_cases++;
	}
	free(line);
	free(text);
}

/* What has no name says where steps begin. */
#define UNMARKED (LULL_WITHOUT_STEPS | LULL_WITHOUT_RANGES | LULL_WITHOUT_OPS)

static void load_report(const char *path, bool is_unmarked)
{
	struct golden *g = &cases[n_cases++];

	assert_true(n_cases <= MAX_CASES);
	memset(g, 0, sizeof(*g));
	g->is_report = true;
	g->is_unmarked = is_unmarked;
	g->options.without = is_unmarked ? UNMARKED : 0;
	g->is_of_corpus = strstr(path, "corpus/") != NULL;
	snprintf(g->name, sizeof(g->name), "%s%s", g->is_of_corpus ? "corpus/" : "",
		 strstr(path, "data/") + strlen("data/"));
	strcpy(strstr(g->name, ".lull"), is_unmarked ? "-unmarked" : "");
	snprintf(g->expect, sizeof(g->expect), "%s", path);
}

/* The answer in one line. */
static void sum_up(FILE *to, const struct golden *g, const struct lull_why *why)
{
	const struct lull_finding *all = why->findings.at, *first = lull_why_first(why);

	fprintf(to, "%s: %s", g->name, first ? lull_causes[first->cause]->id : why->cannot);
	if (first)
		fprintf(to, " (%.2f)", first->confidence);
	if (first && first->prediction.is_known)
		fprintf(to, ", %.2f ms instead of %.2f (%.2f to %.2f)",
			first->prediction.step_ns / 1e6, why->free_ns / 1e6,
			first->prediction.low_ns / 1e6, first->prediction.high_ns / 1e6);
	fputc(';', to);
	for (size_t i = 0; i < why->findings.n; i++)
		fprintf(to, " %s %.2f", lull_causes[all[i].cause]->id, all[i].gain_ns / 1e6);
	fputc('\n', to);
}

/* The steps in one line. */
static void sum_up_steps(FILE *to, const struct golden *g, const struct lull_why *why)
{
	const struct lull_rounds *rounds = why->lead ? &why->lead->rounds : NULL;

	if (!rounds || !rounds->all.n) {
		fprintf(to, "%s: no steps\n", g->name);
		return;
	}
	fprintf(to, "%s: %zu steps (%s), %u of them warm-up, %u kinds, %.3f to %.3f ms\n", g->name,
		rounds->all.n, lull_rounds_word(rounds->source), rounds->first_steady,
		rounds->n_kinds, (f64)rounds->first_ns / 1e6, (f64)rounds->last_ns / 1e6);
}

/* What `lull why` prints, or its answer in one line. */
static char *ask(struct golden *g)
{
	struct lull_err err = { LULL_OK, "" };
	struct lull_vec answers;
	struct lull_why why;
	char *text = NULL;
	size_t size = 0;
	FILE *to = open_memstream(&text, &size);

	if (!g->reader)
		report_ok(lull_reader_open(&g->reader, g->expect, &err), &err);
	lull_vec_init(&answers, sizeof(struct lull_why_answer));
	if (lull_why_run(&why, g->reader, &g->options, &err)) {
		fprintf(to, "%s\n", err.msg);
	} else {
		for (size_t i = 0; i < g->n_questions; i++) {
			struct lull_why_answer *a = lull_vec_push(&answers);

			a->question = g->questions[i];
			if (lull_why_ask(&why, a->question, &a->prediction, &err))
				answers.n--;
		}
		if (g->is_unmarked)
			sum_up_steps(to, g, &why);
		else if (g->is_report)
			sum_up(to, g, &why);
		else if (g->is_json)
			lull_why_print_json(to, &why, &answers, "trace.lull");
		else
			lull_why_print(to, &why, &answers, WIDTH, g->has_all);
	}
	lull_why_release(&why);
	lull_vec_release(&answers);
	fclose(to);
	return text;
}

static int load_cases(void **state)
{
	static const char *const areas[] = {
		"test/golden/cause/*",	    "test/golden/why/*",
		"test/data/planted/*.lull", "test/data/planted-native/*.lull",
		"test/data/unseen/*.lull",  "test/corpus/data/*.lull"
	};
	struct report_dir *d;
	int rc = report_set_up(state);

	d = *state;
	for (size_t a = 0; !rc && a < LULL_COUNT_OF(areas); a++) {
		glob_t found;

		assert_int_equal(glob(areas[a], 0, NULL, &found), 0);
		for (size_t i = 0; i < found.gl_pathc; i++) {
			if (strstr(areas[a], ".lull")) {
				load_report(found.gl_pathv[i], false);
				load_report(found.gl_pathv[i], true);
			} else {
				load_case(found.gl_pathv[i], d->file);
			}
		}
		globfree(&found);
	}
	return rc;
}

/* What it says with the thresholds as they are; asked for before one of them changes. */
static const char *said_of(struct golden *g)
{
	if (!g->said)
		g->said = ask(g);
	return g->said;
}

static int drop_cases(void **state)
{
	for (size_t i = 0; i < n_cases; i++) {
		for (size_t k = 0; k < cases[i].n_questions; k++)
			free(cases[i].questions[k]);
		if (cases[i].reader)
			lull_reader_close(cases[i].reader);
		free(cases[i].said);
	}
	return report_tear_down(state);
}

static void what_is_compared_is_what_golden_tests_expect(void **state)
{
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < n_cases; i += test_stride(4)) {
		char *expect = cases[i].is_exact && !cases[i].is_report && !cases[i].is_json &&
					       !cases[i].n_questions
				       ? read_file(cases[i].expect, "expect")
				       : NULL;

		if (expect && *expect) {
			const char *said = said_of(&cases[i]);

			/* The command adds where else to look. */
			if (strncmp(said, expect, strlen(said)) != 0)
				assert_string_equal(said, expect);
			n++;
		}
		free(expect);
	}
	assert_true(n >= 60 / test_stride(4));
}

/* An emulator asks for some of them. */
static void some_reports_are_answered_as_before(void)
{
	char *expect = read_file("test/data", "answers.txt");

	for (size_t i = 0; i < n_cases; i += test_stride(7))
		if (cases[i].is_report && !cases[i].is_of_corpus &&
		    !strstr(expect, said_of(&cases[i])))
			fail_msg("test/data/answers.txt has no '%s'", said_of(&cases[i]));
	free(expect);
}

/* All lines of the reports, to compare or to keep. */
static void reports_are_answered_as_before(void **state)
{
	char *expect, *said = NULL;
	size_t size = 0;
	FILE *to;

	(void)state;
	if (test_stride(2) > 1) {
		some_reports_are_answered_as_before();
		return;
	}
	expect = read_file("test/data", "answers.txt");
	to = open_memstream(&said, &size);
	for (size_t i = 0; i < n_cases; i++)
		if (cases[i].is_report && !cases[i].is_of_corpus)
			fputs(said_of(&cases[i]), to);
	fclose(to);
	if (getenv("LULL_TEST_ACCEPT")) {
		FILE *file = fopen("test/data/answers.txt", "w");

		assert_true(file && fputs(said, file) >= 0 && !fclose(file));
	} else {
		assert_string_equal(said, expect ? expect : "");
	}
	free(said);
	free(expect);
}

static bool notices(struct golden *g)
{
	char *text = ask(g);
	bool has_changed = strcmp(text, g->said) != 0;

	free(text);
	return has_changed;
}

/* Whether blanks part the word from others in the list. */
static bool is_listed(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = strstr(list, word); at; at = strstr(at + 1, word))
		if ((at == list || at[-1] == ' ') && (!at[len] || at[len] == ' '))
			return true;
	return false;
}

/* LULL_TEST_SEARCH: 1, or a file with names of cases in one line. */
static bool is_searched(const struct golden *g)
{
	const char *which = getenv("LULL_TEST_SEARCH");
	static char *list;

	if (!which || strcmp(which, "1") == 0)
		return which && (!g->is_report || (g->is_unmarked && !g->is_of_corpus));
	if (!list)
		list = read_file(".", which);
	return list && is_listed(list, g->name);
}

static void print_all(const struct lull_threshold *t, f64 factor)
{
	for (size_t i = 0; i < n_cases; i++) {
		bool is_slow = !is_searched(&cases[i]);
		char *text = is_slow ? NULL : ask(&cases[i]);
		size_t first = text ? strcspn(text, "\n") + 1 : 0;

		if (text && strcmp(text, cases[i].said) != 0)
			print_message("search %s %g %s %s\n", t->name, factor, cases[i].name,
				      strncmp(text, cases[i].said, first) != 0 ? "first" : "more");
		free(text);
	}
}

/* Both lists. */
static const struct list {
	const struct lull_threshold *all;
	f64 *values;
	size_t n;
} lists[] = {
	{ lull_thresholds, lull_threshold_values, LULL_N_THRESHOLDS },
	{ lull_limits, lull_limit_values, LULL_N_LIMITS },
};

/* Whether a test of its line prints something else when the threshold is so much larger. */
static bool is_noticed(const struct list *list, size_t t, f64 factor)
{
	bool is_seen = false;

	for (size_t i = 0; i < n_cases; i++)
		if (is_listed(list->all[t].tests, cases[i].name) || is_searched(&cases[i]))
			said_of(&cases[i]);
	list->values[t] *= factor;
	if (getenv("LULL_TEST_SEARCH"))
		print_all(&list->all[t], factor);
	for (size_t i = 0; i < n_cases && !is_seen; i++)
		is_seen = is_listed(list->all[t].tests, cases[i].name) && notices(&cases[i]);
	list->values[t] = list->all[t].value;
	return is_seen;
}

static void check(f64 factor)
{
	u32 n_failed = 0;

	for (size_t l = 0; l < LULL_COUNT_OF(lists); l++) {
		for (size_t t = 0; t < lists[l].n; t += test_stride(48)) {
			const struct lull_threshold *threshold = &lists[l].all[t];

			if (is_noticed(&lists[l], t, factor))
				continue;
			n_failed++;
			print_error("%s times %g: no test of its line notices (%s)\n",
				    threshold->name, factor, threshold->tests);
		}
	}
	assert_int_equal(n_failed, 0);
}

static void a_test_fails_when_a_threshold_is_doubled(void **state)
{
	(void)state;
	check(2);
}

static void a_test_fails_when_a_threshold_is_halved(void **state)
{
	(void)state;
	check(0.5);
}

/* The cause that a golden test is about: its name begins like it. */
static int cause_of(const struct golden *g)
{
	const char *name = strchr(g->name, '/') + 1;
	size_t best = 0;
	int found = -1;

	for (int i = 0; i < LULL_N_CAUSES; i++) {
		size_t len = strlen(lull_causes[i]->id);

		if (len > best && !strncmp(name, lull_causes[i]->id, len)) {
			best = len;
			found = i;
		}
	}
	return found;
}

/*
 * Whether the cause is the answer, and no guess unless that will do; one that never is has to be
 * told at least.
 */
static bool fires(const struct golden *g, int cause, bool may_guess)
{
	struct lull_why why;
	struct lull_err err;
	bool does;

	if (lull_why_run(&why, g->reader, &g->options, &err)) {
		does = false;
	} else if (lull_causes[cause]->kind == LULL_CAUSE_BLIND) {
		does = why.first < 0 || why.is_probable;
	} else if (lull_causes[cause]->is_pause) {
		does = lull_why_find(&why, (enum lull_cause_ix)cause) != NULL;
	} else {
		const struct lull_finding *first = lull_why_first(&why);

		does = first && (may_guess || !why.is_probable) && (int)first->cause == cause;
	}
	lull_why_release(&why);
	return does;
}

/* The threshold that keeps the cause away, or LULL_N_THRESHOLDS. */
static size_t find_keeper(const struct golden *g, int cause)
{
	static const f64 factors[] = { 0.5, 2 };

	for (size_t t = 0; t < LULL_N_THRESHOLDS; t++) {
		for (size_t k = 0; k < LULL_COUNT_OF(factors); k++) {
			bool does;

			lull_threshold_values[t] *= factors[k];
			does = fires(g, cause, true);
			lull_threshold_values[t] = lull_thresholds[t].value;
			if (does)
				return t;
		}
	}
	return LULL_N_THRESHOLDS;
}

/* Else "nearly" is "not at all", and the test could not fail. */
static void what_is_nearly_a_cause_is_one_with_another_threshold(void **state)
{
	u32 n = 0, n_failed = 0;

	(void)state;
	for (size_t i = 0; i < n_cases; i++) {
		const char *why_not = NULL;
		int cause;

		if (strncmp(cases[i].name, "cause/", 6) != 0 || !strstr(cases[i].name, "-nearly"))
			continue;
		n++;
		cause = cause_of(&cases[i]);
		assert_true(cause >= 0);
		if (fires(&cases[i], cause, false))
			why_not = "has its cause";
		else if (n % test_stride(48) == 0 &&
			 find_keeper(&cases[i], cause) == LULL_N_THRESHOLDS)
			why_not = "is kept from its cause by no threshold";
		if (why_not)
			print_error("%s %s\n", cases[i].name, why_not);
		n_failed += why_not != NULL;
	}
	assert_true(n >= LULL_N_CAUSES);
	assert_int_equal(n_failed, 0);
}

/* A name that is misspelt would pin nothing. */
static void check_names(const struct lull_threshold *t)
{
	char *list = strdup(t->tests), *save = NULL;

	for (char *w = strtok_r(list, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		size_t i = 0;

		while (i < n_cases && strcmp(cases[i].name, w) != 0)
			i++;
		if (i == n_cases)
			fail_msg("%s: no golden test %s", t->name, w);
	}
	free(list);
	assert_true(*t->origin != '\0');
}

static void every_test_that_is_named_exists(void **state)
{
	(void)state;
	for (size_t l = 0; l < LULL_COUNT_OF(lists); l++)
		for (size_t t = 0; t < lists[l].n; t++)
			check_names(&lists[l].all[t]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_compared_is_what_golden_tests_expect),
		cmocka_unit_test(reports_are_answered_as_before),
		cmocka_unit_test(every_test_that_is_named_exists),
		cmocka_unit_test(a_test_fails_when_a_threshold_is_doubled),
		cmocka_unit_test(a_test_fails_when_a_threshold_is_halved),
		cmocka_unit_test(what_is_nearly_a_cause_is_one_with_another_threshold),
	};

	return cmocka_run_group_tests(tests, load_cases, drop_cases);
}
