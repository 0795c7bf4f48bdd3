#include "model/nest.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"
#include "model/order.h"

/*
 * Open ranges. `outer` of a range is the last range begun before it on the thread that was still
 * open. Any range that is open at a moment t is reached from the last range begun before t by
 * following `outer`: it was open at the start of each range on the way. This holds also for ranges
 * of two domains that overlap without nesting.
 */

/* Deeper than this the column says only "deeper". */
#define DEPTH_DEEPER 255

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

/* Which ranges are taken. */
struct taken {
	struct lull_span window;
	unsigned refused; /* flags */
	const struct lull_label_row *labels;
};

static bool fill(void *ctx, void *element, const void *columns, size_t i)
{
	const struct lull_range_cols *cols = columns;
	const struct taken *taken = ctx;

	if (cols->flags[i] & taken->refused || lull_nest_is_shadow(taken->labels, cols->label[i]) ||
	    !lull_span_holds(taken->window, cols->start_ns[i], cols->dur_ns[i]))
		return false;
	*(struct lull_nest_range *)element = (struct lull_nest_range){
		.start_ns = cols->start_ns[i],
		.dur_ns = cols->dur_ns[i],
		.lane = cols->lane[i],
		.label = cols->label[i],
		.depth = cols->depth[i],
		.flags = cols->flags[i],
	};
	return true;
}

static void collect(struct lull_vec *ranges, struct lull_reader *r, struct lull_span window,
		    enum lull_nest_styles styles)
{
	static const char *const columns[] = { "start_ns", "dur_ns", "depth", "lane",
					       "label",	   "flags",  NULL };
	size_t n_labels;
	struct taken taken = {
		.window = window,
		.refused = styles == LULL_NEST_PUSHPOP ? LULL_RANGE_START_END
						       : LULL_RANGE_OTHER_THREAD,
		.labels = lull_reader_dim(r, LULL_TABLE_label, &n_labels),
	};
	struct lull_order_source source = {
		.reader = r,
		.table = LULL_TABLE_range,
		.window = window,
		.columns = columns,
		.elem_bytes = sizeof(struct lull_nest_range),
		.fill = fill,
		.compare = by_start,
		.ctx = &taken,
	};
	struct lull_order order;
	const void *range;

	lull_order_begin(&order, &source);
	while ((range = lull_order_next(&order)))
		lull_vec_add(ranges, range, 1);
	lull_order_end(&order);
}

/* Whether `inner`, which does not begin before `outer`, lies inside it on the stack. */
static bool is_parent(const struct lull_nest_range *outer, const struct lull_nest_range *inner)
{
	struct lull_span span = { outer->start_ns, outer->start_ns + outer->dur_ns };
	bool is_deeper = inner->depth > outer->depth || inner->depth == DEPTH_DEEPER;

	return is_deeper && lull_span_holds(span, inner->start_ns, inner->dur_ns);
}

/* Where the innermost range of a stack is kept, for most ranges to find it without hashing. */
struct known {
	u64 key;
	u32 top_1; /* index + 1, 0 for nothing */
};

static u32 find_top(struct lull_map *innermost, struct lull_vec *tops, u64 key)
{
	u32 *top_1 = lull_map_add(innermost, key, NULL);

	if (!*top_1) {
		lull_vec_push(tops);
		*top_1 = (u32)tops->n;
	}
	return *top_1;
}

static void find_parents(struct lull_vec *all, const struct lull_label_row *labels)
{
	struct lull_nest_range *ranges = all->at;
	struct known knowns[64] = { { 0 } }, *known;
	struct lull_map innermost; /* index in tops + 1, by lane and domain */
	struct lull_vec tops;	   /* u32: number of the innermost range */

	lull_map_init(&innermost);
	lull_vec_init(&tops, sizeof(u32));
	for (size_t i = 0; i < all->n; i++) {
		struct lull_nest_range *range = &ranges[i];
		u64 domain = range->label ? labels[range->label - 1].domain : 0, key;
		u32 *top, parent;

		if (range->flags & LULL_RANGE_START_END)
			continue;
		key = domain << 32 | range->lane;
		known = &knowns[(range->lane + domain * 7) % LULL_COUNT_OF(knowns)];
		if (!known->top_1 || known->key != key)
			*known = (struct known){ key, find_top(&innermost, &tops, key) };
		top = (u32 *)tops.at + known->top_1 - 1;
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
	lull_vec_release(&tops);
}

/*
 * Whether a range is over when the next one begins. One that ends at that very moment is, or else a
 * row of ranges without gaps would be a chain as long as the recording.
 */
static bool is_over(const struct lull_nest_range *range, const struct lull_nest_range *next)
{
	u64 end_ns = range->start_ns + range->dur_ns;

	return end_ns < next->start_ns || (end_ns == next->start_ns && next->dur_ns);
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

		while (outer && is_over(&ranges[outer - 1], &ranges[i]))
			outer = ranges[outer - 1].outer;
		ranges[i].outer = outer;
		last[lane] = (u32)i + 1;
		/* Used up below and put right by the next loop. */
		n->starts_ns[n->first_ix[lane]] = ranges[i].start_ns;
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
	find_parents(&n->ranges, lull_reader_dim(r, LULL_TABLE_label, &n_labels));
	n->numbers = lull_alloc(n->ranges.n + 1, sizeof(*n->numbers));
	n->starts_ns = lull_alloc(n->ranges.n + 1, sizeof(*n->starts_ns));
	n->first_ix = lull_alloc(n->n_lanes + 2, sizeof(*n->first_ix));
	n->hints = lull_alloc(n->n_lanes + 1, sizeof(*n->hints));
	sort_by_lane(n);
}

void lull_nest_release(struct lull_nest *n)
{
	lull_vec_release(&n->ranges);
	free(n->numbers);
	free(n->starts_ns);
	free(n->first_ix);
	free(n->hints);
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

static inline u64 start_at(const struct lull_nest *n, size_t ix)
{
	return n->starts_ns[ix];
}

/*
 * Narrow [*low, *high) around the place of `at_ns` from where the last question for this thread
 * ended: who asks goes on in time, as a rule.
 */
static void gallop(const struct lull_nest *n, size_t hint, u64 at_ns, size_t *low, size_t *high)
{
	size_t step = 1;

	if (hint < *low || hint >= *high)
		return;
	if (start_at(n, hint) <= at_ns) {
		while (hint + step < *high && start_at(n, hint + step) <= at_ns) {
			*low = hint + step;
			step *= 2;
		}
		*low = *low > hint ? *low : hint;
		*high = hint + step < *high ? hint + step : *high;
		return;
	}
	while (hint >= *low + step && start_at(n, hint - step) > at_ns) {
		*high = hint - step;
		step *= 2;
	}
	*high = *high < hint ? *high : hint;
	*low = hint >= *low + step ? hint - step : *low;
}

u32 lull_nest_find(const struct lull_nest *n, u32 lane, struct lull_span span)
{
	size_t low = n->first_ix[lane], first = low, high = n->first_ix[lane + 1];

	gallop(n, n->hints[lane], span.from_ns, &low, &high);
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (start_at(n, middle) <= span.from_ns)
			low = middle + 1;
		else
			high = middle;
	}
	n->hints[lane] = low > first ? low - 1 : first;
	return low > first ? first_holding(n, n->numbers[low - 1], span) : 0;
}

u32 lull_nest_outside(const struct lull_nest *n, u32 number, struct lull_span span)
{
	return first_holding(n, lull_nest_get(n, number)->outer, span);
}

/* Stacks up to this deep need no memory of their own. */
#define USUAL_DEPTH 64

/* A colon and the digits of a number. */
#define STACK_BYTES 11

void lull_nest_stack(struct lull_str *to, const struct lull_nest *n, u32 number)
{
	u32 usual[USUAL_DEPTH], *numbers = usual, depth = lull_nest_get(n, number)->level + 1;
	char *at;

	if (depth > USUAL_DEPTH)
		numbers = lull_alloc(depth, sizeof(*numbers));
	for (u32 i = depth; i-- > 0; number = lull_nest_get(n, number)->parent)
		numbers[i] = number;
	at = lull_str_room(to, (size_t)depth * STACK_BYTES);
	for (u32 i = 0; i < depth; i++) {
		*at++ = ':';
		at = lull_str_put_i64(at, numbers[i]);
	}
	lull_str_take(to, at);
	if (numbers != usual)
		free(numbers);
}
