/*
 * sum - the statistics of durations that every *_sum report has: by group, exact, in bounded
 * memory.
 *
 *	static void scan(void *ctx, struct lull_sum *sum)	(calls lull_sum_add() for each row)
 *
 *	lull_sum_init(&sum);
 *	lull_sum_run(&sum, scan, ctx);
 *	lull_sum_write(&sum, out, put_names, ctx);
 *	lull_sum_release(&sum);
 *
 * Arithmetic:     Time (%) is a group's total in the total of all groups; the deviation is the one
 *                 of a sample (n - 1), 0 for a single value; the median of an even count is the
 *                 mean of the middle two.
 * Memory:         5 bytes a value up to 128 MiB. If there are more (some 25 million), or one is
 *                 longer than 4.2 s, they are not kept: 100 bytes a group and 4 MiB, and a few KiB
 *                 for each of the first 4096 groups, whatever the number of rows; the scan is then
 *                 called a few times (2 for durations of up to 100 us in a few groups).
 */
#ifndef LULL_REPORT_SUM_H
#define LULL_REPORT_SUM_H

#include "base/map.h"
#include "text/out.h"
#include "base/types.h"
#include "base/vec.h"
#include "report/piles.h"

struct lull_sum_group {
	u64 key;
	u64 n;
	u64 total_ns;
	u64 min_ns;
	u64 max_ns;
	unsigned __int128
		squares; /* sum of dur_ns^2; exact, so that no order of rows changes a digit */
	f64 median_ns;
};

struct lull_sum {
	struct lull_map by_key;	    /* private: key to index in groups */
	struct lull_vec small_keys; /* private: the same for small keys, + 1 */
	struct lull_vec groups;	    /* struct lull_sum_group */
	struct lull_vec octaves;    /* private: per group, page + 1 of each power of two */
	struct lull_vec pages;	    /* private: counts of values, roughly by size */
	struct lull_vec picks;	    /* private: the searches for middle values, two a group */
	struct lull_vec buckets;    /* private: their counts */
	unsigned n_buckets_log2;    /* private: of one search */
	struct lull_piles piles;    /* private: the values by group, as long as they are kept */
	bool is_keeping;	    /* private */
};

/* Walks all rows and calls lull_sum_add() for each, the same every time it is called. */
typedef void lull_sum_scan(void *ctx, struct lull_sum *sum);

/* Fills the cells that name a group, after the eight numbers. */
typedef void lull_sum_names(void *ctx, struct lull_out *out, const struct lull_sum_group *group);

/* Nothing summed yet. */
void lull_sum_init(struct lull_sum *sum);

/* Free the groups. */
void lull_sum_release(struct lull_sum *sum);

/* The index of the group with this key, made if there is none. */
u32 lull_sum_group(struct lull_sum *sum, u64 key);

/* Count one duration; called from a scan. */
void lull_sum_add(struct lull_sum *sum, u32 group_ix, u64 dur_ns);

/*
 * Count many: row i is dur_ns[i] of the group groups[keys[i]], or of none if that is
 * LULL_SUM_NO_GROUP.
 */
void lull_sum_add_rows(struct lull_sum *sum, const u32 *groups, const u32 *keys, const u64 *dur_ns,
		       size_t n);

#define LULL_SUM_NO_GROUP UINT32_MAX

/*
 * Count what a group of another sum counted, too; in the first scan, for the first
 * LULL_SUM_MERGEABLE groups of `from`. For values that belong to several groups at once. `from` has
 * to stay until `to` has run.
 */
void lull_sum_merge(struct lull_sum *to, u32 to_ix, struct lull_sum *from, u32 from_ix);

#define LULL_SUM_MERGEABLE 4096u

/* Scan as often as it takes; all of struct lull_sum_group is valid afterwards. */
void lull_sum_run(struct lull_sum *sum, lull_sum_scan *scan, void *ctx);

/* Called for each group that has a value. */
typedef void lull_sum_visit(void *ctx, const struct lull_sum_group *group);

/* All groups, largest total first; equal ones in the order in which they were first seen. */
void lull_sum_each(const struct lull_sum *sum, lull_sum_visit *visit, void *ctx);

/*
 * One row for each group, largest total first: the cells of LULL_SUM_COLUMNS, then those of
 * `names`.
 */
void lull_sum_write(const struct lull_sum *sum, struct lull_out *out, lull_sum_names *names,
		    void *ctx);

/*
 * Fill five cells: mean, median, shortest, longest, deviation; empty ones if nothing was counted.
 */
void lull_sum_put_spread(struct lull_out *out, const struct lull_sum_group *group);

/*
 * Fill seven cells of sizes in MB, for sums of bytes instead of ns: total, how many, mean, median,
 * smallest, largest, deviation.
 */
void lull_sum_put_sizes(struct lull_out *out, const struct lull_sum_group *group);

/* The sample deviation of a group. */
f64 lull_sum_deviation(const struct lull_sum_group *group);

/* The eight columns; `instances` is what the report calls one row. */
#define LULL_SUM_COLUMNS(instances)                                                              \
	{ .name = "Time",                                                                        \
	  .kind = LULL_OUT_PERCENT,                                                              \
	  .doc = "share of the total of all rows of this table" },                               \
		{ .name = "Total Time", .kind = LULL_OUT_NS, .doc = "sum of the durations" },    \
		{ .name = instances, .kind = LULL_OUT_INT, .doc = "how many" },                  \
		{ .name = "Avg",                                                                 \
		  .kind = LULL_OUT_NS,                                                           \
		  .decimals = 1,                                                                 \
		  .doc = "mean duration",                                                        \
		  .is_spare = true },                                                            \
		{ .name = "Med", .kind = LULL_OUT_NS, .decimals = 1, .doc = "median duration" }, \
		{ .name = "Min", .kind = LULL_OUT_NS, .doc = "shortest", .is_spare = true },     \
		{ .name = "Max", .kind = LULL_OUT_NS, .doc = "longest" },                        \
	{                                                                                        \
		.name = "StdDev", .kind = LULL_OUT_NS, .decimals = 1,                            \
		.doc = "standard deviation of the sample", .is_spare = true                      \
	}

/* The columns of lull_sum_put_sizes(); the first and the second as the report calls them. */
#define LULL_SUM_SIZE_COLUMN(text, meaning, is_less_important)                                     \
	{                                                                                          \
		.name = text, .kind = LULL_OUT_FLOAT, .unit = "MB", .decimals = 3, .doc = meaning, \
		.is_spare = is_less_important                                                      \
	}
#define LULL_SUM_SIZE_COLUMNS(total, instances)                                          \
	LULL_SUM_SIZE_COLUMN(total, "sum of the sizes; 1 MB is a million bytes", false), \
		{ .name = instances, .kind = LULL_OUT_INT, .doc = "how many" },          \
		LULL_SUM_SIZE_COLUMN("Avg", "mean size", true),                          \
		LULL_SUM_SIZE_COLUMN("Med", "median size", false),                       \
		LULL_SUM_SIZE_COLUMN("Min", "smallest", true),                           \
		LULL_SUM_SIZE_COLUMN("Max", "largest", false),                           \
		LULL_SUM_SIZE_COLUMN("StdDev", "standard deviation of the sample", true)

#endif
