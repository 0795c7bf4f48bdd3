/*
 * alloc - what the reports about a framework's allocator share: sums by place, and the cells that
 * name a pool and a place.
 */
#ifndef LULL_REPORT_ALLOC_H
#define LULL_REPORT_ALLOC_H

#include "text/out.h"
#include "model/allocs.h"
#include "report/report.h"

/* The columns that lull_alloc_put_pool() fills. */
#define LULL_ALLOC_POOL_COLUMNS                                                        \
	{ .name = "PID", .kind = LULL_OUT_ID, .doc = "process id", .is_spare = true }, \
	{                                                                              \
		.name = "Memory", .kind = LULL_OUT_TEXT,                               \
		.doc = "device by name and number, or Host", .is_spare = true          \
	}

/* The columns that lull_alloc_put_place() fills. */
#define LULL_ALLOC_PLACE_COLUMNS                                                             \
	{ .name = "Operator",                                                                \
	  .kind = LULL_OUT_TEXT,                                                             \
	  .doc = "that asked for it, after the function of the backward pass it ran in; an " \
		 "annotation where no operator ran",                                         \
	  .is_wanted = true },                                                               \
	{                                                                                    \
		.name = "Line", .kind = LULL_OUT_TEXT,                                       \
		.doc = "of the program; for the backward pass that of the forward operator", \
		.is_wanted = true                                                            \
	}

/* The blocks of one place. */
struct lull_alloc_group {
	struct lull_alloc_place place;
	u64 size_bytes;	   /* of all */
	u64 largest_bytes; /* of one */
	u64 n_blocks;
	u64 peak_bytes; /* in use when the pool was fullest */
	u64 end_bytes;	/* in use at the end of the window */
	u64 lived_ns;	/* of those that were released */
	u64 n_released;
	u64 n_steps; /* reports that count steps */
	u64 kept_bytes;
};

/* Groups of places; which parts of a place tell them apart is the report's choice. */
struct lull_alloc_groups {
	struct lull_intern keys; /* struct lull_alloc_place */
	struct lull_vec all;	 /* struct lull_alloc_group, by number of the key */
};

/* None yet. */
void lull_alloc_groups_init(struct lull_alloc_groups *g);

/* Free them. */
void lull_alloc_groups_release(struct lull_alloc_groups *g);

/* The group of a place, valid until the next one is added. */
struct lull_alloc_group *lull_alloc_group_of(struct lull_alloc_groups *g,
					     const struct lull_alloc_place *place);

/* Count a block in it. */
void lull_alloc_group_add(struct lull_alloc_group *group, const struct lull_allocs *a,
			  const struct lull_alloc_block *block);

/* The most bytes first. */
void lull_alloc_groups_sort(struct lull_alloc_groups *g);

/* Fill the groups with the blocks that a report is about. */
typedef void lull_alloc_collect(struct lull_alloc_groups *g, const struct lull_allocs *a,
				const struct lull_report_options *options);

/* Fill a row with a group. */
typedef void lull_alloc_put(struct lull_out *out, const struct lull_allocs *a,
			    const struct lull_alloc_group *group);

/* Run a report with a row for each group, the most bytes first, as many as rows=N says. */
int lull_alloc_report(struct lull_reader *r, struct lull_out *out,
		      const struct lull_report_options *options, lull_alloc_collect *collect,
		      lull_alloc_put *put, struct lull_err *err);

/* Append what a pool is called: its device by name and number, or Host. */
void lull_alloc_pool_name(struct lull_str *to, const struct lull_allocs *a, u32 pool);

/* Fill the two cells of LULL_ALLOC_POOL_COLUMNS. */
void lull_alloc_put_pool(struct lull_out *out, const struct lull_allocs *a, u32 pool);

/* Fill the two cells of LULL_ALLOC_PLACE_COLUMNS. */
void lull_alloc_put_place(struct lull_out *out, const struct lull_allocs *a,
			  const struct lull_alloc_place *place);

/* Part of what is held that is not in use, in percent; 0 if nothing is held. */
f64 lull_alloc_unused_pct(u64 allocated_bytes, u64 reserved_bytes);

#endif
