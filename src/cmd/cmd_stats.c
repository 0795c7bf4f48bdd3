/*
 * lull stats - summarise a report file in tables.
 */
#include "cmd/cmd.h"

#include "cmd/schema_json.h"
#include "cmd/table_command.h"
#include "job/job_report.h"

/* Rows of each table when no report is named: a screen, not a scroll. */
#define DEFAULT_TOP 20

void lull_schema_of_stats(struct lull_json *j)
{
	lull_schema_json_tables(j, "lull stats --format json", lull_reports);
}

int cmd_stats(int argc, char **argv, struct lull_err *err)
{
	const struct lull_tables tables = {
		.usage = "lull stats [OPTIONS] FILE|FOLDER",
		.summary = "Summarise a recording in tables: by default, all that it has data for.",
		.noun = "report",
		.help_option = "help-reports",
		.list = lull_reports,
		.job_list = lull_job_reports,
		.default_top = DEFAULT_TOP,
	};

	return lull_tables_main(&tables, argc, argv, err);
}
