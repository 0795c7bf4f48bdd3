/*
 * whatif: what a step would take if.
 *
 *	whatif?q=input-pipeline=0.2	a fifth of it is left
 */
#include "page/page.h"

#include <string.h>

#include "page/page_why.h"

static int run(struct lull_question *q, struct lull_err *err)
{
	const char *question = lull_args_get(q->args, "q");
	struct lull_prediction p;
	struct lull_json j;

	if (!question || strlen(question) > 200)
		return lull_fail(err, LULL_E_USAGE, "q must name what to change");
	if (lull_page_why(q->report, false) != LULL_PAGE_WHY_DONE)
		return lull_fail(err, LULL_E_NOT_FOUND,
				 "no cause or kernel was found that could be changed");
	if (lull_why_ask(q->report->why, question, &p, err))
		return err->code;
	lull_json_init(&j, q->to);
	lull_json_object(&j);
	lull_page_pair_f64(&j, "step_ns", p.step_ns);
	lull_page_pair_f64(&j, "low_ns", p.low_ns);
	lull_page_pair_f64(&j, "high_ns", p.high_ns);
	lull_page_pair_f64(&j, "ratio", p.ratio);
	lull_json_end(&j);
	return LULL_OK;
}

const struct lull_answer lull_answer_whatif = {
	.name = "whatif",
	.type = "application/json",
	.is_slow = true,
	.run = run,
};
