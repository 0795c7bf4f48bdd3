#include "cause/remark.h"

static void add(const struct lull_why *why, const struct lull_finding *f, struct lull_vec *remarks)
{
	struct lull_remark *remark;

	/* A device that is busy, or not understood, is no remark about a line. */
	if (lull_causes[f->cause]->kind == LULL_CAUSE_BUSY ||
	    lull_causes[f->cause]->kind == LULL_CAUSE_BLIND)
		return;
	remark = lull_vec_push(remarks);
	remark->finding = f;
	remark->is_first = f == lull_why_first(why);
	remark->is_guess = remark->is_first && why->is_probable;
}

void lull_remarks(const struct lull_why *why, struct lull_vec *remarks)
{
	const struct lull_finding *all = why->findings.at;

	lull_vec_init(remarks, sizeof(struct lull_remark));
	if (lull_why_first(why))
		add(why, lull_why_first(why), remarks);
	for (size_t i = 0; i < why->findings.n; i++)
		if ((int)i != why->first)
			add(why, &all[i], remarks);
}

void lull_remark_text(const struct lull_why *why, const struct lull_remark *remark,
		      struct lull_str *to)
{
	const struct lull_finding *f = remark->finding;
	const struct lull_cause *cause = lull_causes[f->cause];

	lull_str_addf(to, "%s%s of each step (%.0f %%): %s.", remark->is_guess ? "Probably " : "",
		      lull_why_time(f->cost_ns).text, f->share * 100, lull_why_because(why, f));
	lull_str_addf(to, " Fix: %s.", f->advice.fix);
	if (f->prediction.is_known)
		lull_str_addf(to, " Predicted step after it: %s instead of %s%s.",
			      lull_why_time(f->prediction.step_ns).text,
			      lull_why_time(why->free_ns).text,
			      cause->is_ceiling ? ", at best" : "");
}
