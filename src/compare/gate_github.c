/*
 * github: annotations, which GitHub Actions reads from a job's output.
 */
#include "compare/gate_output.h"

/* A line break or a percent sign would end or change the annotation. */
static void put_escaped(const char *text, FILE *to)
{
	for (; *text; text++) {
		if (*text == '%' || *text == '\r' || *text == '\n')
			fprintf(to, "%%%02X", (unsigned char)*text);
		else
			fputc(*text, to);
	}
}

static void write_line(const char *level, const char *word, const char *sentence, FILE *to)
{
	fprintf(to, "::%s title=lull gate %s::", level, word);
	put_escaped(sentence, to);
	fputc('\n', to);
}

static const char *level_of(const struct lull_gate_check *check)
{
	enum lull_verdict verdict = check->decision.verdict;

	if (verdict == LULL_PASS || check->weight == LULL_GATE_REMARK)
		return "notice";
	return lull_verdict_is_bad(lull_gate_counted(check)) ? "error" : "warning";
}

static void write(const struct lull_gate *gate, FILE *to)
{
	const struct lull_gate_check *checks = gate->checks.at;

	if (gate->why.len)
		write_line("warning", lull_verdict_name(gate->verdict), lull_str_text(&gate->why),
			   to);
	for (size_t i = 0; !gate->why.len && i < gate->checks.n; i++) {
		struct lull_str text = LULL_STR_INIT;

		lull_gate_sentence(&checks[i], &text);
		write_line(level_of(&checks[i]), lull_gate_word(&checks[i]), lull_str_text(&text),
			   to);
		lull_str_release(&text);
	}
}

const struct lull_gate_output lull_gate_output_github = {
	.name = "github",
	.summary = "annotations of GitHub Actions",
	.write = write,
};
