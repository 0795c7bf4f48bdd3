#include "page/receipt.h"

#include <stdlib.h>

#include "base/sort.h"
#include "base/str.h"
#include "timeline/name.h"

/* Events of a lane that are looked at one by one: some 10 ms. */
#define MAX_EVENTS   400000u
#define FOLD_BUCKETS 16384u

void lull_receipt_init(struct lull_receipt_sums *s)
{
	*s = (struct lull_receipt_sums){ 0 };
	lull_vec_init(&s->items, sizeof(struct lull_receipt_item));
	lull_map_init(&s->known);
}

void lull_receipt_release(struct lull_receipt_sums *s)
{
	lull_vec_release(&s->items);
	lull_map_release(&s->known);
}

void lull_receipt_add(struct lull_receipt_sums *s, u32 name, u8 class, u64 ns, u64 n)
{
	u32 *known = lull_map_add(&s->known, name, NULL);
	struct lull_receipt_item *item;

	if (!*known) {
		item = lull_vec_push(&s->items);
		*known = (u32)s->items.n;
		item->name = name;
		item->class = class;
	}
	item = lull_vec_get(&s->items, *known - 1);
	item->ns += ns;
	item->n += n;
	s->ns += ns;
	s->n += n;
}

static u64 inside_ns(u64 from_ns, u64 to_ns, struct lull_span span)
{
	struct lull_span cut =
		lull_span_cut((struct lull_span){ from_ns, to_ns }, span.from_ns, span.to_ns);

	return cut.to_ns > cut.from_ns ? cut.to_ns - cut.from_ns : 0;
}

static void add_events(struct lull_receipt_sums *s, struct lull_timeline *t, u32 lane,
		       struct lull_span span)
{
	const struct lull_found *all;
	struct lull_vec events;

	lull_vec_init(&events, sizeof(struct lull_found));
	lull_detail_events(t, lane, span, SIZE_MAX, &events);
	all = events.at;
	for (size_t i = 0; i < events.n; i++) {
		const struct lull_tl_event *e = &all[i].event;
		u64 ns = inside_ns(e->start_ns, e->end_ns, span);

		/* Moments have no length; what only touches an edge is not inside. */
		if (!ns && (e->end_ns > e->start_ns || e->start_ns < span.from_ns ||
			    e->start_ns >= span.to_ns))
			continue;
		lull_receipt_add(s, e->name, e->class, ns, 1);
		if (ns > s->longest_ns) {
			s->longest_ns = ns;
			s->longest = all[i];
		}
	}
	lull_vec_release(&events);
}

static u8 main_class(const struct lull_rec *rec)
{
	u8 best = 0;

	for (u8 c = 1; c < LULL_N_CLASSES; c++)
		best = rec->share[c] > rec->share[best] ? c : best;
	return best;
}

static void add_folds(struct lull_receipt_sums *s, struct lull_timeline *t, u32 lane,
		      struct lull_span span)
{
	const struct lull_rec *recs;
	struct lull_fold fold;
	u32 log2 = 0;

	while ((span.to_ns - span.from_ns) >> log2 > FOLD_BUCKETS)
		log2++;
	lull_fold_init(&fold, log2, false);
	lull_detail_fold(t, lane, span, &fold);
	recs = fold.recs.at;
	for (size_t i = 0; i < fold.recs.n; i++) {
		u64 len_ns = recs[i].end_ns - recs[i].start_ns;
		u64 in_ns = inside_ns(recs[i].start_ns, recs[i].end_ns, span);
		f64 share = len_ns ? (f64)in_ns / (f64)len_ns : 1;

		if (in_ns)
			lull_receipt_add(s, recs[i].name, main_class(&recs[i]),
					 (u64)((f64)recs[i].busy_ns * share), recs[i].count);
	}
	lull_fold_release(&fold);
	s->is_folded = true;
}

void lull_receipt_lane(struct lull_receipt_sums *s, struct lull_timeline *t, u32 lane,
		       struct lull_span span)
{
	const struct lull_tl_lane *l = lull_timeline_lane(t, lane);
	f64 run_ns = (f64)(t->span.to_ns - t->span.from_ns);
	f64 share = run_ns > 0 ? (f64)(span.to_ns - span.from_ns) / run_ns : 1;

	if (!l->lod.n_levels)
		return;
	if ((f64)l->n_events * share > MAX_EVENTS)
		add_folds(s, t, lane, span);
	else
		add_events(s, t, lane, span);
}

static int by_time(const void *a, const void *b)
{
	const struct lull_receipt_item *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	if (x->n != y->n)
		return x->n > y->n ? -1 : 1;
	return (x->name > y->name) - (x->name < y->name);
}

void lull_receipt_sort(struct lull_receipt_sums *s)
{
	if (s->items.n)
		lull_sort(s->items.at, s->items.n, sizeof(struct lull_receipt_item), by_time);
}

void lull_receipt_put_item(struct lull_json *j, struct lull_timeline *t,
			   const struct lull_receipt_item *item)
{
	struct lull_str text = LULL_STR_INIT;

	lull_name_text(&text, t->reader, item->name);
	lull_json_bytes(j, lull_str_text(&text), text.len);
	lull_json_u64(j, item->class);
	lull_json_u64(j, item->ns);
	lull_json_u64(j, item->n);
	lull_str_release(&text);
}

void lull_receipt_put_top(struct lull_json *j, struct lull_timeline *t,
			  const struct lull_receipt_sums *s, size_t max)
{
	const struct lull_receipt_item *items = s->items.at;

	lull_json_key(j, "top");
	lull_json_array(j);
	for (size_t i = 0; i < s->items.n && i < max; i++) {
		lull_json_array(j);
		lull_receipt_put_item(j, t, &items[i]);
		lull_json_end(j);
	}
	lull_json_end(j);
}
