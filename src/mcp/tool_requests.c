/*
 * requests: how long the requests to a server take, and why slow ones are slow.
 */
#include "mcp/tool.h"

static const char *const formats[] = { "text", "json", "csv", NULL };

static const struct lull_mcp_arg args[] = {
	{ LULL_MCP_TEXT, "report", NULL, "a report of a server, such as report1.lull", true, NULL,
	  NULL },
	{ LULL_MCP_NUMBER, "intervals", "--intervals",
	  "also the load over time, in so many intervals", false, NULL, NULL },
	{ LULL_MCP_TEXT, "format", "--format", "text (default), json, or csv: a row per request",
	  false, formats, NULL },
	{ .kind = LULL_MCP_END },
};

const struct lull_mcp_tool lull_mcp_tool_requests = {
	.name = "requests",
	.title = "Latency of a server",
	.help = "Say how long the requests to a server take (percentiles), what their time goes "
		"to, why slow ones are slow, and at which load the server is busy all the time. "
		"For programs that serve; the tool why is for those that train.",
	.command = { "requests", NULL },
	.args = args,
};
