/*
 * timeline: a few steps as lines of characters, or as a picture.
 */
#include "mcp/tool.h"

static const struct lull_mcp_arg args[] = {
	{ LULL_MCP_TEXT, "report", NULL,
	  "a report, such as report1.lull, or a folder of rank reports", true, NULL, NULL },
	{ LULL_MCP_NUMBER, "step", "--step", "the first step to draw (default: a usual one)", false,
	  NULL, NULL },
	{ LULL_MCP_NUMBER, "steps", "--steps", "how many steps (default: 3)", false, NULL, NULL },
	{ LULL_MCP_FLAG, "picture", "--png=-", "as an image instead of text", false, NULL, NULL },
	{ .kind = LULL_MCP_END },
};

const struct lull_mcp_tool lull_mcp_tool_timeline = {
	.name = "timeline",
	.title = "A few steps as a picture",
	.help = "Draw a few steps: what the device ran, why it was idle, what threads did.",
	.command = { "timeline", NULL },
	.args = args,
};
