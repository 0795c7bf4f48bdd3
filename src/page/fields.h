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

/* What links a call with its work. */
struct lull_field_key {
	u32 process;
	u32 correlation; /* 0 if there is none */
};

/* Read it from a row of a block. */
struct lull_field_key lull_fields_key(struct lull_reader *r, enum lull_table table, size_t block_ix,
				      u32 row);

#endif
