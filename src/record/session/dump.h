/*
 * dump - finish a report in a child process, while the recorder continues.
 *
 * Symbolising functions and sealing can take seconds. The child has a copy of everything in memory,
 * so neither process waits for the other. When it ends, the child reports the result through a
 * pipe.
 */
#ifndef LULL_RECORD_SESSION_DUMP_H
#define LULL_RECORD_SESSION_DUMP_H

#include <sys/types.h>

#include "base/err.h"
#include "base/types.h"

struct lull_collector;

/* More than this at once, and the next waits. */
#define LULL_MAX_DUMPS 4

/* A child that writes a report. */
struct lull_dump {
	pid_t pid;
	int fd;
	u32 number; /* given by whoever began it */
	char *path; /* owned: the name that is taken, NULL if the child chooses one */
};

/*
 * Fork; the child finishes the open report as lull_control_finish() does. Returns in the recorder
 * alone, where the report is open as before. `path` is what the report will be called, or NULL.
 */
int lull_dump_begin(struct lull_collector *c, u32 number, const char *path, struct lull_err *err);

/* A child of ours has ended; it may be one of these. */
void lull_dump_reap(struct lull_collector *c, pid_t pid, int status);

/* True while a report is being written. */
bool lull_dump_is_busy(const struct lull_collector *c);

/* Wait until at most `n` are left. */
void lull_dump_wait(struct lull_collector *c, size_t n);

#endif
