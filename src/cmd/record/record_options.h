/*
 * record_options - what `lull profile` and `lull launch` have in common: options, the run, the
 * closing lines.
 */
#ifndef LULL_CMD_RECORD_RECORD_OPTIONS_H
#define LULL_CMD_RECORD_RECORD_OPTIONS_H

#include "base/err.h"
#include "base/types.h"

/*
 * Parse, run, report. `is_interactive`: the recording waits for lull start. Returns 0, a negative
 * code, or the program's own exit status.
 */
int lull_record(int argc, char **argv, bool is_interactive, struct lull_err *err);

/* On standard error, which commands say more about this report: why only if a device worked. */
void lull_record_print_next(const char *path);

#endif
