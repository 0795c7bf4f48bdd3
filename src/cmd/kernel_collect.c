/*
 * kernel_collect - run a program and read counters of its kernels.
 */
#include "cmd/kernel.h"

int lull_kernel_collect(const struct lull_kernel_options *options, int argc, char **argv,
			char **path, struct lull_err *err)
{
	(void)options, (void)argc, (void)path;
	return lull_fail(err, LULL_E_UNSUPPORTED,
			 "counters of %s cannot be read yet; --import shows a report", argv[0]);
}
