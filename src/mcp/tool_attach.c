/*
 * attach: record a program that runs already, then say why the GPU waits.
 */
#include "mcp/tool.h"

static const struct lull_mcp_arg args[] = {
	{ LULL_MCP_NUMBER, "pid", NULL, "the process; give this or name", false, NULL, NULL },
	{ LULL_MCP_TEXT, "name", "--name",
	  "the process of this name, or whose command line has it, such as train.py", false, NULL,
	  NULL },
	{ LULL_MCP_NUMBER, "duration_s", "--duration", "record so many seconds (default: 10)",
	  false, NULL, "10" },
	{ LULL_MCP_NUMBER, "steps", "--steps",
	  "record so many steps of its training loop, if that takes less", false, NULL, NULL },
	{ LULL_MCP_FLAG, "tree", "--tree", "also the processes that it has started", false, NULL,
	  NULL },
	{ LULL_MCP_WRITE, "output", "--output",
	  "name of the report (default: report1, report2, ...)", false, NULL, NULL },
	{ LULL_MCP_FLAG, "overwrite", "--force-overwrite", "replace a report of that name", false,
	  NULL, NULL },
	{ LULL_MCP_TEXT, "trace", "--trace", "sources, such as cuda,nvtx,osrt,nccl", false, NULL,
	  NULL },
	{ .kind = LULL_MCP_END },
};

const struct lull_mcp_tool lull_mcp_tool_attach = {
	.name = "attach",
	.title = "Record a program that runs",
	.help = "Record a program that runs already and was started without lull, and say why the "
		"GPU waits. The program continues as it was. Writes a report, which the other "
		"tools read; the last lines name it.",
	.command = { "attach", "--why", NULL },
	.args = args,
	.runs_program = true,
	.writes = true,
};
