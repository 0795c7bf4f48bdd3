/*
 * made - the tables of made.def: short ones, whose rows are computed on demand.
 *
 * To add one: lull_made_X() in made_*.c, MADE(X) in made.def, a TABLE with the source "@X" in
 * nsys.def.
 */
#ifndef LULL_QUERY_MADE_H
#define LULL_QUERY_MADE_H

#include "query/made_rows.h"

/* The schema that our tables follow. */
#define LULL_NSYS_SCHEMA "3.25.0"

#define MADE(name) lull_make_fn lull_made_##name;
#include "query/made.def"
#undef MADE

/* The function of this name, or NULL. */
lull_make_fn *lull_made_find(const char *name);

/* One value of an enumeration of enums.def; `table` is set in the first line of each only. */
struct lull_enum_line {
	const char *table;
	const char *doc;
	i64 id;
	const char *name;
	const char *label;
};

/* All lines of enums.def; *n receives their number. */
const struct lull_enum_line *lull_enums(size_t *n);

#endif
