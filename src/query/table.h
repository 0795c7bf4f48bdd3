/*
 * table - a table as SQL sees it: columns with names and types, and the parts its rows come from.
 *
 * A part is a table of the report, or rows that are computed on demand. A cell of a part over
 * a table of the report is described by an expression of nsys.def, compiled once:
 *
 *	start_ns			the value of a column
 *	end				start_ns + dur_ns
 *	lane.device.device_id		following row ids from dimension to dimension
 *	src_kind:mem_kind		what a function of values.c makes of it
 *	process:gpid+tid		plus another column
 *	correlation?			null if it is 0
 *	payload when payload_type=1	null otherwise (also: when flags&12=4)
 *	=59				a constant
 *	(nothing)			null
 *
 * A column of type TEXT or REAL gives text or a real number; INTEGER gives numbers, also for
 * strings, whose ids are those of StringIds.
 */
#ifndef LULL_QUERY_TABLE_H
#define LULL_QUERY_TABLE_H

#include <sqlite3.h>

#include "base/err.h"
#include "base/types.h"
#include "base/vec.h"
#include "query/made_rows.h"
#include "trace/reader.h"

#define LULL_VTAB_MAX_COLS  64
#define LULL_VTAB_MAX_PARTS 4

struct lull_values;
struct lull_vtab_part;

/* How SQL wants the value. */
enum lull_cell_type {
	LULL_CELL_INT,
	LULL_CELL_TEXT,
	LULL_CELL_REAL,
	LULL_CELL_BLOB,
};

/* A function of values.c: what the value with this number is in the tables of nsys. */
typedef i64 lull_value_fn(struct lull_values *values, i64 v);

/* Given by a lull_value_fn, and by lull_cell tables, for null. */
#define LULL_VALUE_NULL INT64_MIN

/* The text of a value. */
typedef const char *lull_name_fn(u32 value);

/* The compiled expression of one cell. */
struct lull_cell {
	enum {
		LULL_CELL_IS_NULL,
		LULL_CELL_IS_CONSTANT,
		LULL_CELL_IS_COLUMN,
		LULL_CELL_IS_END,
	} kind;
	u8 type;	   /* enum lull_cell_type */
	bool is_zero_null; /* 0 means none */
	bool is_ref;	   /* the value of the column is a string id */
	bool is_plain;	   /* a number that is a column as it is */
	bool is_plain_lut; /* a number of `lut`, which is made */
	u8 size_bytes;	   /* of the column */
	u16 col;	   /* of the part's table */
	i64 constant;
	const char *path; /* after the first column: "device.device_id", "" if none; borrowed */
	size_t path_len;
	lull_value_fn *fn;   /* NULL: as it is */
	lull_name_fn *names; /* the text of a value, NULL for none */
	const i64 *lut;	     /* by row id, for a path; made at first use, owned by the values */
	int plus_col;	     /* added to the value; -1: none */
	int when_col;	     /* -1: always */
	u32 when_mask, when_value;
};

/* Which rows of a table are rows of a part: "range only label.api=4", or "range except ...". */
struct lull_row_test {
	enum { LULL_TEST_NONE, LULL_TEST_ONLY, LULL_TEST_EXCEPT } kind;
	struct lull_cell cell; /* a path over a dimension */
	i64 value;
	/* Whether any row of the dimension has the value: without one nothing is looked at. */
	enum { LULL_TEST_UNKNOWN, LULL_TEST_NEVER, LULL_TEST_SOMETIMES } holds;
};

/* What a query wants of a table. */
struct lull_filter {
	u64 used;		/* bit per column; the last stands for all columns after it */
	u64 start_lo, start_hi; /* bounds, edges included */
	u64 end_lo, end_hi;
	int key_col; /* -1: none */
	i64 key;
	bool is_empty; /* compared with null: nothing can be in it */
};

/* A value of a cell. */
struct lull_value {
	enum { LULL_IS_NULL, LULL_IS_INT, LULL_IS_REAL, LULL_IS_TEXT, LULL_IS_BLOB } kind;
	u32 len; /* of text and blobs */
	union {
		i64 i;
		f64 f;
		const char *text;
	};
};

/* A walk over the rows of a part; each kind of part has its own state after it. */
struct lull_walk {
	const struct lull_vtab_part *part;
};

/* What each kind of part can do. */
struct lull_part_ops {
	/* Begin a walk, before the first row. NULL if the query was stopped meanwhile. */
	struct lull_walk *(*begin)(const struct lull_vtab_part *part);
	/* Begin anew with this filter. Rows outside of it may be given, SQLite tests them again. */
	void (*filter)(struct lull_walk *walk, const struct lull_filter *filter);
	/* Go to the next row; false at the end. */
	bool (*next)(struct lull_walk *walk);
	/* The value of a column of this row. */
	void (*column)(struct lull_walk *walk, sqlite3_context *to, int col);
	/*
	 * The same without SQLite; NULL where only SQL reads the part. Text and blobs live as long
	 * as the reader.
	 */
	struct lull_value (*value)(const struct lull_walk *walk, int col);
	/* The number of this row in the part. */
	i64 (*rowid)(const struct lull_walk *walk);
	/* Free the walk. */
	void (*end)(struct lull_walk *walk);
	/* How many rows there are. */
	u64 (*n_rows)(const struct lull_vtab_part *part);
};

struct lull_vtab_col {
	const char *name;
	const char *decl; /* "INTEGER NOT NULL" */
	bool is_key;	  /* equality is looked up, not searched for */
};

struct lull_vtab_part {
	const struct lull_part_ops *ops;
	struct lull_values *values; /* borrowed */
	struct lull_reader *reader; /* borrowed */
	const struct lull_table_desc *table;
	struct lull_cell *cells; /* one per column of the SQL table; NULL for made rows */
	struct lull_row_test test;
	int n_cols;		      /* of the SQL table */
	int start_col, end_col;	      /* of the SQL table, -1 if there is none */
	lull_make_fn *make;	      /* of made rows */
	bool is_costly;		      /* computing them takes long, so it is done on demand */
	struct lull_made_rows *rows;  /* made at first use */
	struct lull_key_index *index; /* of the key column, made at first use */
	const struct lull_table_desc *users; /* call chains: who refers to stacks */
	u8 *is_used;			     /* call chains: by stack id, made at first use */
};

enum lull_vtab_kind {
	LULL_VTAB_NSYS, /* as in an nsys export */
	LULL_VTAB_OWN,	/* as in the report */
	LULL_VTAB_MORE, /* readable, of our own */
};

struct lull_vtab {
	char *name;
	const char *doc; /* borrowed */
	enum lull_vtab_kind kind;
	struct lull_vtab_col *cols;
	int n_cols;
	struct lull_vtab_part parts[LULL_VTAB_MAX_PARTS];
	int n_parts;
};

/* All tables of a report. */
struct lull_vtabs {
	struct lull_vec all; /* struct lull_vtab * */
};

/* List the tables of this report. */
void lull_vtabs_init(struct lull_vtabs *t, struct lull_reader *r, struct lull_values *values);

/* Free them. */
void lull_vtabs_release(struct lull_vtabs *t);

/* The table of this name, in any case, or NULL. */
struct lull_vtab *lull_vtabs_find(const struct lull_vtabs *t, const char *name);

/* Rows of all its parts. */
u64 lull_vtab_n_rows(const struct lull_vtab *t);

/* "CREATE TABLE NAME (...)" with the types of its columns, for SQLite. */
void lull_vtab_declare(struct lull_str *to, const struct lull_vtab *t);

/* Make the tables for the paths of the cells in use. */
void lull_cells_prepare(const struct lull_vtab_part *part, u64 used);

/* The same for the test of a part, which has one. */
void lull_test_prepare(struct lull_vtab_part *part);

/* The integer of a cell whose column has the value `raw`; LULL_VALUE_NULL for none. */
i64 lull_cell_value(const struct lull_vtab_part *part, const struct lull_cell *cell, i64 raw);

/* What the cell is where its column has the value `raw`. */
struct lull_value lull_cell_get(const struct lull_vtab_part *part, const struct lull_cell *cell,
				i64 raw);

/* Give it to SQLite. */
void lull_value_give(sqlite3_context *to, const struct lull_value *value);

/* Free an index of a key column. Accepts NULL. */
void lull_key_index_free(struct lull_key_index *index);

/* True if column `col` is among the used ones. */
static inline bool lull_filter_uses(u64 used, int col)
{
	return used >> (col < 63 ? col : 63) & 1;
}

/* The kinds of parts. */
extern const struct lull_part_ops lull_part_fact, lull_part_dim, lull_part_made, lull_part_strings,
	lull_part_chains;

#endif
