#include "page/pack.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "base/str.h"
#include "text/term.h"
#include "base/varint.h"
#include "model/link.h"
#include "page/fields.h"
#include "page/pack_int.h"
#include "report/report.h"
#include "timeline/detail.h"
#include "timeline/name.h"
#include "trace/block.h"

#define MAX_NAME 1024u

/* A record as it is packed. */
struct packed {
	struct lull_rec rec;
	u64 link; /* of a call and its work (model/link.h); 0 for none */
};

static u32 number_of(struct lull_pack *p, u32 name)
{
	u32 *known = lull_map_add(&p->name_of, name, NULL);

	if (!*known) {
		lull_vec_add(&p->names, &name, 1);
		*known = (u32)p->names.n;
	}
	return *known - 1;
}

static u8 class_of(const struct lull_rec *rec)
{
	u8 best = 0;

	for (u8 c = 1; c < LULL_N_CLASSES; c++)
		best = rec->share[c] > rec->share[best] ? c : best;
	return best;
}

/* ---- lanes ---- */

/* What links rows of blocks, one block after the other. */
struct links {
	struct lull_cursor cursor;
	struct lull_link_columns columns;
	struct lull_link_rows rows;
	const void *cols[LULL_MAX_COLS];
	size_t block_ix;
	bool is_open, has_keys, has_block;
};

static void open_links(struct links *l, struct lull_reader *r, enum lull_table table)
{
	lull_cursor_init(&l->cursor, r, table, 0, UINT64_MAX);
	l->has_keys = lull_link_columns_init(&l->columns, &l->cursor);
	l->block_ix = SIZE_MAX;
	l->is_open = true;
}

static u64 link_of(struct links *l, struct lull_reader *r, enum lull_table table,
		   const struct lull_found *found)
{
	if (!l->is_open)
		open_links(l, r, table);
	if (!l->has_keys)
		return 0;
	if (l->block_ix != found->block_ix) {
		l->has_block = lull_cursor_read(&l->cursor, found->block_ix, l->cols) > 0;
		l->rows = lull_link_rows_of(&l->columns, l->cols);
		l->block_ix = found->block_ix;
	}
	return l->has_block ? lull_link_rows_key(&l->rows, found->event.row) : 0;
}

static void collect_events(struct lull_pack *p, u32 lane, struct lull_vec *out)
{
	const struct lull_tl_lane *l = lull_timeline_lane(p->t, lane);
	struct links links = { 0 };
	const struct lull_found *all;
	struct lull_vec events;

	lull_vec_init(&events, sizeof(struct lull_found));
	lull_detail_events(p->t, lane, p->plan->window, SIZE_MAX, &events);
	all = events.at;
	for (size_t i = 0; i < events.n; i++) {
		struct packed *to = lull_vec_push(out);

		to->rec = (struct lull_rec){ .start_ns = all[i].event.start_ns,
					     .end_ns = all[i].event.end_ns,
					     .busy_ns = all[i].event.end_ns - all[i].event.start_ns,
					     .name = all[i].event.name,
					     .count = 1 };
		to->rec.share[all[i].event.class] = 255;
		if (all[i].has_row)
			to->link = link_of(&links, p->t->reader, lull_sources[l->source].table,
					   &all[i]);
	}
	if (links.is_open)
		lull_cursor_release(&links.cursor);
	lull_vec_release(&events);
}

/* The finest level that has few enough records in the window. */
static void collect_level(struct lull_pack *p, u32 lane, struct lull_vec *out)
{
	const struct lull_lod *lod = &lull_timeline_lane(p->t, lane)->lod;
	u32 l = 0;

	for (; l < lod->n_levels; l++) {
		const struct lull_level *level = &lod->levels[l];

		out->n = 0;
		for (size_t i = lull_level_first(level, p->plan->window.from_ns);
		     i < level->n && level->recs[i].start_ns < p->plan->window.to_ns; i++)
			((struct packed *)lull_vec_push(out))->rec = level->recs[i];
		if (out->n <= p->plan->max_records)
			break;
	}
}

static void put_columns(struct lull_pack *p, const struct lull_vec *recs, bool is_folded)
{
	const struct packed *r = recs->at;
	u32 unit = p->plan->unit_log2;
	u64 origin = p->t->origin_ns >> unit, last = 0, before = 0;

	for (size_t i = 0; i < recs->n; i++) {
		u64 start = (r[i].rec.start_ns >> unit) - origin;

		lull_varint_add_i64(&p->lanes, (i64)(start - last));
		last = (r[i].rec.end_ns >> unit) - origin;
	}
	for (size_t i = 0; i < recs->n; i++)
		lull_varint_add(&p->lanes, (r[i].rec.end_ns >> unit) - (r[i].rec.start_ns >> unit));
	for (size_t i = 0; i < recs->n; i++)
		lull_varint_add(&p->lanes, number_of(p, r[i].rec.name));
	for (size_t i = 0; i < recs->n; i++)
		*(u8 *)lull_vec_push(&p->lanes) = class_of(&r[i].rec);
	for (size_t i = 0; i < recs->n; i++) {
		lull_varint_add_i64(&p->lanes, (i64)(r[i].link - before));
		before = r[i].link;
	}
	for (size_t i = 0; is_folded && i < recs->n; i++)
		lull_varint_add(&p->lanes, r[i].rec.count);
	for (size_t i = 0; is_folded && i < recs->n; i++) {
		u64 len = r[i].rec.end_ns - r[i].rec.start_ns;
		f64 share = len && r[i].rec.busy_ns < len ? (f64)r[i].rec.busy_ns / (f64)len : 1;

		*(u8 *)lull_vec_push(&p->lanes) = (u8)(share * 254 + 1);
	}
}

/* Whether the lane can be told event by event. */
static bool is_small(const struct lull_pack *p, const struct lull_tl_lane *lane)
{
	return lane->n_events <= p->plan->max_records;
}

static void put_lanes(struct lull_pack *p, struct lull_json *j)
{
	struct lull_vec recs;

	lull_vec_init(&recs, sizeof(struct packed));
	lull_json_key(j, "lanes");
	lull_json_array(j);
	for (u32 i = 0; i < p->t->lanes.n; i++) {
		const struct lull_tl_lane *lane = lull_timeline_lane(p->t, i);
		bool is_folded;

		recs.n = 0;
		if (is_small(p, lane) || p->plan->window.to_ns != UINT64_MAX)
			collect_events(p, i, &recs);
		is_folded = recs.n > p->plan->max_records || (!recs.n && !is_small(p, lane));
		if (is_folded) {
			collect_level(p, i, &recs);
			p->n_folded++;
			/* Busy and idle times are no events of the report. */
			p->n_folded_events += lane->source != LULL_NO_ROW ? lane->n_events : 0;
		}
		lull_json_array(j);
		lull_json_u64(j, recs.n);
		lull_json_u64(j, p->lanes.n);
		lull_json_u64(j, is_folded);
		lull_json_end(j);
		put_columns(p, &recs, is_folded);
	}
	lull_json_end(j);
	lull_vec_release(&recs);
}

static void put_names(struct lull_pack *p, struct lull_json *j)
{
	const u32 *names = p->names.at;
	struct lull_str text = LULL_STR_INIT;

	lull_json_key(j, "names");
	lull_json_array(j);
	for (size_t i = 0; i < p->names.n; i++) {
		lull_str_clear(&text);
		lull_name_text(&text, p->t->reader, names[i]);
		lull_json_array(j);
		lull_json_u64(j, names[i]);
		lull_json_bytes(j, lull_str_text(&text), text.len < MAX_NAME ? text.len : MAX_NAME);
		lull_json_end(j);
	}
	lull_json_end(j);
	lull_str_release(&text);
}

/* Curves as arrays of time, lowest, highest, last. */
static void put_curves(struct lull_pack *p, struct lull_json *j)
{
	const struct lull_curve *curves = p->t->curves.at;

	lull_json_key(j, "curves");
	lull_json_array(j);
	for (size_t i = 0; i < p->t->curves.n; i++) {
		const struct lull_point *at = curves[i].points.at;
		size_t step = curves[i].points.n / 4000 + 1;

		lull_json_array(j);
		for (size_t k = 0; k < curves[i].points.n; k += step) {
			f64 max = at[k].max;

			for (size_t n = k; n < k + step && n < curves[i].points.n; n++)
				max = at[n].max > max ? at[n].max : max;
			lull_json_u64(j, at[k].at_ns - p->t->origin_ns);
			lull_json_fixed(j, max, 2);
		}
		lull_json_end(j);
	}
	lull_json_end(j);
}

/* They depend on the window alone: the next plan takes them as they are. */
static void make_answers(struct lull_pack *p)
{
	FILE *to = p->to;
	char *bytes = NULL;
	size_t len = 0;

	if (p->plan->answers->n)
		return;
	p->to = open_memstream(&bytes, &len);
	if (p->to) {
		lull_pack_answers(p);
		fclose(p->to);
		lull_vec_add(p->plan->answers, bytes, len);
	}
	free(bytes);
	p->to = to;
}

static void put_notice(const struct lull_pack *p, struct lull_json *j)
{
	struct lull_str text = LULL_STR_INIT;

	if (!p->plan->notice)
		return;
	lull_str_puts(&text, p->plan->notice);
	if (p->n_folded)
		lull_str_addf(&text, " (%u of %zu lines, with %s of %s events)", p->n_folded,
			      p->t->lanes.n, lull_format_count(p->n_folded_events).text,
			      lull_format_count(p->t->n_events).text);
	if (lull_pack_is_too_much(p))
		lull_str_puts(&text, "; tables that join calls with their work are left out");
	lull_str_puts(&text, "; `lull view` of the report shows all of it");
	lull_page_pair_text(j, "notice", lull_str_text(&text));
	lull_str_release(&text);
}

static void put_json(struct lull_pack *p)
{
	struct lull_json j;

	fputc('{', p->to);
	make_answers(p);
	fwrite(p->plan->answers->at, 1, p->plan->answers->n, p->to);
	fputs("\"pack\":", p->to);
	lull_json_init(&j, p->to);
	lull_json_object(&j);
	lull_page_pair_u64(&j, "unit", p->plan->unit_log2);
	if (p->plan->window.to_ns != UINT64_MAX) {
		lull_page_pair_u64(&j, "from", lull_pack_moment(p, p->plan->window.from_ns));
		lull_page_pair_u64(&j, "to", lull_pack_moment(p, p->plan->window.to_ns));
	}
	put_lanes(p, &j);
	put_notice(p, &j);
	put_names(p, &j);
	put_curves(p, &j);
	lull_json_end(&j);
	fputc('}', p->to);
}

int lull_page_pack(struct lull_page *page, const struct lull_pack_plan *plan, struct lull_vec *out,
		   struct lull_err *err)
{
	struct lull_pack p = { .page = page, .t = page->reports[0].timeline, .plan = plan };
	char *json = NULL;
	size_t len = 0;
	u8 head[4];

	p.to = open_memstream(&json, &len);
	if (!p.to)
		return lull_fail_errno(err, "making the page");
	lull_vec_init(&p.lanes, 1);
	lull_vec_init(&p.names, sizeof(u32));
	lull_map_init(&p.name_of);
	put_json(&p);
	fclose(p.to);
	lull_put_u32(head, (u32)len);
	lull_vec_add(out, head, sizeof(head));
	lull_vec_add(out, json, len);
	lull_vec_add(out, p.lanes.at, p.lanes.n);
	free(json);
	lull_vec_release(&p.lanes);
	lull_vec_release(&p.names);
	lull_map_release(&p.name_of);
	return LULL_OK;
}
