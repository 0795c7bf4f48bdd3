/*
 * lull detach - leave a program that lull attach records; its report is written.
 */
#include <stdio.h>

#include "cmd/ask.h"
#include "cmd/cmd.h"
#include "cmd/record/attach_find.h"

int cmd_detach(int argc, char **argv, struct lull_err *err)
{
	const struct lull_opt opts[] = {
		OPT_USAGE("lull detach PID", "leave a program that lull attach records, and write "
					     "the report; the program continues"),
		OPT_END(),
	};
	int first = lull_opt_parse(argc, argv, opts, err), pid, rc;
	char session[64];

	if (first < 0)
		return first;
	if (argc - first != 1)
		return lull_fail(err, LULL_E_USAGE, "give the PID that lull attach was given");
	rc = lull_attach_pid(argv[first], &pid, err);
	if (rc)
		return rc;
	snprintf(session, sizeof(session), "attach-%d", pid);
	rc = lull_ask(session, &(struct lull_ask){ "detach", NULL, NULL }, err);
	if (rc == LULL_E_NOT_FOUND)
		return lull_fail(err, LULL_E_NOT_FOUND,
				 "nobody has attached to process %d with lull attach", pid);
	return rc;
}
