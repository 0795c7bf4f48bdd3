/*
 * lull snapshot - make a flight recorder write its last seconds; it continues.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/str.h"
#include "cmd/ask.h"
#include "cmd/cmd.h"
#include "record/session/remote.h"

/* A dump takes as long as naming its functions does; past this the recorder is taken for hung. */
#define WAIT_S	120
#define LOOK_US 100000

/* Ask until the dump with this number is there. */
static int wait_for(const char *session, const char *number, struct lull_str *path,
		    struct lull_err *err)
{
	struct lull_str line = LULL_STR_INIT;
	int rc = 0;

	lull_str_addf(&line, "snapshot %s", number);
	for (int i = 0; i < WAIT_S * (1000000 / LOOK_US) && !rc && !path->len; i++) {
		usleep(LOOK_US);
		rc = lull_remote_ask(session, line.at, path, err);
	}
	lull_str_release(&line);
	if (!rc && !path->len)
		rc = lull_fail(err, LULL_E_IO, "no report after %d s; check with lull status",
			       WAIT_S);
	return rc;
}

int cmd_snapshot(int argc, char **argv, struct lull_err *err)
{
	struct lull_str number = LULL_STR_INIT, path = LULL_STR_INIT, who = LULL_STR_INIT;
	const char *session = NULL;
	const struct lull_opt opts[] = {
		OPT_USAGE("lull snapshot [--session=NAME]",
			  "Write the last seconds of a flight recorder as a report; it continues."),
		OPT_SESSION(&session),
		OPT_END(),
	};
	int rc = lull_ask_no_words(lull_opt_parse(argc, argv, opts, err), argc, argv, err);

	if (!rc)
		lull_ask_who(session, &who);
	if (!session)
		session = "";
	if (!rc)
		rc = lull_remote_ask(session, "snapshot", &number, err);
	if (!rc)
		rc = wait_for(session, number.at, &path, err);
	if (!rc)
		fprintf(stderr, "lull: wrote %s%s\n", path.at, lull_str_text(&who));
	lull_str_release(&who);
	lull_str_release(&number);
	lull_str_release(&path);
	return rc;
}
