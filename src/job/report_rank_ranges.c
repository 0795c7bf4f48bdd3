/*
 * rank_ranges: the same range on all ranks, the slowest first.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "job/job_int.h"
#include "job/job_report.h"

/* Of a range on more ranks than this, only the slowest are shown. */
#define MAX_RANKS 16u

static const struct lull_out_column columns[] = {
	{ .name = "Range", .kind = LULL_OUT_TEXT, .doc = "its name, without the rank" },
	{ .name = "Rank", .kind = LULL_OUT_ID, .doc = "where" },
	{ .name = "Instances", .kind = LULL_OUT_INT, .doc = "in steady steps" },
	{ .name = "Avg", .kind = LULL_OUT_NS, .decimals = 1, .doc = "on the thread" },
	{ .name = "Device",
	  .kind = LULL_OUT_NS,
	  .decimals = 1,
	  .doc = "from the first work launched in it to the end of the last, mean" },
	{ .name = "Median",
	  .kind = LULL_OUT_NS,
	  .decimals = 1,
	  .doc = "of the ranks: of Device, where every rank has it, else of Avg" },
	{ .name = "Slower", .kind = LULL_OUT_PERCENT, .doc = "than that; negative: faster" },
};

/* All ranks with one range. */
struct shared {
	const struct lull_job_range **at; /* slowest first, by the time that is compared */
	size_t n;
	bool is_device;
	f64 median_ns;
};

static f64 time_of(const struct lull_job_range *x, bool is_device)
{
	return is_device ? (f64)x->device_ns / (f64)x->n_device : (f64)x->host_ns / (f64)x->n;
}

static int by_name(const void *a, const void *b)
{
	const struct lull_job_range *x = *(const struct lull_job_range *const *)a;
	const struct lull_job_range *y = *(const struct lull_job_range *const *)b;
	int order = strcmp(x->name, y->name);

	return order ? order : (x->rank > y->rank) - (x->rank < y->rank);
}

static int by_device(const void *a, const void *b)
{
	const struct lull_job_range *x = *(const struct lull_job_range *const *)a;
	const struct lull_job_range *y = *(const struct lull_job_range *const *)b;
	f64 p = time_of(x, true), q = time_of(y, true);

	return p != q ? (p < q ? 1 : -1) : by_name(a, b);
}

static int by_host(const void *a, const void *b)
{
	const struct lull_job_range *x = *(const struct lull_job_range *const *)a;
	const struct lull_job_range *y = *(const struct lull_job_range *const *)b;
	f64 p = time_of(x, false), q = time_of(y, false);

	return p != q ? (p < q ? 1 : -1) : by_name(a, b);
}

/* How much longer the slowest rank takes than the median, in all. */
static f64 excess(const struct shared *s)
{
	return (time_of(s->at[0], s->is_device) - s->median_ns) * (f64)s->at[0]->n;
}

static int by_excess(const void *a, const void *b)
{
	f64 x = excess(a), y = excess(b);
	const struct shared *p = a, *q = b;

	return x != y ? (x < y ? 1 : -1) : strcmp(p->at[0]->name, q->at[0]->name);
}

static void settle(struct shared *s)
{
	f64 *times = lull_alloc(s->n, sizeof(*times));

	s->is_device = true;
	for (size_t i = 0; i < s->n; i++)
		s->is_device &= s->at[i]->n_device > 0;
	for (size_t i = 0; i < s->n; i++)
		times[i] = time_of(s->at[i], s->is_device);
	s->median_ns = lull_job_median(times, s->n);
	lull_sort(s->at, s->n, sizeof(*s->at), s->is_device ? by_device : by_host);
	free(times);
}

static void put_rows(struct lull_out *out, const struct shared *s)
{
	for (size_t i = 0; i < s->n && i < MAX_RANKS; i++) {
		const struct lull_job_range *x = s->at[i];

		lull_out_row(out);
		lull_out_text(out, x->name);
		lull_out_i64(out, x->rank);
		lull_out_i64(out, (i64)x->n);
		lull_out_f64(out, time_of(x, false));
		if (x->n_device)
			lull_out_f64(out, time_of(x, true));
		else
			lull_out_skip(out);
		lull_out_f64(out, s->median_ns);
		lull_out_f64(out, s->median_ns > 0
					  ? (time_of(x, s->is_device) / s->median_ns - 1) * 100
					  : 0);
	}
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	const struct lull_vec *ranges = &options->job->ranges;
	const struct lull_job_range *all = ranges->at;
	const struct lull_job_range **order = lull_alloc(ranges->n, sizeof(*order));
	struct shared *shared = lull_alloc(ranges->n, sizeof(*shared));
	size_t n = 0;

	(void)r;
	(void)err;
	for (size_t i = 0; i < ranges->n; i++)
		order[i] = &all[i];
	if (ranges->n)
		lull_sort(order, ranges->n, sizeof(*order), by_name);
	for (size_t i = 0, end; i < ranges->n; i = end) {
		for (end = i + 1; end < ranges->n && strcmp(order[end]->name, order[i]->name) == 0;)
			end++;
		if (end - i < 2)
			continue;
		shared[n] = (struct shared){ .at = order + i, .n = end - i };
		settle(&shared[n++]);
	}
	if (n)
		lull_sort(shared, n, sizeof(*shared), by_excess);
	for (size_t i = 0; i < n; i++)
		put_rows(out, &shared[i]);
	free(shared);
	free(order);
	return LULL_OK;
}

const struct lull_report lull_job_report_rank_ranges = {
	.name = "rank_ranges",
	.display = "Ranges of Ranks",
	.summary = "the same range on all ranks, the slowest first",
	.help = "The ranges of steady steps that two or more ranks have, by name; a rank at the "
		"start of a name (rank3_forward, [rank 3] forward) is dropped. First the range "
		"whose slowest rank loses most time, and in each range the slowest rank first; of "
		"more than 16 ranks the 16 slowest. A range in which ranks wait for each other is "
		"equally long on all of them, although only one of them has more work.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.empty = "no range is on two ranks: mark phases with NVTX, or record PyTorch",
	.run = run,
};
