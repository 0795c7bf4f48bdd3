#include "report/sum.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"

/*
 * Values are kept in piles (piles.h) while there is room, and one look at the rows does. Where they
 * do not fit, what was kept is counted as below, and so is all that comes.
 *
 * Medians without the values. Each group looks for its values of rank (n-1)/2 and n/2, counted from
 * 0 (the same one if n is odd). A search is an interval [lo_ns, hi_ns] that holds the value: at
 * first [min, max] of the group. Each scan counts the values of the interval in equal buckets; the
 * bucket that holds the rank is the next interval. When it is one ns wide, that is the value.
 *
 *	rank 5 of 9:	lo |..3..|..1..|..4..|..1..| hi	3 + 1 lie below the third bucket,
 *				       lo |.1|.3|..	which becomes the interval
 *
 * The first scan does not know min and max yet. It counts values by their size to a part in 64, one
 * page of counts for each power of two that occurs, so that a search begins with such a part
 * instead of [min, max]. Only the first groups have pages; the others need a scan more.
 */
struct pick {
	u64 lo_ns;
	u64 hi_ns;	/* inclusive; the search is over when it is lo_ns */
	u64 rank;	/* of the value among those at or above lo_ns */
	unsigned shift; /* a bucket is 2^shift ns wide */
};

/* All buckets together: 1 M counts of 4 bytes stay in a level 2 or 3 cache. */
#define BUCKETS_LOG2	 20u
#define MAX_BUCKETS_LOG2 14u
#define MIN_BUCKETS_LOG2 4u

/* Parts of a power of two, and powers of two; values below the first part count one by one. */
#define PARTS_LOG2   6u
#define PARTS	     (1u << PARTS_LOG2)
#define N_OCTAVES    (64u - PARTS_LOG2 + 1)
#define PAGED_GROUPS LULL_SUM_MERGEABLE

/* Keys below this, such as the ids of lanes and strings, are found in an array. */
#define SMALL_KEYS (1u << 20)

void lull_sum_init(struct lull_sum *sum)
{
	*sum = (struct lull_sum){ .is_keeping = true };
	lull_piles_init(&sum->piles);
	lull_map_init(&sum->by_key);
	lull_vec_init(&sum->small_keys, sizeof(u32));
	lull_vec_init(&sum->groups, sizeof(struct lull_sum_group));
	lull_vec_init(&sum->octaves, N_OCTAVES * sizeof(u32));
	lull_vec_init(&sum->pages, PARTS * sizeof(u32));
	lull_vec_init(&sum->picks, sizeof(struct pick));
	lull_vec_init(&sum->buckets, sizeof(u32));
}

void lull_sum_release(struct lull_sum *sum)
{
	lull_piles_release(&sum->piles);
	lull_map_release(&sum->by_key);
	lull_vec_release(&sum->small_keys);
	lull_vec_release(&sum->groups);
	lull_vec_release(&sum->octaves);
	lull_vec_release(&sum->pages);
	lull_vec_release(&sum->picks);
	lull_vec_release(&sum->buckets);
}

static u32 add_group(struct lull_sum *sum, u64 key)
{
	struct lull_sum_group *group = lull_vec_push(&sum->groups);

	group->key = key;
	group->min_ns = UINT64_MAX;
	if (sum->is_keeping)
		lull_piles_extend(&sum->piles, sum->groups.n);
	if (sum->groups.n <= PAGED_GROUPS)
		lull_vec_push(&sum->octaves);
	return (u32)sum->groups.n - 1;
}

static u32 find_small(struct lull_sum *sum, u64 key)
{
	u32 *ix;

	if (key >= sum->small_keys.n)
		lull_vec_extend(&sum->small_keys, key + 1 - sum->small_keys.n);
	ix = lull_vec_get(&sum->small_keys, key);
	if (!*ix)
		*ix = add_group(sum, key) + 1;
	return *ix - 1;
}

u32 lull_sum_group(struct lull_sum *sum, u64 key)
{
	bool is_new;
	u32 *ix;

	if (key < SMALL_KEYS)
		return find_small(sum, key);
	ix = lull_map_add(&sum->by_key, key, &is_new);
	if (is_new)
		*ix = add_group(sum, key);
	return *ix;
}

static u32 *buckets_of(const struct lull_sum *sum, size_t pick_ix)
{
	return (u32 *)sum->buckets.at + (pick_ix << sum->n_buckets_log2);
}

static void count(const struct pick *pick, u32 *buckets, u64 dur_ns)
{
	if (dur_ns >= pick->lo_ns && dur_ns <= pick->hi_ns)
		buckets[(dur_ns - pick->lo_ns) >> pick->shift]++;
}

/* As long as both searches of a group have the same interval, the first counts for both. */
static bool is_shared(const struct pick *pair)
{
	return pair[0].lo_ns == pair[1].lo_ns && pair[0].hi_ns == pair[1].hi_ns;
}

static inline void count_pair(struct lull_sum *sum, u32 group_ix, u64 dur_ns)
{
	const struct pick *pair = (const struct pick *)sum->picks.at + 2 * (size_t)group_ix;

	/* The second search is never below the first, and most values are in neither. */
	if (dur_ns < pair[0].lo_ns || dur_ns > pair[1].hi_ns)
		return;
	count(&pair[0], buckets_of(sum, 2 * (size_t)group_ix), dur_ns);
	if (!is_shared(pair))
		count(&pair[1], buckets_of(sum, 2 * (size_t)group_ix + 1), dur_ns);
}

/* ---- counting by size ---- */

/* The power of two of a value, and its part of it; values below PARTS are their own part. */
static inline unsigned octave_of(u64 dur_ns)
{
	return dur_ns < PARTS ? 0 : 64 - PARTS_LOG2 - (unsigned)__builtin_clzll(dur_ns);
}

static inline unsigned part_of(u64 dur_ns, unsigned octave)
{
	return octave ? (unsigned)(dur_ns >> (octave - 1)) & (PARTS - 1) : (unsigned)dur_ns;
}

static u32 add_page(struct lull_sum *sum, u32 *page)
{
	lull_vec_push(&sum->pages);
	*page = (u32)sum->pages.n;
	return *page;
}

static inline void count_size(struct lull_sum *sum, u32 group_ix, u64 dur_ns)
{
	unsigned octave = octave_of(dur_ns);
	u32 *page = (u32 *)sum->octaves.at + (size_t)group_ix * N_OCTAVES + octave;
	u32 number = *page ? *page : add_page(sum, page);

	((u32 *)sum->pages.at)[(size_t)(number - 1) * PARTS + part_of(dur_ns, octave)]++;
}

static inline void add_value(struct lull_sum *sum, u32 group_ix, u64 dur_ns)
{
	struct lull_sum_group *group = (struct lull_sum_group *)sum->groups.at + group_ix;

	group->n++;
	group->total_ns += dur_ns;
	group->squares += (unsigned __int128)dur_ns * dur_ns;
	if (dur_ns < group->min_ns)
		group->min_ns = dur_ns;
	if (dur_ns > group->max_ns)
		group->max_ns = dur_ns;
	if (group_ix < PAGED_GROUPS)
		count_size(sum, group_ix, dur_ns);
}

static void add_kept(void *ctx, u32 group_ix, u64 dur_ns)
{
	add_value(ctx, group_ix, dur_ns);
}

/* Count what was kept, and all that comes. */
static void stop_keeping(struct lull_sum *sum)
{
	if (!sum->is_keeping)
		return;
	sum->is_keeping = false;
	lull_piles_each(&sum->piles, add_kept, sum);
	lull_piles_release(&sum->piles);
}

static inline void keep_or_add(struct lull_sum *sum, u32 group_ix, u64 dur_ns)
{
	if (sum->is_keeping && lull_piles_add(&sum->piles, group_ix, dur_ns))
		return;
	stop_keeping(sum);
	add_value(sum, group_ix, dur_ns);
}

void lull_sum_add(struct lull_sum *sum, u32 group_ix, u64 dur_ns)
{
	if (sum->picks.n)
		count_pair(sum, group_ix, dur_ns);
	else
		keep_or_add(sum, group_ix, dur_ns);
}

void lull_sum_add_rows(struct lull_sum *sum, const u32 *groups, const u32 *keys, const u64 *dur_ns,
		       size_t n)
{
	if (sum->picks.n) {
		for (size_t i = 0; i < n; i++) {
			if (groups[keys[i]] != LULL_SUM_NO_GROUP)
				count_pair(sum, groups[keys[i]], dur_ns[i]);
		}
		return;
	}
	for (size_t i = 0; i < n; i++) {
		if (groups[keys[i]] != LULL_SUM_NO_GROUP)
			keep_or_add(sum, groups[keys[i]], dur_ns[i]);
	}
}

static void merge_pages(struct lull_sum *to, u32 to_ix, const struct lull_sum *from, u32 from_ix)
{
	const u32 *octaves = (const u32 *)from->octaves.at + (size_t)from_ix * N_OCTAVES;

	for (unsigned octave = 0; octave < N_OCTAVES; octave++) {
		u32 *page = (u32 *)to->octaves.at + (size_t)to_ix * N_OCTAVES + octave;
		const u32 *counts;
		u32 *sums, number;

		if (!octaves[octave])
			continue;
		number = *page ? *page : add_page(to, page);
		counts = (const u32 *)from->pages.at + (size_t)(octaves[octave] - 1) * PARTS;
		sums = (u32 *)to->pages.at + (size_t)(number - 1) * PARTS;
		for (unsigned part = 0; part < PARTS; part++)
			sums[part] += counts[part];
	}
}

void lull_sum_merge(struct lull_sum *to, u32 to_ix, struct lull_sum *from, u32 from_ix)
{
	struct lull_sum_group *group = (struct lull_sum_group *)to->groups.at + to_ix;
	const struct lull_sum_group *other =
		(const struct lull_sum_group *)from->groups.at + from_ix;

	if (to->is_keeping && from->is_keeping &&
	    lull_piles_merge(&to->piles, to_ix, &from->piles, from_ix))
		return;
	/* In this order: what `to` got of `from` lies there. */
	stop_keeping(to);
	stop_keeping(from);
	group->n += other->n;
	group->total_ns += other->total_ns;
	group->squares += other->squares;
	if (other->min_ns < group->min_ns)
		group->min_ns = other->min_ns;
	if (other->max_ns > group->max_ns)
		group->max_ns = other->max_ns;
	if (to_ix < PAGED_GROUPS)
		merge_pages(to, to_ix, from, from_ix);
}

/* ---- medians ---- */

/* Make the buckets as narrow as their number allows. */
static void aim(struct pick *pick, unsigned n_buckets_log2)
{
	pick->shift = 0;
	while ((pick->hi_ns - pick->lo_ns) >> pick->shift >> n_buckets_log2)
		pick->shift++;
}

/* Begin a search with the part of a power of two that holds the rank. */
static void start_in_part(const struct lull_sum *sum, size_t group_ix, struct pick *pick)
{
	const u32 *pages = (const u32 *)sum->octaves.at + group_ix * N_OCTAVES;

	for (unsigned octave = 0; octave < N_OCTAVES; octave++) {
		const u32 *counts =
			(const u32 *)sum->pages.at + (size_t)(pages[octave] - 1) * PARTS;
		u64 width_ns = octave ? 1ULL << (octave - 1) : 1;

		for (unsigned part = 0; pages[octave] && part < PARTS; part++) {
			u64 lo_ns = octave ? (u64)(PARTS + part) << (octave - 1) : part;

			if (pick->rank >= counts[part]) {
				pick->rank -= counts[part];
				continue;
			}
			/* What lies below the smallest value of all was never counted. */
			pick->lo_ns = lo_ns;
			if (lo_ns + (width_ns - 1) < pick->hi_ns)
				pick->hi_ns = lo_ns + (width_ns - 1);
			return;
		}
	}
}

static void start_picks(struct lull_sum *sum)
{
	const struct lull_sum_group *groups = sum->groups.at;
	struct pick *picks = lull_vec_extend(&sum->picks, 2 * sum->groups.n);

	sum->n_buckets_log2 = MAX_BUCKETS_LOG2;
	while (sum->n_buckets_log2 > MIN_BUCKETS_LOG2 &&
	       sum->picks.n << sum->n_buckets_log2 >> BUCKETS_LOG2)
		sum->n_buckets_log2--;
	for (size_t i = 0; i < sum->picks.n; i++) {
		const struct lull_sum_group *group = &groups[i / 2];

		picks[i] = (struct pick){
			.lo_ns = group->n ? group->min_ns : 0,
			.hi_ns = group->max_ns,
			.rank = i % 2 ? group->n / 2 : (group->n ? group->n - 1 : 0) / 2,
		};
		if (i / 2 < PAGED_GROUPS && group->n)
			start_in_part(sum, i / 2, &picks[i]);
		aim(&picks[i], sum->n_buckets_log2);
	}
	lull_vec_extend(&sum->buckets, sum->picks.n << sum->n_buckets_log2);
}

/* Go on with the bucket that holds the rank. */
static void narrow(struct pick *pick, const u32 *buckets, unsigned n_buckets_log2)
{
	size_t last = (size_t)((pick->hi_ns - pick->lo_ns) >> pick->shift), ix = 0;
	u64 width_ns = 1ULL << pick->shift;

	if (pick->lo_ns == pick->hi_ns)
		return;
	while (ix < last && buckets[ix] <= pick->rank)
		pick->rank -= buckets[ix++];
	pick->lo_ns += (u64)ix << pick->shift;
	if (pick->hi_ns - pick->lo_ns >= width_ns)
		pick->hi_ns = pick->lo_ns + width_ns - 1;
	aim(pick, n_buckets_log2);
}

/* One step of all searches. */
static void narrow_all(struct lull_sum *sum)
{
	struct pick *picks = sum->picks.at;

	for (size_t i = 0; i < sum->picks.n; i += 2) {
		size_t second = is_shared(&picks[i]) ? i : i + 1;

		narrow(&picks[i], buckets_of(sum, i), sum->n_buckets_log2);
		narrow(&picks[i + 1], buckets_of(sum, second), sum->n_buckets_log2);
	}
	memset(sum->buckets.at, 0, sum->buckets.n * sizeof(u32));
}

static bool is_any_open(const struct lull_sum *sum)
{
	const struct pick *picks = sum->picks.at;

	for (size_t i = 0; i < sum->picks.n; i++) {
		if (picks[i].lo_ns != picks[i].hi_ns)
			return true;
	}
	return false;
}

/* All that is asked of values that were kept. */
static void fold_kept(struct lull_sum *sum)
{
	struct lull_sum_group *groups = sum->groups.at;

	for (u32 i = 0; i < sum->groups.n; i++) {
		struct lull_pile_fold fold = lull_piles_fold(&sum->piles, i);

		groups[i].n = fold.n;
		groups[i].total_ns = fold.total_ns;
		groups[i].squares = fold.squares;
		groups[i].min_ns = fold.min_ns;
		groups[i].max_ns = fold.max_ns;
		groups[i].median_ns = lull_piles_median(&sum->piles, i, &fold);
	}
}

void lull_sum_run(struct lull_sum *sum, lull_sum_scan *scan, void *ctx)
{
	struct lull_sum_group *groups;
	const struct pick *picks;

	scan(ctx, sum);
	if (sum->is_keeping) {
		fold_kept(sum);
		return;
	}
	start_picks(sum);
	while (is_any_open(sum)) {
		scan(ctx, sum);
		narrow_all(sum);
	}
	groups = sum->groups.at;
	picks = sum->picks.at;
	for (size_t i = 0; i < sum->groups.n; i++)
		groups[i].median_ns = ((f64)picks[2 * i].lo_ns + (f64)picks[2 * i + 1].lo_ns) / 2;
}

f64 lull_sum_deviation(const struct lull_sum_group *group)
{
	unsigned __int128 square = (unsigned __int128)group->total_ns * group->total_ns;
	f64 whole, part;

	if (group->n < 2)
		return 0;
	/* squares - total^2 / n, subtracted before it is rounded. */
	whole = (f64)(group->squares - square / group->n);
	part = (f64)(u64)(square % group->n) / (f64)group->n;
	return sqrt((whole - part) / (f64)(group->n - 1));
}

void lull_sum_put_spread(struct lull_out *out, const struct lull_sum_group *group)
{
	if (!group->n) {
		for (int i = 0; i < 5; i++)
			lull_out_skip(out);
		return;
	}
	lull_out_f64(out, (f64)group->total_ns / (f64)group->n);
	lull_out_f64(out, group->median_ns);
	lull_out_i64(out, (i64)group->min_ns);
	lull_out_i64(out, (i64)group->max_ns);
	lull_out_f64(out, lull_sum_deviation(group));
}

#define MB 1e6

void lull_sum_put_sizes(struct lull_out *out, const struct lull_sum_group *group)
{
	lull_out_f64(out, (f64)group->total_ns / MB);
	lull_out_i64(out, (i64)group->n);
	lull_out_f64(out, (f64)group->total_ns / (f64)group->n / MB);
	lull_out_f64(out, group->median_ns / MB);
	lull_out_f64(out, (f64)group->min_ns / MB);
	lull_out_f64(out, (f64)group->max_ns / MB);
	lull_out_f64(out, lull_sum_deviation(group) / MB);
}

static int by_total(const void *a, const void *b)
{
	const struct lull_sum_group *x = *(const struct lull_sum_group *const *)a;
	const struct lull_sum_group *y = *(const struct lull_sum_group *const *)b;

	if (x->total_ns != y->total_ns)
		return x->total_ns < y->total_ns ? 1 : -1;
	return (x > y) - (x < y);
}

void lull_sum_each(const struct lull_sum *sum, lull_sum_visit *visit, void *ctx)
{
	const struct lull_sum_group *groups = sum->groups.at, **order;

	order = lull_alloc(sum->groups.n, sizeof(*order));
	for (size_t i = 0; i < sum->groups.n; i++)
		order[i] = &groups[i];
	if (sum->groups.n)
		lull_sort(order, sum->groups.n, sizeof(*order), by_total);
	for (size_t i = 0; i < sum->groups.n; i++) {
		if (order[i]->n)
			visit(ctx, order[i]);
	}
	free(order);
}

/* What put_row() needs besides the group. */
struct rows {
	struct lull_out *out;
	lull_sum_names *names;
	void *ctx;
	f64 all_ns;
};

static void put_row(void *ctx, const struct lull_sum_group *group)
{
	const struct rows *rows = ctx;
	struct lull_out *out = rows->out;

	lull_out_row(out);
	lull_out_f64(out, rows->all_ns > 0 ? 100 * (f64)group->total_ns / rows->all_ns : 0);
	lull_out_i64(out, (i64)group->total_ns);
	lull_out_i64(out, (i64)group->n);
	lull_sum_put_spread(out, group);
	rows->names(rows->ctx, out, group);
}

void lull_sum_write(const struct lull_sum *sum, struct lull_out *out, lull_sum_names *names,
		    void *ctx)
{
	const struct lull_sum_group *groups = sum->groups.at;
	struct rows rows = { .out = out, .names = names, .ctx = ctx };

	for (size_t i = 0; i < sum->groups.n; i++)
		rows.all_ns += (f64)groups[i].total_ns;
	lull_sum_each(sum, put_row, &rows);
}
