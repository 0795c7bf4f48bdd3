#include "query/made.h"

#include <string.h>

lull_make_fn *lull_made_find(const char *name)
{
	static const struct {
		const char *name;
		lull_make_fn *make;
	} all[] = {
#define MADE(name) { #name, lull_made_##name },
#include "query/made.def"
#undef MADE
	};

	for (size_t i = 0; i < LULL_COUNT_OF(all); i++)
		if (!strcmp(all[i].name, name))
			return all[i].make;
	return NULL;
}

const struct lull_enum_line *lull_enums(size_t *n)
{
	static const struct lull_enum_line lines[] = {
#define ENUM(table, doc)       { #table, doc, 0, NULL, NULL },
#define VALUE(id, name, label) { NULL, NULL, id, name, label },
#include "query/enums.def"
#undef ENUM
#undef VALUE
	};

	*n = LULL_COUNT_OF(lines);
	return lines;
}
