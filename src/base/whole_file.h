/*
 * whole_file - a file or a folder that appears under its name whole, or not at all.
 *
 *	lull_whole_file_begin(&place, path, &rules, err);
 *	... create place.part ...
 *	rc = lull_whole_file_end(&place, rc, err);
 *
 * What it checks: that nothing of that name is there, before the work and again at its end, unless
 *                 it may be replaced. A folder is replaced only if nothing but files of the kind we
 *                 put there is in it: a wrong word on a command line must not empty somebody's
 *                 folder.
 * Ownership:      the place owns its names; lull_whole_file_end() frees them.
 */
#ifndef LULL_BASE_WHOLE_FILE_H
#define LULL_BASE_WHOLE_FILE_H

#include "base/err.h"
#include "base/types.h"

struct lull_whole_file_rules {
	bool is_overwriting;	   /* what has that name may be replaced */
	const char *member_suffix; /* a folder, of files that end in this; NULL: a file */
};

struct lull_whole_file {
	struct lull_whole_file_rules rules;
	char *path;
	char *part; /* where to write: a name beside `path` that nothing has yet */
};

/* Choose the name to write to. Nothing is created. */
int lull_whole_file_begin(struct lull_whole_file *place, const char *path,
			  const struct lull_whole_file_rules *rules, struct lull_err *err);

/*
 * Give what was written its name if `rc` is 0, remove it otherwise; `rc` is what the writing
 * returned. Returns `rc`, or what went wrong now.
 */
int lull_whole_file_end(struct lull_whole_file *place, int rc, struct lull_err *err);

/* Remove a file, or a folder with the files in it; -1 with errno if something of it stays. */
int lull_whole_file_remove(const char *path);

#endif
