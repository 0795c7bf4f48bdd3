/*
 * fields - all that the report says about one row, for people and for links.
 */
#ifndef LULL_PAGE_FIELDS_H
#define LULL_PAGE_FIELDS_H

#include "text/json.h"
#include "page/page.h"
#include "timeline/detail.h"

/* Write "fields": [[name, value, unit], ...] of a row of a block. */
void lull_fields_put(struct lull_json *j, struct lull_reader *r, enum lull_table table,
		     size_t block_ix, u32 row);

/* What links a call with its work (model/link.h), from a row of a block; 0 if there is none. */
u64 lull_fields_key(struct lull_reader *r, enum lull_table table, size_t block_ix, u32 row);

#endif
