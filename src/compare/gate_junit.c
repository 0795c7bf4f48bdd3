/*
 * junit: a test suite with one test per metric, which every CI system shows.
 *
 * What could not be decided is an error, not a failure and not a skip: nothing was proven.
 */
#include "compare/gate_output.h"

static void put_escaped(const char *text, FILE *to)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '&')
			fputs("&amp;", to);
		else if (c == '<')
			fputs("&lt;", to);
		else if (c == '>')
			fputs("&gt;", to);
		else if (c == '"')
			fputs("&quot;", to);
		else if (c >= 0x20 || c == '\n' || c == '\t')
			fputc(c, to);
		else
			fputc('?', to); /* XML has no way to say it */
	}
}

static void write_case(const char *name, enum lull_verdict verdict, const char *sentence, FILE *to)
{
	const char *element = lull_verdict_is_bad(verdict) ? "failure" : "error";

	fputs("    <testcase classname=\"lull.gate\" name=\"", to);
	put_escaped(name, to);
	if (verdict == LULL_PASS) {
		fputs("\">\n      <system-out>", to);
		put_escaped(sentence, to);
		fputs("</system-out>\n    </testcase>\n", to);
		return;
	}
	fprintf(to, "\">\n      <%s type=\"%s\" message=\"", element, lull_verdict_name(verdict));
	put_escaped(sentence, to);
	fputs("\"/>\n    </testcase>\n", to);
}

static size_t count(const struct lull_gate *gate, bool is_failure)
{
	const struct lull_gate_check *checks = gate->checks.at;
	size_t n = 0;

	if (gate->why.len)
		return !is_failure;
	for (size_t i = 0; i < gate->checks.n; i++) {
		enum lull_verdict verdict = lull_gate_counted(&checks[i]);

		n += is_failure ? lull_verdict_is_bad(verdict)
				: !lull_verdict_is_bad(verdict) && verdict != LULL_PASS;
	}
	return n;
}

static void write(const struct lull_gate *gate, FILE *to)
{
	const struct lull_gate_check *checks = gate->checks.at;
	size_t n_failures = count(gate, true), n_errors = count(gate, false);
	size_t n_tests = gate->why.len ? 1 : gate->checks.n;

	fprintf(to,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<testsuites tests=\"%zu\" failures=\"%zu\" errors=\"%zu\">\n"
		"  <testsuite name=\"lull gate\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\">\n",
		n_tests, n_failures, n_errors, n_tests, n_failures, n_errors);
	if (gate->why.len)
		write_case("reports", gate->verdict, lull_str_text(&gate->why), to);
	for (size_t i = 0; !gate->why.len && i < gate->checks.n; i++) {
		struct lull_str text = LULL_STR_INIT;

		if (checks[i].weight != LULL_GATE_DECIDES)
			lull_str_addf(&text, "%s: ", lull_gate_word(&checks[i]));
		lull_gate_sentence(&checks[i], &text);
		write_case(checks[i].spec, lull_gate_counted(&checks[i]), lull_str_text(&text), to);
		lull_str_release(&text);
	}
	fputs("  </testsuite>\n</testsuites>\n", to);
}

const struct lull_gate_output lull_gate_output_junit = {
	.name = "junit",
	.summary = "JUnit XML, one test per metric",
	.write = write,
};
