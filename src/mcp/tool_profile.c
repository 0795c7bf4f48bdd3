/*
 * profile: run a program and record it, then say why the GPU waits.
 */
#include "mcp/tool.h"

static const struct lull_mcp_arg args[] = {
	{ LULL_MCP_LIST, "command", NULL,
	  "the program and its arguments, such as [\"python3\", \"train.py\"]; it runs in the "
	  "folder "
	  "of the server",
	  true, NULL, NULL },
	{ LULL_MCP_WRITE, "output", "--output",
	  "name of the report (default: report1, report2, ...)", false, NULL, NULL },
	{ LULL_MCP_FLAG, "overwrite", "--force-overwrite", "replace a report of that name", false,
	  NULL, NULL },
	{ LULL_MCP_NUMBER, "duration_s", "--duration",
	  "stop recording after so many seconds, and end the program", false, NULL, NULL },
	{ LULL_MCP_NUMBER, "delay_s", "--delay",
	  "start recording so many seconds after the program", false, NULL, NULL },
	{ LULL_MCP_TEXT, "steps", "--steps",
	  "record these steps only, such as skip=10,warmup=2,active=3,repeat=1", false, NULL,
	  NULL },
	{ LULL_MCP_TEXT, "pytorch", "--pytorch",
	  "of PyTorch programs: auto (steps and phases), ops (also each operator and allocation), "
	  "modules, none",
	  false, NULL, NULL },
	{ LULL_MCP_TEXT, "trace", "--trace", "sources, such as cuda,nvtx,osrt,nccl", false, NULL,
	  NULL },
	{ .kind = LULL_MCP_END },
};

const struct lull_mcp_tool lull_mcp_tool_profile = {
	.name = "profile",
	.title = "Record a program",
	.help = "Run a program under the profiler, and say why the GPU waits. Writes a report, "
		"which "
		"the other tools read; the last lines name it. The program is not changed. Use a "
		"run "
		"of some seconds: 20 steps are enough.",
	.command = { "profile", "--why", NULL },
	.args = args,
	.runs_program = true,
	.writes = true,
};
