/*
 * scratch - a file for a moment, in a folder of its own.
 *
 * For a report that is written, opened and has no name from then on.
 *
 * What it gives:  a path in a new folder of $TMPDIR, or /tmp.
 */
#ifndef LULL_BASE_SCRATCH_H
#define LULL_BASE_SCRATCH_H

#include "base/err.h"
#include "base/str.h"

struct lull_scratch {
	struct lull_str folder, file;
};

#define LULL_SCRATCH_INIT                    \
	{                                    \
		LULL_STR_INIT, LULL_STR_INIT \
	}

/* Make the folder; s->file is the path of `name` in it. LULL_E_IO if it cannot be made. */
int lull_scratch_make(struct lull_scratch *s, const char *name, struct lull_err *err);

/* Remove file and folder, as far as they are there. */
void lull_scratch_remove(struct lull_scratch *s);

#endif
