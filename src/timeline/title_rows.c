#include "timeline/title_rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "model/device.h"
#include "model/work.h"

/* Places of rows without a parent, and of what a device has besides its sources. */
enum order {
	ORDER_STEPS = 0,
	ORDER_DEVICES = 1000,
	ORDER_PROCESSES = 1000000,
	ORDER_IDLE = 0,
	ORDER_SOURCES = 100,
};

/* Kinds of ids in the map. */
enum id_kind { ID_DEVICE = 1, ID_PROCESS, ID_THREAD, ID_SOURCE };

static u64 key_of(enum id_kind kind, u32 source, u32 id)
{
	return (u64)kind << 56 | (u64)source << 40 | id;
}

void lull_tl_rows_init(struct lull_tl_rows *rows, struct lull_timeline *t)
{
	rows->t = t;
	lull_map_init(&rows->by_id);
}

void lull_tl_rows_release(struct lull_tl_rows *rows)
{
	lull_map_release(&rows->by_id);
}

u32 lull_tl_rows_add(struct lull_tl_rows *rows, const char *kind, u32 parent, u64 order)
{
	struct lull_row *row = lull_vec_push(&rows->t->rows);

	row->kind = kind;
	row->parent = parent;
	row->order = order;
	return (u32)rows->t->rows.n - 1;
}

/* Set key and title from formatted text; both are taken over. */
static void name_row(struct lull_timeline *t, u32 ix, struct lull_str *key, struct lull_str *title)
{
	struct lull_row *row = lull_timeline_row(t, ix);

	row->key = lull_strdup(lull_str_text(key));
	row->title = lull_strdup(lull_str_text(title));
	lull_str_release(key);
	lull_str_release(title);
}

static const struct lull_lane_row *lane_row(const struct lull_timeline *t, u32 lane)
{
	static const struct lull_lane_row none = { 0 };
	size_t n;
	const struct lull_lane_row *lanes = lull_reader_dim(t->reader, LULL_TABLE_lane, &n);

	return lane && lane <= n ? &lanes[lane - 1] : &none;
}

static const struct lull_process_row *process_row(const struct lull_timeline *t, u32 process)
{
	static const struct lull_process_row none = { 0 };
	size_t n;
	const struct lull_process_row *all = lull_reader_dim(t->reader, LULL_TABLE_process, &n);

	return process && process <= n ? &all[process - 1] : &none;
}

u32 lull_tl_rows_device(struct lull_tl_rows *rows, u32 device)
{
	struct lull_timeline *t = rows->t;
	struct lull_str key = LULL_STR_INIT, title = LULL_STR_INIT;
	size_t n;
	const struct lull_device_row *all = lull_reader_dim(t->reader, LULL_TABLE_device, &n);
	u32 *known, number, ix;
	const char *name;

	device = lull_device_row_of(t->reader, device);
	known = lull_map_add(&rows->by_id, key_of(ID_DEVICE, 0, device), NULL);
	if (*known)
		return *known - 1;
	number = lull_timeline_device_id(t, device);
	ix = lull_tl_rows_add(rows, LULL_ROW_DEVICE, LULL_NO_ROW,
			      ORDER_DEVICES + (u64)number * 16 + device % 16);
	*known = ix + 1;
	name = device && device <= n ? lull_reader_string(t->reader, all[device - 1].name, NULL)
				     : "";
	lull_str_addf(&key, "gpu%u", number);
	lull_str_addf(&title, "GPU %u", number);
	if (!strncmp(name, "NVIDIA ", 7))
		name += 7;
	if (*name)
		lull_str_addf(&title, " %s", name);
	lull_timeline_row(t, ix)->id = device;
	name_row(t, ix, &key, &title);
	return ix;
}

u32 lull_tl_rows_process(struct lull_tl_rows *rows, u32 process)
{
	struct lull_timeline *t = rows->t;
	struct lull_str key = LULL_STR_INIT, title = LULL_STR_INIT;
	u32 *known = lull_map_add(&rows->by_id, key_of(ID_PROCESS, 0, process), NULL), ix;
	const struct lull_process_row *p = process_row(t, process);
	const char *name = lull_reader_string(t->reader, p->name, NULL);

	if (*known)
		return *known - 1;
	ix = lull_tl_rows_add(rows, LULL_ROW_PROCESS, LULL_NO_ROW, ORDER_PROCESSES + process);
	*known = ix + 1;
	lull_str_addf(&key, "p%u", process);
	lull_str_addf(&title, "%s", *name ? name : "process");
	if (p->pid)
		lull_str_addf(&title, " · %u", p->pid);
	lull_timeline_row(t, ix)->id = process;
	name_row(t, ix, &key, &title);
	return ix;
}

u32 lull_tl_rows_thread(struct lull_tl_rows *rows, u32 lane)
{
	struct lull_timeline *t = rows->t;
	struct lull_str key = LULL_STR_INIT, title = LULL_STR_INIT;
	u32 *known = lull_map_find(&rows->by_id, key_of(ID_THREAD, 0, lane));
	const struct lull_lane_row *row = lane_row(t, lane);
	const struct lull_process_row *p = process_row(t, row->process);
	bool is_main = row->tid && row->tid == p->pid;
	const char *name = lull_reader_string(t->reader, row->name, NULL);
	u32 parent, ix;

	if (known)
		return *known - 1;
	parent = lull_tl_rows_process(rows, row->process);
	ix = lull_tl_rows_add(rows, LULL_ROW_THREAD, parent, is_main ? 0 : (u64)row->tid + 1);
	*lull_map_add(&rows->by_id, key_of(ID_THREAD, 0, lane), NULL) = ix + 1;
	lull_str_addf(&key, "%s/t%u", lull_timeline_row(t, parent)->key, lane);
	if (is_main)
		lull_str_puts(&title, "main thread");
	else
		lull_str_addf(&title, "%s", *name ? name : "thread");
	if (!is_main && row->tid)
		lull_str_addf(&title, " %u", row->tid);
	lull_timeline_row(t, ix)->id = lane;
	name_row(t, ix, &key, &title);
	return ix;
}

/* Whose child the row of a source is. */
static u32 parent_of(struct lull_tl_rows *rows, const struct lull_lane_source *source, u32 group)
{
	const struct lull_lane_row *row;

	if (source->table == LULL_TABLE_step)
		return LULL_NO_ROW;
	if (group & LULL_GROUP_DEVICE)
		return lull_tl_rows_device(rows, group & ~LULL_GROUP_DEVICE);
	row = lane_row(rows->t, group);
	if (row->kind == LULL_LANE_STREAM)
		return lull_tl_rows_device(rows, row->device);
	return lull_tl_rows_thread(rows, group);
}

u32 lull_tl_rows_source(struct lull_tl_rows *rows, u32 source_ix, u32 group)
{
	const struct lull_lane_source *source = &lull_sources[source_ix];
	struct lull_timeline *t = rows->t;
	struct lull_str key = LULL_STR_INIT, title = LULL_STR_INIT;
	u32 *known = lull_map_find(&rows->by_id, key_of(ID_SOURCE, source_ix, group));
	const struct lull_lane_row *lane = lane_row(t, group & LULL_GROUP_DEVICE ? 0 : group);
	bool is_stream = lane->kind == LULL_LANE_STREAM;
	u32 parent, ix;
	u64 order;

	if (known)
		return *known - 1;
	parent = parent_of(rows, source, group);
	order = (u64)(ORDER_SOURCES + source_ix) << 32 | (is_stream ? lane->stream_id : 0);
	ix = lull_tl_rows_add(rows, source->kind, parent, parent == LULL_NO_ROW ? group : order);
	*lull_map_add(&rows->by_id, key_of(ID_SOURCE, source_ix, group), NULL) = ix + 1;
	if (parent != LULL_NO_ROW)
		lull_str_addf(&key, "%s/", lull_timeline_row(t, parent)->key);
	else
		lull_str_addf(&key, "t%u/", group);
	if (is_stream)
		lull_str_addf(&key, "s%u.%u/", lane->context_id, lane->stream_id);
	lull_str_puts(&key, source->kind);
	lull_str_puts(&title, source->title);
	if (is_stream)
		lull_str_addf(&title, ", stream %u", lane->stream_id);
	lull_timeline_row(t, ix)->id = group;
	lull_timeline_row(t, ix)->source = source_ix + 1;
	name_row(t, ix, &key, &title);
	return ix;
}

/* ---- order ---- */

struct place {
	u32 row;
	u64 order;
};

static int by_order(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->order != y->order)
		return x->order < y->order ? -1 : 1;
	return (x->row > y->row) - (x->row < y->row);
}

/* Append the children of `parent` and theirs to `sorted`; the tree is three deep. */
static void place_children(const struct lull_timeline *t, u32 parent, struct lull_vec *sorted)
{
	struct lull_vec places;
	const struct lull_row *rows = t->rows.at;
	const struct place *at;

	lull_vec_init(&places, sizeof(struct place));
	for (u32 i = 0; i < t->rows.n; i++) {
		if (rows[i].parent == parent)
			*(struct place *)lull_vec_push(&places) =
				(struct place){ i, rows[i].order };
	}
	if (places.n)
		lull_sort(places.at, places.n, sizeof(struct place), by_order);
	at = places.at;
	for (size_t i = 0; i < places.n; i++) {
		lull_vec_add(sorted, &at[i].row, 1);
		if (!rows[at[i].row].source)
			place_children(t, at[i].row, sorted);
	}
	lull_vec_release(&places);
}

static int by_row(const void *a, const void *b)
{
	const struct lull_tl_lane *x = a, *y = b;

	if (x->row != y->row)
		return x->row < y->row ? -1 : 1;
	return (x->line > y->line) - (x->line < y->line);
}

/* Give lanes the new numbers of their rows, and rows their lanes. */
static void sort_lanes(struct lull_timeline *t, const u32 *new_of)
{
	struct lull_tl_lane *lanes = t->lanes.at;
	struct lull_curve *curves = t->curves.at;

	for (size_t i = 0; i < t->lanes.n; i++)
		lanes[i].row = new_of[lanes[i].row];
	if (t->lanes.n)
		lull_sort(lanes, t->lanes.n, sizeof(*lanes), by_row);
	for (size_t i = 0; i < t->curves.n; i++) {
		curves[i].row = new_of[curves[i].row];
		lull_timeline_row(t, curves[i].row)->curve = (u32)i + 1;
	}
	for (size_t i = 0; i < t->lanes.n; i++) {
		struct lull_row *row = lull_timeline_row(t, lanes[i].row);

		if (!row->n_lanes)
			row->first_lane = (u32)i;
		row->n_lanes++;
		row->n_events += lanes[i].n_events;
		row->busy_ns += lanes[i].busy_ns;
	}
}

void lull_tl_rows_sort(struct lull_timeline *t)
{
	struct lull_vec sorted, rows;
	u32 *new_of = lull_alloc(t->rows.n + 1, sizeof(*new_of));
	const u32 *old;

	lull_vec_init(&sorted, sizeof(u32));
	lull_vec_init(&rows, sizeof(struct lull_row));
	place_children(t, LULL_NO_ROW, &sorted);
	old = sorted.at;
	for (u32 i = 0; i < sorted.n; i++)
		new_of[old[i]] = i;
	for (u32 i = 0; i < sorted.n; i++) {
		struct lull_row *row = lull_vec_push(&rows);

		*row = *lull_timeline_row(t, old[i]);
		if (row->parent != LULL_NO_ROW)
			row->parent = new_of[row->parent];
	}
	lull_vec_release(&t->rows);
	t->rows = rows;
	sort_lanes(t, new_of);
	lull_vec_release(&sorted);
	free(new_of);
}
