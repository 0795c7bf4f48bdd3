#include "timeline/lane_source.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "base/sort.h"
#include "model/busy.h"
#include "model/nest.h"
#include "model/span.h"
#include "model/wait.h"
#include "model/work.h"
#include "timeline/name.h"
#include "trace/block.h"

/* Above this, the streams of a device share rows: replays of graphs spread over hundreds. */
#define MANY_STREAMS 8u
#define FIT_LINES    8u /* of what overlaps; the rest shares the last */
#define CLASS_SLOTS  3u
#define FIRST_FIT    40u /* line of the first range that was started and ended by id */

#define WORK   LULL_SOURCE_IS_WORK
#define SHARES LULL_SOURCE_HAS_SHARES
#define MOMENT LULL_SOURCE_IS_MOMENT

const struct lull_lane_source lull_sources[] = {
	{ "step", "Steps", LULL_TABLE_step, LULL_BY_THREAD, LULL_LINES_FIT, LULL_NAMED_STEP,
	  "number", 0 },
	{ "kernel", "Kernels", LULL_TABLE_kernel, LULL_BY_STREAM, LULL_LINES_FIT, LULL_NAMED_LAUNCH,
	  "launch", WORK | SHARES },
	{ "copy", "Copies", LULL_TABLE_memcpy, LULL_BY_DEVICE, LULL_LINES_FIT, LULL_NAMED_COPY,
	  "copy_kind", WORK },
	{ "memset", "Memsets", LULL_TABLE_memset, LULL_BY_DEVICE, LULL_LINES_FIT, LULL_NAMED_MEMSET,
	  NULL, WORK },
	{ "graph", "Graphs", LULL_TABLE_graph, LULL_BY_DEVICE, LULL_LINES_FIT, LULL_NAMED_GRAPH,
	  "graph_id", WORK },
	{ "cpu", "CPU", LULL_TABLE_sched, LULL_BY_THREAD, LULL_LINES_ONE, LULL_NAMED_CPU, "cpu",
	  SHARES },
	{ "range", "Ranges", LULL_TABLE_range, LULL_BY_THREAD, LULL_LINES_DEPTH, LULL_NAMED_LABEL,
	  "label", 0 },
	{ "mark", "Marks", LULL_TABLE_mark, LULL_BY_THREAD, LULL_LINES_ONE, LULL_NAMED_LABEL,
	  "label", MOMENT },
	{ "pycall", "Python", LULL_TABLE_pycall, LULL_BY_THREAD, LULL_LINES_DEPTH, LULL_NAMED_FRAME,
	  "frame", 0 },
	{ "op", "Operators", LULL_TABLE_op, LULL_BY_THREAD, LULL_LINES_DEPTH, LULL_NAMED_OP,
	  "label", 0 },
	{ "call", "CUDA calls", LULL_TABLE_cuda_call, LULL_BY_THREAD, LULL_LINES_FIT,
	  LULL_NAMED_STRING, "name", SHARES },
	{ "collective", "Collectives", LULL_TABLE_collective, LULL_BY_THREAD, LULL_LINES_FIT,
	  LULL_NAMED_STRING, "name", 0 },
	{ "os", "OS calls", LULL_TABLE_oscall, LULL_BY_THREAD, LULL_LINES_FIT, LULL_NAMED_STRING,
	  "name", SHARES },
	{ "gil", "GIL waits", LULL_TABLE_gil_wait, LULL_BY_THREAD, LULL_LINES_ONE, LULL_NAMED_GIL,
	  NULL, 0 },
	{ "sample", "CPU samples", LULL_TABLE_sample, LULL_BY_THREAD, LULL_LINES_ONE,
	  LULL_NAMED_STACK, "stack", MOMENT },
	{ "pysample", "Python samples", LULL_TABLE_pysample, LULL_BY_THREAD, LULL_LINES_ONE,
	  LULL_NAMED_STACK, "stack", MOMENT },
	{ 0 },
};

/* ---- names and classes, looked up once ---- */

static u32 *names_of(struct lull_reader *r, enum lull_table table, size_t row_bytes, size_t off)
{
	size_t n;
	const u8 *rows = lull_reader_dim(r, table, &n);
	u32 *names = lull_alloc(n + 1, sizeof(*names));

	for (size_t i = 0; i < n; i++)
		memcpy(&names[i + 1], rows + i * row_bytes + off, sizeof(*names));
	for (size_t i = 0; i <= n; i++)
		names[i] &= LULL_NAME_REST;
	return names;
}

#define NAMES_OF(r, table, column)                                         \
	names_of(r, LULL_TABLE_##table, sizeof(struct lull_##table##_row), \
		 offsetof(struct lull_##table##_row, column))

/* Streams of a device with many of them are one group. */
static void group_streams(struct lull_blocks *b)
{
	size_t n, n_devices;
	const struct lull_lane_row *lanes = lull_reader_dim(b->reader, LULL_TABLE_lane, &n);
	u32 *counts;

	lull_reader_dim(b->reader, LULL_TABLE_device, &n_devices);
	counts = lull_alloc(n_devices + 1, sizeof(*counts));
	for (size_t i = 0; i < n; i++)
		counts[b->device_of[i + 1]] += lanes[i].kind == LULL_LANE_STREAM;
	b->stream_group = lull_alloc(n + 1, sizeof(*b->stream_group));
	for (u32 id = 1; id <= n; id++) {
		u32 device = b->device_of[id];

		b->stream_group[id] =
			device && counts[device] > MANY_STREAMS ? LULL_GROUP_DEVICE | device : id;
	}
	free(counts);
}

void lull_blocks_init(struct lull_blocks *b, struct lull_reader *r)
{
	*b = (struct lull_blocks){ .reader = r };
	b->device_of = lull_busy_devices(r);
	group_streams(b);
	b->names_of_launch = NAMES_OF(r, launch, name);
	b->names_of_label = NAMES_OF(r, label, name);
	b->names_of_op = NAMES_OF(r, op_label, name);
	b->names_of_frame = NAMES_OF(r, frame, function);
	b->cursors = lull_alloc(LULL_N_LINES, sizeof(*b->cursors));
	lull_vec_init(&b->events, sizeof(struct lull_tl_event));
}

void lull_blocks_release(struct lull_blocks *b)
{
	for (size_t i = 0; b->cursors && lull_sources[i].kind; i++)
		lull_cursor_release(&b->cursors[i]);
	free(b->cursors);
	free(b->device_of);
	free(b->stream_group);
	free(b->names_of_launch);
	free(b->names_of_label);
	free(b->names_of_op);
	free(b->names_of_frame);
	free(b->class_of_string);
	lull_vec_release(&b->events);
}

static u8 classify(const struct lull_lane_source *source, const char *name)
{
	switch (source->table) {
	case LULL_TABLE_kernel:
		return (u8)lull_class_of_kernel(name);
	case LULL_TABLE_cuda_call:
		return (u8)lull_class_of_call(name);
	case LULL_TABLE_oscall:
		return (u8)lull_wait_of(name);
	default:
		return 0;
	}
}

/* One string may be the name of a kernel, of a call and of a function. */
static size_t slot_of(const struct lull_lane_source *source)
{
	return source->table == LULL_TABLE_kernel ? 0 : source->table == LULL_TABLE_oscall ? 1 : 2;
}

static u8 class_of(struct lull_blocks *b, const struct lull_lane_source *source, u32 name)
{
	u8 *known;

	if (source->table == LULL_TABLE_memcpy || source->table == LULL_TABLE_memset)
		return LULL_CLASS_COPY;
	if (source->table == LULL_TABLE_graph)
		return LULL_CLASS_OTHER;
	if (!(source->flags & SHARES) || name & ~LULL_NAME_REST)
		return 0;
	if (name >= b->n_strings) {
		size_t n = (size_t)name + 1024;

		b->class_of_string = lull_realloc(b->class_of_string, n, CLASS_SLOTS);
		memset(b->class_of_string + b->n_strings * CLASS_SLOTS, 0,
		       (n - b->n_strings) * CLASS_SLOTS);
		b->n_strings = n;
	}
	known = &b->class_of_string[(size_t)name * CLASS_SLOTS + slot_of(source)];
	if (!*known)
		*known = 1 + classify(source, lull_reader_string(b->reader, name, NULL));
	return *known - 1;
}

/* ---- decoding ---- */

/* The columns of a block that matter here. */
struct columns {
	const u64 *start_ns, *dur_ns;
	const u32 *lane;
	const void *name;
	u8 name_bytes;
	const void *depth;
	u8 depth_bytes;
	const u8 *flags, *end_reason;
};

static const void *column(const struct lull_table_desc *t, const void *const *cols,
			  const char *name, u8 *size_bytes)
{
	int ix = name ? lull_table_column(t, name) : -1;

	if (ix < 0)
		return NULL;
	if (size_bytes)
		*size_bytes = t->cols[ix].size_bytes;
	return cols[ix];
}

static struct lull_cursor *open_cursor(struct lull_blocks *b, const struct lull_lane_source *source)
{
	static const char *const always[] = { "start_ns", "dur_ns", "lane", "depth" };
	struct lull_cursor *c = &b->cursors[source - lull_sources];

	if (c->table)
		return c;
	lull_cursor_init(c, b->reader, source->table, 0, UINT64_MAX);
	for (size_t i = 0; i < LULL_COUNT_OF(always); i++)
		if (lull_table_column(c->table, always[i]) >= 0)
			lull_cursor_want(c, always[i]);
	if (source->name_column)
		lull_cursor_want(c, source->name_column);
	if (source->table == LULL_TABLE_range)
		lull_cursor_want(c, "flags");
	if (source->table == LULL_TABLE_sched)
		lull_cursor_want(c, "end_reason");
	return c;
}

static u32 name_of_stack(struct lull_blocks *b, u32 stack)
{
	size_t n;
	const struct lull_stack_row *stacks = lull_reader_dim(b->reader, LULL_TABLE_stack, &n);
	u32 name = stack && stack <= n ? b->names_of_frame[stacks[stack - 1].frame] : 0;

	return name ? name : LULL_NAME_FIXED | LULL_FIXED_NO_STACK;
}

static u32 name_at(struct lull_blocks *b, const struct lull_lane_source *source,
		   const struct columns *c, size_t i)
{
	u64 v = c->name ? lull_load_at(c->name, c->name_bytes, i) : 0;

	switch (source->naming) {
	case LULL_NAMED_STRING:
		return (u32)v & LULL_NAME_REST;
	case LULL_NAMED_LAUNCH:
		return b->names_of_launch[v];
	case LULL_NAMED_LABEL:
		return b->names_of_label[v];
	case LULL_NAMED_OP:
		return b->names_of_op[v];
	case LULL_NAMED_FRAME:
		return b->names_of_frame[v];
	case LULL_NAMED_STACK:
		return name_of_stack(b, (u32)v);
	case LULL_NAMED_COPY:
		return LULL_NAME_FIXED | (LULL_FIXED_COPY + (v <= 10 ? (u32)v : 0));
	case LULL_NAMED_MEMSET:
		return LULL_NAME_FIXED | LULL_FIXED_MEMSET;
	case LULL_NAMED_GRAPH:
		return LULL_NAME_GRAPH | ((u32)v & LULL_NAME_REST);
	case LULL_NAMED_STEP:
		return LULL_NAME_STEP | ((u32)v & LULL_NAME_REST);
	case LULL_NAMED_GIL:
		return LULL_NAME_FIXED | LULL_FIXED_GIL;
	case LULL_NAMED_CPU:
		return LULL_NAME_CPU | ((u32)v & LULL_NAME_REST);
	}
	return 0;
}

/* The names that numbers of a column stand for, NULL if they are no row ids. */
static const u32 *names_by_id(const struct lull_blocks *b, const struct lull_lane_source *source)
{
	switch (source->naming) {
	case LULL_NAMED_LAUNCH:
		return b->names_of_launch;
	case LULL_NAMED_LABEL:
		return b->names_of_label;
	case LULL_NAMED_OP:
		return b->names_of_op;
	case LULL_NAMED_FRAME:
		return b->names_of_frame;
	default:
		return NULL;
	}
}

/* All names of a block: this is asked for each row of it, so what repeats is looked up once. */
static void name_events(struct lull_blocks *b, const struct lull_lane_source *source,
			const struct columns *c, struct lull_tl_event *e, size_t n)
{
	const u32 *names = names_by_id(b, source), *ids = c->name;

	if (!c->name || c->name_bytes != sizeof(*ids))
		names = NULL;
	for (size_t i = 0; i < n && names; i++)
		e[i].name = names[ids[i]];
	for (size_t i = 0; i < n && !names; i++)
		e[i].name = name_at(b, source, c, i);
}

static void class_events(struct lull_blocks *b, const struct lull_lane_source *source,
			 struct lull_tl_event *e, size_t n)
{
	u8 class = class_of(b, source, LULL_NAME_FIXED);
	size_t slot = slot_of(source);

	for (size_t i = 0; i < n && !(source->flags & SHARES); i++)
		e[i].class = class;
	for (size_t i = 0; i < n && source->flags & SHARES; i++) {
		u32 name = e[i].name;
		u8 known = name < b->n_strings ? b->class_of_string[name * CLASS_SLOTS + slot] : 0;

		e[i].class = known ? known - 1 : class_of(b, source, name);
	}
}

static u32 group_at(const struct lull_blocks *b, const struct lull_lane_source *source, u32 lane)
{
	if (source->by == LULL_BY_STREAM)
		return b->stream_group[lane];
	if (source->by == LULL_BY_DEVICE)
		return LULL_GROUP_DEVICE | b->device_of[lane];
	return lane;
}

static u8 depth_at(const struct columns *c, size_t i)
{
	u64 depth = c->depth ? lull_load_at(c->depth, c->depth_bytes, i) : 0;

	return (u8)(depth < FIRST_FIT ? depth : FIRST_FIT - 1);
}

static int by_group(const void *a, const void *b)
{
	const struct lull_tl_event *x = a, *y = b;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	if (x->end_ns != y->end_ns) /* the outer one first */
		return x->end_ns > y->end_ns ? -1 : 1;
	return (x->row > y->row) - (x->row < y->row);
}

/* Blocks are sorted by lane and start already; only groups of several lanes are not. */
static void sort_events(struct lull_vec *events)
{
	struct lull_tl_event *e = events->at;
	size_t i = 1;

	while (i < events->n && by_group(&e[i - 1], &e[i]) <= 0)
		i++;
	if (i < events->n)
		lull_sort(e, events->n, sizeof(*e), by_group);
}

/*
 * A thread that lost its CPU without wanting to was ready to run until it got one again. Rows above
 * LULL_TALL_NS are in blocks of their own, so rows of one block that are farther apart than that
 * may have run in between, and so may all rows of a block of tall ones.
 */
static size_t add_runnable(struct lull_tl_event *to, const struct columns *c, size_t i, u32 group)
{
	u64 end_ns = lull_span_end_ns(c->start_ns[i - 1], c->dur_ns[i - 1]);

	if (c->lane[i - 1] != c->lane[i] || c->end_reason[i - 1] != 2 || c->start_ns[i] <= end_ns)
		return 0;
	if (c->start_ns[i] - end_ns > LULL_TALL_NS || c->dur_ns[i] > LULL_TALL_NS)
		return 0;
	*to = (struct lull_tl_event){ .start_ns = end_ns,
				      .end_ns = c->start_ns[i],
				      .name = LULL_NAME_FIXED | LULL_FIXED_RUNNABLE,
				      .group = group,
				      .row = (u32)i,
				      .class = 1 };
	return 1;
}

static void place_events(struct lull_blocks *b, const struct lull_lane_source *source,
			 const struct columns *c, struct lull_tl_event *e, size_t n)
{
	u32 lane = c->lane[0], group = group_at(b, source, lane);

	for (size_t i = 0; i < n; i++) {
		if (c->lane[i] != lane) {
			lane = c->lane[i];
			group = group_at(b, source, lane);
		}
		e[i].start_ns = c->start_ns[i];
		e[i].end_ns =
			c->dur_ns ? lull_span_end_ns(e[i].start_ns, c->dur_ns[i]) : e[i].start_ns;
		e[i].row = (u32)i;
		e[i].group = group;
		e[i].line = 0;
	}
	for (size_t i = 0; i < n && source->lines == LULL_LINES_DEPTH; i++)
		e[i].line = depth_at(c, i);
	for (size_t i = 0; i < n && c->flags; i++)
		if (c->flags[i] & LULL_RANGE_START_END)
			e[i].line = FIRST_FIT;
}

/* Put the times in which a thread was ready to run between those in which it ran. */
static size_t add_all_runnable(struct lull_vec *events, const struct columns *c, size_t n)
{
	struct lull_tl_event *e = lull_vec_room(events, 2 * n), *from = e + n;
	size_t n_events = 0;

	memmove(from, e, n * sizeof(*e));
	for (size_t i = 0; i < n; i++) {
		if (i)
			n_events += add_runnable(&e[n_events], c, i, from[i].group);
		e[n_events++] = from[i];
	}
	return n_events;
}

static void set_columns(struct columns *c, const struct lull_lane_source *source,
			const struct lull_table_desc *t, const void *const *cols)
{
	*c = (struct columns){ .start_ns = column(t, cols, "start_ns", NULL),
			       .dur_ns = column(t, cols, "dur_ns", NULL),
			       .lane = column(t, cols, "lane", NULL) };
	c->name = column(t, cols, source->name_column, &c->name_bytes);
	c->depth = column(t, cols, "depth", &c->depth_bytes);
	if (source->table == LULL_TABLE_range)
		c->flags = column(t, cols, "flags", NULL);
	if (source->table == LULL_TABLE_sched)
		c->end_reason = column(t, cols, "end_reason", NULL);
}

size_t lull_blocks_decode(struct lull_blocks *b, const struct lull_lane_source *source,
			  size_t block_ix)
{
	struct lull_cursor *cursor = open_cursor(b, source);
	const void *cols[LULL_MAX_COLS];
	size_t n = lull_cursor_read(cursor, block_ix, cols);
	struct lull_tl_event *events;
	struct columns c;

	b->events.n = 0;
	if (!n)
		return 0;
	set_columns(&c, source, cursor->table, cols);
	if (!c.start_ns || !c.lane)
		return 0;
	/* Column by column: a block has up to 65,536 rows, and this is where most time goes. */
	events = lull_vec_room(&b->events, n);
	place_events(b, source, &c, events, n);
	name_events(b, source, &c, events, n);
	class_events(b, source, events, n);
	b->events.n = c.end_reason && c.dur_ns ? add_all_runnable(&b->events, &c, n) : n;
	sort_events(&b->events);
	return b->events.n;
}

void lull_lines_fit(struct lull_lines_state *state, const struct lull_lane_source *source,
		    struct lull_tl_event *event)
{
	u32 line = event->line, last;

	if (source->lines == LULL_LINES_ONE ||
	    (source->lines == LULL_LINES_DEPTH && event->line < FIRST_FIT))
		return;
	last = line + FIT_LINES - 1;
	while (line < last && state->end_ns[line] > event->start_ns)
		line++;
	event->line = (u8)line;
	if (event->end_ns > state->end_ns[line])
		state->end_ns[line] = event->end_ns;
}
