/*
 * launch: the shape of the grid, how it fills the device, what the end costs. Needs no counter.
 */
#include <math.h>

#include "counter/section.h"

static const struct lull_sheet_row rows[] = {
	{ LULL_K_blocks, "Blocks" },
	{ LULL_K_block_threads, "Threads of a block" },
	{ LULL_K_waves, "Waves" },
	{ LULL_K_wave_share, "Fill of the waves" },
	{ LULL_K_active_share, "Even work of SMs" },
	{ LULL_K_covered_share, "Time with any work" },
};

static void put(struct lull_sheet *to, const char *label, const char *key, f64 value,
		const char *unit)
{
	lull_sheet_put(to,
		       &(struct lull_sheet_line){ .kind = LULL_SHEET_VALUE,
						  .label = label,
						  .key = key,
						  .value = value,
						  .unit = unit },
		       NULL);
}

static void run(const struct lull_profile *p, struct lull_sheet *to)
{
	const struct lull_launch_row *l = &p->launch;
	f64 waves = lull_k_of(p, LULL_K_waves), full = lull_k_of(p, LULL_K_wave_share);

	if (lull_profile_is_range(p)) {
		put(to, "Launches", "n_launches", p->n_launches, "count");
		lull_sheet_rows(to, p, &rows[LULL_COUNT_OF(rows) - 1], 1);
		lull_sheet_say(to, "A range of kernels, graphs and the gaps between them, "
				   "measured as one.");
		return;
	}
	if (!l->grid_x)
		return;
	lull_sheet_rows(to, p, rows, LULL_COUNT_OF(rows));
	if (l->registers)
		put(to, "Registers of a thread", "registers", l->registers, "count");
	put(to, "Shared memory of a block", "shared_bytes",
	    (f64)l->static_shared_bytes + l->dynamic_shared_bytes, "B");
	if (l->local_bytes)
		put(to, "Local memory of a thread", "local_bytes", l->local_bytes, "B");
	lull_sheet_say(to, "Grid %u x %u x %u, block %u x %u x %u%s", l->grid_x, l->grid_y,
		       l->grid_z, l->block_x, l->block_y, l->block_z,
		       l->cluster_x > 1 || l->cluster_y > 1 || l->cluster_z > 1 ? ", in clusters."
										: ".");
	if (lull_k_of(p, LULL_K_blocks) < lull_k_of(p, LULL_K_sms))
		lull_sheet_say(to, "Fewer blocks than the %u multiprocessors.", p->device.n_sms);
	else if (waves > 1 && waves < 5 && full < 90)
		lull_sheet_say(to, "The last wave is %.0f %% full.", 100 * (waves - floor(waves)));
}

const struct lull_section lull_section_launch = {
	.name = "launch",
	.title = "Launch",
	.what = "grid, waves and tail",
	.run = run,
};
