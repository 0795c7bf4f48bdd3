/*
 * load - how busy each part of the chip was during a launch.
 *
 * All loads are shares (0 to 1) of the time from start to end, so that they can be compared: the
 * highest is the limit, and 1 / highest is the largest possible speedup with the same work.
 *
 * To add a part: a line in loads.def.
 */
#ifndef LULL_COUNTER_LOAD_H
#define LULL_COUNTER_LOAD_H

#include "counter/profile.h"

enum lull_load_kind {
	LULL_LOAD_MEMORY = 1,
	LULL_LOAD_PIPE = 2,
	LULL_LOAD_WHOLE = 4,
};

enum lull_chip_part {
#define LOAD(part, kind, verdict, name, help, formula) LULL_PART_##part,
#include "counter/loads.def"
#undef LOAD
	LULL_N_PARTS,
};

struct lull_part_info {
	const char *id;
	enum lull_load_kind kind;
	const char *verdict; /* what a kernel is called that this part limits */
	const char *name;
	const char *help;
};

/* By enum lull_chip_part. */
extern const struct lull_part_info lull_parts[];

/* A launch seen through its loads. */
struct lull_loads {
	f64 of[LULL_N_PARTS]; /* NaN where not measured */
	f64 memory;	      /* of the memory system; NaN if nothing was measured */
	f64 sm;		      /* of the multiprocessors */
	f64 top;	      /* highest of all */
	int memory_part;      /* enum lull_chip_part of it, -1 if none */
	int pipe_part;	      /* the pipe that limits, issue only if no pipe explains it */
};

/* Work them out. */
void lull_loads_of(struct lull_loads *to, const struct lull_profile *p);

/*
 * Whether the multiprocessors, not memory, are the limit. Where both are busy, the larger is; but a
 * pipe at its peak is fed from shared memory that is as busy, and is the limit all the same.
 */
bool lull_loads_is_compute(const struct lull_loads *loads);

/*
 * How many times faster it could get if parts of these kinds (bits of lull_load_kind) had to do
 * only `left` (0 to 1) of their work: until the next part is the limit. At least 1.
 */
f64 lull_loads_gain(const struct lull_loads *loads, unsigned kinds, f64 left);

#endif
