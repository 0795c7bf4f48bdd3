/*
 * cuprof - layouts of CUPTI's calls for counters of kernels, from cuprof.def.
 *
 * Who uses it: the agent, which measures; the command, which plans. Nothing to link.
 */
#ifndef LULL_WIRE_CUPROF_H
#define LULL_WIRE_CUPROF_H

#include <stddef.h>

#include "base/types.h"

#define PROF_STRUCT(name, theirs, their_last, our_last, fields) \
	struct lull_prof_##name {                               \
		size_t struct_bytes;                            \
		void *priv;                                     \
		fields                                          \
	};
#include "wire/cuprof.def"
#undef PROF_STRUCT

/* The size that CUPTI wants to hear: up to the last field, without what pads it. */
#define PROF_STRUCT(name, theirs, their_last, our_last, fields)                \
	LULL_PROF_BYTES_##name = offsetof(struct lull_prof_##name, our_last) + \
				 sizeof(((struct lull_prof_##name *)NULL)->our_last),
enum {
#include "wire/cuprof.def"
};
#undef PROF_STRUCT

/* A structure that says its size. */
#define LULL_PROF_NEW(name) ((struct lull_prof_##name){ .struct_bytes = LULL_PROF_BYTES_##name })

/* Samples of one instruction for one reason. */
struct lull_pc_stall {
	u32 reason_ix;
	u32 n;
};

/* One choice; `value` is a union of theirs. */
struct lull_pc_attribute {
	u32 type;
	u32 status;
	union {
		u64 number;
		void *address;
		struct {
			size_t n;
			u32 *indices;
		} list;
		u64 words[3];
	} value;
};

#define PC_STRUCT(name, theirs, their_last, our_last, fields) \
	struct lull_pc_##name {                               \
		size_t struct_bytes;                          \
		fields                                        \
	};
/* In this order: a structure comes before those that point to it. */
#include "wire/cuprof.def"
#undef PC_STRUCT
#define PC_STRUCT(name, theirs, their_last, our_last, fields)              \
	LULL_PC_BYTES_##name = offsetof(struct lull_pc_##name, our_last) + \
			       sizeof(((struct lull_pc_##name *)NULL)->our_last),
enum {
#include "wire/cuprof.def"
};
#undef PC_STRUCT
#define LULL_PC_NEW(name) ((struct lull_pc_##name){ .struct_bytes = LULL_PC_BYTES_##name })

/* Kinds of choices, and what we choose. */
enum {
	LULL_PC_PERIOD = 1,
	LULL_PC_REASONS = 2,
	LULL_PC_SCRATCH_BYTES = 3,
	LULL_PC_HARDWARE_BYTES = 4,
	LULL_PC_MODE = 5,
	LULL_PC_START_STOP = 6,
	LULL_PC_FORMAT = 7,
	LULL_PC_BUFFER = 8,
};
enum { LULL_PC_MODE_SERIALIZED = 2 };

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
