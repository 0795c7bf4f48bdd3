/*
 * page: the timeline and all panels as one HTML file, for a person.
 */
#include "mcp/tool.h"

static const struct lull_mcp_arg args[] = {
	{ LULL_MCP_TEXT, "report", NULL, "a report, such as report1.lull", true, NULL, NULL },
	{ LULL_MCP_WRITE, "output", "--output", "the file to write, such as report1.html", true,
	  NULL, NULL },
	{ LULL_MCP_FLAG, "overwrite", "--force-overwrite", "replace a file of that name", false,
	  NULL, NULL },
	{ .kind = LULL_MCP_END },
};

const struct lull_mcp_tool lull_mcp_tool_page = {
	.name = "page",
	.title = "Page for the browser",
	.help = "Write the page of a report as one HTML file: timeline, causes, tables. Give its "
		"path "
		"to the user; it needs no server.",
	.command = { "export", "--type=html", NULL },
	.args = args,
	.writes = true,
};
