/*
 * diff: what changed between two reports.
 */
#include "mcp/tool.h"

static const struct lull_mcp_arg args[] = {
	{ LULL_MCP_TEXT, "before", NULL, "the report of the program as it was", true, NULL, NULL },
	{ LULL_MCP_TEXT, "after", NULL, "the report of the changed program", true, NULL, NULL },
	{ LULL_MCP_NUMBER, "top", "--top", "rows of each table (default: 8)", false, NULL, NULL },
	{ .kind = LULL_MCP_END },
};

const struct lull_mcp_tool lull_mcp_tool_diff = {
	.name = "diff",
	.title = "What changed",
	.help = "Compare two reports: the step, its idle time and the causes of it, kernels, "
		"copies, "
		"calls, ranges that appeared, vanished or changed.",
	.command = { "diff", NULL },
	.args = args,
};
