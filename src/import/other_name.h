/*
 * other_name - file names of other tools.
 *
 * Scripts written for them name X.nsys-rep: if it does not exist and X.lull does, X.lull is meant.
 * The same holds for X without an extension.
 */
#ifndef LULL_IMPORT_OTHER_NAME_H
#define LULL_IMPORT_OTHER_NAME_H

#include "base/err.h"
#include "base/str.h"

/* *used receives the name of the file that is meant; a warning says if it is not `path`. */
void lull_other_name(const char *path, struct lull_str *used);

/*
 * `path` could not be read, as *err says. If its maker alone can read it, say so instead, and how
 * to get a file that can be read: LULL_E_UNSUPPORTED. Returns err->code.
 */
int lull_other_advice(const char *path, struct lull_err *err);

#endif
