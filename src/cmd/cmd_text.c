/*
 * lull text - make a report of a readable text (trace/text.h). Not listed: tests and examples use
 * it.
 */
#include "cmd/cmd.h"

#include <stdio.h>

#include "text/opt.h"
#include "base/str.h"
#include "trace/text.h"

static int read_all(const char *path, struct lull_str *text, struct lull_err *err)
{
	FILE *from = fopen(path, "re");
	char chunk[4096];
	size_t n;
	int rc = LULL_OK;

	if (!from)
		return lull_fail_errno(err, "opening %s", path);
	while ((n = fread(chunk, 1, sizeof(chunk), from)) > 0)
		lull_str_add(text, chunk, n);
	if (ferror(from))
		rc = lull_fail_errno(err, "reading %s", path);
	fclose(from);
	return rc;
}

int cmd_text(int argc, char **argv, struct lull_err *err)
{
	const struct lull_opt opts[] = {
		OPT_USAGE("lull text TEXT REPORT", "Make a report from a readable text."),
		OPT_END(),
	};
	struct lull_str text = LULL_STR_INIT;
	int first = lull_opt_parse(argc, argv, opts, err), rc;

	if (first < 0)
		return first;
	if (argc - first != 2)
		return lull_fail(err, LULL_E_USAGE, "expected a text and the report to write");
	rc = read_all(argv[first], &text, err);
	if (!rc && lull_text_write(lull_str_text(&text), argv[first + 1], err))
		rc = lull_err_wrap(err, "%s", argv[first]);
	lull_str_release(&text);
	return rc;
}
