/*
 * lull status - what a session does right now.
 */
#include <stdio.h>

#include "base/str.h"
#include "cmd/ask.h"
#include "cmd/cmd.h"
#include "record/session/remote.h"

int cmd_status(int argc, char **argv, struct lull_err *err)
{
	const char *session = NULL;
	const struct lull_opt opts[] = {
		OPT_USAGE("lull status [--session=NAME]", "Say what a session is doing."),
		OPT_SESSION(&session),
		OPT_END(),
	};
	int rc = lull_ask_no_words(lull_opt_parse(argc, argv, opts, err), argc, argv, err);
	struct lull_str answer = LULL_STR_INIT;

	if (!rc)
		rc = lull_remote_ask(session ? session : "", "status", &answer, err);
	if (!rc)
		puts(answer.at);
	lull_str_release(&answer);
	return rc;
}
