/*
 * lsp_serve - the Language Server Protocol on standard input and output: the causes of `lull why`
 * as diagnostics beside the lines that cost the time.
 *
 * What it gives:  for each file that the editor opens, the findings of the newest report (or of one
 *                 that is named) whose place is in this file. When a newer report appears, all open
 *                 files get those of it.
 * What it checks: messages of at most 16 MiB; a report that cannot be read gives no diagnostics,
 * and
 *                 a message to the log of the editor.
 * Threads:        one.
 */
#ifndef LULL_LSP_LSP_SERVE_H
#define LULL_LSP_LSP_SERVE_H

#include <stdio.h>

#include "base/err.h"
#include "base/types.h"

struct lull_lsp_options {
	const char *folder; /* where reports are looked for; NULL: the editor's */
	const char *report; /* this one and no other; NULL: the newest */
	int in;
	FILE *out;
};

/*
 * Serve until the editor says exit or the input ends. The exit status the protocol wants: 0 after
 * shutdown, else 1. LULL_E_FORMAT if the input is no such protocol.
 */
int lull_lsp_serve(const struct lull_lsp_options *options, struct lull_err *err);

#endif
