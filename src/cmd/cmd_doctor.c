/*
 * lull doctor - say what can be recorded on this machine, and how to get the rest.
 */
#include "cmd/cmd.h"

#include "base/opt.h"

int cmd_doctor(int argc, char **argv, struct lull_err *err)
{
	const struct lull_opt opts[] = {
		OPT_USAGE("lull doctor [OPTIONS]",
			  "Say what can be recorded on this machine, and how to get the rest."),
		OPT_END(),
	};
	int first = lull_opt_parse(argc, argv, opts, err);

	return first < 0 ? first : LULL_OK;
}
