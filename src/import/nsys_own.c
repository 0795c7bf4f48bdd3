/*
 * Tables LULL_*: rows of the report as they were. A column is found by its name; what this version
 * does not know is left out, as in a report of another version.
 */
#include "import/nsys.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "base/hash.h"
#include "trace/block.h"

/* lane.kind of a stream. */
#define LANE_STREAM 2

/* The table that is read now, for the function that gets its rows. */
struct own {
	const struct lull_table_desc *table;
	u8 row[512]; /* room for any row struct */
};

static void put(u8 *at, u8 size_bytes, u64 value)
{
	/* Little-endian, as everything that lull runs on. */
	memcpy(at, &value, size_bytes);
}

static void take_row(struct lull_nsys *n, sqlite3_stmt *row)
{
	struct own *now = n->ctx;
	const struct lull_table_desc *t = now->table;

	memset(now->row, 0, sizeof(now->row));
	for (unsigned c = 0; c < t->n_cols; c++) {
		const struct lull_col_desc *col = &t->cols[c];
		u64 value = (u64)sqlite3_column_int64(row, (int)c);

		if (!strcmp(col->type, "str")) {
			value = lull_nsys_text(n, row, (int)c);
		} else if (col->is_float) {
			f64 real = sqlite3_column_double(row, (int)c);

			memcpy(&value, &real, sizeof(value));
		}
		put(now->row + col->row_off, col->size_bytes, value);
	}
	if (t->kind == LULL_KIND_DIM)
		lull_writer_add_dim(n->writer, (enum lull_table)t->id, now->row);
	else
		lull_writer_add(n->writer, (enum lull_table)t->id, now->row);
}

static bool read_table(struct lull_nsys *n, const struct lull_table_desc *t)
{
	struct own own = { .table = t };
	const char *cols[LULL_MAX_COLS + 1] = { NULL };
	char name[64] = "LULL_";
	size_t len = strlen(name);

	for (const char *at = t->name; *at && len + 1 < sizeof(name); at++)
		name[len++] = (char)toupper((unsigned char)*at);
	if (!lull_nsys_has(n, name))
		return false;
	for (unsigned c = 0; c < t->n_cols; c++)
		cols[c] = t->cols[c].name;
	assert(t->row_bytes <= sizeof(own.row));
	n->ctx = &own;
	lull_nsys_each(n, name, cols, t->kind == LULL_KIND_DIM ? "ORDER BY id" : "", take_row);
	n->ctx = NULL;
	return true;
}

/* ---- what rows of nsys tables are found by ---- */

static void index_lane(struct lull_nsys *n, u32 id)
{
	struct lull_lane_row lane =
		*(const struct lull_lane_row *)lull_writer_dim(n->writer, LULL_TABLE_lane, id);
	u32 n_devices = lull_writer_n_dim(n->writer, LULL_TABLE_device);
	u32 words[4] = { lane.process, 0, lane.context_id, lane.stream_id };
	bool is_new;
	u32 *known;

	if (lane.kind != LANE_STREAM) {
		lull_nsys_keys_add(&n->threads, (u64)lane.process << 32 | lane.tid, id,
				   lane.start_ns);
		return;
	}
	if (lane.device && lane.device <= n_devices)
		words[1] = ((const struct lull_device_row *)lull_writer_dim(
				    n->writer, LULL_TABLE_device, lane.device))
				   ->device_id;
	known = lull_map_add(&n->streams, lull_hash(words, sizeof(words)), &is_new);
	if (is_new)
		*known = id;
}

static void index_rows(struct lull_nsys *n)
{
	for (u32 id = 1; id <= lull_writer_n_dim(n->writer, LULL_TABLE_process); id++) {
		const struct lull_process_row *p =
			lull_writer_dim(n->writer, LULL_TABLE_process, id);

		/* As lull writes them: hardware 0, virtual machine 1. */
		lull_nsys_keys_add(&n->processes, 1ull << 24 | p->pid, id, p->start_ns);
	}
	for (u32 id = 1; id <= lull_writer_n_dim(n->writer, LULL_TABLE_device); id++) {
		const struct lull_device_row *d = lull_writer_dim(n->writer, LULL_TABLE_device, id);

		*lull_map_add(&n->devices, (u64)d->process << 32 | d->device_id, NULL) = id;
	}
	for (u32 id = 1; id <= lull_writer_n_dim(n->writer, LULL_TABLE_lane); id++)
		index_lane(n, id);
}

bool lull_nsys_read_own(struct lull_nsys *n)
{
	bool has_any = false;

	for (const struct lull_table_desc *t = lull_tables; t->name; t++)
		if (t->kind == LULL_KIND_DIM)
			has_any |= read_table(n, t);
	if (has_any)
		index_rows(n);
	for (const struct lull_table_desc *t = lull_tables; t->name; t++)
		if (t->kind != LULL_KIND_DIM)
			has_any |= read_table(n, t);
	return has_any;
}
