/*
 * stats_help - what `lull stats` says about its reports and formats.
 */
#ifndef LULL_CMD_STATS_HELP_H
#define LULL_CMD_STATS_HELP_H

#include <stdio.h>

#include "base/err.h"

/* List the reports ("" for the list), or describe one of them, or ALL. */
int lull_stats_help_reports(FILE *to, const char *name, struct lull_err *err);

/* List the formats with their arguments; a name shows that one. */
int lull_stats_help_formats(FILE *to, const char *name, struct lull_err *err);

/* LULL_E_USAGE: "no report X; did you mean Y?" */
int lull_stats_no_report(const char *name, const char *nearest, struct lull_err *err);

#endif
