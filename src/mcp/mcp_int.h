/*
 * mcp_int - what the loop (mcp_serve.c) and the methods (methods.c) of the server share.
 */
#ifndef LULL_MCP_MCP_INT_H
#define LULL_MCP_MCP_INT_H

#include "base/vec.h"
#include "mcp/mcp_job.h"
#include "mcp/resource.h"
#include "mcp/mcp_serve.h"
#include "mcp/tool.h"
#include "rpc/rpc.h"

/* A command that runs for a request, or did. */
struct lull_mcp_call {
	struct lull_mcp_job job;
	const struct lull_mcp_tool *tool;	  /* of tools/call; NULL: resources/read */
	const struct lull_mcp_resource *resource; /* of resources/read */
	char *uri;
	struct lull_rpc_id waiter; /* the request that waits for it; none: nobody */
	char *token;		   /* of its progress, as JSON; or NULL */
	struct lull_mcp_page page;
	u64 deadline_ns, progress_ns; /* when to answer, when to tell next */
	bool is_modern;
};

struct lull_mcp_server {
	const struct lull_mcp_options *options;
	char *folder; /* a real path */
	struct lull_rpc_out out;
	struct lull_vec calls; /* struct lull_mcp_call * */
	u32 n_calls;	       /* ever */
	bool has_old_errors; /* wrong arguments are errors of the protocol, as before 2025-11-25 */
};

/* Handle a message. */
void lull_mcp_handle(struct lull_mcp_server *s, const char *text, size_t len);

/* Answer the request that waits for a call: with its answer, or that it goes on. */
void lull_mcp_answer(struct lull_mcp_server *s, struct lull_mcp_call *call);

/* Tell the request that waits how the call goes on. */
void lull_mcp_tell_progress(struct lull_mcp_server *s, struct lull_mcp_call *call);

/* CLOCK_MONOTONIC. */
u64 lull_mcp_now_ns(void);

#endif
