/*
 * scheduler: how many warps a scheduler has, how many could issue, how often one does.
 */
#include <math.h>

#include "counter/section.h"

static const struct lull_sheet_row rows[] = {
	{ LULL_K_sched_active_warps, "Warps on a scheduler" },
	{ LULL_K_sched_eligible_warps, "Warps that could issue" },
	{ LULL_K_issue_active, "Issued a cycle" },
	{ LULL_K_warp_latency, "Cycles between issues" },
};

static void run(const struct lull_profile *p, struct lull_sheet *to)
{
	f64 issue = lull_k_of(p, LULL_K_issue_active);

	lull_sheet_rows(to, p, rows, LULL_COUNT_OF(rows));
	if (issue > 0)
		lull_sheet_say(to,
			       "A scheduler issues every %.1f cycles; in %.0f %% of them no warp "
			       "was ready.",
			       1 / issue, 100 * (1 - fmin(1, issue)));
}

const struct lull_section lull_section_scheduler = {
	.name = "scheduler",
	.title = "Schedulers",
	.what = "how many warps there were, and how often one could go on",
	.run = run,
};
