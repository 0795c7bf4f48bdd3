#include "trace/tables.h"

#include <string.h>

#define AS_COL_DESC(T, id_, type_, name_, enc_, doc_)        \
	{ .id = (id_),                                       \
	  .size_bytes = sizeof(LULL_CTYPE_##type_),          \
	  .encoding = LULL_ENC_##enc_,                       \
	  .is_signed = _Generic((LULL_CTYPE_##type_)0, i64   \
				: true, default              \
				: false),                    \
	  .is_float = _Generic((LULL_CTYPE_##type_)0, f64    \
			       : true, default               \
			       : false),                     \
	  .row_off = offsetof(struct lull_##T##_row, name_), \
	  .name = #name_,                                    \
	  .type = #type_,                                    \
	  .doc = doc_ },
#define AS_COL_DESCS(id, name, kind, cols, doc) \
	static const struct lull_col_desc cols_##name[] = { cols(AS_COL_DESC, name) };
LULL_TABLES(AS_COL_DESCS)

#define AS_TABLE_DESC(id_, name_, kind_, columns, doc_)   \
	{ .id = (id_),                                    \
	  .kind = LULL_KIND_##kind_,                      \
	  .n_cols = LULL_COUNT_OF(cols_##name_),          \
	  .row_bytes = sizeof(struct lull_##name_##_row), \
	  .name = #name_,                                 \
	  .doc = doc_,                                    \
	  .cols = cols_##name_ },
const struct lull_table_desc lull_tables[] = { LULL_TABLES(AS_TABLE_DESC){ .name = NULL } };

const struct lull_table_desc *lull_table_find(u16 id)
{
	for (const struct lull_table_desc *t = lull_tables; t->name; t++)
		if (t->id == id)
			return t;
	return NULL;
}

const struct lull_table_desc *lull_table_by_name(const char *name)
{
	for (const struct lull_table_desc *t = lull_tables; t->name; t++)
		if (strcmp(t->name, name) == 0)
			return t;
	return NULL;
}

int lull_table_column(const struct lull_table_desc *t, const char *name)
{
	for (int c = 0; c < t->n_cols; c++)
		if (strcmp(t->cols[c].name, name) == 0)
			return c;
	return -1;
}
