/*
 * lull mcp - serve the Model Context Protocol to a coding agent, on standard input and output.
 */
#include "cmd/cmd.h"

#include <stdio.h>
#include <unistd.h>

#include "mcp/mcp_serve.h"
#include "text/opt.h"

int cmd_mcp(int argc, char **argv, struct lull_err *err)
{
	struct lull_mcp_options options = { .folder = ".", .in = STDIN_FILENO, .out = stdout };
	const struct lull_opt opts[] = {
		OPT_USAGE(
			"lull mcp [OPTIONS]",
			"Serve the Model Context Protocol to a coding agent, on standard input and "
			"output."),
		OPT_STR(0, "folder", "FOLDER", &options.folder,
			"where programs run, and below which files are written (default: the "
			"present one)"),
		OPT_FLAG(0, "read-only", &options.is_read_only,
			 "leave out the tools that run programs or write files"),
		OPT_END(),
	};
	int first = lull_opt_parse(argc, argv, opts, err);

	if (first < 0)
		return first;
	if (argc > first)
		return lull_fail(err, LULL_E_USAGE, "unexpected word %s; see lull mcp --help",
				 argv[first]);
	if (isatty(STDIN_FILENO))
		fputs("lull: waiting for messages of the Model Context Protocol; agents start this "
		      "command themselves (lull help mcp)\n",
		      stderr);
	return lull_mcp_serve(&options, err);
}
