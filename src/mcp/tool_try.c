/*
 * try: put known fixes into a program from outside, and measure what they bring.
 */
#include "mcp/tool.h"

static const struct lull_mcp_arg args[] = {
	{ LULL_MCP_LIST, "command", NULL,
	  "the program and its arguments, such as [\"python3\", \"train.py\"]; it runs many times, "
	  "in the folder of the server",
	  false, NULL, NULL },
	{ LULL_MCP_FLAG, "list", "--list", "only list the fixes; needs no command", false, NULL,
	  NULL },
	{ LULL_MCP_TEXT, "only", "--only",
	  "these fixes, such as loader-workers,no-gc; A+B tries both together (default: what the "
	  "tool why suggests)",
	  false, NULL, NULL },
	{ LULL_MCP_FLAG, "all", "--all", "all fixes that need not be named", false, NULL, NULL },
	{ LULL_MCP_LIST, "env", "--env", "variables of the environment as fixes, such as A=B",
	  false, NULL, NULL },
	{ LULL_MCP_LIST, "remedies", "--remedy", "fixes of your own: Python files, see lull-try(1)",
	  false, NULL, NULL },
	{ LULL_MCP_FLAG, "dry_run", "--dry-run", "say what would be tried", false, NULL, NULL },
	{ LULL_MCP_NUMBER, "steps", "--steps", "steps to measure in each run (default: 40)", false,
	  NULL, NULL },
	{ LULL_MCP_NUMBER, "warmup", "--warmup", "steps before that, at least (default: 5)", false,
	  NULL, NULL },
	{ LULL_MCP_NUMBER, "runs", "--runs", "runs with each fix, 4 or more (default: 4)", false,
	  NULL, NULL },
	{ LULL_MCP_NUMBER, "budget_s", "--budget",
	  "start no run that would end after so many seconds (default: no limit)", false, NULL,
	  NULL },
	{ LULL_MCP_WRITE, "patch", "--patch",
	  "write the change of the best as a patch to this file, where the lines are certain",
	  false, NULL, NULL },
	{ LULL_MCP_FLAG, "overwrite", "--force-overwrite", "replace a file of that name", false,
	  NULL, NULL },
	{ .kind = LULL_MCP_END },
};

const struct lull_mcp_tool lull_mcp_tool_try = {
	.name = "try",
	.title = "Measure fixes",
	.help = "Put fixes into a program without changing it, run it with and without them by "
		"turns, and say how much faster a step became, whether results stayed the same, "
		"and what to write into the program. Use it after profile, before you change code. "
		"It runs the program many times and may take minutes.",
	.command = { "try", NULL },
	.args = args,
	.runs_program = true,
	.writes = true,
};
