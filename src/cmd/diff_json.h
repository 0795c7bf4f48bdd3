/*
 * diff_json - what changed between two reports, for programs.
 */
#ifndef LULL_CMD_DIFF_JSON_H
#define LULL_CMD_DIFF_JSON_H

#include <stdio.h>

#include "base/err.h"

/* Print what `lull diff --format json --top 0` prints for these two files. */
int lull_diff_json(const char *before, const char *after, FILE *to, struct lull_err *err);

#endif
