#include "report/phase_pieces.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "model/nest.h"
#include "model/words.h"

/* Phases of PyTorch that no range of the program is a part of: a range with two is around them. */
static const char *const torch_phases[] = { "data_load", "forward", "backward", "optimizer" };

struct range {
	struct lull_span span;
	u32 label;
	u32 held; /* bits of torch_phases inside it */
};

struct search {
	struct lull_reader *reader;
	const struct lull_process_rounds *p;
	const struct lull_label_row *labels;
	struct lull_vec ranges; /* struct range, of the thread */
	u8 *is_around;		/* by label */
	struct lull_phase_pieces *to;
};

static int by_span(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	if (x->span.from_ns != y->span.from_ns)
		return x->span.from_ns < y->span.from_ns ? -1 : 1;
	if (x->span.to_ns != y->span.to_ns)
		return x->span.to_ns > y->span.to_ns ? -1 : 1;
	return (x->label > y->label) - (x->label < y->label);
}

static void read_ranges(struct search *s)
{
	struct lull_range_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, s->reader, LULL_TABLE_range, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			struct range *range;

			if (cols.lane[i] != s->p->lane || !cols.label[i] ||
			    cols.flags[i] & LULL_RANGE_START_END ||
			    lull_nest_is_shadow(s->labels, cols.label[i]))
				continue;
			range = lull_vec_push(&s->ranges);
			range->span = (struct lull_span){
				cols.start_ns[i], lull_span_end_ns(cols.start_ns[i], cols.dur_ns[i])
			};
			range->label = cols.label[i];
		}
	}
	lull_cursor_release(&c);
	if (s->ranges.n)
		lull_sort(s->ranges.at, s->ranges.n, sizeof(struct range), by_span);
}

/* The bit of a phase of PyTorch, 0 for other ranges. */
static u32 torch_bit(const struct search *s, u32 label)
{
	const char *name = lull_reader_string(s->reader, s->labels[label - 1].name, NULL);

	if (strcmp(lull_reader_string(s->reader, s->labels[label - 1].domain, NULL), "torch") != 0)
		return 0;
	for (u32 i = 0; i < LULL_COUNT_OF(torch_phases); i++) {
		if (!strcmp(name, torch_phases[i]))
			return 1u << i;
	}
	return 0;
}

/* The first round that begins at or after at_ns; their number if none does. */
static u32 round_from(const struct search *s, u64 at_ns)
{
	const struct lull_round *at = s->p->rounds.all.at;
	u32 low = 0, high = (u32)s->p->rounds.all.n;

	while (low < high) {
		u32 middle = low + (high - low) / 2;

		if (at[middle].mark_ns < at_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Whether the range is a step, or more than one. */
static bool is_step(const struct search *s, const struct range *range)
{
	u32 round = round_from(s, range->span.from_ns);
	struct lull_span span;

	if (lull_name_is_step(
		    lull_reader_string(s->reader, s->labels[range->label - 1].name, NULL)))
		return true;
	if (round == s->p->rounds.all.n)
		return false;
	span = lull_process_round_span(s->p, round);
	if (span.from_ns == range->span.from_ns &&
	    (s->p->rounds.source == LULL_ROUNDS_RANGE || s->p->rounds.source == LULL_ROUNDS_NAMED))
		return true;
	return range->span.to_ns >= span.to_ns && span.to_ns > span.from_ns;
}

/* Tell each range which phases of PyTorch it holds. */
static void find_held(struct search *s)
{
	struct range *ranges = s->ranges.at;
	struct lull_vec open; /* u32: ranges that have not ended, outermost first */

	lull_vec_init(&open, sizeof(u32));
	for (u32 i = 0; i < s->ranges.n; i++) {
		u32 bit = torch_bit(s, ranges[i].label);
		u32 *at = open.at;

		while (open.n && ranges[at[open.n - 1]].span.to_ns <= ranges[i].span.from_ns)
			open.n--;
		for (size_t k = 0; bit && k < open.n; k++)
			ranges[at[k]].held |= bit;
		*(u32 *)lull_vec_push(&open) = i;
	}
	lull_vec_release(&open);
}

static void find_around(struct search *s)
{
	const struct range *ranges = s->ranges.at;

	find_held(s);
	for (size_t i = 0; i < s->ranges.n; i++) {
		bool holds_several = ranges[i].held & (ranges[i].held - 1);

		s->is_around[ranges[i].label] |= holds_several || is_step(s, &ranges[i]);
	}
}

/* The outermost ranges one after the other; one that begins in another is part of that. */
static void cut_pieces(struct search *s)
{
	const struct range *ranges = s->ranges.at;
	u64 last_ns = 0;

	for (size_t i = 0; i < s->ranges.n; i++) {
		const struct lull_label_row *label = &s->labels[ranges[i].label - 1];
		struct lull_phase_name name = { label->name, label->domain };
		struct lull_span span = lull_span_cut(ranges[i].span, last_ns, UINT64_MAX);

		if (s->is_around[ranges[i].label] || ranges[i].span.to_ns <= last_ns ||
		    span.from_ns >= span.to_ns)
			continue;
		*(struct lull_phase_piece *)lull_vec_push(&s->to->all) =
			(struct lull_phase_piece){ span, lull_intern_add(&s->to->names, &name,
									 sizeof(name)) };
		last_ns = span.to_ns;
	}
}

void lull_phase_pieces_init(struct lull_phase_pieces *s, const struct lull_process_rounds *p)
{
	const struct lull_phase_name rest = { UINT32_MAX, UINT32_MAX };
	struct search search = { .reader = p->reader, .p = p, .to = s };
	size_t n_labels;

	lull_vec_init(&s->all, sizeof(struct lull_phase_piece));
	lull_intern_init(&s->names);
	lull_intern_add(&s->names, &rest, sizeof(rest));
	search.labels = lull_reader_dim(p->reader, LULL_TABLE_label, &n_labels);
	search.is_around = lull_alloc(n_labels + 1, sizeof(*search.is_around));
	lull_vec_init(&search.ranges, sizeof(struct range));
	read_ranges(&search);
	find_around(&search);
	cut_pieces(&search);
	lull_vec_release(&search.ranges);
	free(search.is_around);
}

void lull_phase_pieces_release(struct lull_phase_pieces *s)
{
	lull_vec_release(&s->all);
	lull_intern_release(&s->names);
}

u32 lull_phase_at(const struct lull_phase_pieces *s, u64 at_ns)
{
	const struct lull_phase_piece *at = s->all.at;
	size_t low = 0, high = s->all.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (at[middle].span.to_ns <= at_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low < s->all.n && at[low].span.from_ns <= at_ns ? at[low].group : LULL_PHASE_REST;
}
