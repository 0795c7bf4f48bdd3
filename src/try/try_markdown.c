/*
 * markdown: a table for a pull request.
 */
#include "cause/why.h"
#include "try/try_int.h"

static void write_row(const struct lull_try_entry *e, FILE *to)
{
	struct lull_str losses = LULL_STR_INIT;

	fprintf(to, "| %s | ", lull_str_text(&e->name));
	if (e->step_ns > 0)
		fputs(lull_why_time(e->step_ns).text, to);
	fputs(" | ", to);
	if (e->end == LULL_TRY_MEASURED && e->gain.verdict == LULL_GAIN_YES)
		fprintf(to, "%.2f x (%.2f to %.2f)", e->gain.ratio, e->gain.low, e->gain.high);
	else
		fputs(lull_try_verdict(e), to);
	lull_try_say_losses(e, &losses);
	fprintf(to, " | %s |\n", e->has_values ? losses.at : lull_str_text(&e->why));
	lull_str_release(&losses);
}

void lull_try_markdown(const struct lull_try *t, FILE *to)
{
	const struct lull_try_entry *best = lull_try_best(t);

	fprintf(to, "| tried | step | gain | results |\n|---|--:|--:|---|\n");
	fprintf(to, "| as it is | %s | | %u runs of %llu steps, ±%.1f %% |\n",
		lull_why_time(t->base.step_ns).text, t->base.n_runs,
		(unsigned long long)t->n_measured, 100 * t->noise);
	for (size_t i = 0; i < t->entries.n; i++)
		write_row(lull_vec_get(&t->entries, i), to);
	if (t->steps_by.len)
		fprintf(to, "\n%s\n", t->steps_by.at);
	if (best)
		fprintf(to, "\n**Best: %s, %.2f x.**\n", lull_str_text(&best->name),
			best->gain.ratio);
	else
		fputs("\nNothing gains.\n", to);
	if (best && best->last.seen.patch.len)
		fprintf(to, "\n```diff\n%s```\n", best->last.seen.patch.at);
}
