/*
 * profile - the launches of a report whose counters were read, each with all its numbers.
 *
 *	struct lull_profiles all;
 *	lull_profiles_read(&all, reader);
 *	struct lull_profile *p = all.items.at;	(all.items.n of them, as they were launched)
 *	lull_profiles_release(&all);
 *
 * Ownership:      names borrow from the reader, which has to live as long.
 * Limits:         no more than LULL_PROFILES_MAX launches are read; n_left counts the others.
 */
#ifndef LULL_COUNTER_PROFILE_H
#define LULL_COUNTER_PROFILE_H

#include "base/types.h"
#include "base/vec.h"
#include "counter/kvalue.h"
#include "counter/occupancy.h"
#include "wire/kwish.h"
#include "trace/reader.h"

/* Enough for any reader; each takes about 2 KiB. */
#define LULL_PROFILES_MAX 20000

/* Why a launch has no counters: column status of the table profiled. */
enum lull_profile_status {
	LULL_PROFILE_READ = 0,
	LULL_PROFILE_NOT_ALLOWED = 1,
	LULL_PROFILE_IN_USE = 2,
	LULL_PROFILE_NOT_HERE = 3,
	LULL_PROFILE_NOT_REPLAYED = 4,
	LULL_PROFILE_FAILED = 5,
};

/* A metric that the user asked for by CUPTI's name. */
struct lull_extra {
	const char *name;
	f64 value;
};

/* One line of source, or one instruction where lines are not known. */
struct lull_hot {
	const char *file; /* "" if not known */
	u32 line;
	const char *function;
	u64 pc_offset_bytes;
	u64 n_samples;
	u64 n_stalled;	   /* those of them that did not issue */
	const char *stall; /* the reason met most often there, "" if none */
	u64 n_stall;
};

struct lull_profile {
	u64 id;
	const char *name;  /* of the kernel, demangled */
	const char *range; /* innermost range around the launch, "" if none */
	u64 start_ns;
	u64 dur_ns;
	u64 ordinal;
	u64 cost_ns;
	u32 n_passes;
	u8 status; /* enum lull_profile_status */
	u8 replay;
	u32 n_launches; /* of a range, 0 for a single launch; most and least of all runs */
	u32 n_launches_least;
	u32 process, stream_id;
	struct lull_launch_row launch;
	struct lull_device_row device; /* all 0 if it is not known */
	const char *device_name;
	bool has_occupancy; /* the chip is known */
	bool is_at_most;    /* registers are not known: no more than that fit */
	struct lull_occupancy occupancy;
	f64 metrics[LULL_N_KMETRICS]; /* NaN where not measured */
	struct lull_vec extras;	      /* struct lull_extra */
	struct lull_vec hot;	      /* struct lull_hot, most samples first */
	u64 n_samples;
};

struct lull_profiles {
	struct lull_vec items; /* struct lull_profile */
	u64 n_left;	       /* launches that were not read */
};

/* Read all launches of the report; none if nothing was profiled. */
void lull_profiles_read(struct lull_profiles *to, struct lull_reader *r);

/* Free them. */
void lull_profiles_release(struct lull_profiles *all);

/* A launch without numbers, which the caller fills in. */
void lull_profile_init(struct lull_profile *p);

/* Work out the occupancy once launch and device are known. */
void lull_profile_settle(struct lull_profile *p);

/* A range of the program, not a single launch: it has no shape. */
static inline bool lull_profile_is_range(const struct lull_profile *p)
{
	return p->replay == LULL_REPLAY_RANGE;
}

/* Free what a launch holds. */
void lull_profile_release(struct lull_profile *p);

/* Why there are no counters and what to do about it, or NULL if they were read. */
const char *lull_profile_trouble(const struct lull_profile *p);

#endif
