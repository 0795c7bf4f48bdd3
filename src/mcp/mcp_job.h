/*
 * mcp_job - a command of lull that runs for an agent, as a process of its own.
 *
 * What it gives:  what the process printed, its status, and how long it has run. Its descriptors
 *                 are watched by the server's loop (mcp_serve.c), which calls lull_mcp_job_read()
 *                 when there is something.
 * Limits:         LULL_MCP_KEEP_BYTES of each stream are kept. Of a command that reads a report
 *                 these are the first, of one that runs a program the last.
 * Threads:        one.
 */
#ifndef LULL_MCP_MCP_JOB_H
#define LULL_MCP_MCP_JOB_H

#include <poll.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"
#include "base/types.h"
#include "base/vec.h"

#define LULL_MCP_KEEP_BYTES (8u << 20)
#define LULL_MCP_JOB_FDS    3

struct lull_mcp_stream {
	int fd; /* -1: ended */
	struct lull_str text;
	u64 dropped_bytes;
};

struct lull_mcp_job {
	u32 number;
	pid_t pid;
	int pid_fd; /* -1: it has ended */
	struct lull_mcp_stream out, err;
	bool keeps_end;
	bool is_done;
	bool is_cancelled;
	bool is_killed; /* SIGKILL was sent */
	int status;	/* exit status, or 128 + signal, as shells say it */
	u64 start_ns, end_ns;
	u64 cancel_ns; /* when it was asked to end */
};

/* Start lull with these words (argv) in a folder. LULL_E_IO if it cannot be started. */
int lull_mcp_job_start(struct lull_mcp_job *job, char **words, const char *folder,
		       struct lull_err *err);

/* What to watch of a job that is not done: LULL_MCP_JOB_FDS entries, fd -1 where nothing is. */
void lull_mcp_job_watch(const struct lull_mcp_job *job, struct pollfd *fds);

/* Read what there is; sets is_done once the process has ended. */
void lull_mcp_job_read(struct lull_mcp_job *job);

/* Ask it to end; called again after some seconds it kills it with all that it started. */
void lull_mcp_job_cancel(struct lull_mcp_job *job);

/* Wall time up to now, or to its end. */
u64 lull_mcp_job_dur_ns(const struct lull_mcp_job *job);

/* End it if it runs, and free what it holds. */
void lull_mcp_job_release(struct lull_mcp_job *job);

#endif
