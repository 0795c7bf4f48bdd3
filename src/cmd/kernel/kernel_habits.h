/*
 * kernel_habits - options that people type for Nsight Compute: taken, or answered with what to use
 * instead. `lull kernel --help` does not list them.
 */
#ifndef LULL_CMD_KERNEL_KERNEL_HABITS_H
#define LULL_CMD_KERNEL_KERNEL_HABITS_H

#include "cmd/kernel/kernel_collect.h"
#include "text/opt.h"

/* Write the options, at most `room`; how many. There is neither usage nor end among them. */
size_t lull_kernel_habits(struct lull_kernel_collect *k, struct lull_opt *to, size_t room);

#endif
