#include "page/links.h"

#include <string.h>

#include "base/str.h"
#include "model/link.h"
#include "page/fields.h"
#include "page/waits.h"
#include "timeline/name.h"
#include "trace/block.h"
#include "trace/file_frame.h"

#define MAX_LINKS  50u
#define MAX_LISTED 4096u
#define MAX_BLOCKS 400u /* of a table that are looked into: 26 million events */

struct search {
	struct lull_timeline *t;
	u64 key;
	u64 at_ns; /* the event's begin */
	enum lull_relation relation;
	struct lull_vec *links; /* struct lull_page_link */
};

/* The event of a row, on the lane that it is drawn on. */
static void add_row(struct search *s, u32 source, size_t block_ix, u32 row, u64 start_ns)
{
	struct lull_vec events;

	lull_vec_init(&events, sizeof(struct lull_found));
	for (u32 i = 0; i < s->t->lanes.n; i++) {
		if (lull_timeline_lane(s->t, i)->source == source)
			lull_detail_events(s->t, i, (struct lull_span){ start_ns, start_ns + 1 },
					   MAX_LISTED, &events);
	}
	for (size_t i = 0; i < events.n; i++) {
		const struct lull_found *f = lull_vec_get(&events, i);
		struct lull_page_link link = { *f, s->relation };

		if (f->block_ix == block_ix && f->event.row == row)
			lull_vec_add(s->links, &link, 1);
	}
	lull_vec_release(&events);
}

/* The rows of a block with the key that is looked for. */
static void search_block(struct search *s, u32 source, struct lull_cursor *c,
			 const struct lull_link_columns *link, size_t block_ix)
{
	const void *cols[LULL_MAX_COLS];
	size_t n = lull_cursor_read(c, block_ix, cols);
	int start_ns = lull_table_column(c->table, "start_ns");
	const struct lull_link_rows rows = lull_link_rows_of(link, cols);

	for (size_t i = 0; i < n && s->links->n < MAX_LINKS; i++)
		if (lull_link_rows_key(&rows, i) == s->key)
			add_row(s, source, block_ix, (u32)i, ((const u64 *)cols[start_ns])[i]);
}

/*
 * Look through the blocks of a table, nearest first: backwards for the call that came before its
 * work, forwards for the work that comes after its call.
 */
static void search_table(struct search *s, u32 source, bool is_backwards)
{
	size_t n, n_blocks = 0, n_before = s->links->n;
	const struct lull_entry *e = lull_reader_blocks(s->t->reader, &n);
	struct lull_link_columns link;
	struct lull_cursor c;

	lull_cursor_init(&c, s->t->reader, lull_sources[source].table, 0, UINT64_MAX);
	if (!lull_link_columns_init(&link, &c))
		n = 0;
	lull_cursor_want(&c, "start_ns");
	for (size_t k = 0; k < n && n_blocks < MAX_BLOCKS && s->links->n == n_before; k++) {
		size_t i = is_backwards ? n - 1 - k : k;

		if (e[i].table_id != lull_sources[source].table || e[i].kind != LULL_BLOCK_ROWS ||
		    (is_backwards ? e[i].min_start > s->at_ns : e[i].max_end < s->at_ns))
			continue;
		search_block(s, source, &c, &link, i);
		n_blocks++;
	}
	lull_cursor_release(&c);
}

/* The call of a piece of work, or the work of a call. */
static void find_launches(struct lull_timeline *t, const struct lull_found *found,
			  struct lull_vec *links)
{
	const struct lull_lane_source *source =
		&lull_sources[lull_timeline_lane(t, found->lane)->source];
	struct search s = { .t = t, .at_ns = found->event.start_ns, .links = links };

	s.key = lull_fields_key(t->reader, source->table, found->block_ix, found->event.row);
	for (u32 i = 0; s.key && lull_sources[i].kind; i++) {
		bool is_work = lull_sources[i].flags & LULL_SOURCE_IS_WORK;

		if (source->table == LULL_TABLE_cuda_call && is_work) {
			s.relation = LULL_IS_WORK;
			search_table(&s, i, false);
		} else if (source->flags & LULL_SOURCE_IS_WORK &&
			   lull_sources[i].table == LULL_TABLE_cuda_call) {
			s.relation = LULL_IS_CALL;
			search_table(&s, i, true);
		}
	}
}

bool lull_links_call(struct lull_timeline *t, const struct lull_found *found,
		     struct lull_found *call)
{
	struct lull_vec links;
	bool is_found = false;

	lull_vec_init(&links, sizeof(struct lull_page_link));
	if (found->has_row)
		find_launches(t, found, &links);
	for (size_t i = 0; i < links.n && !is_found; i++) {
		const struct lull_page_link *link = lull_vec_get(&links, i);

		is_found = link->relation == LULL_IS_CALL;
		if (is_found)
			*call = link->found;
	}
	lull_vec_release(&links);
	return is_found;
}

static void put_link(struct lull_json *j, struct lull_timeline *t,
		     const struct lull_page_link *link)
{
	static const char *const words[] = {
		[LULL_IS_CALL] = "call",	 [LULL_IS_WORK] = "work",
		[LULL_IS_AWAITED] = "awaited",	 [LULL_IS_WAITER] = "waiter",
		[LULL_IS_PRODUCER] = "producer", [LULL_IS_NEXT] = "next",
	};
	const struct lull_found *f = &link->found;
	struct lull_str text = LULL_STR_INIT;

	lull_name_text(&text, t->reader, f->event.name);
	lull_json_object(j);
	lull_page_pair_u64(j, "lane", f->lane);
	lull_page_pair_u64(j, "start", f->event.start_ns - t->origin_ns);
	lull_page_pair_u64(j, "end", f->event.end_ns - t->origin_ns);
	lull_page_pair_text(j, "name", lull_str_text(&text));
	lull_page_pair_text(j, "kind", lull_sources[lull_timeline_lane(t, f->lane)->source].kind);
	lull_page_pair_text(j, "rel", words[link->relation]);
	lull_json_end(j);
	lull_str_release(&text);
}

void lull_links_put(struct lull_json *j, struct lull_timeline *t, const struct lull_found *found)
{
	struct lull_vec links;
	size_t n_waits;

	lull_vec_init(&links, sizeof(struct lull_page_link));
	lull_waits_find(t, found, &links);
	n_waits = links.n;
	if (found->has_row)
		find_launches(t, found, &links);
	/* What ended an idle time was launched by somebody. */
	for (size_t i = 0; i < n_waits; i++) {
		struct lull_page_link link = *(struct lull_page_link *)lull_vec_get(&links, i);

		if (link.relation == LULL_IS_NEXT)
			find_launches(t, &link.found, &links);
	}
	lull_json_key(j, "links");
	lull_json_array(j);
	for (size_t i = 0; i < links.n && i < MAX_LINKS; i++)
		put_link(j, t, lull_vec_get(&links, i));
	lull_json_end(j);
	lull_vec_release(&links);
}
