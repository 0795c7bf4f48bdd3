#include "compare/changepoint.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "compare/decide.h"

/* Of the median absolute difference of two normal values to the standard deviation of one. */
#define SD_OF_DIFFERENCE (1.482602218505602 / 1.4142135623730951)

/* Noise below this share is not looked at: a metric that never varied would change with 1 ns. */
#define LEAST_NOISE 0.001

/* Values on each side of one that say where it should lie, and how far from there it may. */
#define N_NEIGHBOURS 3
#define CLIP_SD	     4.0

/* Price of a change in variances of the noise: PRICE ln n (1 + SHORT / n)^2. */
#define PRICE 3.0
#define SHORT 10.0

/* Values that are looked at. */
#define MAX_VALUES 5000

/* Of a 90 % interval. */
#define Z_90 1.6448536269514722

struct row {
	f64 *value; /* scaled and clipped */
	f64 *sum;   /* of the first i values */
	f64 *square_sum;
	size_t n;
	bool is_log;
	f64 unit; /* of linear ones: what counts as 1 */
	f64 noise;
};

/* Ratios become differences; a row with zeros, or of shares, is compared as it is. */
static void scale(struct row *row, const f64 *values, bool is_share)
{
	f64 middle = fabs(lull_median(values, row->n));

	row->is_log = !is_share;
	for (size_t i = 0; i < row->n; i++)
		row->is_log &= values[i] > 0;
	row->unit = is_share || !(middle > 0) ? 1 : middle;
	for (size_t i = 0; i < row->n; i++)
		row->value[i] = row->is_log ? log(values[i]) : values[i] / row->unit;
}

static f64 noise_of(const struct row *row)
{
	f64 *steps = lull_alloc(row->n, sizeof(*steps)), noise;

	for (size_t i = 1; i < row->n; i++)
		steps[i - 1] = fabs(row->value[i] - row->value[i - 1]);
	noise = SD_OF_DIFFERENCE * lull_median(steps, row->n - 1);
	free(steps);
	return noise > LEAST_NOISE ? noise : LEAST_NOISE;
}

static void clip(struct row *row)
{
	f64 *clipped = lull_alloc(row->n, sizeof(*clipped)), reach = CLIP_SD * row->noise;

	for (size_t i = 0; i < row->n; i++) {
		size_t from = i > N_NEIGHBOURS ? i - N_NEIGHBOURS : 0;
		size_t to = i + N_NEIGHBOURS < row->n ? i + N_NEIGHBOURS + 1 : row->n;
		f64 middle = lull_median(row->value + from, to - from);

		clipped[i] = fmin(fmax(row->value[i], middle - reach), middle + reach);
	}
	memcpy(row->value, clipped, row->n * sizeof(*clipped));
	free(clipped);
}

static void add_up(struct row *row)
{
	/* Sums of squares of values far from 0 would lose the noise. */
	f64 origin = row->value[0];

	for (size_t i = 0; i < row->n; i++) {
		f64 value = row->value[i] - origin;

		row->sum[i + 1] = row->sum[i] + value;
		row->square_sum[i + 1] = row->square_sum[i] + value * value;
	}
}

/* Squared error of the values [from, to) around their mean. */
static f64 error_of(const struct row *row, size_t from, size_t to)
{
	f64 sum = row->sum[to] - row->sum[from];

	return row->square_sum[to] - row->square_sum[from] - sum * sum / (f64)(to - from);
}

/* The best cuts: start[i] is where the last level of the first i values begins. */
static size_t *partition(const struct row *row)
{
	f64 *cost = lull_alloc(row->n + 1, sizeof(*cost));
	size_t *start = lull_alloc(row->n + 1, sizeof(*start));
	f64 n = (f64)row->n, shortness = 1 + SHORT / n;
	f64 price = PRICE * log(n) * shortness * shortness * row->noise * row->noise;

	cost[0] = -price;
	for (size_t to = 1; to <= row->n; to++) {
		cost[to] = INFINITY;
		for (size_t from = 0; from + LULL_CHANGEPOINT_MIN_LEVEL <= to; from++) {
			f64 sum = cost[from] + error_of(row, from, to) + price;

			if (sum < cost[to]) {
				cost[to] = sum;
				start[to] = from;
			}
		}
	}
	free(cost);
	return start;
}

static f64 mean_of(const struct row *row, size_t from, size_t to)
{
	return (row->sum[to] - row->sum[from]) / (f64)(to - from);
}

static f64 change_of(const struct row *row, f64 shift)
{
	return row->is_log ? expm1(shift) : shift;
}

/* The change between the levels [a, b) and [b, c). */
static struct lull_changepoint describe(const struct row *row, const f64 *values, size_t a,
					size_t b, size_t c)
{
	f64 shift = mean_of(row, b, c) - mean_of(row, a, b);
	f64 half = Z_90 * row->noise * sqrt(1 / (f64)(b - a) + 1 / (f64)(c - b));

	return (struct lull_changepoint){ .ix = b,
					  .before = lull_median(values + a, b - a),
					  .after = lull_median(values + b, c - b),
					  .change = change_of(row, shift),
					  .low = change_of(row, shift - half),
					  .high = change_of(row, shift + half) };
}

static void collect(struct lull_changepoints *found, const struct row *row, const f64 *values)
{
	size_t *start = partition(row);
	struct lull_changepoint *all;

	for (size_t c = row->n, b = start[c]; b > 0; c = b, b = start[b])
		*(struct lull_changepoint *)lull_vec_push(&found->all) =
			describe(row, values, start[b], b, c);
	all = found->all.at;
	for (size_t i = 0, n = found->all.n; i < n / 2; i++) {
		struct lull_changepoint swap = all[i];

		all[i] = all[n - 1 - i];
		all[n - 1 - i] = swap;
	}
	free(start);
}

void lull_changepoints_find(struct lull_changepoints *found, const f64 *values, size_t n,
			    bool is_share)
{
	size_t skipped = n > MAX_VALUES ? n - MAX_VALUES : 0;
	struct row row = { .n = n - skipped };
	struct lull_changepoint *all;

	lull_vec_init(&found->all, sizeof(struct lull_changepoint));
	found->noise = 0;
	if (row.n < LULL_CHANGEPOINT_MIN_VALUES)
		return;
	row.value = lull_alloc(row.n, sizeof(f64));
	row.sum = lull_alloc(row.n + 1, sizeof(f64));
	row.square_sum = lull_alloc(row.n + 1, sizeof(f64));
	scale(&row, values + skipped, is_share);
	row.noise = found->noise = noise_of(&row);
	clip(&row);
	add_up(&row);
	collect(found, &row, values + skipped);
	all = found->all.at;
	for (size_t i = 0; i < found->all.n; i++)
		all[i].ix += skipped;
	free(row.value);
	free(row.sum);
	free(row.square_sum);
}

void lull_changepoints_release(struct lull_changepoints *found)
{
	lull_vec_release(&found->all);
}
