/*
 * open - open the file argument of a command, for commands that print its name.
 *
 * Others use lull_import_open(), which opens the same.
 */
#ifndef LULL_CMD_OPEN_H
#define LULL_CMD_OPEN_H

#include "base/err.h"
#include "base/str.h"
#include "trace/reader.h"

/* lull_import_open(); *used receives the name of the file that was opened. */
int lull_open(const char *path, struct lull_reader **r, struct lull_str *used,
	      struct lull_err *err);

#endif
