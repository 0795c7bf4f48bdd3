/*
 * lull launch - start a program ready to be recorded.
 */
#include "cmd/cmd.h"
#include "cmd/record/record_options.h"

int cmd_launch(int argc, char **argv, struct lull_err *err)
{
	return lull_record(argc, argv, true, err);
}
