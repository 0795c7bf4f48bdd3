/*
 * diff: what changed from this report to another one, as `lull diff --format json` says it.
 *
 *	diff?f=0&other=1
 *
 * It is computed from the files, which both have to be there, and only of reports that are small
 * enough to be analysed while somebody waits.
 */
#include "page/page.h"

#include "page/page_why.h"

static int run(struct lull_question *q, struct lull_err *err)
{
	const struct lull_page_report *other;
	u64 ix;

	if (lull_args_u64(q->args, "other", UINT32_MAX, UINT64_MAX, &ix, err))
		return err->code;
	if (ix >= q->page->n_reports)
		return lull_fail(err, LULL_E_NOT_FOUND, "there is no such report");
	other = &q->page->reports[ix];
	if (!q->page->diff || !q->report->file || !other->file)
		return lull_fail(err, LULL_E_UNSUPPORTED, "lull diff compares these reports");
	if (lull_page_why_is_large(q->report) || lull_page_why_is_large(other))
		return lull_fail(err, LULL_E_UNSUPPORTED,
				 "these reports are large: lull diff compares them");
	return q->page->diff(q->report->file, other->file, q->to, err);
}

const struct lull_answer lull_answer_diff = {
	.name = "diff",
	.type = "application/json",
	.is_slow = true,
	.run = run,
};
