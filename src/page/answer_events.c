/*
 * events: the events of a row, in any order, a page of them; with how long they are.
 *
 *	events?lane=3[&everywhere=1][&name=17][&from=&to=][&by=length][&down=1][&first=0][&n=200]
 *	{"n", "ns", "is_cut", "rows": [[lane, start, end, name, class], ...],
 *	 "bins": [[from_ns, to_ns, n], ...]}
 *
 * `lane` is any of the row; `everywhere` takes all rows of the same kind, `name` those of one name.
 * What touches [from, to) counts, with its full length. The order is by start, length or name.
 * `n` and `ns` are of all of them, `bins` say how many are how long; bins have equal ratios.
 * `is_cut`: that took too long, and some are missing.
 *
 * Cost: one pass over the table. No more than twice the asked rows are kept, so that ten million
 * events need no more memory than ten thousand.
 */
#include "page/page.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/sort.h"
#include "base/str.h"
#include "base/time.h"
#include "timeline/detail.h"
#include "timeline/name.h"
#include "trace/file_frame.h"

#define MAX_FIRST    100000u
#define MAX_PAGE     1000u
#define MIN_KEPT     4096u
#define PIECE_EVENTS 50000u
#define LIMIT_NS     (10 * LULL_NS_PER_S)

/* Lengths are counted in parts of a factor of two, about 1 % wide, and told in a few bins. */
#define PARTS_LOG2 6u
#define N_PARTS	   (1u << PARTS_LOG2)
#define ALL_PARTS  (64u * N_PARTS)
#define MAX_BINS   24u

enum order { BY_START, BY_LENGTH, BY_NAME };

struct item {
	u64 start_ns, end_ns;
	u32 lane, name;
	u8 class;
};

struct events {
	struct lull_question *q;
	struct lull_timeline *t;
	const struct lull_tl_lane *lane;
	struct lull_span span;
	u64 name; /* UINT64_MAX: any */
	u64 first, n_wanted;
	bool is_everywhere, is_down, is_cut;
	bool is_full; /* the first items are sorted, and all that are asked for */
	enum order order;
	struct lull_vec items; /* struct item */
	u64 n, ns, began_ns;
	u64 parts[ALL_PARTS];
	struct lull_map known; /* name to index + 1 */
	struct lull_vec texts; /* struct lull_str, of BY_NAME */
};

/* ---- order ---- */

static const char *text_of(struct events *x, u32 name)
{
	bool is_new;
	u32 *known = lull_map_add(&x->known, name, &is_new);

	if (is_new) {
		struct lull_str *text = lull_vec_push(&x->texts);

		*text = (struct lull_str)LULL_STR_INIT;
		lull_name_text(text, x->q->reader, name);
		*known = (u32)x->texts.n;
	}
	return lull_str_text(lull_vec_get(&x->texts, *known - 1));
}

static int compare(const void *a, const void *b, void *ctx)
{
	struct events *x = ctx;
	const struct item *p = a, *q = b;
	u64 p_ns = p->end_ns - p->start_ns, q_ns = q->end_ns - q->start_ns;
	int d = 0;

	if (x->order == BY_LENGTH)
		d = (p_ns > q_ns) - (p_ns < q_ns);
	else if (x->order == BY_NAME && p->name != q->name)
		d = strcmp(text_of(x, p->name), text_of(x, q->name));
	if (!d && x->order == BY_START)
		d = (p->start_ns > q->start_ns) - (p->start_ns < q->start_ns);
	if (d)
		return x->is_down ? -d : d;
	return (p->start_ns > q->start_ns) - (p->start_ns < q->start_ns);
}

/* Sort, and drop what is on no page that was asked for. */
static void shrink(struct events *x)
{
	size_t kept = (size_t)(x->first + x->n_wanted);

	if (x->items.n)
		lull_sort_r(x->items.at, x->items.n, sizeof(struct item), compare, x);
	if (x->items.n > kept)
		x->items.n = kept;
	x->is_full = kept && x->items.n == kept;
}

/* ---- events ---- */

static u32 part_of(u64 ns)
{
	u32 log2 = ns ? 63u - (u32)__builtin_clzll(ns) : 0;
	u64 rest = ns & ((1ull << log2) - 1);

	return log2 * N_PARTS +
	       (u32)(log2 < PARTS_LOG2 ? rest << (PARTS_LOG2 - log2) : rest >> (log2 - PARTS_LOG2));
}

/* The shortest length of a part, 0 for the first; what no whole number fits is the next one. */
static u64 part_ns(u32 part)
{
	u32 log2 = part / N_PARTS;
	u64 whole = N_PARTS + part % N_PARTS;

	if (part == 0)
		return 0;
	if (log2 >= PARTS_LOG2)
		return log2 < 64 ? whole << (log2 - PARTS_LOG2) : UINT64_MAX;
	return (whole + (1ull << (PARTS_LOG2 - log2)) - 1) >> (PARTS_LOG2 - log2);
}

static void take(struct events *x, u32 lane, const struct lull_tl_event *e)
{
	size_t kept = (size_t)(x->first + x->n_wanted);
	struct item item;

	if (x->name != UINT64_MAX && e->name != x->name)
		return;
	if (e->start_ns >= x->span.to_ns ||
	    (e->end_ns <= x->span.from_ns && e->start_ns < x->span.from_ns))
		return;
	x->n++;
	x->ns += e->end_ns - e->start_ns;
	x->parts[part_of(e->end_ns - e->start_ns)]++;
	item = (struct item){ e->start_ns, e->end_ns, lane, e->name, e->class };
	if (x->is_full && compare(&item, lull_vec_get(&x->items, kept - 1), x) >= 0)
		return;
	lull_vec_add(&x->items, &item, 1);
	if (x->items.n >= 2 * kept && x->items.n >= MIN_KEPT)
		shrink(x);
}

/* The line of the group at this depth, or the next higher one that there is. */
static u32 lane_of(const struct events *x, const struct lull_tl_event *e)
{
	u32 lane = LULL_NO_ROW;

	for (i32 line = e->line; line >= 0 && lane == LULL_NO_ROW; line--)
		lane = lull_timeline_find(x->t, x->lane->source, e->group, (u32)line);
	return lane;
}

static void take_table(struct events *x)
{
	const struct lull_lane_source *source = &lull_sources[x->lane->source];
	struct lull_blocks blocks;
	size_t n;
	const struct lull_entry *e = lull_reader_blocks(x->q->reader, &n);

	lull_blocks_init(&blocks, x->q->reader);
	for (size_t i = 0; i < n && !x->is_cut; i++) {
		const struct lull_tl_event *events;
		size_t n_events;
		u32 lane = LULL_NO_ROW;

		if (e[i].table_id != source->table || e[i].kind != LULL_BLOCK_ROWS ||
		    e[i].min_start >= x->span.to_ns || e[i].max_end < x->span.from_ns)
			continue;
		n_events = lull_blocks_decode(&blocks, source, i);
		events = blocks.events.at;
		for (size_t k = 0; k < n_events; k++) {
			const struct lull_tl_event *last = k ? &events[k - 1] : NULL;

			if (!x->is_everywhere && events[k].group != x->lane->group)
				continue;
			if (!last || last->group != events[k].group || last->line != events[k].line)
				lane = lane_of(x, &events[k]);
			if (lane != LULL_NO_ROW)
				take(x, lane, &events[k]);
		}
		x->is_cut = lull_now_ns() - x->began_ns > LIMIT_NS;
	}
	lull_blocks_release(&blocks);
}

/*
 * Rows that are no table are made of others, piece by piece: the pictures wait no longer than for
 * one piece.
 */
static void take_made(struct events *x, u32 lane)
{
	struct lull_span all = lull_span_cut(x->span, x->t->span.from_ns, x->t->span.to_ns + 1);
	u64 n_pieces = lull_timeline_lane(x->t, lane)->n_events / PIECE_EVENTS + 1;
	u64 width = (all.to_ns - all.from_ns) / n_pieces + 1;
	struct lull_vec found;

	lull_vec_init(&found, sizeof(struct lull_found));
	for (u64 from = all.from_ns; from < all.to_ns && !x->is_cut; from += width) {
		struct lull_span piece = { from, lull_span_end_ns(from, width) };
		const struct lull_found *f;

		found.n = 0;
		pthread_mutex_lock(&x->q->report->quick_lock);
		lull_detail_events(x->t, lane, piece, SIZE_MAX, &found);
		pthread_mutex_unlock(&x->q->report->quick_lock);
		f = found.at;
		/* What began in an earlier piece was taken there. */
		for (size_t i = 0; i < found.n; i++)
			if (f[i].event.start_ns >= from || from == all.from_ns)
				take(x, lane, &f[i].event);
		x->is_cut = lull_now_ns() - x->began_ns > LIMIT_NS;
	}
	lull_vec_release(&found);
}

/* ---- the answer ---- */

static void put_bins(struct lull_json *j, const struct events *x)
{
	u32 first = 0, last = ALL_PARTS, width = 1;

	while (first < last && !x->parts[first])
		first++;
	while (last > first && !x->parts[last - 1])
		last--;
	while ((last - first + width - 1) / width > MAX_BINS)
		width *= 2;
	lull_json_key(j, "bins");
	lull_json_array(j);
	for (u32 i = first; i < last; i += width) {
		u64 n = 0;

		for (u32 k = i; k < i + width && k < ALL_PARTS; k++)
			n += x->parts[k];
		lull_json_array(j);
		lull_json_u64(j, part_ns(i));
		lull_json_u64(j, part_ns(i + width));
		lull_json_u64(j, n);
		lull_json_end(j);
	}
	lull_json_end(j);
}

static void put(struct events *x)
{
	const struct item *items;
	struct lull_json j;

	shrink(x);
	items = x->items.at;
	lull_json_init(&j, x->q->to);
	lull_json_object(&j);
	lull_page_pair_u64(&j, "n", x->n);
	lull_page_pair_u64(&j, "ns", x->ns);
	lull_page_pair_bool(&j, "is_cut", x->is_cut);
	lull_json_key(&j, "rows");
	lull_json_array(&j);
	for (size_t i = (size_t)x->first; i < x->items.n; i++) {
		lull_json_array(&j);
		lull_json_u64(&j, items[i].lane);
		lull_json_u64(&j, items[i].start_ns - x->t->origin_ns);
		lull_json_u64(&j, items[i].end_ns - x->t->origin_ns);
		lull_json_u64(&j, items[i].name);
		lull_json_u64(&j, items[i].class);
		lull_json_end(&j);
	}
	lull_json_end(&j);
	put_bins(&j, x);
	lull_json_end(&j);
}

static int parse(struct events *x, struct lull_err *err)
{
	const struct lull_args *args = x->q->args;
	const char *by = lull_args_get(args, "by");
	u64 lane, is_down, is_everywhere;

	if (lull_args_u64(args, "lane", UINT32_MAX, 0, &lane, err) ||
	    lull_args_u64(args, "name", UINT32_MAX, UINT64_MAX, &x->name, err) ||
	    lull_args_u64(args, "first", MAX_FIRST, 0, &x->first, err) ||
	    lull_args_u64(args, "n", MAX_PAGE, 200, &x->n_wanted, err) ||
	    lull_args_u64(args, "down", 1, 0, &is_down, err) ||
	    lull_args_u64(args, "everywhere", 1, 0, &is_everywhere, err) ||
	    lull_args_span(args, x->t->origin_ns, &x->span, err))
		return err->code;
	if (lane >= x->t->lanes.n)
		return lull_fail(err, LULL_E_NOT_FOUND, "there is no such lane");
	if (by && strcmp(by, "start") != 0 && strcmp(by, "length") != 0 && strcmp(by, "name") != 0)
		return lull_fail(err, LULL_E_USAGE, "by must be start, length or name");
	x->order = !by || *by == 's' ? BY_START : *by == 'l' ? BY_LENGTH : BY_NAME;
	x->lane = lull_timeline_lane(x->t, (u32)lane);
	x->is_down = is_down;
	x->is_everywhere = is_everywhere;
	return LULL_OK;
}

static int run(struct lull_question *q, struct lull_err *err)
{
	struct events x = { .q = q, .t = q->report->timeline, .began_ns = lull_now_ns() };

	if (parse(&x, err))
		return err->code;
	lull_vec_init(&x.items, sizeof(struct item));
	lull_vec_init(&x.texts, sizeof(struct lull_str));
	lull_map_init(&x.known);
	if (x.lane->source != LULL_NO_ROW) {
		take_table(&x);
	} else {
		const struct lull_row *row = lull_timeline_row(x.t, x.lane->row);

		for (u32 l = 0; l < row->n_lanes; l++)
			take_made(&x, row->first_lane + l);
	}
	put(&x);
	for (size_t i = 0; i < x.texts.n; i++)
		lull_str_release(lull_vec_get(&x.texts, i));
	lull_vec_release(&x.items);
	lull_vec_release(&x.texts);
	lull_map_release(&x.known);
	return LULL_OK;
}

const struct lull_answer lull_answer_events = {
	.name = "events",
	.type = "application/json",
	.is_slow = true,
	.run = run,
};
