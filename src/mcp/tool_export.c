/*
 * export: a report in the format of another program.
 */
#include "mcp/tool.h"

static const struct lull_mcp_arg args[] = {
	{ LULL_MCP_TEXT, "report", NULL, "a report, such as report1.lull", true, NULL, NULL },
	{ LULL_MCP_TEXT, "format", "--type",
	  "jsonlines, csv, sqlite, chrome, perfetto, parquet, folded, pprof, sarif, lull", true,
	  NULL, NULL },
	{ LULL_MCP_WRITE, "output", "--output", "the file or folder to write", true, NULL, NULL },
	{ LULL_MCP_FLAG, "overwrite", "--force-overwrite", "replace a file of that name", false,
	  NULL, NULL },
	{ .kind = LULL_MCP_END },
};

const struct lull_mcp_tool lull_mcp_tool_export = {
	.name = "export",
	.title = "Write a report for another program",
	.help = "Write a report in the format of another program: Perfetto, Chrome, SQLite, "
		"Parquet, "
		"flame graphs.",
	.command = { "export", NULL },
	.args = args,
	.writes = true,
};
