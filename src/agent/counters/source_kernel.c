/*
 * kernel: counters of chosen launches, in place of what the CUDA source records.
 *
 * The work is done by counters.c, which source_cuda.c switches on. Here the request is read, which
 * says what to measure (wire/kwish.h): before the program names its first range.
 */
#include "agent/core/source.h"

#include "agent/core/agent.h"
#include "agent/counters/counters.h"
#include "agent/counters/kernel_match.h"

LULL_AT_START static void start(void)
{
	lull_kernel_match_init(&lull_agent.control->kernels);
	if (lull_agent.control->kernels.has_range)
		lull_kernel_watch_ranges();
}

const struct lull_source lull_source_kernel = {
	.start = start,
	.is_of_each_fork = true,
};
