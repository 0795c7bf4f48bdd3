/*
 * why_opportunity - what would make a busy device faster, in the answer of `lull why`.
 */
#include <ctype.h>

#include "cause/opportunity.h"
#include "cmd/why_print.h"
#include "text/term.h"

/* More is a list, not an answer. */
#define MAX_OPPORTUNITIES 3

/* Width of the text of manual pages. */
#define PAGE_WIDTH 118

static void print_one(FILE *to, const struct lull_opportunity *o, int width)
{
	const struct lull_prediction *p = &o->prediction;

	lull_term_say(to, 2, width, "%s: %s (%.2f ms/step, %.0f %% of the step)", o->kind->id,
		      o->text, o->touched_ns / 1e6, o->share * 100);
	lull_term_say(to, 4, width, "Try: %s", o->fix);
	if (p->is_known && o->kind->is_ceiling)
		lull_term_say(to, 4, width, "Predicted step: %.2f ms (%.2f x) at best, if %s.",
			      p->step_ns / 1e6, p->ratio, o->assumes);
	else if (p->is_known)
		lull_term_say(to, 4, width,
			      "Predicted step: %.2f ms (%.2f x; between %.2f and %.2f), if %s.",
			      p->step_ns / 1e6, p->ratio, p->low_ns / 1e6, p->high_ns / 1e6,
			      o->assumes);
	else
		lull_term_say(to, 4, width, "Up to %.2f ms less of each step, if %s.",
			      o->gain_ns / 1e6, o->assumes);
}

void lull_why_print_opportunities(FILE *to, const struct lull_why *why, int width, bool has_all)
{
	const struct lull_opportunity *o = why->opportunities.at;
	size_t n = why->opportunities.n;

	if (n)
		lull_term_say(to, 0, width,
			      "While the GPU is busy, it could do the same in less time:");
	for (size_t i = 0; i < n && (has_all || i < MAX_OPPORTUNITIES); i++)
		print_one(to, &o[i], width);
	if (*why->utilization)
		lull_term_say(to, 0, width, "In these steps %s.", why->utilization);
}

void lull_why_put_opportunities(struct lull_json *j, const struct lull_why *why)
{
	const struct lull_opportunity *o = why->opportunities.at;

	lull_json_key(j, "opportunities");
	lull_json_array(j);
	for (size_t i = 0; i < why->opportunities.n; i++) {
		lull_json_object(j);
		lull_json_key_text(j, "opportunity", o[i].kind->id);
		lull_json_key_text(j, "title", o[i].kind->title);
		lull_json_key_text(j, "text", o[i].text);
		lull_json_key_fixed(j, "touched_ns", o[i].touched_ns, 0);
		lull_json_key_fixed(j, "share", o[i].share, 6);
		lull_json_key_fixed(j, "gain_ns", o[i].gain_ns, 0);
		lull_json_key_text(j, "fix", o[i].fix);
		lull_json_key_text(j, "assumes", o[i].assumes);
		lull_json_key(j, "is_ceiling");
		lull_json_bool(j, o[i].kind->is_ceiling);
		lull_why_put_prediction(j, &o[i].prediction, NULL);
		lull_json_end(j);
	}
	lull_json_end(j);
	lull_json_key_text(j, "utilization", *why->utilization ? why->utilization : NULL);
}

void lull_why_print_opportunity_kinds(FILE *to)
{
	fputs("## Opportunities\n\n", to);
	lull_term_wrap(to,
		       "Where the device computes for at least half of the step, lull-why(1) also "
		       "says what would make that time shorter. Each is shown if the replayed step "
		       "is at least 5 % shorter; gains of several do not add up.",
		       0, PAGE_WIDTH);
	fputc('\n', to);
	for (int i = 0; i < LULL_N_OPPORTUNITIES; i++) {
		const struct lull_opportunity_kind *kind = lull_opportunities[i];

		fprintf(to, "### %s\n\n%c%s.\n\n", kind->id, toupper((unsigned char)*kind->title),
			kind->title + 1);
		lull_term_wrap(to, kind->why, 0, PAGE_WIDTH);
		fputs("\nTry: ", to);
		lull_term_wrap(to, kind->fix, 5, PAGE_WIDTH);
		if (kind->fix_torch) {
			fputs("\nWith PyTorch: ", to);
			lull_term_wrap(to, kind->fix_torch, 14, PAGE_WIDTH);
		}
		fputc('\n', to);
	}
}
