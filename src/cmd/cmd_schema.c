/*
 * lull schema - list the tables and columns that this version writes, and the shape of what
 * commands print as JSON.
 */
#include "cmd/cmd.h"

#include <stdio.h>

#include "text/opt.h"
#include "cmd/schema_json.h"
#include "cmd/schema_print.h"
#include "trace/tables.h"

static size_t count_tables(void)
{
	size_t n = 0;

	while (lull_tables[n].name)
		n++;
	return n;
}

static int print_one(const char *name, struct lull_err *err)
{
	const struct lull_table_desc *table = lull_table_by_name(name);

	if (table)
		return lull_schema_print(table, 1, stdout, err);
	if (lull_schema_json_print(name, stdout))
		return 0;
	return lull_fail(err, LULL_E_NOT_FOUND,
			 "there is no table %s and no command %s with a JSON schema; `lull schema` "
			 "lists both",
			 name, name);
}

int cmd_schema(int argc, char **argv, struct lull_err *err)
{
	bool is_man = false;
	const struct lull_opt opts[] = {
		OPT_USAGE("lull schema [OPTIONS] [TABLE|COMMAND...]",
			  "List the tables and columns that this version of lull writes, or print "
			  "the JSON Schema of a command."),
		OPT_FLAG(0, "man", &is_man, "print the tables as Markdown, as in lull-report(5)"),
		OPT_END(),
	};
	int first = lull_opt_parse(argc, argv, opts, err), rc = 0;

	if (first < 0)
		return first;
	if (is_man) {
		lull_schema_print_markdown(lull_tables, count_tables(), stdout);
		return 0;
	}
	if (first == argc) {
		rc = lull_schema_print(lull_tables, count_tables(), stdout, err);
		fputs("\nCommands whose JSON has a schema: ", stdout);
		lull_schema_json_list(stdout);
		fputc('\n', stdout);
	}
	for (int i = first; i < argc && !rc; i++)
		rc = print_one(argv[i], err);
	return rc;
}
