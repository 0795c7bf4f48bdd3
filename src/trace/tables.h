/*
 * tables - what the compiler makes of schema.def: row structs, table numbers, column descriptors.
 *
 * For a table `range` there are struct lull_range_row (one row, for the writer), struct
 * lull_range_cols (decoded columns of one block, for the reader), and LULL_TABLE_range. There is no
 * second list.
 */
#ifndef LULL_TRACE_TABLES_H
#define LULL_TRACE_TABLES_H

#include "base/types.h"
#include "trace/schema.def"

/* The C type of each type name of the schema; references are row ids. */
#define LULL_CTYPE_u8		  u8
#define LULL_CTYPE_u16		  u16
#define LULL_CTYPE_u32		  u32
#define LULL_CTYPE_u64		  u64
#define LULL_CTYPE_i64		  i64
#define LULL_CTYPE_f64		  f64
#define LULL_CTYPE_str		  u32
#define LULL_CTYPE_device	  u32
#define LULL_CTYPE_launch	  u32
#define LULL_CTYPE_op_label	  u32
#define LULL_CTYPE_metric	  u32
#define LULL_CTYPE_process	  u32
#define LULL_CTYPE_lane		  u32
#define LULL_CTYPE_module	  u32
#define LULL_CTYPE_frame	  u32
#define LULL_CTYPE_stack	  u32
#define LULL_CTYPE_label	  u32
#define LULL_CTYPE_payload_schema u32

enum lull_table_kind {
	LULL_KIND_FACT = 1,
	LULL_KIND_DIM = 3,
};

enum lull_encoding {
	LULL_ENC_PLAIN = 0,
	LULL_ENC_DELTA = 1,
	LULL_ENC_GAP = 2,
	LULL_ENC_DEPTH = 3,
	LULL_ENC_LANE = 4,
};

#define AS_ENUM(id, name, kind, cols, doc) LULL_TABLE_##name = id,
enum lull_table { LULL_TABLES(AS_ENUM) };
#undef AS_ENUM

#define AS_FIELD(T, id, type, name, enc, doc) LULL_CTYPE_##type name;
#define AS_ROW(id, name, kind, cols, doc) \
	struct lull_##name##_row {        \
		cols(AS_FIELD, name)      \
	};
LULL_TABLES(AS_ROW)
#undef AS_ROW
#undef AS_FIELD

#define AS_COL(T, id, type, name, enc, doc) const LULL_CTYPE_##type *name;
#define AS_COLS(id, name, kind, cols, doc) \
	struct lull_##name##_cols {        \
		cols(AS_COL, name)         \
	};
LULL_TABLES(AS_COLS)
#undef AS_COLS
#undef AS_COL

/* One column: where it sits in the row struct, how it is stored, what it means. */
struct lull_col_desc {
	u16 id;
	u8 size_bytes;	/* of one value: 1, 2, 4, 8 */
	u8 encoding;	/* enum lull_encoding */
	bool is_signed; /* i64: stored zigzag */
	bool is_float;	/* f64: IEEE bits */
	u16 row_off;	/* offset in the row struct */
	const char *name;
	const char *type; /* as written in schema.def: "u64", "str", "lane", ... */
	const char *doc;
};

/* One table with its columns, in the order of schema.def. */
struct lull_table_desc {
	u16 id;
	u8 kind; /* enum lull_table_kind */
	u16 n_cols;
	u32 row_bytes; /* sizeof the row struct */
	const char *name;
	const char *doc;
	const struct lull_col_desc *cols;
};

/* All tables in the order of schema.def, ended by an entry with a NULL name. */
extern const struct lull_table_desc lull_tables[];

/* The table with this id or name, or NULL. */
const struct lull_table_desc *lull_table_find(u16 id);
const struct lull_table_desc *lull_table_by_name(const char *name);

/* Index of the column with this name in t->cols, or -1. */
int lull_table_column(const struct lull_table_desc *t, const char *name);

#endif
