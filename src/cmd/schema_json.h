/*
 * schema_json - the stable shape of what commands print as JSON, for scripts and agents.
 *
 * To add one: lull_schema_of_X() in the file of the command, SCHEMA(X) in schemas.def, its name in
 * doc/lull-schema.1.md.
 */
#ifndef LULL_CMD_SCHEMA_JSON_H
#define LULL_CMD_SCHEMA_JSON_H

#include <stdio.h>

#include "text/json.h"
#include "base/types.h"
#include "report/report.h"

/* One member of an object; a list of them ends with one without a name. */
struct lull_property {
	const char *name;
	const char *type; /* as JSON Schema names them, several with | between them */
	const char *meaning;
	const struct lull_property *inside; /* members of the object, or of each item; or NULL */
};

#define SCHEMA(name) void lull_schema_of_##name(struct lull_json *j);
#include "cmd/schemas.def"
#undef SCHEMA

/* Print the schema of a command's JSON; false if it has none. */
bool lull_schema_json_print(const char *command, FILE *to);

/* Print the names of the commands that have one, separated by ", ". */
void lull_schema_json_list(FILE *to);

/*
 * The schema of tables as JSON (text/out): an array of objects for each report of the list, keyed
 * by the headers.
 */
void lull_schema_json_tables(struct lull_json *j, const char *title,
			     const struct lull_report *const *list);

/* The schema of a document that is one object with these members. */
void lull_schema_json_object(struct lull_json *j, const char *title,
			     const struct lull_property *properties);

#endif
