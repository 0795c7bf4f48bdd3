#include "counter/occupancy.h"

#include <string.h>

/* Registers are allocated to a warp in units of this size. */
#define REGISTER_UNIT 256

/* A block allocates registers for this many warps at a time. */
#define WARP_UNIT 4

const struct lull_chip lull_chips[] = {
#define CHIP(cc, schedulers, warps, blocks, shared, block_shared, reserved, unit) \
	{ cc, schedulers, warps, blocks, shared * 1024, block_shared * 1024, reserved, unit },
#include "counter/chips.def"
#undef CHIP
	{ 0, 0, 0, 0, 0, 0, 0, 0 },
};

const struct lull_chip *lull_chip_find(u32 capability)
{
	const struct lull_chip *best = NULL;

	for (const struct lull_chip *chip = lull_chips; chip->capability; chip++)
		if (chip->capability <= capability && chip->capability / 10 == capability / 10)
			best = chip;
	return best;
}

static u32 round_up(u32 value, u32 unit)
{
	return (value + unit - 1) / unit * unit;
}

/*
 * Registers belong to a scheduler: a warp lives on one of them whole, and a block's warps are dealt
 * to them in turn. A block that needs more than the file has for a full deal cannot run.
 */
static u32 limit_by_registers(const struct lull_chip *chip, const struct lull_launch_shape *shape,
			      u32 n_warps)
{
	u32 of_warp = round_up(shape->n_registers * LULL_WARP_THREADS, REGISTER_UNIT);

	if (!shape->n_registers)
		return UINT32_MAX;
	if (of_warp * round_up(n_warps, WARP_UNIT) > LULL_CHIP_REGISTERS)
		return 0;
	return LULL_CHIP_REGISTERS / chip->n_schedulers / of_warp * chip->n_schedulers / n_warps;
}

static u32 limit_by_shared(const struct lull_chip *chip, const struct lull_launch_shape *shape)
{
	u32 of_block =
		round_up(shape->shared_bytes + chip->reserved_bytes, chip->shared_unit_bytes);

	if (shape->shared_bytes > chip->block_shared_bytes)
		return 0;
	return of_block ? chip->shared_bytes / of_block : UINT32_MAX;
}

static bool is_possible(const struct lull_launch_shape *shape)
{
	return shape->n_threads && shape->n_threads <= LULL_MAX_BLOCK_THREADS &&
	       shape->n_registers <= LULL_MAX_REGISTERS;
}

void lull_occupancy(const struct lull_chip *chip, const struct lull_launch_shape *shape,
		    struct lull_occupancy *result)
{
	u32 n_warps = round_up(shape->n_threads, LULL_WARP_THREADS) / LULL_WARP_THREADS;

	memset(result, 0, sizeof(*result));
	if (!is_possible(shape))
		return;
	result->limit[LULL_LIMIT_WARPS] = chip->n_warps / n_warps;
	result->limit[LULL_LIMIT_BLOCKS] = chip->n_blocks;
	result->limit[LULL_LIMIT_REGISTERS] = limit_by_registers(chip, shape, n_warps);
	result->limit[LULL_LIMIT_SHARED] = limit_by_shared(chip, shape);
	result->n_blocks = UINT32_MAX;
	for (int i = 0; i < LULL_N_OCCUPANCY_LIMITS; i++)
		if (result->limit[i] < result->n_blocks) {
			result->n_blocks = result->limit[i];
			result->by = (enum lull_occupancy_limit)i;
		}
	result->n_warps = result->n_blocks * n_warps;
	result->share = (f64)result->n_warps / chip->n_warps;
}

const char *lull_occupancy_limit_name(enum lull_occupancy_limit limit)
{
	static const char *const names[] = { "warps", "blocks", "registers", "shared memory" };

	return names[limit];
}
