#include "model/nest.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"

/*
 * Open ranges. `outer` of a range is the last range begun before it on the thread that was still
 * open. Any range that is open at a moment t is reached from the last range begun before t by
 * following `outer`: it was open at the begin of each range on the way. This holds also for ranges
 * of two domains that overlap without nesting.
 */

/* Deeper than this the column says only "deeper". */
#define DEPTH_DEEPER 255

static void collect(struct lull_vec *ranges, struct lull_reader *r, struct lull_span window,
		    enum lull_nest_styles styles)
{
	static const char *const wanted[] = { "start_ns", "dur_ns", "depth",
					      "lane",	  "label",  "flags" };
	unsigned refused =
		styles == LULL_NEST_PUSHPOP ? LULL_RANGE_START_END : LULL_RANGE_OTHER_THREAD;
	size_t n, n_labels;
	const struct lull_label_row *labels = lull_reader_dim(r, LULL_TABLE_label, &n_labels);
	struct lull_range_cols cols;
	struct lull_cursor c;

	lull_cursor_init(&c, r, LULL_TABLE_range, window.from_ns, window.to_ns);
	for (size_t i = 0; i < LULL_COUNT_OF(wanted); i++)
		lull_cursor_want(&c, wanted[i]);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			if (cols.flags[i] & refused || lull_nest_is_shadow(labels, cols.label[i]) ||
			    !lull_span_holds(window, cols.start_ns[i], cols.dur_ns[i]))
				continue;
			*(struct lull_nest_range *)lull_vec_push(ranges) = (struct lull_nest_range){
				.start_ns = cols.start_ns[i],
				.dur_ns = cols.dur_ns[i],
				.lane = cols.lane[i],
				.label = cols.label[i],
				.depth = cols.depth[i],
				.flags = cols.flags[i],
			};
		}
	}
	lull_cursor_release(&c);
}

/* The file has ranges in the order of their ends; where two begin together, the outer is first. */
static int by_start(const void *a, const void *b)
{
	const struct lull_nest_range *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	if (x->dur_ns != y->dur_ns)
		return x->dur_ns > y->dur_ns ? -1 : 1;
	return x->depth - y->depth;
}

/* Whether `inner`, which does not begin before `outer`, lies inside it on the stack. */
static bool is_parent(const struct lull_nest_range *outer, const struct lull_nest_range *inner)
{
	struct lull_span span = { outer->start_ns, outer->start_ns + outer->dur_ns };
	bool is_deeper = inner->depth > outer->depth || inner->depth == DEPTH_DEEPER;

	return is_deeper && lull_span_holds(span, inner->start_ns, inner->dur_ns);
}

static void find_parents(struct lull_vec *all, const struct lull_label_row *labels)
{
	struct lull_nest_range *ranges = all->at;
	struct lull_map innermost; /* number by lane and domain */

	lull_map_init(&innermost);
	for (size_t i = 0; i < all->n; i++) {
		struct lull_nest_range *range = &ranges[i];
		u64 domain = range->label ? labels[range->label - 1].domain : 0;
		u32 *top, parent;

		if (range->flags & LULL_RANGE_START_END)
			continue;
		top = lull_map_add(&innermost, domain << 32 | range->lane, NULL);
		parent = *top;
		while (parent && !is_parent(&ranges[parent - 1], range))
			parent = ranges[parent - 1].parent;
		*top = (u32)i + 1;
		range->parent = parent;
		if (parent) {
			range->level = ranges[parent - 1].level + 1;
			ranges[parent - 1].n_children++;
			ranges[parent - 1].child_ns += range->dur_ns;
		}
	}
	lull_map_release(&innermost);
}

/* Fill numbers and first_ix, and `outer` of the ranges. */
static void sort_by_lane(struct lull_nest *n)
{
	struct lull_nest_range *ranges = n->ranges.at;
	u32 *last = lull_alloc(n->n_lanes + 1, sizeof(*last));

	for (size_t i = 0; i < n->ranges.n; i++)
		n->first_ix[ranges[i].lane + 1]++;
	for (size_t lane = 0; lane <= n->n_lanes; lane++)
		n->first_ix[lane + 1] += n->first_ix[lane];
	for (size_t i = 0; i < n->ranges.n; i++) {
		u32 lane = ranges[i].lane, outer = last[lane];

		while (outer &&
		       ranges[outer - 1].start_ns + ranges[outer - 1].dur_ns < ranges[i].start_ns)
			outer = ranges[outer - 1].outer;
		ranges[i].outer = outer;
		last[lane] = (u32)i + 1;
		/* Used up below and put right by the next loop. */
		n->numbers[n->first_ix[lane]++] = (u32)i + 1;
	}
	for (size_t lane = n->n_lanes + 1; lane > 0; lane--)
		n->first_ix[lane] = n->first_ix[lane - 1];
	n->first_ix[0] = 0;
	free(last);
}

void lull_nest_init(struct lull_nest *n, struct lull_reader *r, struct lull_span window,
		    enum lull_nest_styles styles)
{
	size_t n_labels;

	lull_vec_init(&n->ranges, sizeof(struct lull_nest_range));
	lull_reader_dim(r, LULL_TABLE_lane, &n->n_lanes);
	collect(&n->ranges, r, window, styles);
	if (n->ranges.n)
		qsort(n->ranges.at, n->ranges.n, sizeof(struct lull_nest_range), by_start);
	find_parents(&n->ranges, lull_reader_dim(r, LULL_TABLE_label, &n_labels));
	n->numbers = lull_alloc(n->ranges.n + 1, sizeof(*n->numbers));
	n->first_ix = lull_alloc(n->n_lanes + 2, sizeof(*n->first_ix));
	sort_by_lane(n);
}

void lull_nest_release(struct lull_nest *n)
{
	lull_vec_release(&n->ranges);
	free(n->numbers);
	free(n->first_ix);
}

const struct lull_nest_range *lull_nest_get(const struct lull_nest *n, u32 number)
{
	return lull_vec_get(&n->ranges, number - 1);
}

/* From `number` outwards, the first that holds the span. */
static u32 first_holding(const struct lull_nest *n, u32 number, struct lull_span span)
{
	while (number) {
		const struct lull_nest_range *range = lull_nest_get(n, number);
		struct lull_span around = { range->start_ns, range->start_ns + range->dur_ns };

		if (lull_span_holds(around, span.from_ns, span.to_ns - span.from_ns))
			break;
		number = range->outer;
	}
	return number;
}

u32 lull_nest_find(const struct lull_nest *n, u32 lane, struct lull_span span)
{
	size_t low = n->first_ix[lane], first = low, high = n->first_ix[lane + 1];

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (lull_nest_get(n, n->numbers[middle])->start_ns <= span.from_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low > first ? first_holding(n, n->numbers[low - 1], span) : 0;
}

u32 lull_nest_outside(const struct lull_nest *n, u32 number, struct lull_span span)
{
	return first_holding(n, lull_nest_get(n, number)->outer, span);
}

void lull_nest_stack(struct lull_str *to, const struct lull_nest *n, u32 number)
{
	struct lull_vec numbers;

	lull_vec_init(&numbers, sizeof(u32));
	for (; number; number = lull_nest_get(n, number)->parent)
		*(u32 *)lull_vec_push(&numbers) = number;
	for (size_t i = numbers.n; i-- > 0;)
		lull_str_addf(to, ":%u", *(u32 *)lull_vec_get(&numbers, i));
	lull_vec_release(&numbers);
}
