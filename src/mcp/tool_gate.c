/*
 * gate: whether a change made the program slower, decided by statistics.
 */
#include "mcp/tool.h"

static const struct lull_mcp_arg args[] = {
	{ LULL_MCP_TEXT, "baseline", "--baseline", "the report to compare with", true, NULL, NULL },
	{ LULL_MCP_LIST, "reports", NULL, "reports of the changed program, one or more", true, NULL,
	  NULL },
	{ LULL_MCP_LIST, "metrics", "--metric",
	  "metrics to compare (default: step_time, idle_share, launches)", false, NULL, NULL },
	{ LULL_MCP_NUMBER, "threshold_percent", "--threshold",
	  "the smallest change that matters (default: 5)", false, NULL, NULL },
	{ LULL_MCP_FLAG, "any_program", "--any-program",
	  "also compare reports of different programs", false, NULL, NULL },
	{ .kind = LULL_MCP_END },
};

const struct lull_mcp_tool lull_mcp_tool_gate = {
	.name = "gate",
	.title = "Did it get slower or faster",
	.help = "Decide by statistics whether a change made the program slower or faster, and how "
		"sure that is. Use it as the proof of a fix.",
	.command = { "gate", NULL },
	.args = args,
	.statuses = { "pass", "regressed", "no verdict" },
};
