/*
 * stats: tables of a report.
 */
#include "mcp/tool.h"

static const char *const formats[] = { "column", "csv", "json", NULL };

static const struct lull_mcp_arg args[] = {
	{ LULL_MCP_TEXT, "report", NULL, "a report, such as report1.lull", true, NULL, NULL },
	{ LULL_MCP_TEXT, "table", "--report",
	  "one table, such as step_sum, phases, cuda_gpu_kern_sum, cuda_api_sum, "
	  "cuda_gpu_mem_time_sum, "
	  "nvtx_sum, osrt_sum, threads, python_sum, memory (default: all with data)",
	  false, NULL, NULL },
	{ LULL_MCP_NUMBER, "top", "--top", "rows of each table, 0 for all (default: 20)", false,
	  NULL, NULL },
	{ LULL_MCP_TEXT, "steps", "--steps", "only these steps, such as 5-10", false, NULL, NULL },
	{ LULL_MCP_FLAG, "steady", "--steady", "without start-up and warm-up", false, NULL, NULL },
	{ LULL_MCP_TEXT, "format", "--format", "column (default), csv or json", false, formats,
	  "column" },
	{ .kind = LULL_MCP_END },
};

const struct lull_mcp_tool lull_mcp_tool_stats = {
	.name = "stats",
	.title = "Tables of a report",
	.help = "Summarise a report in tables: steps, phases, kernels, copies, CUDA calls, ranges, "
		"threads, Python functions, memory.",
	.command = { "stats", "--timeunit=auto", NULL },
	.args = args,
};
