/*
 * baseline - reports kept under a name, for later comparisons.
 *
 * A store is a folder; a baseline in it is a folder NAME with the reports 1.lull, 2.lull, ... They
 * are whole reports, so that a metric that is asked for later can be measured on them, too.
 */
#ifndef LULL_CMD_BASELINE_H
#define LULL_CMD_BASELINE_H

#include "base/err.h"
#include "base/vec.h"

/*
 * Add the paths (char *, to free) that a word stands for: the file itself if there is one of that
 * name, else the reports of the baseline NAME in the store.
 */
int lull_baseline_find(const char *store, const char *word, struct lull_vec *paths,
		       struct lull_err *err);

/* Keep copies of these reports (NULL at the end) as baseline NAME, in place of older ones. */
int lull_baseline_save(const char *store, const char *name, char **reports, struct lull_err *err);

#endif
