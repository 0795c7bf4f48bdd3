/*
 * lull analyze - check a report file for known problems.
 */
#include "cmd/cmd.h"

#include "cmd/schema_json.h"
#include "cmd/table_command.h"
#include "report/rule.h"

void lull_schema_of_analyze(struct lull_json *j)
{
	lull_schema_json_tables(j, "lull analyze --format json", lull_rules);
}

int cmd_analyze(int argc, char **argv, struct lull_err *err)
{
	const struct lull_tables tables = {
		.usage = "lull analyze [OPTIONS] FILE",
		.summary = "Check a recording for known problems: by default, all rules.",
		.noun = "rule",
		.help_option = "help-rules",
		.list = lull_rules,
		.is_complete = true,
	};

	return lull_tables_main(&tables, argc, argv, err);
}
