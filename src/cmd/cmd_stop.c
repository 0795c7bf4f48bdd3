/*
 * lull stop - end the recording of a session and write its report; the program continues.
 */
#include "cmd/ask.h"
#include "cmd/cmd.h"

int cmd_stop(int argc, char **argv, struct lull_err *err)
{
	const char *session = NULL;
	const struct lull_opt opts[] = {
		OPT_USAGE("lull stop [--session=NAME]", "End the recording of a session and write "
							"its report; the program continues."),
		OPT_SESSION(&session),
		OPT_END(),
	};
	int rc = lull_ask_no_words(lull_opt_parse(argc, argv, opts, err), argc, argv, err);

	return rc ? rc : lull_ask(session, &(struct lull_ask){ "stop", NULL, "wrote " }, err);
}
