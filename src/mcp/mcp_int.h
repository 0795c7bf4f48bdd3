/*
 * mcp_int - what the loop (mcp_serve.c), the methods (methods.c) and the calls (mcp_call.c) share.
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

/* A request while it is handled. */
struct lull_mcp_request {
	struct lull_mcp_server *s;
	const struct lull_rpc_message *m;
	bool is_modern; /* it came in revision 2026-07-28 or later */
};

/* The server's name and version, as a key of an open object. */
void lull_mcp_put_server(struct lull_json *j, const char *key);

/* A result with what its revision wants in each: the caller writes more keys and sends it. */
struct lull_json *lull_mcp_result(struct lull_rpc_reply *r, const struct lull_rpc_out *out,
				  const struct lull_rpc_id *id, bool is_modern);

/* How long a client may keep it, as keys of a result. */
void lull_mcp_put_ttl(struct lull_json *j, bool is_modern);

/* Let the request wait for a call. */
void lull_mcp_wait(const struct lull_mcp_request *q, struct lull_mcp_call *call,
		   const struct lull_mcp_page *page);

/* Run the words as a call that the request waits for; NULL if that failed, and was answered. */
struct lull_mcp_call *lull_mcp_run(const struct lull_mcp_request *q, char **words,
				   const struct lull_mcp_page *page);

/* Answer that there is no resource of this address. */
void lull_mcp_no_resource(const struct lull_mcp_server *s, const struct lull_rpc_id *id,
			  bool is_modern, const char *uri, const char *sentence);

/* A request is not wanted any more: end its process, and send nothing. */
void lull_mcp_cancel(const struct lull_mcp_request *q);

/* Handle a message. */
void lull_mcp_handle(struct lull_mcp_server *s, const char *text, size_t len);

/* Answer the request that waits for a call: with its answer, or that it goes on. */
void lull_mcp_answer(struct lull_mcp_server *s, struct lull_mcp_call *call);

/* Tell the request that waits how the call goes on. */
void lull_mcp_tell_progress(struct lull_mcp_server *s, struct lull_mcp_call *call);

/* CLOCK_MONOTONIC. */
u64 lull_mcp_now_ns(void);

#endif
