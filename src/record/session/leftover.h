/*
 * leftover - an unfinished report with the name of a new one.
 *
 * A recorder that was killed leaves NAME.lull.part, for lull-recover(1). A job that is restarted
 * with the same name must be able to start, and must not overwrite it.
 */
#ifndef LULL_RECORD_SESSION_LEFTOVER_H
#define LULL_RECORD_SESSION_LEFTOVER_H

#include "base/err.h"
#include "base/str.h"

/*
 * If there is a file `path`.part, give it another name, NAME-unfinished.lull.part, so that `lull
 * recover` finds all that belongs to it; that name is appended to `kept`. LULL_E_IO if a recorder
 * that lives writes it, or it cannot be renamed.
 */
int lull_leftover_move(const char *path, struct lull_str *kept, struct lull_err *err);

#endif
