/*
 * why: the cause, the lines of source, the fix, and how to check it.
 */
#include "mcp/tool.h"

static const struct lull_mcp_arg args[] = {
	{ LULL_MCP_TEXT, "report", NULL, "a report, such as report1.lull", true, NULL, NULL },
	{ LULL_MCP_TEXT, "step_time", "--step-time",
	  "time of a step without the profiler, such as 7.1ms; makes predictions better", false,
	  NULL, NULL },
	{ .kind = LULL_MCP_END },
};

const struct lull_mcp_tool lull_mcp_tool_why = {
	.name = "why",
	.title = "Why the GPU waits",
	.help = "Say why the GPU waits in a report: the cause with its evidence, what it means, "
		"the "
		"lines of source around it, the fix, the step time that the fix should give, the "
		"next "
		"causes, and how to check a change. Read this before you change the program.",
	.command = { "why", "--agent", NULL },
	.args = args,
};
