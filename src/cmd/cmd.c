#include "cmd/cmd.h"

#include <string.h>

#include "text/nearest.h"
#include "base/types.h"

const struct lull_cmd lull_cmds[] = {
#define GROUP(first, title)
#define CMD(name, summary) { #name, cmd_##name, summary },
#include "cmd/cmds.def"
#undef CMD
#undef GROUP
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

/* Commands of nsys that are not there, and what does their work. */
static const struct {
	const char *name, *instead;
} nsys_cmds[] = {
	{ "recipe", "`lull stats FOLDER` and `lull why FOLDER` read many reports at once, `lull "
		    "export -t parquet FOLDER` writes tables" },
	{ "nvprof", "`lull profile PROGRAM` records, `lull stats` prints the summaries" },
	{ "plugins", "lull has no plugins; `lull doctor` lists what it records" },
};

const char *lull_cmd_instead(const char *name)
{
	for (size_t i = 0; i < LULL_COUNT_OF(nsys_cmds); i++)
		if (!strcmp(nsys_cmds[i].name, name))
			return nsys_cmds[i].instead;
	return NULL;
}
