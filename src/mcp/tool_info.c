/*
 * info: what a report has and what it lacks.
 */
#include "mcp/tool.h"

static const struct lull_mcp_arg args[] = {
	{ LULL_MCP_TEXT, "report", NULL, "a report, such as report1.lull", true, NULL, NULL },
	{ .kind = LULL_MCP_END },
};

const struct lull_mcp_tool lull_mcp_tool_info = {
	.name = "info",
	.title = "What a report has",
	.help = "Say what was recorded, on which machine, with which command, and what was lost or "
		"could not be recorded.",
	.command = { "info", NULL },
	.args = args,
};
