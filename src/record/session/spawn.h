/*
 * spawn - start the program with the agent in its environment; the program waits until we are
 * ready.
 *
 * The child is forked, waits on a pipe (so that perf events can be attached to it), then execs. If
 * exec fails, the caller gets the reason, and the status that a shell would return: 127 if the
 * program does not exist, 126 if it cannot be executed.
 */
#ifndef LULL_RECORD_SESSION_SPAWN_H
#define LULL_RECORD_SESSION_SPAWN_H

#include <signal.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/types.h"
#include "base/vec.h"

struct lull_target {
	pid_t pid;
	int go_fd;     /* write end: one byte lets it exec */
	int status_fd; /* read end: errno if exec failed, end of file if it worked */
	bool has_ended;
	int wait_status;
};

struct lull_spawn_env {
	const char *agent_path;
	const char *session_path;
	bool has_nvtx;		     /* set NVTX_INJECTION64_PATH */
	bool has_cuda;		     /* set CUDA_INJECTION64_PATH */
	bool has_nccl;		     /* set NCCL_PROFILER_PLUGIN, unless there is one */
	bool has_torch;		     /* put our package in front of PYTHONPATH */
	bool is_inherited;	     /* keep our own environment */
	const struct lull_vec *more; /* char *: A=B, may be NULL */
	const sigset_t *signals;     /* what the program finds blocked */
	bool is_deaf;		     /* it finds SIGCHLD ignored */
};

/* Fork the program; it stands still until lull_spawn_go(). */
int lull_spawn(struct lull_target *t, char **argv, const struct lull_spawn_env *env,
	       struct lull_err *err);

/*
 * Close our copies of what the program was given: who waits for it to close them would wait for us.
 * What we opened ourselves is close-on-exec, and stays. Standard input becomes /dev/null, and so
 * does standard output unless `has_output`: something will be printed there. Not standard error.
 */
void lull_spawn_let_go(bool has_output);

/* Let it exec. LULL_E_NOT_FOUND if there is no such program, LULL_E_IO if it cannot be executed. */
int lull_spawn_go(struct lull_target *t, const char *name, struct lull_err *err);

#endif
