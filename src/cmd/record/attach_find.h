/*
 * attach_find - which processes `lull attach` means.
 */
#ifndef LULL_CMD_RECORD_ATTACH_FIND_H
#define LULL_CMD_RECORD_ATTACH_FIND_H

#include "base/err.h"
#include "base/vec.h"

/*
 * Append the processes (pid_t) that a name or the words of the command line mean, the one that was
 * named first; with `is_tree` all that it has started, too. LULL_E_USAGE, LULL_E_NOT_FOUND.
 */
int lull_attach_find(const char *name, char **words, int n_words, bool is_tree,
		     struct lull_vec *pids, struct lull_err *err);

/* The number of a process; LULL_E_USAGE if it is none. */
int lull_attach_pid(const char *word, int *pid, struct lull_err *err);

#endif
