/*
 * name - names of things on the timeline, as one number, and the class each belongs to.
 *
 * Most names are strings of the report. Others have no string there: a step has a number, a copy
 * has a direction. The top bits of a name say which.
 *
 * Classes:        the colour of a merged interval. Device work: the classes of
 *                 wire/kernel_classes.def, for which there are eight colours: the optimizer's
 *                 kernels count as elementwise, and copies as copy kernels. Idle time: the families
 *                 of causes. CPU: running, runnable. Calls: other, launch, wait, memory.
 *                 C library: enum lull_wait.
 */
#ifndef LULL_TIMELINE_NAME_H
#define LULL_TIMELINE_NAME_H

#include "base/str.h"
#include "base/types.h"
#include "trace/reader.h"

#define LULL_NAME_SHIFT 29
#define LULL_NAME_STEP	(1u << LULL_NAME_SHIFT)
#define LULL_NAME_FIXED (2u << LULL_NAME_SHIFT)
#define LULL_NAME_GRAPH (3u << LULL_NAME_SHIFT)
#define LULL_NAME_CPU	(4u << LULL_NAME_SHIFT)
#define LULL_NAME_CAUSE (5u << LULL_NAME_SHIFT)
#define LULL_NAME_REST	((1u << LULL_NAME_SHIFT) - 1)

/* What LULL_NAME_FIXED counts. */
enum lull_fixed_name {
	LULL_FIXED_MEMSET,
	LULL_FIXED_GIL,
	LULL_FIXED_RUNNABLE,
	LULL_FIXED_BUSY,
	LULL_FIXED_IDLE,
	LULL_FIXED_NO_STACK,
	LULL_FIXED_COPY, /* + memcpy.copy_kind, 0 to 10 */
};

enum lull_device_class {
	LULL_CLASS_MATMUL,
	LULL_CLASS_ATTENTION,
	LULL_CLASS_CONVOLUTION,
	LULL_CLASS_ELEMENTWISE,
	LULL_CLASS_REDUCTION,
	LULL_CLASS_COLLECTIVE,
	LULL_CLASS_COPY,
	LULL_CLASS_OTHER,
};

enum lull_call_class {
	LULL_CALLS_OTHER,
	LULL_CALLS_LAUNCH,
	LULL_CALLS_WAIT,
	LULL_CALLS_MEMORY,
};

/* Append the text of a name. */
void lull_name_text(struct lull_str *to, struct lull_reader *r, u32 name);

/* The colour of a kernel of this name: of its class (wire/vocabulary.h). */
enum lull_device_class lull_class_of_kernel(const char *name);

/* The colour of a CUDA call of this name: of its kind (wire/vocabulary.h). */
enum lull_call_class lull_class_of_call(const char *name);

#endif
