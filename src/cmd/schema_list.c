/*
 * The schemas of all commands. A file of its own, because it needs all commands: what a single one
 * needs for its schema is in schema_json.c, and links without the others.
 */
#include <string.h>

#include "cmd/schema_json.h"

static const struct {
	const char *command;
	void (*write)(struct lull_json *j);
} schemas[] = {
#define SCHEMA(name) { #name, lull_schema_of_##name },
#include "cmd/schemas.def"
#undef SCHEMA
};

bool lull_schema_json_print(const char *command, FILE *to)
{
	for (size_t i = 0; i < LULL_COUNT_OF(schemas); i++) {
		struct lull_json j;

		if (strcmp(schemas[i].command, command) != 0)
			continue;
		lull_json_init(&j, to);
		j.is_pretty = true;
		schemas[i].write(&j);
		return true;
	}
	return false;
}

void lull_schema_json_list(FILE *to)
{
	for (size_t i = 0; i < LULL_COUNT_OF(schemas); i++)
		fprintf(to, "%s%s", i ? ", " : "", schemas[i].command);
}
