/*
 * warps: what the warps were found doing, largest share first.
 */
#include <math.h>

#include "counter/section.h"
#include "counter/stall.h"

/* Less is 0.0 % on paper. */
#define SHOWN 0.0005

static void run(const struct lull_profile *p, struct lull_sheet *to)
{
	enum lull_stall_ix order[LULL_N_STALLS];
	size_t n = lull_stalls_sorted(p, order);
	int top = lull_stall_top(p);
	size_t n_shown = 0;

	for (; n_shown < n && lull_stall_share(p, order[n_shown]) >= SHOWN; n_shown++) {
		const struct lull_stall_info *info = &lull_stalls[order[n_shown]];

		lull_sheet_put(to,
			       &(struct lull_sheet_line){
				       .kind = LULL_SHEET_BAR,
				       .label = info->title,
				       .key = info->reason,
				       .value = 100 * lull_stall_share(p, order[n_shown]),
				       .unit = "%" },
			       lull_k_infos[info->metric].meaning);
	}
	if (n_shown && n_shown < n)
		lull_sheet_say(to, "The %zu other reasons: nothing.", n - n_shown);
	if (top >= 0 && *lull_stalls[top].help)
		lull_sheet_say(to, "Against %s: %s.", lull_stalls[top].title,
			       lull_stalls[top].help);
	if (n && n < LULL_N_STALLS)
		lull_sheet_say(to, "Other reasons were not measured; --section warps does.");
}

const struct lull_section lull_section_warps = {
	.name = "warps",
	.title = "Warp States",
	.what = "what warps were found doing, of all their time",
	.run = run,
};
