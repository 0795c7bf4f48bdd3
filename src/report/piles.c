#include "report/piles.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/mem.h"
#include "base/sort.h"

/* A part begins small, since there may be 100,000 groups, and is a quarter of what came before. */
#define MIN_PART 16u
#define MAX_PART 2048u

/*
 * The first slab is for small reports. Later ones are huge pages where there are some: filling 40
 * MB of small ones takes 10,000 page faults, a tenth of the time of a sum over 10 million kernels.
 */
#define FIRST_SLAB_BYTES (64u << 10)
#define SLAB_BYTES	 (2u << 20)

/* Up to this, a sum of squares of a part fits 64 bits: 2^26.5 squared times 2,048. */
#define SMALL_NS (94u << 20)

/* Fewer values are sorted; more are counted in buckets, which stay in the L1 cache. */
#define SORTED	       64u
#define MAX_COUNT_LOG2 13u

void lull_piles_init(struct lull_piles *p)
{
	*p = (struct lull_piles){ 0 };
	lull_vec_init(&p->piles, sizeof(struct lull_pile));
	lull_vec_init(&p->slabs, sizeof(void *));
}

void lull_piles_release(struct lull_piles *p)
{
	void **slabs = p->slabs.at;

	for (size_t i = 0; i < p->slabs.n; i++)
		free(slabs[i]);
	lull_vec_release(&p->slabs);
	lull_vec_release(&p->piles);
	free(p->counts);
	lull_piles_init(p);
}

void lull_piles_extend(struct lull_piles *p, size_t n_groups)
{
	struct lull_pile *pile;

	while (p->piles.n < n_groups) {
		pile = lull_vec_push(&p->piles);
		pile->fold.min_ns = UINT64_MAX;
	}
}

/* ---- room ---- */

static bool add_slab(struct lull_piles *p)
{
	size_t n = p->size_bytes ? SLAB_BYTES : FIRST_SLAB_BYTES;
	void *slab;

	if (p->size_bytes + n > LULL_PILES_BYTES)
		return false;
	slab = aligned_alloc(n, n);
	if (!slab)
		return false;
	/* Where it is refused, small pages do. */
	if (n == SLAB_BYTES)
		(void)madvise(slab, n, MADV_HUGEPAGE);
	lull_vec_add(&p->slabs, &slab, 1);
	p->size_bytes += n;
	p->slab_at = slab;
	p->slab_end = p->slab_at + n;
	return true;
}

/* Bytes of a slab, NULL if there is no room. */
static void *take(struct lull_piles *p, size_t n)
{
	u8 *at;

	n = (n + 7) & ~(size_t)7;
	if ((size_t)(p->slab_end - p->slab_at) < n && !add_slab(p))
		return NULL;
	at = p->slab_at;
	p->slab_at += n;
	return at;
}

/* ---- sums ---- */

static u64 total_of(const u32 *at, u32 n)
{
	u64 total = 0;

	for (u32 i = 0; i < n; i++)
		total += at[i];
	return total;
}

static void extremes_of(const u32 *at, u32 n, u32 *min, u32 *max)
{
	u32 lo = UINT32_MAX, hi = 0;

	for (u32 i = 0; i < n; i++) {
		lo = at[i] < lo ? at[i] : lo;
		hi = at[i] > hi ? at[i] : hi;
	}
	*min = lo;
	*max = hi;
}

static u64 small_squares(const u32 *at, u32 n)
{
	u64 sum = 0;

	for (u32 i = 0; i < n; i++)
		sum += (u64)at[i] * at[i];
	return sum;
}

static unsigned __int128 squares_of(const u32 *at, u32 n)
{
	unsigned __int128 sum = 0;

	for (u32 i = 0; i < n; i++)
		sum += (u64)at[i] * at[i];
	return sum;
}

static void fold_part(struct lull_pile_fold *fold, const u32 *at, u32 n)
{
	u32 min, max;

	if (!n)
		return;
	extremes_of(at, n, &min, &max);
	fold->n += n;
	fold->total_ns += total_of(at, n);
	fold->squares += max < SMALL_NS ? small_squares(at, n) : squares_of(at, n);
	if (min < fold->min_ns)
		fold->min_ns = min;
	if (max > fold->max_ns)
		fold->max_ns = max;
}

static void add_fold(struct lull_pile_fold *to, const struct lull_pile_fold *from)
{
	to->n += from->n;
	to->total_ns += from->total_ns;
	to->squares += from->squares;
	if (from->min_ns < to->min_ns)
		to->min_ns = from->min_ns;
	if (from->max_ns > to->max_ns)
		to->max_ns = from->max_ns;
}

/* Values in the open part. */
static u32 n_open(const struct lull_pile *pile)
{
	return (u32)(pile->at - pile->begin);
}

static bool add_part(struct lull_piles *p, struct lull_pile *pile, const u32 *at, u32 n)
{
	struct lull_pile_part *part = take(p, sizeof(*part));

	if (!part)
		return false;
	*part = (struct lull_pile_part){ pile->parts, at, n };
	pile->parts = part;
	return true;
}

static bool close_part(struct lull_piles *p, struct lull_pile *pile)
{
	u32 n = n_open(pile);

	if (!n)
		return true;
	if (!add_part(p, pile, pile->begin, n))
		return false;
	fold_part(&pile->fold, pile->begin, n);
	pile->n_taken += n;
	pile->begin = pile->at;
	return true;
}

bool lull_piles_more(struct lull_piles *p, u32 group)
{
	struct lull_pile *pile = (struct lull_pile *)p->piles.at + group;
	u32 n;

	if (!close_part(p, pile))
		return false;
	n = pile->n_taken / 4 & ~(MIN_PART - 1);
	n = n < MIN_PART ? MIN_PART : n > MAX_PART ? MAX_PART : n;
	pile->begin = take(p, n * sizeof(*pile->begin));
	pile->at = pile->begin;
	pile->end = pile->begin ? pile->begin + n : NULL;
	return pile->begin != NULL;
}

bool lull_piles_merge(struct lull_piles *to, u32 to_group, struct lull_piles *from, u32 from_group)
{
	struct lull_pile *pile = (struct lull_pile *)to->piles.at + to_group;
	struct lull_pile *other = (struct lull_pile *)from->piles.at + from_group;
	const struct lull_pile before = *pile;
	const struct lull_pile_part *part;

	if (!close_part(from, other))
		return false;
	for (part = other->parts; part; part = part->next) {
		if (!add_part(to, pile, part->at, part->n)) {
			*pile = before;
			return false;
		}
	}
	add_fold(&pile->fold, &other->fold);
	return true;
}

void lull_piles_each(const struct lull_piles *p, lull_piles_visit *visit, void *ctx)
{
	const struct lull_pile *piles = p->piles.at;

	for (u32 group = 0; group < p->piles.n; group++) {
		const struct lull_pile_part *part = piles[group].parts;

		for (; part; part = part->next) {
			for (u32 i = 0; i < part->n; i++)
				visit(ctx, group, part->at[i]);
		}
		for (const u32 *at = piles[group].begin; at != piles[group].at; at++)
			visit(ctx, group, *at);
	}
}

struct lull_pile_fold lull_piles_fold(const struct lull_piles *p, u32 group)
{
	const struct lull_pile *pile = (const struct lull_pile *)p->piles.at + group;
	struct lull_pile_fold fold = pile->fold;

	fold_part(&fold, pile->begin, n_open(pile));
	return fold;
}

/* ---- medians ---- */

static int by_value(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return (x > y) - (x < y);
}

/* Of a few values. */
static f64 median_by_sorting(const struct lull_pile *pile, u64 n)
{
	const struct lull_pile_part *part;
	u32 values[SORTED];
	size_t at = n_open(pile);

	if (at)
		memcpy(values, pile->begin, at * sizeof(*values));
	for (part = pile->parts; part; at += part->n, part = part->next)
		memcpy(values + at, part->at, part->n * sizeof(*values));
	lull_sort(values, n, sizeof(*values), by_value);
	return ((f64)values[(n - 1) / 2] + (f64)values[n / 2]) / 2;
}

/* A search for the value of a rank, which lies in [lo, lo + width). */
struct range {
	u32 lo;
	u32 width; /* less one, so that it may be all */
	u64 rank;  /* among the values of the range */
	unsigned shift;
};

static void count_part(u32 *counts, const struct range *range, const u32 *at, u32 n)
{
	for (u32 i = 0; i < n; i++) {
		u32 off = at[i] - range->lo;

		if (off <= range->width)
			counts[off >> range->shift]++;
	}
}

/* Count the values of the range in buckets. */
static void count_all(u32 *counts, const struct range *range, const struct lull_pile *pile)
{
	const struct lull_pile_part *part;

	memset(counts, 0, sizeof(*counts) * (((size_t)range->width >> range->shift) + 1));
	count_part(counts, range, pile->begin, n_open(pile));
	for (part = pile->parts; part; part = part->next)
		count_part(counts, range, part->at, part->n);
}

/* Go on with the bucket of the rank; each step takes 6 bits at least off the width. */
static void narrow(struct range *range, const u32 *counts)
{
	u32 ix = 0;
	u32 width = ((u32)1 << range->shift) - 1;

	while (counts[ix] <= range->rank)
		range->rank -= counts[ix++];
	range->lo += ix << range->shift;
	range->width -= ix << range->shift;
	if (range->width > width)
		range->width = width;
}

/* Make buckets as narrow as their number allows: not many more of them than values. */
static void aim(struct range *range, u64 n)
{
	unsigned log2 = MAX_COUNT_LOG2;

	while (log2 > 6 && (u64)1 << log2 > n)
		log2--;
	range->shift = 0;
	while (range->width >> range->shift >> log2)
		range->shift++;
}

static u32 value_of_rank(u32 *counts, const struct lull_pile *pile, struct range range, u64 n)
{
	while (range.width) {
		aim(&range, n);
		count_all(counts, &range, pile);
		narrow(&range, counts);
	}
	return range.lo;
}

/* As long as both ranks are in one bucket, it is counted for both. */
static f64 median_by_counting(u32 *counts, const struct lull_pile *pile,
			      const struct lull_pile_fold *fold)
{
	struct range low = { .lo = (u32)fold->min_ns,
			     .width = (u32)(fold->max_ns - fold->min_ns),
			     .rank = (fold->n - 1) / 2 };
	struct range high = low;
	u32 above;

	high.rank = fold->n / 2;
	while (low.width && low.lo == high.lo && low.width == high.width) {
		aim(&low, fold->n);
		high.shift = low.shift;
		count_all(counts, &low, pile);
		narrow(&low, counts);
		narrow(&high, counts);
	}
	above = value_of_rank(counts, pile, high, fold->n);
	return ((f64)value_of_rank(counts, pile, low, fold->n) + (f64)above) / 2;
}

f64 lull_piles_median(struct lull_piles *p, u32 group, const struct lull_pile_fold *fold)
{
	const struct lull_pile *pile = (const struct lull_pile *)p->piles.at + group;

	if (!fold->n)
		return 0;
	if (fold->n <= SORTED)
		return median_by_sorting(pile, fold->n);
	if (!p->counts)
		p->counts = lull_alloc((size_t)1 << MAX_COUNT_LOG2, sizeof(*p->counts));
	return median_by_counting(p->counts, pile, fold);
}
