/*
 * warm - processes that have done the imports of the program, and from which runs are forked.
 *
 * `import torch` takes seconds, and each run needs it. The first run of a Python program is offered
 * a socket; where its import of PyTorch ends, it may say that it is ready (python/lull/_try_warm.py
 * has the messages, and when a fork is safe). From then on it only forks runs: that one, and others
 * with the same environment. A program that does not say so runs as usual.
 *
 * Ownership: the processes end with lull_warms_release(), or when lull itself ends.
 */
#ifndef LULL_TRY_WARM_H
#define LULL_TRY_WARM_H

#include <sys/types.h>

#include "base/str.h"
#include "base/types.h"
#include "base/vec.h"

struct lull_warm {
	pid_t pid;
	int fd;		       /* our end of the socket */
	struct lull_str env;   /* what its remedies set */
	u64 import_ns;	       /* that each run is spared */
	struct lull_str wants; /* modules that it should load before the next run */
	bool has_loaded;
};

struct lull_warms {
	struct lull_vec all; /* struct lull_warm */
	bool is_off;	     /* each run starts anew */
	bool is_plain;	     /* nothing but PyTorch is loaded ahead */
};

/* A socket whose other end goes to a program. */
struct lull_warm_offer {
	int ours, theirs; /* -1: none */
};

/* No processes. */
void lull_warms_init(struct lull_warms *w);

/* End them all. */
void lull_warms_release(struct lull_warms *w);

/* The index of the process with this environment, or -1. */
int lull_warms_find(const struct lull_warms *w, const char *env);

/* Whether this is one of our processes. */
bool lull_warms_has(const struct lull_warms *w, pid_t pid);

/* Make a socket for a new one; false if there are enough of them. */
bool lull_warm_offer(const struct lull_warms *w, struct lull_warm_offer *offer);

/* Close both ends. */
void lull_warm_withdraw(struct lull_warm_offer *offer);

/*
 * Whether the program that was offered a socket is ready; then it is one of the processes, and
 * *index is it. One that is not the process that we started is sent on.
 */
bool lull_warms_take(struct lull_warms *w, struct lull_warm_offer *offer, pid_t pid,
		     const char *env, int *index);

/*
 * Fork a run: its process, or -1 if that failed; then the process is gone and the others have moved
 * up.
 */
pid_t lull_warms_run(struct lull_warms *w, int index, const char *folder, const char *numbers,
		     const char *files);

/* How a run ended. */
struct lull_warm_end {
	int wait_status;
	u64 rss_kib;
	bool is_gone; /* the process itself; others have moved up */
};

/* Whether the run has ended. Where the process itself has, the run counts as killed. */
bool lull_warms_poll(struct lull_warms *w, int index, struct lull_warm_end *end);

#endif
