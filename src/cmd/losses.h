/*
 * losses - say what a recording lost before a command answers from it.
 */
#ifndef LULL_CMD_LOSSES_H
#define LULL_CMD_LOSSES_H

#include "trace/reader.h"

/* Warn on standard error: one line for each kind of loss or error, and for damage met so far. */
void lull_losses_warn(struct lull_reader *r);

#endif
