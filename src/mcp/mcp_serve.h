/*
 * mcp_serve - the Model Context Protocol on standard input and output, one JSON message a line.
 *
 * Revisions:  2026-07-28, in which each request says its revision (`_meta`) and server/discover
 *             tells what there is; and those before it, in which the client starts with initialize:
 *             2025-11-25, 2025-06-18, 2025-03-26 and 2024-11-05. A request is answered by the
 *             rules of the revision it came in.
 * Calls:      each runs as a process (mcp_job.h). A call that takes longer than its `wait_s` is
 *             answered with the number of a job, and goes on. Requests do not wait for each other.
 * End:        at the end of the input, requests that are waited for are answered first; then, or at
 *             SIGTERM and SIGINT, jobs are ended.
 * Threads:    one.
 */
#ifndef LULL_MCP_MCP_SERVE_H
#define LULL_MCP_MCP_SERVE_H

#include <stdio.h>

#include "base/err.h"
#include "base/types.h"

struct lull_mcp_options {
	const char *folder; /* where commands run, and below which files are written */
	bool is_read_only;  /* without tools that run programs or write files */
	int in;
	FILE *out;
};

/* Serve until the input ends. LULL_E_IO if the folder is none or the output fails. */
int lull_mcp_serve(const struct lull_mcp_options *options, struct lull_err *err);

#endif
