#include "timeline/idle_cause.h"

#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "timeline/name.h"

#define UNKNOWN 7u

/* The causes of one device. */
struct causes {
	u32 group;
	struct lull_vec pieces; /* struct lull_idle, by time, without overlap */
};

void lull_idle_init_causes(struct lull_timeline *t)
{
	lull_vec_init(&t->causes, sizeof(struct causes));
}

static const struct causes *causes_of(const struct lull_timeline *t, u32 group)
{
	const struct causes *all = t->causes.at;

	for (size_t i = 0; i < t->causes.n; i++)
		if (all[i].group == group)
			return &all[i];
	return NULL;
}

/* Index of the first piece that ends after `at_ns`. */
static size_t first_piece(const struct causes *c, u64 at_ns)
{
	const struct lull_idle *p = c->pieces.at;
	size_t low = 0, high = c->pieces.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (p[mid].span.to_ns > at_ns)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

static void add(struct lull_vec *out, u64 from_ns, u64 to_ns, u32 cause, u8 family)
{
	struct lull_idle *piece;

	if (to_ns <= from_ns)
		return;
	piece = lull_vec_push(out);
	*piece = (struct lull_idle){ { from_ns, to_ns }, cause, family };
}

/* What of a gap the causes leave over. */
static void add_rest(const struct causes *c, struct lull_span gap, struct lull_vec *out)
{
	const struct lull_idle *p = c ? c->pieces.at : NULL;
	u64 at_ns = gap.from_ns;

	for (size_t i = c ? first_piece(c, gap.from_ns) : 0;
	     c && i < c->pieces.n && p[i].span.from_ns < gap.to_ns; i++) {
		add(out, at_ns, p[i].span.from_ns, LULL_NAME_FIXED | LULL_FIXED_IDLE, UNKNOWN);
		at_ns = p[i].span.to_ns > at_ns ? p[i].span.to_ns : at_ns;
	}
	add(out, at_ns, gap.to_ns, LULL_NAME_FIXED | LULL_FIXED_IDLE, UNKNOWN);
}

static int by_start(const void *a, const void *b)
{
	const struct lull_idle *x = a, *y = b;

	if (x->span.from_ns != y->span.from_ns)
		return x->span.from_ns < y->span.from_ns ? -1 : 1;
	return (x->span.to_ns > y->span.to_ns) - (x->span.to_ns < y->span.to_ns);
}

/* By insertion: what is out of place is so by a few places. */
static void sort_pieces(struct lull_vec *pieces)
{
	struct lull_idle *p = pieces->at;

	for (size_t i = 1; i < pieces->n; i++) {
		struct lull_idle late = p[i];
		size_t k = i;

		for (; k && by_start(&p[k - 1], &late) > 0; k--)
			p[k] = p[k - 1];
		p[k] = late;
	}
}

void lull_idle_with_causes(const struct lull_timeline *t, u32 group, struct lull_span span,
			   const struct lull_vec *gaps, struct lull_vec *out)
{
	const struct causes *c = causes_of(t, group);
	const struct lull_idle *p = c ? c->pieces.at : NULL;
	const struct lull_span *gap = gaps->at;

	size_t k = c ? first_piece(c, span.from_ns) : 0;

	/* Both are by time, so that what is added is almost sorted already. */
	for (size_t i = 0; i < gaps->n; i++) {
		for (; c && k < c->pieces.n && p[k].span.from_ns < gap[i].from_ns; k++)
			lull_vec_add(out, &p[k], 1);
		add_rest(c, gap[i], out);
	}
	for (; c && k < c->pieces.n && p[k].span.from_ns < span.to_ns; k++)
		lull_vec_add(out, &p[k], 1);
	sort_pieces(out);
}

/* How much of a span the causes cover. */
static u64 covered_ns(const struct causes *c, struct lull_span span)
{
	const struct lull_idle *p = c->pieces.at;
	u64 sum = 0;

	for (size_t i = first_piece(c, span.from_ns);
	     i < c->pieces.n && p[i].span.from_ns < span.to_ns; i++) {
		struct lull_span cut = lull_span_cut(p[i].span, span.from_ns, span.to_ns);

		sum += cut.to_ns - cut.from_ns;
	}
	return sum;
}

static struct lull_rec rec_of(const struct lull_idle *piece)
{
	struct lull_rec rec = { .start_ns = piece->span.from_ns,
				.end_ns = piece->span.to_ns,
				.busy_ns = piece->span.to_ns - piece->span.from_ns,
				.name = piece->cause,
				.count = 1 };

	rec.share[piece->family] = 255;
	return rec;
}

/* The levels of the idle lane anew: the causes, and what of the old records they leave over. */
static void refold(struct lull_tl_lane *lane, const struct causes *c)
{
	const struct lull_level *old = &lane->lod.levels[0];
	const struct lull_idle *p;
	struct lull_fold fold;
	struct lull_vec rest;

	lull_fold_init(&fold, old->log2, true);
	lull_vec_init(&rest, sizeof(struct lull_idle));
	lull_vec_add(&rest, c->pieces.at, c->pieces.n);
	for (size_t i = 0; i < old->n; i++) {
		struct lull_rec rec = old->recs[i];
		struct lull_span span = { rec.start_ns, rec.end_ns };
		u64 covered = covered_ns(c, span);

		if (rec.count == 1) {
			add_rest(c, span, &rest);
		} else if (covered < rec.busy_ns) { /* many short ones: nobody sees which */
			rec.busy_ns -= covered;
			lull_fold_add(&fold, &rec);
		}
	}
	p = rest.at;
	for (size_t i = 0; i < rest.n; i++) {
		struct lull_rec rec = rec_of(&p[i]);

		lull_fold_add(&fold, &rec);
	}
	lull_vec_release(&rest);
	lull_lod_release(&lane->lod);
	lane->n_events = fold.n_events;
	lane->busy_ns = fold.busy_ns;
	lull_fold_levels(&fold, &lane->lod);
	lull_fold_release(&fold);
}

void lull_idle_set_causes(struct lull_timeline *t, u32 device, struct lull_vec *pieces)
{
	u32 group = LULL_GROUP_DEVICE | device, ix = lull_timeline_find(t, LULL_NO_ROW, group, 1);
	struct causes *c = (struct causes *)causes_of(t, group);
	const struct lull_idle *p;
	struct lull_vec all;
	u64 end_ns = 0;

	if (ix == LULL_NO_ROW || !lull_timeline_lane(t, ix)->lod.n_levels || !pieces->n)
		return;
	if (!c) {
		c = lull_vec_push(&t->causes);
		c->group = group;
		lull_vec_init(&c->pieces, sizeof(struct lull_idle));
	}
	/* Several processes may share a device: the first that claims a time has it. */
	lull_vec_init(&all, sizeof(struct lull_idle));
	lull_vec_add(&all, c->pieces.at, c->pieces.n);
	lull_vec_add(&all, pieces->at, pieces->n);
	lull_sort(all.at, all.n, sizeof(*p), by_start);
	p = all.at;
	c->pieces.n = 0;
	for (size_t i = 0; i < all.n; i++) {
		u64 from_ns = p[i].span.from_ns > end_ns ? p[i].span.from_ns : end_ns;

		add(&c->pieces, from_ns, p[i].span.to_ns, p[i].cause, p[i].family);
		end_ns = p[i].span.to_ns > end_ns ? p[i].span.to_ns : end_ns;
	}
	lull_vec_release(&all);
	refold(lull_timeline_lane(t, ix), c);
	lull_timeline_row(t, lull_timeline_lane(t, ix)->row)->busy_ns =
		lull_timeline_lane(t, ix)->busy_ns;
}

void lull_idle_release_causes(struct lull_timeline *t)
{
	struct causes *all = t->causes.at;

	for (size_t i = 0; i < t->causes.n; i++)
		lull_vec_release(&all[i].pieces);
	lull_vec_release(&t->causes);
}
