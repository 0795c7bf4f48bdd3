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

/* Warn on standard error if the file was cut off; the same. `path` is how the user calls it. */
void lull_losses_warn_cut(struct lull_reader *r, const char *path);

/*
 * Warn on standard error: one line for a simulated device, for each kind of loss or error, and for
 * what is wrong with the file as a whole.
 */
void lull_losses_warn(struct lull_reader *r, const char *path);

/*
 * Warn on standard error of damaged blocks met so far; for what is asked again and again. Blocks
 * are checked when they are read, so that this is known after the answer only.
 */
void lull_losses_warn_damage(const struct lull_reader *r, const char *path);

/* The same, then close the reader: how a command ends that answered from it. Accepts NULL. */
void lull_losses_close(struct lull_reader *r, const char *path);

#endif
