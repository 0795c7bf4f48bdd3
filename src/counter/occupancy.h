/*
 * occupancy - how many blocks of a kernel fit on a multiprocessor at once, and what limits them.
 *
 * What it gives:  blocks and warps at once, the share of the most there could be, and the limit of
 *                 each resource.
 * What it is not: a measure of speed. More warps hide more latency up to a point; many fast kernels
 *                 run at 25 %.
 */
#ifndef LULL_COUNTER_OCCUPANCY_H
#define LULL_COUNTER_OCCUPANCY_H

#include "base/err.h"
#include "base/types.h"

#define LULL_WARP_THREADS      32
#define LULL_MAX_BLOCK_THREADS 1024
#define LULL_MAX_REGISTERS     255
#define LULL_CHIP_REGISTERS    65536

/* One kind of multiprocessor. */
struct lull_chip {
	u32 capability; /* 10 * major + minor */
	u32 n_schedulers;
	u32 n_warps;
	u32 n_blocks;
	u32 shared_bytes;
	u32 block_shared_bytes;
	u32 reserved_bytes;
	u32 shared_unit_bytes;
};

/* All of chips.def, ended by capability 0. */
extern const struct lull_chip lull_chips[];

/* The chip of this capability, or the newest older one of the same major version; NULL if none. */
const struct lull_chip *lull_chip_find(u32 capability);

struct lull_launch_shape {
	u32 n_threads;	  /* of a block */
	u32 n_registers;  /* of a thread */
	u32 shared_bytes; /* static and dynamic, of a block */
};

enum lull_occupancy_limit {
	LULL_LIMIT_WARPS = 0,
	LULL_LIMIT_BLOCKS,
	LULL_LIMIT_REGISTERS,
	LULL_LIMIT_SHARED,
	LULL_N_OCCUPANCY_LIMITS,
};

struct lull_occupancy {
	u32 n_blocks; /* at once; 0 if the shape cannot run */
	u32 n_warps;
	f64 share;			    /* of the warps there could be */
	u32 limit[LULL_N_OCCUPANCY_LIMITS]; /* blocks that each resource alone would allow */
	enum lull_occupancy_limit by;	    /* the limiting one; warps if several limit */
};

/* Work it out. */
void lull_occupancy(const struct lull_chip *chip, const struct lull_launch_shape *shape,
		    struct lull_occupancy *result);

/* The resource in words, such as "registers". */
const char *lull_occupancy_limit_name(enum lull_occupancy_limit limit);

#endif
