/*
 * source_file - files of source code that a report names, read from a folder that the user allowed.
 *
 * A report may come from a stranger, and from another machine: only its own folder, or the one that
 * the user names, is looked into. A path is tried from its last parts: of /srv/app/train.py first
 * FOLDER/srv/app/train.py, then FOLDER/app/train.py, then FOLDER/train.py. No symbolic link is
 * followed below the folder, so nothing outside of it is read.
 */
#ifndef LULL_PAGE_SOURCE_FILE_H
#define LULL_PAGE_SOURCE_FILE_H

#include "base/err.h"
#include "base/str.h"

/*
 * Append the text of the file to `text`. LULL_E_NOT_FOUND if the folder has none of that name,
 * LULL_E_UNSUPPORTED if it is too large or no text.
 */
int lull_source_read(const char *folder, const char *file, struct lull_str *text,
		     struct lull_err *err);

#endif
