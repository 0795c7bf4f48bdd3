/*
 * query: SQL over a report.
 */
#include "mcp/tool.h"

static const char *const formats[] = { "column", "csv", "json", NULL };

static const struct lull_mcp_arg args[] = {
	{ LULL_MCP_TEXT, "report", NULL, "a report, such as report1.lull", true, NULL, NULL },
	{ LULL_MCP_TEXT, "sql", NULL,
	  "a statement of SQLite; .tables and .schema TABLE list tables and columns", true, NULL,
	  NULL },
	{ LULL_MCP_TEXT, "format", "--format", "column (default), csv or json", false, formats,
	  "column" },
	{ LULL_MCP_NUMBER, "max_rows", "--max-rows", "stop after so many rows (default: 1000000)",
	  false, NULL, NULL },
	{ .kind = LULL_MCP_END },
};

const struct lull_mcp_tool lull_mcp_tool_query = {
	.name = "query",
	.title = "Query a report with SQL",
	.help = "Ask your own question in SQL. Times are in ns. Tables for people: kernels, "
		"copies, "
		"calls, ranges, steps, ...; .tables lists all, also those with the names of nsys.",
	.command = { "query", NULL },
	.args = args,
};
