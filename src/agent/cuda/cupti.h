/*
 * cupti - the CUPTI library of the process, found at run time and never linked.
 *
 * What it gives: lull_cupti.NAME for each function of cupti.def, NULL if this version lacks it; and
 *                readers of record fields, lull_cupti_kernel_start(record) and so on, which return
 *                0 for a field that this version's records do not have.
 * Which one:     the one that the process has loaded (torch ships one), else one next to the CUDA
 *                runtime it uses, else the one that the loader finds.
 */
#ifndef LULL_AGENT_CUDA_CUPTI_H
#define LULL_AGENT_CUDA_CUPTI_H

#include <string.h>

#include "agent/cuda/cupti.def"
#include "base/types.h"

typedef void lull_cupti_callback(void *user, u32 domain, u32 cbid, const void *data);
typedef void lull_cupti_requested(u8 **buffer, size_t *size_bytes, size_t *max_records);
typedef void lull_cupti_completed(void *context, u32 stream, u8 *buffer, size_t size_bytes,
				  size_t valid_bytes);

#define AS_POINTER(name, is_required, params) int(*name) params;
struct lull_cupti {
	u32 version; /* cuptiGetVersion(): 18 for CUDA 11.8, 130000 for 13.0 */
	LULL_CUPTI_FUNCTIONS(AS_POINTER)
};
#undef AS_POINTER

extern struct lull_cupti lull_cupti __attribute__((visibility("hidden")));

#define AS_VALUE(ours, value, theirs) LULL_CUPTI_##ours = value,
enum { LULL_CUPTI_VALUES(AS_VALUE) };
#undef AS_VALUE

#define AS_READER(S, type, ours, theirs, offset, since)                               \
	static inline type lull_cupti_##S##_##ours(const void *record)                \
	{                                                                             \
		type value = (type)0;                                                 \
                                                                                      \
		if ((u64)lull_cupti.version + 1 > (since))                            \
			memcpy(&value, (const u8 *)record + (offset), sizeof(value)); \
		return value;                                                         \
	}
#define AS_READERS(name, theirs, bytes, fields) fields(AS_READER, name)
LULL_CUPTI_RECORDS(AS_READERS)
#undef AS_READERS
#undef AS_READER

/* Find and load it; false if there is none or a function that we need is missing. */
bool lull_cupti_load(void);

/* A function of the CUPTI that the process has loaded; NULL if there is none. */
void *lull_cupti_find(const char *name);

/* Which function was missing, "" if no library was found. */
const char *lull_cupti_missing(void);

#endif
