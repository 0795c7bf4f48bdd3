/*
 * fold - levels of detail of one lane: what is needed to draw it, however many events it has.
 *
 * A lane is a line of intervals that do not overlap. At level l, time is cut into buckets of 2^l
 * ns. Intervals shorter than a bucket are merged with the others that start in the same one; longer
 * ones are kept, so that visible edges are exact. A record says how much of it was busy, so that a
 * picture never shows more work than there was.
 *
 * Base:           the level at which an event shares its record with 15 others, on average over
 *                 events (not over records: otherwise a few sparse stretches would decide). Found
 *                 while events arrive. Lanes of up to 4096 events keep all of them (base 0). It is
 *                 finer if the lane shares its table with busier ones: finer levels than the base
 *                 are read from the table, and a view must not need too much of it.
 * Levels:         the base, then every second one until fewer than 2048 records are left.
 * Memory:         40 bytes per record; 3 to 4 bytes per event on long lanes.
 */
#ifndef LULL_TIMELINE_FOLD_H
#define LULL_TIMELINE_FOLD_H

#include "base/types.h"
#include "base/vec.h"

#define LULL_N_CLASSES	8
#define LULL_MAX_LEVELS 32
#define LULL_MAX_LOG2	56u

/* An event (count 1) or a fold of several. */
struct lull_rec {
	u64 start_ns;
	u64 end_ns;
	u64 busy_ns; /* of the time between */
	u32 name;    /* of the longest one */
	u32 count;
	u8 share[LULL_N_CLASSES]; /* of the busy time, by class, in 1/255 */
};

/* The records of one level, by start. */
struct lull_level {
	u32 log2;
	size_t n;
	struct lull_rec *recs;
};

struct lull_lod {
	u32 n_levels;
	struct lull_level levels[LULL_MAX_LEVELS]; /* finest first */
};

struct lull_fold {
	u32 log2;		      /* of the bucket now */
	u32 max_log2;		      /* it becomes no coarser by itself */
	bool is_adaptive;	      /* coarsens by itself */
	bool is_open;		      /* `cur` holds something */
	bool is_unsorted;	      /* something came late */
	struct lull_rec cur;	      /* private: the fold that grows */
	u64 longest_ns;		      /* private */
	u64 by_class[LULL_N_CLASSES]; /* private */
	u64 classes;		      /* private: shares of all that `cur` holds, or-ed */
	u64 last_ns;		      /* private: start of the last one */
	size_t next_check;	      /* private */
	u64 n_events;
	u64 busy_ns;
	struct lull_vec recs; /* struct lull_rec */
};

/* Begin to fold at this level, or at the one that suits the events. */
void lull_fold_init(struct lull_fold *f, u32 log2, bool is_adaptive);

/* Begin anew at this level, with the memory of what was folded before. */
void lull_fold_again(struct lull_fold *f, u32 log2);

/* Free everything. */
void lull_fold_release(struct lull_fold *f);

/* Take an event or a record; those that begin earlier than the last are sorted in at the end. */
void lull_fold_add(struct lull_fold *f, const struct lull_rec *rec);

/* Close what is open; f->recs are complete and sorted afterwards. */
void lull_fold_finish(struct lull_fold *f);

/* Finish, and make all levels of it; the records move to *lod. */
void lull_fold_levels(struct lull_fold *f, struct lull_lod *lod);

/* Free the levels. */
void lull_lod_release(struct lull_lod *lod);

/* The coarsest level whose buckets are not wider than 2^log2, NULL if all are wider. */
const struct lull_level *lull_lod_level(const struct lull_lod *lod, u32 log2);

/* The index of the first record of a level that ends after `at_ns`. */
size_t lull_level_first(const struct lull_level *level, u64 at_ns);

#endif
