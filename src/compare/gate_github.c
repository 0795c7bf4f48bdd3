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

static void write_line(enum lull_verdict verdict, const char *sentence, FILE *to)
{
	const char *level = verdict == LULL_PASS	? "notice"
			    : verdict == LULL_REGRESSED ? "error"
							: "warning";

	fprintf(to, "::%s title=lull gate %s::", level, lull_verdict_name(verdict));
	put_escaped(sentence, to);
	fputc('\n', to);
}

static void write(const struct lull_gate *gate, FILE *to)
{
	const struct lull_gate_check *checks = gate->checks.at;

	if (gate->why.len)
		write_line(gate->verdict, lull_str_text(&gate->why), to);
	for (size_t i = 0; !gate->why.len && i < gate->checks.n; i++) {
		struct lull_str text = LULL_STR_INIT;

		lull_gate_sentence(&checks[i], &text);
		write_line(checks[i].decision.verdict, lull_str_text(&text), to);
		lull_str_release(&text);
	}
}

const struct lull_gate_output lull_gate_output_github = {
	.name = "github",
	.summary = "annotations of GitHub Actions",
	.write = write,
};
