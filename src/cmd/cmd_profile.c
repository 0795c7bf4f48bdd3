/*
 * lull profile - run a program and record what it does.
 */
#include "cmd/cmd.h"
#include "cmd/record/record_options.h"

int cmd_profile(int argc, char **argv, struct lull_err *err)
{
	return lull_record(argc, argv, false, err);
}
