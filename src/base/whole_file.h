/*
 * whole_file - write a file or a folder that gets its name when it is complete, or not at all.
 *
 *	lull_whole_file_begin(&place, path, &rules, err);
 *	... create place.part ...
 *	rc = lull_whole_file_end(&place, rc, err);
 *
 * What it checks: that the name is free, before the work and again at its end, unless it may be
 *                 replaced. A folder is replaced only if it contains nothing but files of the kind
 *                 we write: a wrong argument must not delete a user's folder.
 * Ownership:      the place owns its names; lull_whole_file_end() frees them.
 */
#ifndef LULL_BASE_WHOLE_FILE_H
#define LULL_BASE_WHOLE_FILE_H

#include "base/err.h"
#include "base/types.h"

struct lull_whole_file_rules {
	bool is_overwriting;	   /* an existing file or folder may be replaced */
	const char *member_suffix; /* a folder, of files that end in this; NULL: a file */
};

struct lull_whole_file {
	struct lull_whole_file_rules rules;
	char *path;
	char *part; /* where to write: a free name next to `path` */
};

/* Choose the name to write to. Nothing is created. */
int lull_whole_file_begin(struct lull_whole_file *place, const char *path,
			  const struct lull_whole_file_rules *rules, struct lull_err *err);

/*
 * Rename what was written to its name if `rc` is 0, remove it otherwise; `rc` is the result of
 * writing. Returns `rc`, or an error of its own.
 */
int lull_whole_file_end(struct lull_whole_file *place, int rc, struct lull_err *err);

/* Remove a file, or a folder with the files in it; -1 with errno if something of it stays. */
int lull_whole_file_remove(const char *path);

#endif
