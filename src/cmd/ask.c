#include "cmd/ask.h"

#include <stdio.h>

#include "base/str.h"
#include "record/session/remote.h"

void lull_ask_who(const char *session, struct lull_str *who)
{
	struct lull_str answer = LULL_STR_INIT;
	struct lull_err ignored;

	if (!session && !lull_remote_ask("", "who", &answer, &ignored))
		lull_str_addf(who, " (%s)", lull_str_text(&answer));
	lull_str_release(&answer);
}

int lull_ask(const char *session, const struct lull_ask *ask, struct lull_err *err)
{
	struct lull_str line = LULL_STR_INIT, answer = LULL_STR_INIT, who = LULL_STR_INIT;
	int rc;

	lull_ask_who(session, &who);

	lull_str_puts(&line, ask->request);
	if (ask->arg)
		lull_str_addf(&line, " %s", ask->arg);
	rc = lull_remote_ask(session ? session : "", line.at, &answer, err);
	if (!rc)
		fprintf(stderr, "lull: %s%s%s\n", ask->before ? ask->before : "", answer.at,
			lull_str_text(&who));
	lull_str_release(&who);
	lull_str_release(&line);
	lull_str_release(&answer);
	return rc;
}

int lull_ask_no_words(int first, int argc, char **argv, struct lull_err *err)
{
	if (first < 0)
		return first;
	if (first < argc)
		return lull_fail(err, LULL_E_USAGE, "unexpected argument '%s'", argv[first]);
	return 0;
}
