/*
 * kernel_launch - what a launch is, from the driver's callback before it.
 *
 * Layouts of the driver's parameters are those of cuda.h since CUDA 12; the attributes of a
 * function are asked of the driver.
 */
#ifndef LULL_AGENT_COUNTERS_KERNEL_LAUNCH_H
#define LULL_AGENT_COUNTERS_KERNEL_LAUNCH_H

#include "agent/core/ring.h"

/* How a call of the driver passes its parameters. */
enum lull_launch_kind {
	LULL_LAUNCH_NONE = 0, /* it launches no kernel that we can measure */
	LULL_LAUNCH_PLAIN = 1,
	LULL_LAUNCH_COOPERATIVE = 2,
	LULL_LAUNCH_CONFIG = 3, /* cuLaunchKernelEx */
	LULL_LAUNCH_GRAPH = 4,	/* many kernels at once: counted in spans only */
	LULL_LAUNCH_START = 5,	/* none: cuProfilerStart, which begins a span */
	LULL_LAUNCH_STOP = 6,
};

struct lull_launch {
	const char *symbol;
	void *context;
	u32 context_id;
	u32 device_ix;
	u32 stream_id;
	u32 correlation;
	void *stream;
	void *function;
	struct lull_wire_shape shape;
};

/* What kind a call of this name is. */
enum lull_launch_kind lull_launch_kind(const char *call);

/* Read the parameters; false if there are none. `data` is CUPTI's of the callback. */
bool lull_launch_read(struct lull_launch *launch, enum lull_launch_kind kind, const void *data);

/* Its stream is being captured: nothing will run now. */
bool lull_launch_is_captured(const struct lull_launch *launch);

/* Ask the driver for what only it knows: registers, memory, device, stream. */
void lull_launch_complete(struct lull_launch *launch);

/* The context, device and ids of the calling thread, no more; false if it has no context. */
bool lull_launch_here(struct lull_launch *launch);

/* Wait until the device has nothing to do; false if that failed. */
bool lull_launch_wait(void);

#endif
