/*
 * lull lsp - show causes beside the lines of source in an editor.
 */
#include "cmd/cmd.h"

#include <stdio.h>
#include <unistd.h>

#include "lsp/lsp_serve.h"
#include "text/opt.h"

int cmd_lsp(int argc, char **argv, struct lull_err *err)
{
	struct lull_lsp_options options = { .in = STDIN_FILENO, .out = stdout };
	bool is_stdio = false; /* what some editors add; there is nothing else */
	const struct lull_opt opts[] = {
		OPT_USAGE("lull lsp [OPTIONS]",
			  "Serve the Language Server Protocol to an editor, on standard input and "
			  "output: what lull why says, beside the lines it is about."),
		OPT_STR(0, "folder", "FOLDER", &options.folder,
			"where reports are looked for (default: the folder of the editor)"),
		OPT_STR(0, "report", "FILE", &options.report,
			"show this report (default: the newest of the folder)"),
		OPT_FLAG(0, "stdio", &is_stdio, "accepted; always so"),
		OPT_END(),
	};
	int first = lull_opt_parse(argc, argv, opts, err);

	if (first < 0)
		return first;
	if (argc > first)
		return lull_fail(err, LULL_E_USAGE, "unexpected word %s; see lull lsp --help",
				 argv[first]);
	if (isatty(STDIN_FILENO))
		fputs("lull: waiting for messages of the Language Server Protocol; editors start "
		      "this "
		      "command themselves (lull help lsp)\n",
		      stderr);
	return lull_lsp_serve(&options, err);
}
