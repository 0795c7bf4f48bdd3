/*
 * cuprof - layouts of CUPTI's calls for counters of kernels, from cuprof.def.
 *
 * Who uses it: the agent, which measures; the command, which plans. Nothing to link.
 */
#ifndef LULL_TRACE_CUPROF_H
#define LULL_TRACE_CUPROF_H

#include <stddef.h>

#include "base/types.h"

#define PROF_STRUCT(name, theirs, their_last, our_last, fields) \
	struct lull_prof_##name {                               \
		size_t struct_bytes;                            \
		void *priv;                                     \
		fields                                          \
	};
#include "trace/cuprof.def"
#undef PROF_STRUCT

/* The size that CUPTI wants to hear: up to the last field, without what pads it. */
#define PROF_STRUCT(name, theirs, their_last, our_last, fields)                       \
	LULL_PROF_BYTES_##name = offsetof(struct lull_prof_##name, our_last) +        \
				 sizeof(((struct lull_prof_##name *)NULL)->our_last),
enum {
#include "trace/cuprof.def"
};
#undef PROF_STRUCT

/* A structure that says its size. */
#define LULL_PROF_NEW(name) ((struct lull_prof_##name){ .struct_bytes = LULL_PROF_BYTES_##name })

/* Kinds of profiler, ranges and replay. */
enum { LULL_PROF_RANGE_PROFILER = 0 };
enum { LULL_PROF_AUTO_RANGE = 1, LULL_PROF_USER_RANGE = 2 };
enum { LULL_PROF_APPLICATION_REPLAY = 1, LULL_PROF_KERNEL_REPLAY = 2, LULL_PROF_USER_REPLAY = 3 };

/* What CUPTI answers when counters are refused. */
enum {
	LULL_PROF_E_OUT_OF_MEMORY = 8,
	LULL_PROF_E_BUSY = 26,
	LULL_PROF_E_VIRTUALIZED = 33,
	LULL_PROF_E_PRIVILEGES = 35,
	LULL_PROF_E_VGPU = 40,
	LULL_PROF_E_CONFIDENTIAL = 41,
	LULL_PROF_E_MIG = 43,
};

#endif
