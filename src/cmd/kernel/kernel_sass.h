/*
 * kernel_sass - the sampled instructions of a launch beside their lines, with the machine code
 * where cuobjdump can read the program's file.
 */
#ifndef LULL_CMD_KERNEL_KERNEL_SASS_H
#define LULL_CMD_KERNEL_KERNEL_SASS_H

#include <stdio.h>

#include "base/err.h"
#include "counter/profile.h"

/*
 * Print a table of the instructions with most samples, in the order of the code; nothing if there
 * are no samples, or no machine code is found.
 */
int lull_kernel_print_sass(const struct lull_profile *p, struct lull_reader *r, FILE *to,
			   struct lull_err *err);

#endif
