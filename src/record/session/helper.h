/*
 * helper - a child process that does one task for the recorder, and ends with it.
 */
#ifndef LULL_RECORD_SESSION_HELPER_H
#define LULL_RECORD_SESSION_HELPER_H

#include <sys/types.h>

/* What the helper has open besides 0, 1 and 2, which are /dev/null. */
#define LULL_HELPER_FD 3

/*
 * Fork it: 0 in the helper, which is called `name` and has `fd` as LULL_HELPER_FD. Nothing else of
 * the recorder stays open there: who waits for an end of file would wait for it. -1 with errno.
 */
pid_t lull_helper_fork(int fd, const char *name);

#endif
