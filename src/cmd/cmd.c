#include "cmd/cmd.h"

#include <string.h>

#include "base/nearest.h"

const struct lull_cmd lull_cmds[] = {
#define CMD(name, summary) { #name, cmd_##name, summary },
#include "cmd/cmds.def"
#undef CMD
	{ NULL, NULL, NULL },
};

const struct lull_cmd *lull_cmd_find(const char *name, const char **nearest)
{
	struct lull_nearest near = { .word = name };

	for (const struct lull_cmd *c = lull_cmds; c->name; c++) {
		if (!strcmp(c->name, name))
			return c;
		if (c->summary)
			lull_nearest_add(&near, c->name);
	}
	*nearest = near.best;
	return NULL;
}
