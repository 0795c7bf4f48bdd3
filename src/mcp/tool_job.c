/*
 * job: the answer of a call that took longer than it was waited for.
 *
 * The server answers it from its own state (methods.c).
 */
#include "mcp/tool.h"

static const struct lull_mcp_arg args[] = {
	{ LULL_MCP_NUMBER, "number", NULL, "the number that the call returned", true, NULL, NULL },
	{ LULL_MCP_FLAG, "cancel", "--cancel", "end it; a recording keeps what it has", false, NULL,
	  NULL },
	{ .kind = LULL_MCP_END },
};

const struct lull_mcp_tool lull_mcp_tool_job = {
	.name = "job",
	.title = "Answer of a long call",
	.help = "Wait for a call that returned the number of a job, and get its answer; or end it. "
		"Also to read more lines of an earlier answer of profile without running it again.",
	.command = { NULL },
	.args = args,
	.is_job = true,
};
