/*
 * newest - files with a suffix in a folder and the folders below it, the newest first.
 *
 * What it leaves out: names that start with a dot, symbolic links, and what is more than
 *                     LULL_NEWEST_DEPTH folders below.
 * Limits:             LULL_NEWEST_MAX files.
 */
#ifndef LULL_BASE_NEWEST_H
#define LULL_BASE_NEWEST_H

#include "base/types.h"
#include "base/vec.h"

#define LULL_NEWEST_DEPTH 2
#define LULL_NEWEST_MAX	  1000u

struct lull_newest {
	char *path; /* below the folder */
	u64 size_bytes;
	i64 time_ns; /* of its last change, since 1970 */
};

/* The files that end in `suffix`, such as ".lull", into `files` (struct lull_newest). */
void lull_newest_list(const char *folder, const char *suffix, struct lull_vec *files);

/* Free them. */
void lull_newest_release(struct lull_vec *files);

#endif
