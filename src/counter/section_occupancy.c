/*
 * occupancy: how many warps fit, which resource limits them, how many there were.
 */
#include <math.h>

#include "counter/section.h"

static const struct lull_sheet_row rows[] = {
	{ LULL_K_occupancy_limit, "Theoretical occupancy" },
	{ LULL_K_occupancy, "Achieved occupancy" },
};

static void run(const struct lull_profile *p, struct lull_sheet *to)
{
	const struct lull_occupancy *o = &p->occupancy;
	f64 fits = lull_k_of(p, LULL_K_occupancy_limit), had = lull_k_of(p, LULL_K_occupancy);

	lull_sheet_bars(to, p, rows, LULL_COUNT_OF(rows));
	if (!p->has_occupancy)
		return;
	if (p->is_at_most)
		lull_sheet_say(to, "Registers of a thread are not known; no more than that fit.");
	for (int i = 0; i < LULL_N_OCCUPANCY_LIMITS; i++) {
		static const char *const labels[LULL_N_OCCUPANCY_LIMITS] = {
			"Blocks by warps", "Blocks by blocks", "Blocks by registers",
			"Blocks by shared memory"
		};

		if (p->is_at_most && i == LULL_LIMIT_REGISTERS)
			continue;
		lull_sheet_put(to,
			       &(struct lull_sheet_line){ .kind = LULL_SHEET_VALUE,
							  .label = labels[i],
							  .key = lull_occupancy_limit_name(
								  (enum lull_occupancy_limit)i),
							  .value = o->limit[i],
							  .unit = "count" },
			       (int)o->by == i ? "blocks that this alone would allow; it limits"
					       : "blocks that this alone would allow");
	}
	if (had < 0.7 * fits)
		lull_sheet_say(to, "Fewer warps were there than fit: a short kernel, a small grid, "
				   "or an uneven end.");
	if (fits < 100)
		lull_sheet_say(to,
			       "%u of %.0f warps fit, limited by %s; more is no goal in itself "
			       "where a part of the chip is busy.",
			       o->n_warps, 100 * o->n_warps / fits,
			       lull_occupancy_limit_name(o->by));
}

const struct lull_section lull_section_occupancy = {
	.name = "occupancy",
	.title = "Occupancy",
	.what = "how many warps fit on a multiprocessor, and how many were there",
	.run = run,
};
