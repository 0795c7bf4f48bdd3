#include "request/name_class.h"

#include <stdlib.h>

#include "base/mem.h"

void lull_name_classes_init(struct lull_name_classes *c, struct lull_reader *r)
{
	c->reader = r;
	c->n = lull_reader_n_strings(r) + 1;
	c->at = lull_alloc(c->n, sizeof(*c->at));
}

void lull_name_classes_release(struct lull_name_classes *c)
{
	free(c->at);
}

u8 lull_name_class(struct lull_name_classes *c, u32 name, lull_classify *classify)
{
	/* 0 is no name. */
	u32 known = name < c->n ? name : 0;

	if (!c->at[known])
		c->at[known] = (u8)(classify(lull_reader_string(c->reader, known, NULL)) + 1);
	return (u8)(c->at[known] - 1);
}
