/*
 * kernel: what limits a kernel, by its counters.
 */
#include "mcp/tool.h"

static const char *const sets[] = { "basic", "roofline", "full", "detailed", NULL };
static const char *const pages[] = { "verdict", "details", "raw", "source", NULL };

static const struct lull_mcp_arg args[] = {
	{ LULL_MCP_LIST, "command", NULL,
	  "the program and its arguments; or one report of an earlier call, which is shown again",
	  true, NULL, NULL },
	{ LULL_MCP_WRITE, "output", "--output",
	  "name of the report (default: report1, report2, ...)", false, NULL, NULL },
	{ LULL_MCP_FLAG, "overwrite", "--force-overwrite", "replace a report of that name", false,
	  NULL, NULL },
	{ LULL_MCP_TEXT, "kernel", "--kernel-name",
	  "kernels of this name; regex:EXPR for an expression (default: all)", false, NULL, NULL },
	{ LULL_MCP_TEXT, "from", "--from",
	  "measure the kernels that take most time in this report of profile", false, NULL, NULL },
	{ LULL_MCP_NUMBER, "skip", "--launch-skip", "skip so many launches", false, NULL, NULL },
	{ LULL_MCP_NUMBER, "count", "--launch-count", "measure so many launches; 1 to 3 are enough",
	  false, NULL, NULL },
	{ LULL_MCP_TEXT, "set", "--set", "basic (default), roofline, full or detailed", false, sets,
	  NULL },
	{ LULL_MCP_TEXT, "page", "--page", "verdict (default), details, raw or source", false,
	  pages, NULL },
	{ .kind = LULL_MCP_END },
};

const struct lull_mcp_tool lull_mcp_tool_kernel = {
	.name = "kernel",
	.title = "Why a kernel is slow",
	.help = "Run a program and read the hardware counters of some of its kernels: what limits "
		"each, on what evidence, what to try, and how much that can gain. For programs "
		"whose "
		"GPU is busy.",
	.command = { "kernel", NULL },
	.args = args,
	.runs_program = true,
	.writes = true,
};
