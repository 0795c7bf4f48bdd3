/*
 * doctor: what can be recorded on this machine.
 */
#include "mcp/tool.h"

static const struct lull_mcp_arg args[] = {
	{ .kind = LULL_MCP_END },
};

const struct lull_mcp_tool lull_mcp_tool_doctor = {
	.name = "doctor",
	.title = "What can be recorded here",
	.help = "Say what can be recorded on this machine, and how to enable the rest.",
	.command = { "doctor", NULL },
	.args = args,
};
