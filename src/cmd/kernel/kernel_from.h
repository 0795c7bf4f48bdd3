/*
 * kernel_from - choose the kernels to measure from a report of `lull profile`, by their time.
 */
#ifndef LULL_CMD_KERNEL_KERNEL_FROM_H
#define LULL_CMD_KERNEL_KERNEL_FROM_H

#include "base/err.h"
#include "base/types.h"
#include "wire/kwish.h"

/*
 * Fill in filters for the `top` kernels that took the most time. Of each, the launches of its first
 * third (50 at most) are skipped, because programs warm up there, and the next is measured.
 * LULL_E_NOT_FOUND if the report has no kernels.
 */
int lull_kernel_from(const char *path, u64 top, struct lull_kwish *wish, struct lull_err *err);

#endif
