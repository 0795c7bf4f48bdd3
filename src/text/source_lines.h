/*
 * source_lines - find a source file that a recording names, and show the lines around a place.
 *
 * What it gives:  the file where the recording says it is; else one that ends in the same path
 *                 below one of some folders, for programs that were recorded elsewhere.
 * What it checks: regular files of at most 4 MiB with the suffix of a program's source. A report is
 *                 input: it must not make us print a key or a password file. A file found by a part
 *                 of its path has to have the line, and the word that is given.
 * Cost:           the file is read once or twice.
 */
#ifndef LULL_TEXT_SOURCE_LINES_H
#define LULL_TEXT_SOURCE_LINES_H

#include <stdio.h>

#include "base/str.h"
#include "base/types.h"

struct lull_source_place {
	const char *file; /* as recorded */
	u32 line;	  /* 1-based */
	const char *word; /* that is in the file, such as the function's name; may be NULL */
};

/*
 * Set `path` to where the file is now. `folders` are looked into where it is not at its own path;
 * NULL at the end, empty strings are skipped. False (and "") if there is none.
 */
bool lull_source_find(const struct lull_source_place *place, const char *const *folders,
		      struct lull_str *path);

/*
 * Print the lines up to `around` before and after a line, each with its number, the line itself
 * marked. False if the file has no such line, or is none to be shown.
 */
bool lull_source_print(FILE *to, const char *path, u32 line, u32 around);

#endif
