/*
 * last_report - what `lull` alone says on a terminal: the verdict on the last report of the folder,
 * and what to ask next.
 */
#ifndef LULL_CMD_LAST_REPORT_H
#define LULL_CMD_LAST_REPORT_H

#include <stdio.h>

#include "base/types.h"

/*
 * Print it. False if there is nothing to say: no report in the current folder, or none that can be
 * read.
 */
bool lull_last_report(FILE *to);

#endif
