/*
 * piles - durations kept apart by group, for sums that want their medians after one look at the
 * rows.
 *
 *	lull_piles_init(&p);
 *	lull_piles_extend(&p, n_groups);
 *	if (!lull_piles_add(&p, group, dur_ns))		(no room, or longer than 4.2 s)
 *		lull_piles_each(&p, visit, ctx), ...	(all values, to count them another way)
 *	lull_piles_fold(&p, group, &fold);
 *	median_ns = lull_piles_median(&p, group, &fold);
 *	lull_piles_release(&p);
 *
 * A group is a list of parts of up to 2,048 values that lie side by side, so that the loops over
 * them vectorise; a part is added up when it is full, while it is in the L1 cache. Values take 4
 * bytes and a quarter more; all piles together stay within LULL_PILES_BYTES.
 */
#ifndef LULL_REPORT_PILES_H
#define LULL_REPORT_PILES_H

#include "base/types.h"
#include "base/vec.h"

/* Room for 25 million values. */
#define LULL_PILES_BYTES (128u << 20)

/* What is known of the values of a group. */
struct lull_pile_fold {
	u64 n;
	u64 total_ns;
	u64 min_ns; /* UINT64_MAX if there is no value */
	u64 max_ns;
	unsigned __int128 squares;
};

/* Values of a group that lie side by side; another group may have them, too. */
struct lull_pile_part {
	struct lull_pile_part *next;
	const u32 *at;
	u32 n;
};

struct lull_pile {
	u32 *at;     /* private: where the next value goes; at end there is no room */
	u32 *end;    /* private */
	u32 *begin;  /* private: of the open part */
	u32 n_taken; /* private: how many values the parts before it have, for its size */
	struct lull_pile_part *parts; /* private: the full ones, the last one first */
	struct lull_pile_fold fold;   /* private: of them */
};

struct lull_piles {
	struct lull_vec piles; /* struct lull_pile by group */
	struct lull_vec slabs; /* private: void *, to be freed */
	u8 *slab_at;	       /* private: free bytes of the last one */
	u8 *slab_end;
	size_t size_bytes; /* private: of all slabs */
	u32 *counts;	   /* private: for medians */
};

/* No group yet. */
void lull_piles_init(struct lull_piles *p);

/* Free all values. */
void lull_piles_release(struct lull_piles *p);

/* Begin a new part for this group, which has none or a full one; false if there is no room. */
bool lull_piles_more(struct lull_piles *p, u32 group);

/* Keep a value of a group that exists; false if it could not be kept. */
static inline bool lull_piles_add(struct lull_piles *p, u32 group, u64 dur_ns)
{
	struct lull_pile *pile = (struct lull_pile *)p->piles.at + group;

	if (dur_ns > UINT32_MAX || (pile->at == pile->end && !lull_piles_more(p, group)))
		return false;
	*pile->at++ = (u32)dur_ns;
	return true;
}

/* Have groups up to this number, the new ones without values. */
void lull_piles_extend(struct lull_piles *p, size_t n_groups);

/*
 * Add the values of a group of `from`, which keeps them: it has to stay as long as `to`. False if
 * there is no room for the list.
 */
bool lull_piles_merge(struct lull_piles *to, u32 to_group, struct lull_piles *from, u32 from_group);

/* Called for each value of each group. */
typedef void lull_piles_visit(void *ctx, u32 group, u64 dur_ns);

/* All values of all groups. */
void lull_piles_each(const struct lull_piles *p, lull_piles_visit *visit, void *ctx);

/* Count, sum and extremes of a group. */
struct lull_pile_fold lull_piles_fold(const struct lull_piles *p, u32 group);

/* The median of a group that folds to this; of an even count the mean of the middle two. */
f64 lull_piles_median(struct lull_piles *p, u32 group, const struct lull_pile_fold *fold);

#endif
