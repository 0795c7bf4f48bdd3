/*
 * text: for people, in a terminal.
 */
#include "text/term.h"
#include "compare/gate_output.h"

static const char *side_words(const struct lull_vec *side, char *to, size_t cap_bytes)
{
	snprintf(to, cap_bytes, "%zu report%s, %s steps", side->n, side->n == 1 ? "" : "s",
		 lull_format_grouped((i64)lull_gate_n_steps(side)).text);
	return to;
}

static enum lull_colour colour_of(enum lull_verdict verdict)
{
	return verdict == LULL_PASS				     ? LULL_COLOUR_GREEN
	       : verdict == LULL_REGRESSED || verdict == LULL_FAILED ? LULL_COLOUR_RED
								     : LULL_COLOUR_YELLOW;
}

/* What only warns is worth a look, not an alarm. */
static enum lull_colour colour_of_check(const struct lull_gate_check *check)
{
	return check->weight == LULL_GATE_DECIDES || check->decision.verdict == LULL_PASS
		       ? colour_of(check->decision.verdict)
		       : LULL_COLOUR_YELLOW;
}

static void write_check(const struct lull_gate_check *check, FILE *to)
{
	bool has_colour = lull_term_has_colour(to);
	struct lull_str text = LULL_STR_INIT;

	lull_gate_sentence(check, &text);
	fprintf(to, "%s%-14s%s  ", lull_term_colour(colour_of_check(check), has_colour),
		lull_gate_word(check), lull_term_colour(LULL_COLOUR_NONE, has_colour));
	lull_term_wrap(to, lull_str_text(&text), 16, lull_term_width(to));
	lull_str_release(&text);
}

static void write(const struct lull_gate *gate, FILE *to)
{
	const struct lull_gate_check *checks = gate->checks.at;
	bool has_colour = lull_term_has_colour(to);
	char before[96], after[96];

	side_words(&gate->after, after, sizeof(after));
	if (gate->before.n)
		fprintf(to, "baseline: %s; new: %s; threshold %.3g %%\n",
			side_words(&gate->before, before, sizeof(before)), after,
			100 * gate->threshold);
	else
		fprintf(to, "new: %s\n", after);
	if (gate->note.len) {
		fputs("note: ", to);
		lull_term_wrap(to, lull_str_text(&gate->note), 6, lull_term_width(to));
	}
	for (size_t i = 0; !gate->why.len && i < gate->checks.n; i++)
		write_check(&checks[i], to);
	fprintf(to, "verdict: %s%s%s", lull_term_colour(colour_of(gate->verdict), has_colour),
		lull_verdict_name(gate->verdict), lull_term_colour(LULL_COLOUR_NONE, has_colour));
	if (gate->why.len)
		fprintf(to, ": %s", lull_str_text(&gate->why));
	fputc('\n', to);
}

const struct lull_gate_output lull_gate_output_text = {
	.name = "text",
	.summary = "for people",
	.write = write,
};
