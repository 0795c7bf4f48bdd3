/*
 * speed: how close the launch came to the limits of the chip, and which part came closest.
 */
#include <math.h>

#include "counter/load.h"
#include "counter/section.h"

static const struct lull_sheet_row heads[] = {
	{ LULL_K_sm_busy, "SM throughput" },
	{ LULL_K_memory_throughput, "Memory throughput" },
};

static const struct lull_sheet_row clocks[] = {
	{ LULL_K_duration, "Duration" },
	{ LULL_K_sm_cycles, "Cycles" },
	{ LULL_K_sm_clock, "SM clock" },
	{ LULL_K_dram_clock, "DRAM clock" },
};

/* Parts below this say nothing about the limit. */
#define SHOWN 1

static void put_parts(struct lull_sheet *to, const struct lull_loads *loads)
{
	int order[LULL_N_PARTS] = { 0 }, n = 0;

	for (int i = 0; i < LULL_N_PARTS; i++) {
		int at = n;

		if (lull_parts[i].kind == LULL_LOAD_WHOLE || !(100 * loads->of[i] >= SHOWN))
			continue;
		for (; at > 0 && loads->of[order[at - 1]] < loads->of[i]; at--)
			order[at] = order[at - 1];
		order[at] = i;
		n++;
	}
	for (int i = 0; i < n; i++)
		lull_sheet_put(to,
			       &(struct lull_sheet_line){ .kind = LULL_SHEET_BAR,
							  .label = lull_parts[order[i]].name,
							  .key = lull_parts[order[i]].id,
							  .value = 100 * loads->of[order[i]],
							  .unit = "%" },
			       lull_parts[order[i]].kind == LULL_LOAD_MEMORY ? "memory" : "SM");
}

static void run(const struct lull_profile *p, struct lull_sheet *to)
{
	struct lull_loads loads;

	lull_loads_of(&loads, p);
	lull_sheet_bars(to, p, heads, LULL_COUNT_OF(heads));
	if (!to->lines.n)
		return;
	put_parts(to, &loads);
	lull_sheet_rows(to, p, clocks, LULL_COUNT_OF(clocks));
}

const struct lull_section lull_section_speed = {
	.name = "speed",
	.title = "Speed of Light",
	.what = "how busy the parts of the chip were, of the most they can be",
	.run = run,
};
