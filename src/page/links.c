#include "page/links.h"

#include <string.h>

#include "base/str.h"
#include "model/span.h"
#include "page/fields.h"
#include "timeline/name.h"
#include "trace/block.h"
#include "trace/file.h"

#define MAX_LINKS  50u
#define MAX_BLOCKS 400u /* of a table that are looked into: 26 million events */

struct search {
	struct lull_json *j;
	struct lull_timeline *t;
	struct lull_field_key key;
	u64 at_ns; /* the event's begin */
	size_t n_found;
};

static void put_link(struct search *s, u32 source, u32 lane, size_t block_ix, u32 row)
{
	struct lull_blocks blocks;
	struct lull_str text = LULL_STR_INIT;
	const struct lull_tl_event *e;
	size_t n, i = 0;

	(void)lane;
	lull_blocks_init(&blocks, s->t->reader);
	n = lull_blocks_decode(&blocks, &lull_sources[source], block_ix);
	e = blocks.events.at;
	while (i < n && e[i].row != row)
		i++;
	if (i < n) {
		u32 to = LULL_NO_ROW;

		for (u32 line = 0; line < LULL_N_LINES && to == LULL_NO_ROW; line++)
			to = lull_timeline_find(s->t, source, e[i].group, line);
		lull_name_text(&text, s->t->reader, e[i].name);
		lull_json_object(s->j);
		lull_page_pair_u64(s->j, "lane", to == LULL_NO_ROW ? 0 : to);
		lull_page_pair_u64(s->j, "start", e[i].start_ns - s->t->origin_ns);
		lull_page_pair_u64(s->j, "end", e[i].end_ns - s->t->origin_ns);
		lull_page_pair_text(s->j, "name", lull_str_text(&text));
		lull_page_pair_text(s->j, "kind", lull_sources[source].kind);
		lull_json_end(s->j);
	}
	lull_str_release(&text);
	lull_blocks_release(&blocks);
}

/* The rows of a block with the number that is looked for. */
static void search_block(struct search *s, u32 source, struct lull_cursor *c, size_t block_ix)
{
	const u32 *cols[LULL_MAX_COLS];
	size_t n = lull_cursor_read(c, block_ix, cols), n_lanes;
	int correlation = lull_table_column(c->table, "correlation");
	int process = lull_table_column(c->table, "process");
	int lane = lull_table_column(c->table, "lane");
	const struct lull_lane_row *lanes =
		lull_reader_dim(s->t->reader, LULL_TABLE_lane, &n_lanes);

	for (size_t i = 0; i < n && s->n_found < MAX_LINKS; i++) {
		u32 owner;

		if (cols[correlation][i] != s->key.correlation)
			continue;
		owner = process >= 0 ? cols[process][i] : 0;
		if (!owner && cols[lane][i])
			owner = lanes[cols[lane][i] - 1].process;
		if (owner != s->key.process && s->key.process)
			continue;
		put_link(s, source, cols[lane][i], block_ix, (u32)i);
		s->n_found++;
	}
}

/*
 * Look through the blocks of a table, nearest first: backwards for the call that came before its
 * work, forwards for the work that comes after its call.
 */
static void search_table(struct search *s, u32 source, bool is_backwards)
{
	size_t n, n_blocks = 0, n_before = s->n_found;
	const struct lull_entry *e = lull_reader_blocks(s->t->reader, &n);
	struct lull_cursor c;

	lull_cursor_init(&c, s->t->reader, lull_sources[source].table, 0, UINT64_MAX);
	lull_cursor_want(&c, "correlation");
	lull_cursor_want(&c, "lane");
	if (lull_table_column(c.table, "process") >= 0)
		lull_cursor_want(&c, "process");
	for (size_t k = 0; k < n && n_blocks < MAX_BLOCKS && s->n_found == n_before; k++) {
		size_t i = is_backwards ? n - 1 - k : k;

		if (e[i].table_id != lull_sources[source].table || e[i].kind != LULL_BLOCK_ROWS ||
		    (is_backwards ? e[i].min_start > s->at_ns : e[i].max_end < s->at_ns))
			continue;
		search_block(s, source, &c, i);
		n_blocks++;
	}
	lull_cursor_release(&c);
}

void lull_links_put(struct lull_json *j, struct lull_timeline *t, const struct lull_found *found)
{
	u32 source = lull_timeline_lane(t, found->lane)->source;
	struct search s = { .j = j, .t = t, .at_ns = found->event.start_ns };

	lull_json_key(j, "links");
	lull_json_array(j);
	if (found->has_row && source != LULL_NO_ROW) {
		enum lull_table table = lull_sources[source].table;

		s.key = lull_fields_key(t->reader, table, found->block_ix, found->event.row);
		for (u32 i = 0; s.key.correlation && lull_sources[i].kind; i++) {
			if (table == LULL_TABLE_cuda_call &&
			    lull_sources[i].flags & LULL_SOURCE_IS_WORK)
				search_table(&s, i, false);
			else if (lull_sources[source].flags & LULL_SOURCE_IS_WORK &&
				 lull_sources[i].table == LULL_TABLE_cuda_call)
				search_table(&s, i, true);
		}
	}
	lull_json_end(j);
}
