/*
 * schema - the schema as text, which every report carries as its first block.
 *
 *	table	20	range	fact	one range of a thread
 *	column	20	1	u64 start_ns depth start
 *
 * Fields are separated by tabs. With it a reader of another version can list, dump and query tables
 * and columns that it does not know.
 *
 * Ownership:      struct lull_schema owns its descriptors and their strings.
 * What it checks: lines that are no table or column are skipped; a table with too many columns, or
 *                 a column of a type that is neither a number nor the name of a table, is left out.
 */
#ifndef LULL_TRACE_SCHEMA_H
#define LULL_TRACE_SCHEMA_H

#include "base/str.h"
#include "base/types.h"
#include "base/vec.h"
#include "trace/tables.h"

struct lull_schema {
	struct lull_table_desc *tables; /* in the order of the text */
	size_t n;
	char *text; /* what their strings point into */
};

/* The text of schema.def as lines: their bytes without line ends to *bytes, their lengths (u32) to
 * *lens. */
void lull_schema_lines(struct lull_str *bytes, struct lull_vec *lens);

/* The name of an encoding or table kind in the text: "gap", "fact", ... */
const char *lull_schema_encoding_name(u8 encoding);
const char *lull_schema_kind_name(u8 kind);

/* An empty schema. */
void lull_schema_init(struct lull_schema *s);

/* Free everything. */
void lull_schema_release(struct lull_schema *s);

/*
 * Replace the schema by these lines, as lull_schema_lines() makes them; lines that cannot be
 * understood are left out.
 */
void lull_schema_parse(struct lull_schema *s, const char *bytes, const u32 *lens, size_t n_lines);

/* The table with this id, or NULL. */
const struct lull_table_desc *lull_schema_find(const struct lull_schema *s, u16 id);

#endif
