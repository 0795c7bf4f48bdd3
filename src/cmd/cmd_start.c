/*
 * lull start - begin a recording in a session that lull launch made.
 */
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "base/str.h"
#include "cmd/ask.h"
#include "cmd/cmd.h"

/* The recorder may stand in another folder than we do. */
static void make_absolute(const char *name, struct lull_str *to)
{
	char folder[PATH_MAX];

	if (name[0] != '/' && getcwd(folder, sizeof(folder)))
		lull_str_addf(to, "%s/", folder);
	lull_str_puts(to, name);
}

int cmd_start(int argc, char **argv, struct lull_err *err)
{
	const char *session = NULL, *output = NULL;
	const struct lull_opt opts[] = {
		OPT_USAGE("lull start [-o NAME] [--session=NAME]",
			  "Start a recording in a running session."),
		OPT_STR('o', "output", "NAME", &output, "report name, as for lull profile"),
		OPT_SESSION(&session),
		OPT_END(),
	};
	int rc = lull_ask_no_words(lull_opt_parse(argc, argv, opts, err), argc, argv, err);
	struct lull_str path = LULL_STR_INIT;

	if (rc)
		return rc;
	if (output)
		make_absolute(output, &path);
	rc = lull_ask(session, &(struct lull_ask){ "start", path.at, "recording to " }, err);
	lull_str_release(&path);
	return rc;
}
