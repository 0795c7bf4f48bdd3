#include "page/around.h"

#include <string.h>

#include "base/str.h"
#include "base/time.h"
#include "page/frames.h"
#include "page/links.h"
#include "page/page.h"
#include "timeline/name.h"

#define NEAR_EVENTS 4096u
/* A sample that is further away tells of something else. */
#define NEAR_NS (LULL_NS_PER_S / 100)

static const char *const kinds[] = { "op", "range", "pycall" };
static const char *const sample_kinds[] = { "pysample", "sample" };

struct around {
	struct lull_timeline *t;
	u32 thread; /* row */
	u64 at_ns;
	struct lull_span inner; /* of the innermost thing found */
};

static u64 length_of(const struct lull_found *f)
{
	return f->event.end_ns - f->event.start_ns;
}

static void put_thing(struct lull_json *j, const struct around *x, const struct lull_found *f)
{
	struct lull_str text = LULL_STR_INIT;

	lull_name_text(&text, x->t->reader, f->event.name);
	lull_json_object(j);
	lull_page_pair_text(j, "kind",
			    lull_sources[lull_timeline_lane(x->t, f->lane)->source].kind);
	lull_page_pair_text(j, "name", lull_str_text(&text));
	lull_page_pair_u64(j, "lane", f->lane);
	lull_page_pair_u64(j, "start", f->event.start_ns - x->t->origin_ns);
	lull_page_pair_u64(j, "end", f->event.end_ns - x->t->origin_ns);
	lull_json_end(j);
	lull_str_release(&text);
}

/* The shortest event of a row that holds the moment, but not the one that was asked about. */
static bool innermost(const struct around *x, const struct lull_row *row,
		      const struct lull_found *self, struct lull_found *best)
{
	const struct lull_found *all;
	struct lull_vec events;
	bool is_found = false;

	lull_vec_init(&events, sizeof(struct lull_found));
	for (u32 l = 0; l < row->n_lanes; l++)
		lull_detail_events(x->t, row->first_lane + l,
				   (struct lull_span){ x->at_ns, x->at_ns + 1 }, NEAR_EVENTS,
				   &events);
	all = events.at;
	for (size_t i = 0; i < events.n; i++) {
		bool is_self =
			all[i].lane == self->lane && all[i].event.start_ns == self->event.start_ns;

		if (is_self || all[i].event.start_ns > x->at_ns || all[i].event.end_ns <= x->at_ns)
			continue;
		if (!is_found || length_of(&all[i]) < length_of(best))
			*best = all[i];
		is_found = true;
	}
	lull_vec_release(&events);
	return is_found;
}

static void put_things(struct lull_json *j, struct around *x, const struct lull_found *self)
{
	const struct lull_row *rows = x->t->rows.at;

	for (size_t k = 0; k < LULL_COUNT_OF(kinds); k++)
		for (size_t i = 0; i < x->t->rows.n; i++) {
			struct lull_found best = { 0 };

			if (rows[i].parent != x->thread || strcmp(rows[i].kind, kinds[k]) != 0 ||
			    !innermost(x, &rows[i], self, &best))
				continue;
			put_thing(j, x, &best);
			if (length_of(&best) < x->inner.to_ns - x->inner.from_ns)
				x->inner = (struct lull_span){ best.event.start_ns,
							       best.event.end_ns };
		}
}

/* The frame of the program itself in the stack of an event; 0 if it has none. */
static u32 frame_of(struct lull_timeline *t, const struct lull_found *f)
{
	const void *cols[LULL_MAX_COLS];
	size_t n, n_frames;
	const struct lull_frame_row *frames =
		lull_reader_dim(t->reader, LULL_TABLE_frame, &n_frames);
	struct lull_cursor c;
	u32 frame = 0;
	int col;

	if (!f->has_row)
		return 0;
	lull_cursor_init(&c, t->reader, lull_sources[lull_timeline_lane(t, f->lane)->source].table,
			 0, UINT64_MAX);
	col = lull_table_column(c.table, "stack");
	n = lull_cursor_read(&c, f->block_ix, cols);
	if (col >= 0 && f->event.row < n)
		frame = lull_frame_of_stack(t->reader, ((const u32 *)cols[col])[f->event.row]);
	lull_cursor_release(&c);
	/* A frame of a library is not where to look. */
	return frame && frame <= n_frames && frames[frame - 1].file &&
			       lull_frame_is_own(t->reader, &frames[frame - 1])
		       ? frame
		       : 0;
}

static u64 distance_ns(const struct lull_found *f, u64 at_ns)
{
	return f->event.start_ns > at_ns ? f->event.start_ns - at_ns : at_ns - f->event.start_ns;
}

/* The sample next to the moment that was in code of the program, in the same range. */
static bool nearest_sample(const struct around *x, struct lull_found *best)
{
	const struct lull_row *rows = x->t->rows.at;
	struct lull_span near = lull_span_cut(x->inner, x->at_ns > NEAR_NS ? x->at_ns - NEAR_NS : 0,
					      lull_span_end_ns(x->at_ns, NEAR_NS));
	bool is_found = false;

	for (size_t k = 0; k < LULL_COUNT_OF(sample_kinds) && !is_found; k++)
		for (size_t i = 0; i < x->t->rows.n; i++) {
			const struct lull_found *all;
			struct lull_vec events;

			if (rows[i].parent != x->thread ||
			    strcmp(rows[i].kind, sample_kinds[k]) != 0)
				continue;
			lull_vec_init(&events, sizeof(struct lull_found));
			lull_detail_events(x->t, rows[i].first_lane, near, SIZE_MAX, &events);
			all = events.at;
			for (size_t e = 0; e < events.n; e++) {
				u64 far_ns = distance_ns(&all[e], x->at_ns);

				if ((is_found && far_ns >= distance_ns(best, x->at_ns)) ||
				    !frame_of(x->t, &all[e]))
					continue;
				*best = all[e];
				is_found = true;
			}
			lull_vec_release(&events);
		}
	return is_found;
}

static void put_line(struct lull_json *j, const struct around *x, const struct lull_found *call)
{
	struct lull_str function = LULL_STR_INIT, place = LULL_STR_INIT;
	struct lull_found at = *call;
	u32 frame = frame_of(x->t, call);
	size_t n;
	const struct lull_frame_row *frames = lull_reader_dim(x->t->reader, LULL_TABLE_frame, &n);

	if (!frame && nearest_sample(x, &at))
		frame = frame_of(x->t, &at);
	if (!frame)
		return;
	lull_frame_function(&function, x->t->reader, &frames[frame - 1]);
	lull_frame_place(&place, x->t->reader, &frames[frame - 1]);
	lull_json_object(j);
	lull_page_pair_text(j, "kind", "line");
	lull_page_pair_text(j, "name", lull_str_text(&function));
	lull_page_pair_text(j, "place", lull_str_text(&place));
	lull_page_pair_u64(j, "lane", at.lane);
	lull_page_pair_u64(j, "start", at.event.start_ns - x->t->origin_ns);
	lull_page_pair_u64(j, "end", at.event.end_ns - x->t->origin_ns);
	lull_json_end(j);
	lull_str_release(&function);
	lull_str_release(&place);
}

void lull_around_put(struct lull_json *j, struct lull_timeline *t, const struct lull_found *found)
{
	struct around x = { .t = t };
	struct lull_found at = *found;

	lull_json_key(j, "around");
	lull_json_array(j);
	if (found->has_row) {
		lull_links_call(t, found, &at);
		x.thread = lull_timeline_row(t, lull_timeline_lane(t, at.lane)->row)->parent;
	}
	if (found->has_row && x.thread != LULL_NO_ROW &&
	    !strcmp(lull_timeline_row(t, x.thread)->kind, LULL_ROW_THREAD)) {
		x.at_ns = at.event.start_ns;
		x.inner = t->span;
		put_things(j, &x, &at);
		put_line(j, &x, &at);
	}
	lull_json_end(j);
}
