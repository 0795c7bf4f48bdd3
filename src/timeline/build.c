#include "timeline/build.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "model/nest.h"
#include "model/work.h"
#include "report/projection.h"
#include "timeline/curve.h"
#include "timeline/idle.h"
#include "timeline/name.h"
#include "timeline/title_rows.h"
#include "trace/file_frame.h"

/*
 * Each block of each table is decoded once and its events are handed to the folds of their lanes.
 * Blocks with work of devices come in the order of time, so that gaps can be told while walking.
 */

#define VIEW_BUCKETS	2048u
#define VIEW_ROWS	90000u	 /* two blocks: 4 ms */
#define DEVICE_FACTOR	4u	 /* busy and idle time take several times the work of a lane */
#define MAX_PROJECTED	1000000u /* calls and ranges that are joined: 100 MB while they are */
#define FIRST_PROJECTED 2u	 /* line; 0 and 1 are busy and idle time */
#define MAX_RECS	2000000u /* 80 MB */

/* A lane that is being folded. */
struct lane_build {
	u32 row, source, group, line;
	struct lull_fold fold;
};

/* One group of one source: its row and its lines. */
struct group_build {
	u32 row;
	u32 lanes[LULL_N_LINES]; /* + 1 */
	struct lull_lines_state lines;
	u64 by_class[LULL_N_CLASSES];
};

/* A device: when it was busy and when not. */
struct device_build {
	struct build *b;
	u32 device;
	u32 busy_lane, idle_lane;
	struct lull_idle_sweep sweep;
};

struct build {
	struct lull_timeline *t;
	struct lull_tl_rows rows;
	struct lull_blocks blocks;
	struct lull_vec lanes;	 /* struct lane_build */
	struct lull_vec groups;	 /* struct group_build * */
	struct lull_vec devices; /* struct device_build *, by device id */
	struct lull_map group_of;
};

/* A block to be walked. */
struct todo {
	u64 min_start;
	size_t block_ix;
	u32 source;
};

/*
 * The widest bucket whose finer views, of up to VIEW_BUCKETS, can be read from VIEW_ROWS rows of
 * the table; wider if all lanes of the table together would have too many records.
 */
static u32 max_log2(const struct build *b, u32 source)
{
	f64 span_ns = (f64)(b->t->span.to_ns - b->t->span.from_ns) + 1, width_ns;
	u64 n_rows;
	size_t n_lanes;
	u32 log2 = 8;

	lull_reader_dim(b->t->reader, LULL_TABLE_lane, &n_lanes);
	if (source == LULL_NO_ROW) /* made of all work of a device, and there are few of them */
		n_rows = DEVICE_FACTOR * lull_work_count(b->t->reader, LULL_WORK_ALL);
	else
		n_rows = lull_reader_stats(b->t->reader, (u16)lull_sources[source].table).n_rows;
	width_ns = span_ns / (f64)(n_rows + 1) * VIEW_ROWS / VIEW_BUCKETS;
	while (log2 < LULL_MAX_LOG2 && ((f64)(2ull << log2) <= width_ns ||
					span_ns / (f64)(1ull << log2) * (f64)n_lanes > MAX_RECS))
		log2++;
	return log2;
}

static u32 add_lane(struct build *b, u32 row, u32 source, u32 group, u32 line)
{
	struct lane_build *lane = lull_vec_push(&b->lanes);

	*lane = (struct lane_build){ .row = row, .source = source, .group = group, .line = line };
	lull_fold_init(&lane->fold, 0, true);
	lane->fold.max_log2 = max_log2(b, source);
	return (u32)b->lanes.n - 1;
}

static struct group_build *group_of(struct build *b, u32 source, u32 group)
{
	u32 *ix = lull_map_add(&b->group_of, (u64)source << 32 | group, NULL);
	struct group_build *g;

	if (*ix)
		return ((struct group_build **)b->groups.at)[*ix - 1];
	g = lull_alloc(1, sizeof(*g));
	*(struct group_build **)lull_vec_push(&b->groups) = g;
	*ix = (u32)b->groups.n;
	g->row = lull_tl_rows_source(&b->rows, source, group);
	return g;
}

static void fold_span(struct build *b, u32 lane, struct lull_span span, u32 name, u8 class)
{
	struct lull_rec rec = { .start_ns = span.from_ns,
				.end_ns = span.to_ns,
				.busy_ns = span.to_ns - span.from_ns,
				.name = name,
				.count = 1 };

	rec.share[class] = 255;
	lull_fold_add(&((struct lane_build *)b->lanes.at)[lane].fold, &rec);
}

static void on_piece(void *ctx, struct lull_span span, bool is_busy)
{
	struct device_build *d = ctx;

	if (is_busy)
		fold_span(d->b, d->busy_lane, span, LULL_NAME_FIXED | LULL_FIXED_BUSY, 0);
	else
		fold_span(d->b, d->idle_lane, span, LULL_NAME_FIXED | LULL_FIXED_IDLE, 7);
}

static struct device_build *device_of(struct build *b, u32 device)
{
	struct device_build **all = b->devices.at, *d;
	struct lull_str text = LULL_STR_INIT;
	u32 row, idle;

	if (device < b->devices.n && all[device])
		return all[device];
	if (device >= b->devices.n)
		lull_vec_extend(&b->devices, device + 1 - b->devices.n);
	d = lull_alloc(1, sizeof(*d));
	((struct device_build **)b->devices.at)[device] = d;
	d->b = b;
	d->device = device;
	row = lull_tl_rows_device(&b->rows, device);
	idle = lull_tl_rows_add(&b->rows, LULL_ROW_IDLE, row, 0);
	lull_str_addf(&text, "%s/idle", lull_timeline_row(b->t, row)->key);
	lull_timeline_row(b->t, idle)->key = lull_strdup(lull_str_text(&text));
	lull_str_clear(&text);
	lull_str_addf(&text, "GPU %u · idle by cause", lull_timeline_device_id(b->t, device));
	lull_timeline_row(b->t, idle)->title = lull_strdup(lull_str_text(&text));
	lull_timeline_row(b->t, idle)->id = device;
	lull_str_release(&text);
	d->busy_lane = add_lane(b, row, LULL_NO_ROW, LULL_GROUP_DEVICE | device, 0);
	d->idle_lane = add_lane(b, idle, LULL_NO_ROW, LULL_GROUP_DEVICE | device, 1);
	lull_idle_init(&d->sweep, on_piece, d);
	return d;
}

static u32 device_of_group(const struct build *b, u32 group)
{
	return group & LULL_GROUP_DEVICE ? group & ~LULL_GROUP_DEVICE : b->blocks.device_of[group];
}

static void take_event(struct build *b, const struct lull_lane_source *source,
		       struct group_build *g, struct lull_tl_event *e)
{
	struct lull_span span = { e->start_ns, e->end_ns };

	lull_lines_fit(&g->lines, source, e);
	if (!g->lanes[e->line])
		g->lanes[e->line] =
			1 + add_lane(b, g->row, (u32)(source - lull_sources), e->group, e->line);
	fold_span(b, g->lanes[e->line] - 1, span, e->name, e->class);
	/* Drawn, but no time on a CPU. */
	if (e->name == (LULL_NAME_FIXED | LULL_FIXED_RUNNABLE))
		((struct lane_build *)b->lanes.at)[g->lanes[e->line] - 1].fold.busy_ns -=
			e->end_ns - e->start_ns;
	g->by_class[e->class] += e->end_ns - e->start_ns;
}

static void take_block(struct build *b, const struct todo *todo)
{
	const struct lull_lane_source *source = &lull_sources[todo->source];
	size_t n = lull_blocks_decode(&b->blocks, source, todo->block_ix);
	struct lull_tl_event *events = b->blocks.events.at;
	struct group_build *g = NULL;
	struct device_build *d = NULL;

	for (size_t i = 0; i < n; i++) {
		struct lull_tl_event *e = &events[i];

		if (!i || e->group != events[i - 1].group) {
			g = group_of(b, todo->source, e->group);
			d = source->flags & LULL_SOURCE_IS_WORK
				    ? device_of(b, device_of_group(b, e->group))
				    : NULL;
		}
		take_event(b, source, g, e);
		if (d)
			lull_idle_add(&d->sweep, e->start_ns, e->end_ns);
	}
	b->t->n_events += n;
}

static void advance_devices(struct build *b, u64 at_ns)
{
	struct device_build **all = b->devices.at;

	for (size_t i = 0; i < b->devices.n; i++)
		if (all[i])
			lull_idle_advance(&all[i]->sweep, at_ns);
}

static int by_time(const void *a, const void *b)
{
	const struct todo *x = a, *y = b;

	if (x->min_start != y->min_start)
		return x->min_start < y->min_start ? -1 : 1;
	return (x->block_ix > y->block_ix) - (x->block_ix < y->block_ix);
}

/* The blocks of all sources, those of work first and by time. */
static size_t list_blocks(struct build *b, struct lull_vec *todo)
{
	size_t n_blocks, n_work = 0;
	const struct lull_entry *e = lull_reader_blocks(b->t->reader, &n_blocks);

	for (int pass = 0; pass < 2; pass++) {
		for (u32 s = 0; lull_sources[s].kind; s++) {
			bool is_work = lull_sources[s].flags & LULL_SOURCE_IS_WORK;

			for (size_t i = 0; i < n_blocks && is_work == (pass == 0); i++) {
				struct todo item = { e[i].min_start, i, s };

				if (e[i].table_id == lull_sources[s].table &&
				    e[i].kind == LULL_BLOCK_ROWS)
					lull_vec_add(todo, &item, 1);
			}
		}
		if (pass == 0)
			n_work = todo->n;
	}
	if (n_work)
		lull_sort(todo->at, n_work, sizeof(struct todo), by_time);
	return n_work;
}

static void walk(struct build *b, const struct lull_timeline_options *options)
{
	struct lull_vec todo;
	const struct todo *at;
	size_t n_work;

	lull_vec_init(&todo, sizeof(struct todo));
	n_work = list_blocks(b, &todo);
	at = todo.at;
	for (size_t i = 0; i < todo.n; i++) {
		take_block(b, &at[i]);
		if (i + 1 < n_work)
			advance_devices(b, at[i + 1].min_start);
		else if (i + 1 == n_work)
			advance_devices(b, UINT64_MAX);
		if (options->progress)
			options->progress(options->ctx, (f64)(i + 1) / (f64)todo.n);
	}
	lull_vec_release(&todo);
}

/* A stream that mostly runs collectives is called so. */
static void name_streams(struct build *b)
{
	struct group_build **groups = b->groups.at;

	for (size_t i = 0; i < b->groups.n; i++) {
		struct lull_row *row = lull_timeline_row(b->t, groups[i]->row);
		struct lull_str title = LULL_STR_INIT;
		u64 sum = 0;

		for (unsigned c = 0; c < LULL_N_CLASSES; c++)
			sum += groups[i]->by_class[c];
		if (strcmp(row->kind, "kernel") ||
		    groups[i]->by_class[LULL_CLASS_COLLECTIVE] * 2 <= sum)
			continue;
		lull_str_addf(&title, "NCCL%s", row->title + strlen("Kernels"));
		free(row->title);
		row->title = title.at;
	}
}

/* ---- ranges carried over to the device ---- */

/* The only device that worked, 0 if there are several: projections do not say which it was. */
static u32 only_device(const struct build *b)
{
	struct device_build *const *all = b->devices.at;
	u32 found = 0;

	for (size_t i = 0; i < b->devices.n; i++) {
		if (all[i] && found)
			return 0;
		if (all[i])
			found = all[i]->device;
	}
	return found;
}

static u32 add_projected_row(struct build *b, u32 device)
{
	u32 parent = lull_tl_rows_device(&b->rows, device);
	u32 ix = lull_tl_rows_add(&b->rows, LULL_ROW_PROJECTED, parent, 1ull << 45);
	struct lull_row *row;
	struct lull_str key = LULL_STR_INIT;

	lull_str_addf(&key, "%s/projected", lull_timeline_row(b->t, parent)->key);
	row = lull_timeline_row(b->t, ix);
	row->key = key.at;
	row->title = lull_strdup("Ranges on device");
	row->id = device;
	return ix;
}

/* Whether the trace has the ranges of its device already. */
static bool has_shadows(struct lull_reader *r)
{
	size_t n;
	const struct lull_label_row *labels = lull_reader_dim(r, LULL_TABLE_label, &n);

	for (u32 i = 1; i <= n; i++)
		if (lull_nest_is_shadow(labels, i))
			return true;
	return false;
}

/* When the work ran that was launched in ranges; kept whole, as it is in no table. */
static void add_projected(struct build *b)
{
	const struct lull_report_options all = LULL_REPORT_OPTIONS_INIT;
	struct lull_projection p;
	struct lull_lines_state lines = { { 0 } };
	u32 lanes[LULL_N_LINES] = { 0 }, device = only_device(b), row = LULL_NO_ROW;

	if (!device || has_shadows(b->t->reader) ||
	    !lull_reader_stats(b->t->reader, LULL_TABLE_range).n_rows ||
	    lull_reader_stats(b->t->reader, LULL_TABLE_range).n_rows > MAX_PROJECTED ||
	    lull_reader_stats(b->t->reader, LULL_TABLE_cuda_call).n_rows > MAX_PROJECTED)
		return;
	lull_projection_init(&p, b->t->reader, &all);
	for (u32 i = 1; i <= p.nest.ranges.n; i++) {
		const struct lull_nest_range *range = lull_nest_get(&p.nest, i);
		struct lull_span span = { p.ranges[i - 1].first_ns, p.ranges[i - 1].last_ns };
		u32 line = FIRST_PROJECTED + range->level;

		if (!p.ranges[i - 1].n_works || !range->label)
			continue;
		while (line < LULL_N_LINES - 1 && lines.end_ns[line] > span.from_ns)
			line++;
		line = line < LULL_N_LINES ? line : LULL_N_LINES - 1;
		lines.end_ns[line] = span.to_ns;
		if (row == LULL_NO_ROW)
			row = add_projected_row(b, device);
		if (!lanes[line]) {
			lanes[line] =
				1 + add_lane(b, row, LULL_NO_ROW, LULL_GROUP_DEVICE | device, line);
			((struct lane_build *)b->lanes.at)[lanes[line] - 1].fold.max_log2 = 0;
		}
		fold_span(b, lanes[line] - 1, span, b->blocks.names_of_label[range->label], 0);
	}
	lull_projection_release(&p);
}

/* The folds become lanes of the timeline. */
static void finish_lanes(struct build *b)
{
	struct lane_build *from = b->lanes.at;

	for (size_t i = 0; i < b->lanes.n; i++) {
		struct lull_tl_lane *to = lull_vec_push(&b->t->lanes);

		*to = (struct lull_tl_lane){ .row = from[i].row,
					     .line = from[i].line,
					     .group = from[i].group,
					     .source = from[i].source,
					     .n_events = from[i].fold.n_events,
					     .busy_ns = from[i].fold.busy_ns };
		lull_fold_levels(&from[i].fold, &to->lod);
		lull_fold_release(&from[i].fold);
	}
}

static void release(struct build *b)
{
	for (size_t i = 0; i < b->groups.n; i++)
		free(((void **)b->groups.at)[i]);
	for (size_t i = 0; i < b->devices.n; i++) {
		struct device_build *d = ((struct device_build **)b->devices.at)[i];

		if (d)
			lull_idle_release(&d->sweep);
		free(d);
	}
	lull_vec_release(&b->groups);
	lull_vec_release(&b->devices);
	lull_vec_release(&b->lanes);
	lull_map_release(&b->group_of);
	lull_blocks_release(&b->blocks);
	lull_tl_rows_release(&b->rows);
}

void lull_timeline_build(struct lull_timeline *t, const struct lull_timeline_options *options)
{
	struct build b = { .t = t };

	lull_tl_rows_init(&b.rows, t);
	lull_blocks_init(&b.blocks, t->reader);
	lull_vec_init(&b.lanes, sizeof(struct lane_build));
	lull_vec_init(&b.groups, sizeof(struct group_build *));
	lull_vec_init(&b.devices, sizeof(struct device_build *));
	lull_map_init(&b.group_of);
	walk(&b, options);
	name_streams(&b);
	add_projected(&b);
	lull_curves_build(t, &b.rows);
	finish_lanes(&b);
	lull_tl_rows_sort(t);
	release(&b);
}
