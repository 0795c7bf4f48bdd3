#include "counter/roofline.h"

#include <math.h>
#include <string.h>

const char *const lull_ceiling_names[] = {
#define CEILING(id, name, ops, peak) name,
#include "counter/roofs.def"
#undef CEILING
};

const char *const lull_slope_names[] = {
#define SLOPE(id, name, bytes, peak) name,
#include "counter/roofs.def"
#undef SLOPE
};

static void fill(struct lull_roofline *to, const struct lull_profile *p)
{
#define CEILING(id, name, ops_key, peak_key)                                  \
	to->ops[LULL_CEILING_##id] = fmax(0, lull_k_of(p, LULL_K_##ops_key)); \
	to->ceiling[LULL_CEILING_##id] = lull_k_of(p, LULL_K_##peak_key);
#include "counter/roofs.def"
#undef CEILING
#define SLOPE(id, name, bytes_key, peak_key)                           \
	to->bytes[LULL_SLOPE_##id] = lull_k_of(p, LULL_K_##bytes_key); \
	to->slope[LULL_SLOPE_##id] = lull_k_of(p, LULL_K_##peak_key);
#include "counter/roofs.def"
#undef SLOPE
	if (isnan(to->slope[LULL_SLOPE_dram]) && p->device.bandwidth_bytes)
		to->slope[LULL_SLOPE_dram] = (f64)p->device.bandwidth_bytes;
}

void lull_roofline_of(struct lull_roofline *to, const struct lull_profile *p)
{
	f64 flops = lull_k_of(p, LULL_K_flops);

	memset(to, 0, sizeof(*to));
	to->type = to->bound = -1;
	fill(to, p);
	to->rate = lull_k_of(p, LULL_K_flop_rate);
	for (int i = 0; i < LULL_N_CEILINGS; i++)
		if (to->ops[i] > 0 && (to->type < 0 || to->ops[i] > to->ops[to->type]))
			to->type = i;
	for (int i = 0; i < LULL_N_SLOPES; i++) {
		f64 flat = to->type >= 0 ? to->ceiling[to->type] : NAN;

		to->intensity[i] = flops > 0 && to->bytes[i] > 0 ? flops / to->bytes[i] : NAN;
		to->roof[i] = fmin(to->intensity[i] * to->slope[i], flat);
		if (isnan(to->intensity[i]))
			to->roof[i] = NAN;
		if (!isnan(to->roof[i]) && (to->bound < 0 || to->roof[i] < to->roof[to->bound]))
			to->bound = i;
	}
}

bool lull_roofline_shows(const struct lull_roofline *r, int ceiling)
{
	return r->ceiling[ceiling] > 0 && (r->ops[ceiling] > 0 || ceiling == LULL_CEILING_fp32);
}
