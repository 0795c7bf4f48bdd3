/*
 * table_command - commands that answer with tables about a file: `lull stats`, `lull analyze`.
 *
 * Each report that is asked for becomes a job with its format and its output; short lists of
 * formats and outputs repeat their last element. Words are checked before the file is opened, so
 * that a wrong name costs nothing.
 */
#ifndef LULL_CMD_TABLE_COMMAND_H
#define LULL_CMD_TABLE_COMMAND_H

#include "base/err.h"
#include "report/report.h"

/* What the commands differ in. */
struct lull_tables {
	const char *usage, *summary;	       /* of --help */
	const char *noun;		       /* "report": the option is --report, and so on */
	const char *help_option;	       /* "help-reports" */
	const struct lull_report *const *list; /* all of them */
	const struct lull_report *const
		*job_list; /* of a folder, which is a job; NULL if it takes none */
	bool is_complete;  /* say what was skipped even if it was not given by name */
	u64 default_top;   /* rows for people when none is named, 0 for all */
};

/* Run the command. */
int lull_tables_main(const struct lull_tables *tables, int argc, char **argv, struct lull_err *err);

#endif
