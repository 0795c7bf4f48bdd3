/*
 * answer - what a job printed, as the result of a tool: bounded, with a way to ask for more.
 */
#ifndef LULL_MCP_ANSWER_H
#define LULL_MCP_ANSWER_H

#include "base/str.h"
#include "mcp/mcp_job.h"
#include "mcp/tool.h"
#include "text/json.h"

/* Append the lines of a page to `to`, and how to get the others if that is not all. */
void lull_mcp_cut(struct lull_str *to, const char *text, size_t len,
		  const struct lull_mcp_page *page);

/* Whether what the process did is an answer, and no failure. */
bool lull_mcp_is_answer(const struct lull_mcp_tool *tool, const struct lull_mcp_job *job);

/*
 * Write the keys `content` and `isError` of a tool's result into an open object: the answer of a
 * job that is done, or where it stands.
 */
void lull_mcp_put_answer(struct lull_json *j, const struct lull_mcp_tool *tool,
			 const struct lull_mcp_job *job, const struct lull_mcp_page *page);

/* The same for a sentence about something that is wrong. */
void lull_mcp_put_wrong(struct lull_json *j, const char *sentence);

#endif
