/*
 * markdown: a table for a comment on a change, or the summary of a CI job.
 */
#include "compare/gate_output.h"

/* A name must neither end the cell nor format it. */
static void put_cell(const char *text, FILE *to)
{
	for (; *text; text++) {
		if (*text == '|' || *text == '`' || *text == '*' || *text == '_' || *text == '<' ||
		    *text == '\\')
			fputc('\\', to);
		fputc(*text == '\n' ? ' ' : *text, to);
	}
}

static void write_check(const struct lull_gate_check *check, FILE *to)
{
	const struct lull_decision *d = &check->decision;
	struct lull_str change = LULL_STR_INIT;
	char before[48], after[48];

	lull_gate_value(check, d->before, before, sizeof(before));
	lull_gate_value(check, d->after, after, sizeof(after));
	lull_gate_change(check, &change);
	fputs("| ", to);
	put_cell(check->spec, to);
	if (d->verdict == LULL_NOT_COMPARABLE)
		fputs(" | | | | ", to);
	else if (check->kind == LULL_GATE_BOUND)
		fprintf(to, " | | %s | | ", after);
	else
		fprintf(to, " | %s | %s | %s | ", before, after, lull_str_text(&change));
	lull_str_release(&change);
	fprintf(to, "%s%s%s", lull_gate_counted(check) == LULL_PASS ? "" : "**",
		lull_gate_word(check), lull_gate_counted(check) == LULL_PASS ? "" : "**");
	if (*d->why) {
		fputs(": ", to);
		put_cell(d->why, to);
	}
	if (d->n_needed)
		fprintf(to, "; needs %zu %s%s", d->n_needed, d->by_run ? "runs" : "steps",
			check->kind == LULL_GATE_BOUND ? "" : " per side");
	fputs(" |\n", to);
}

static void write(const struct lull_gate *gate, FILE *to)
{
	const struct lull_gate_check *checks = gate->checks.at;

	fprintf(to, "### lull gate: %s\n\n", lull_verdict_name(gate->verdict));
	if (gate->why.len) {
		put_cell(lull_str_text(&gate->why), to);
		fputc('\n', to);
		return;
	}
	fputs("| metric | baseline, median | new, median | change (90 %) | verdict |\n"
	      "|---|--:|--:|--:|---|\n",
	      to);
	for (size_t i = 0; i < gate->checks.n; i++)
		write_check(&checks[i], to);
	if (gate->before.n)
		fprintf(to, "\n%zu and %zu steps; threshold %.3g %%\n",
			lull_gate_n_steps(&gate->before), lull_gate_n_steps(&gate->after),
			100 * gate->threshold);
	else
		fprintf(to, "\n%zu steps\n", lull_gate_n_steps(&gate->after));
	if (gate->note.len) {
		fputs("\nNote: ", to);
		put_cell(lull_str_text(&gate->note), to);
		fputc('\n', to);
	}
}

const struct lull_gate_output lull_gate_output_markdown = {
	.name = "markdown",
	.summary = "a table for a comment or a job summary",
	.write = write,
};
