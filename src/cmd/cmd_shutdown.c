/*
 * lull shutdown - end a session: drop a pending recording and end the program.
 */
#include <signal.h>
#include <stdio.h>

#include "cmd/ask.h"
#include "cmd/cmd.h"

int cmd_shutdown(int argc, char **argv, struct lull_err *err)
{
	static const char *const kills[] = { "none", "sigterm", "sigkill", NULL };
	static const int signals[] = { 0, SIGTERM, SIGKILL };
	const char *session = NULL;
	int kill_word = 1;
	const struct lull_opt opts[] = {
		OPT_USAGE("lull shutdown [--session=NAME] [--kill=SIGNAL]",
			  "End a session and its program; a current recording is deleted."),
		OPT_SESSION(&session),
		OPT_ENUM(0, "kill", &kill_word, kills, "signal for the program (default: sigterm)"),
		OPT_END(),
	};
	int rc = lull_ask_no_words(lull_opt_parse(argc, argv, opts, err), argc, argv, err);
	char signal_text[16];

	if (rc)
		return rc;
	snprintf(signal_text, sizeof(signal_text), "%d", signals[kill_word]);
	return lull_ask(session, &(struct lull_ask){ "shutdown", signal_text, NULL }, err);
}
