/*
 * kernel_seen - which kernels the program launched, for an answer to who asked for others.
 */
#ifndef LULL_RECORD_GPU_KERNEL_SEEN_H
#define LULL_RECORD_GPU_KERNEL_SEEN_H

#include "base/str.h"
#include "wire/kwish.h"

/* Add "matmul 24 times, relu 12 times and others"; nothing if there were none. */
void lull_kernel_seen(const struct lull_kwish *wish, struct lull_str *to);

#endif
