/*
 * losses - say what a recording lost, and that its device was simulated, before a command answers
 * from it.
 */
#ifndef LULL_CMD_LOSSES_H
#define LULL_CMD_LOSSES_H

#include "trace/reader.h"

/*
 * Warn on standard error if a device was simulated; for commands that report losses in another way.
 */
void lull_losses_warn_simulated(struct lull_reader *r);

/* Warn on standard error if the file was cut off; the same. */
void lull_losses_warn_cut(struct lull_reader *r);

/*
 * Warn on standard error: one line for a simulated device, for each kind of loss or error, and for
 * damage met so far.
 */
void lull_losses_warn(struct lull_reader *r);

#endif
