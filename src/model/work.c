#include "model/work.h"

#include <string.h>

#include "base/mem.h"
#include "trace/block.h"
#include "wire/vocabulary.h"

/* The tables, and the column that says what the work was. */
static const struct {
	enum lull_work_kind kind;
	enum lull_table table;
	const char *what;
	const char *more[4]; /* for LULL_WORK_WANT_BYTES */
} sources[] = {
	{ LULL_WORK_KERNEL, LULL_TABLE_kernel, "launch", { NULL } },
	{ LULL_WORK_MEMCPY,
	  LULL_TABLE_memcpy,
	  "copy_kind",
	  { "size_bytes", "src_kind", "dst_kind", "flags" } },
	{ LULL_WORK_MEMSET, LULL_TABLE_memset, NULL, { "size_bytes", "memory_kind", NULL } },
	{ LULL_WORK_GRAPH, LULL_TABLE_graph, "graph_id", { NULL } },
};

void lull_work_begin(struct lull_work_cursor *c, struct lull_reader *r, unsigned kinds,
		     unsigned wants, struct lull_span window)
{
	size_t n;

	memset(c, 0, sizeof(*c));
	c->reader = r;
	c->kinds = kinds;
	c->wants = wants;
	c->window = window;
	c->lanes = lull_reader_dim(r, LULL_TABLE_lane, &n);
}

/* Names of columns, NULL at the end. */
#define MAX_COLUMNS 12

/* The columns to decode of a source. */
static void choose_columns(size_t s, unsigned wants, const char *columns[MAX_COLUMNS])
{
	size_t n = 0;

	columns[n++] = "start_ns";
	columns[n++] = "dur_ns";
	columns[n++] = "lane";
	if (sources[s].what)
		columns[n++] = sources[s].what;
	if (wants & LULL_WORK_WANT_CALL) {
		columns[n++] = "process";
		columns[n++] = "correlation";
	}
	for (size_t i = 0; i < LULL_COUNT_OF(sources[s].more) && sources[s].more[i]; i++) {
		if (wants & LULL_WORK_WANT_BYTES)
			columns[n++] = sources[s].more[i];
	}
	columns[n] = NULL;
}

/* Open the table of the next kind; false if there is none. */
static bool next_kind(struct lull_work_cursor *c)
{
	const char *columns[MAX_COLUMNS];
	size_t s = 0;

	while (s < LULL_COUNT_OF(sources) && !(sources[s].kind & c->kinds))
		s++;
	if (s == LULL_COUNT_OF(sources))
		return false;
	c->kind = sources[s].kind;
	c->kinds &= ~c->kind;
	choose_columns(s, c->wants, columns);
	lull_cursor_init(&c->cursor, c->reader, sources[s].table, c->window.from_ns,
			 c->window.to_ns);
	for (const char *const *column = columns; *column; column++)
		lull_cursor_want(&c->cursor, *column);
	return true;
}

/* Decode the next block, of whichever kind; false at the end. */
static bool next_block(struct lull_work_cursor *c)
{
	c->ix = 0;
	c->n = 0;
	while (c->kind || next_kind(c)) {
		c->n = lull_cursor_next(&c->cursor, &c->cols);
		if (c->n)
			return true;
		lull_cursor_release(&c->cursor);
		c->kind = 0;
	}
	return false;
}

/* What all tables have, by the names of their columns. */
#define FILL(work, cols, i, wants)                                   \
	do {                                                         \
		(work)->start_ns = (cols).start_ns[i];               \
		(work)->dur_ns = (cols).dur_ns[i];                   \
		(work)->lane = (cols).lane[i];                       \
		if ((wants)&LULL_WORK_WANT_CALL) {                   \
			(work)->process = (cols).process[i];         \
			(work)->correlation = (cols).correlation[i]; \
		}                                                    \
	} while (0)

static void fill_memory(struct lull_work *work, const struct lull_work_cursor *c)
{
	bool has_bytes = c->wants & LULL_WORK_WANT_BYTES;

	if (c->kind == LULL_WORK_MEMCPY) {
		FILL(work, c->cols.memcpy, c->ix, c->wants);
		work->what = c->cols.memcpy.copy_kind[c->ix];
		if (has_bytes) {
			work->size_bytes = c->cols.memcpy.size_bytes[c->ix];
			work->src_kind = c->cols.memcpy.src_kind[c->ix];
			work->dst_kind = c->cols.memcpy.dst_kind[c->ix];
			work->is_async = c->cols.memcpy.flags[c->ix] & 1;
		}
		return;
	}
	FILL(work, c->cols.memset, c->ix, c->wants);
	if (has_bytes) {
		work->size_bytes = c->cols.memset.size_bytes[c->ix];
		work->dst_kind = c->cols.memset.memory_kind[c->ix];
	}
}

/* Row c->ix of the block. */
static void fill_work(struct lull_work *work, const struct lull_work_cursor *c)
{
	*work = (struct lull_work){ .kind = (u8)c->kind };
	if (c->kind == LULL_WORK_KERNEL) {
		FILL(work, c->cols.kernel, c->ix, c->wants);
		work->what = c->cols.kernel.launch[c->ix];
	} else if (c->kind == LULL_WORK_GRAPH) {
		FILL(work, c->cols.graph, c->ix, c->wants);
		work->what = c->cols.graph.graph_id[c->ix];
	} else {
		fill_memory(work, c);
	}
	work->process = lull_work_process(c->lanes, work->process, work->lane);
}

bool lull_work_next(struct lull_work_cursor *c, struct lull_work *work)
{
	if (c->ix == c->n && !next_block(c))
		return false;
	fill_work(work, c);
	c->ix++;
	return true;
}

void lull_work_end(struct lull_work_cursor *c)
{
	if (c->kind)
		lull_cursor_release(&c->cursor);
	c->kind = 0;
}

/* ---- by time ---- */

/* `cols` has room for the columns of any table; they change with the block. */
static bool fill_row(void *ctx, void *element, const void *cols, size_t ix)
{
	struct lull_work_cursor *c = ctx;

	if (!ix)
		memcpy(&c->cols, cols, sizeof(c->cols));
	c->ix = ix;
	fill_work(element, c);
	return true;
}

static int by_start(const void *a, const void *b)
{
	const struct lull_work *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	if (x->dur_ns != y->dur_ns)
		return x->dur_ns < y->dur_ns ? -1 : 1;
	return (x->correlation > y->correlation) - (x->correlation < y->correlation);
}

void lull_work_order_begin(struct lull_work_order *o, struct lull_reader *r, unsigned kinds,
			   unsigned wants, struct lull_span window)
{
	const char *columns[MAX_COLUMNS];

	o->n = 0;
	for (size_t s = 0; s < LULL_COUNT_OF(sources); s++) {
		struct lull_work_cursor *fill = &o->fills[o->n];
		struct lull_order_source source = {
			.reader = r,
			.table = sources[s].table,
			.window = window,
			.columns = columns,
			.elem_bytes = sizeof(struct lull_work),
			.fill = fill_row,
			.compare = by_start,
			.ctx = fill,
		};

		if (!(sources[s].kind & kinds))
			continue;
		lull_work_begin(fill, r, kinds, wants, window);
		fill->kind = sources[s].kind;
		choose_columns(s, wants, columns);
		lull_order_begin(&o->orders[o->n], &source);
		o->heads[o->n] = lull_order_next(&o->orders[o->n]);
		o->n++;
	}
}

const struct lull_work *lull_work_order_next(struct lull_work_order *o)
{
	unsigned best = o->n;

	for (unsigned i = 0; i < o->n; i++) {
		if (o->heads[i] && (best == o->n || by_start(o->heads[i], o->heads[best]) < 0))
			best = i;
	}
	if (best == o->n)
		return NULL;
	o->given = *o->heads[best];
	o->heads[best] = lull_order_next(&o->orders[best]);
	return &o->given;
}

void lull_work_order_end(struct lull_work_order *o)
{
	for (unsigned i = 0; i < o->n; i++)
		lull_order_end(&o->orders[i]);
}

/* What is true of the name of each launch, by its id. */
static bool *ask_names(struct lull_reader *r, bool (*is)(const char *name))
{
	size_t n;
	const struct lull_launch_row *launches = lull_reader_dim(r, LULL_TABLE_launch, &n);
	bool *all = lull_alloc(n + 1, sizeof(*all));

	for (size_t i = 0; i < n; i++)
		all[i + 1] = is(lull_reader_string(r, launches[i].name, NULL));
	return all;
}

static bool is_collective(const char *name)
{
	return lull_kernel_class_of(name) == LULL_KERNEL_COLLECTIVE;
}

bool *lull_work_collectives(struct lull_reader *r)
{
	return ask_names(r, is_collective);
}

bool *lull_work_nccl(struct lull_reader *r)
{
	return ask_names(r, lull_kernel_is_nccl);
}

/* The owners of a block. */
static void each_owner(const struct lull_lane_row *lanes, const u32 *process, const u32 *lane,
		       size_t n, lull_work_owner_visit *visit, void *ctx)
{
	for (size_t i = 0, j; i < n; i = j) {
		for (j = i + 1; j < n && process[j] == process[i] && lane[j] == lane[i]; j++)
			;
		visit(ctx, lull_work_process(lanes, process[i], lane[i]), lane[i], j - i);
	}
}

void lull_work_owners(struct lull_reader *r, unsigned kinds, lull_work_owner_visit *visit,
		      void *ctx)
{
	const void *cols[LULL_MAX_COLS];
	struct lull_cursor c;
	size_t n, n_lanes;
	const struct lull_lane_row *lanes = lull_reader_dim(r, LULL_TABLE_lane, &n_lanes);

	for (size_t s = 0; s < LULL_COUNT_OF(sources); s++) {
		if (!(sources[s].kind & kinds))
			continue;
		lull_cursor_init(&c, r, sources[s].table, 0, UINT64_MAX);
		lull_cursor_want(&c, "process");
		lull_cursor_want(&c, "lane");
		while ((n = lull_cursor_next(&c, cols)) > 0)
			each_owner(lanes, cols[lull_table_column(c.table, "process")],
				   cols[lull_table_column(c.table, "lane")], n, visit, ctx);
		lull_cursor_release(&c);
	}
}

u64 lull_work_count(const struct lull_reader *r, unsigned kinds)
{
	u64 n = 0;

	for (size_t s = 0; s < LULL_COUNT_OF(sources); s++) {
		if (sources[s].kind & kinds)
			n += lull_reader_stats(r, (u16)sources[s].table).n_rows;
	}
	return n;
}
