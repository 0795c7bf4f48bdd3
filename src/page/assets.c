#include "page/assets.h"

#include <string.h>

const struct lull_asset *lull_asset_find(const char *name)
{
	for (const struct lull_asset *a = lull_assets; a->name; a++)
		if (!strcmp(a->name, name))
			return a;
	return NULL;
}
