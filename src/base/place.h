/*
 * place - a file or a folder that appears under its name whole, or not at all.
 *
 *	lull_place_begin(&place, path, &rules, err);
 *	... create place.part ...
 *	rc = lull_place_end(&place, rc, err);
 *
 * What it checks: that nothing of that name is there, before the work and again at its end, unless
 *                 it may be replaced. A folder is replaced only if nothing but files of the kind we
 *                 put there is in it: a wrong word on a command line must not empty somebody's
 *                 folder.
 * Ownership:      the place owns its names; lull_place_end() frees them.
 */
#ifndef LULL_BASE_PLACE_H
#define LULL_BASE_PLACE_H

#include "base/err.h"
#include "base/types.h"

struct lull_place_rules {
	bool is_overwriting;	   /* what has that name may be replaced */
	const char *member_suffix; /* a folder, of files that end in this; NULL: a file */
};

struct lull_place {
	struct lull_place_rules rules;
	char *path;
	char *part; /* where to write: a name beside `path` that nothing has yet */
};

/* Choose the name to write to. Nothing is created. */
int lull_place_begin(struct lull_place *place, const char *path,
		     const struct lull_place_rules *rules, struct lull_err *err);

/*
 * Give what was written its name if `rc` is 0, remove it otherwise; `rc` is what the writing
 * returned. Returns `rc`, or what went wrong now.
 */
int lull_place_end(struct lull_place *place, int rc, struct lull_err *err);

#endif
