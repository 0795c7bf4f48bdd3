/*
 * open - the file that a command was given, whatever people call it.
 *
 * Reports, and files of other tools that can be read (src/import/). People who are used to other
 * tools type the names of their files: for X.nsys-rep that does not exist X.lull is opened, if that
 * exists, and so it is for X without any extension. A remark on standard error says so.
 */
#ifndef LULL_CMD_OPEN_H
#define LULL_CMD_OPEN_H

#include "base/err.h"
#include "base/str.h"
#include "trace/reader.h"

/*
 * Open it. *used receives the name of the file that was opened. Formats that nobody but their maker
 * can read give LULL_E_UNSUPPORTED, and say how to get one that can be read.
 */
int lull_open(const char *path, struct lull_reader **r, struct lull_str *used,
	      struct lull_err *err);

#endif
