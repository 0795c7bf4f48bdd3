/*
 * names - texts for the numbers in some columns.
 *
 * Every function returns a static text, also for unknown numbers.
 */
#ifndef LULL_MODEL_NAMES_H
#define LULL_MODEL_NAMES_H

#include "base/types.h"

/* The same kind of copy, 0 if it has no name. */
u32 lull_names_copy_kind(u32 copy_kind);

/* By memcpy.copy_kind: "Host-to-Device". */
const char *lull_names_copy(u32 copy_kind);

/* By memcpy.src_kind: "Pinned". */
const char *lull_names_memory(u32 memory_kind);

/* By memcpy.copy_kind, in the letters of PyTorch: "HtoD". */
const char *lull_names_copy_letters(u32 copy_kind);

/* As PyTorch writes a copy: "Memcpy HtoD (Pinned -> Device)". */
void lull_names_put_copy(char *to, size_t cap, u32 copy_kind, u32 src_kind, u32 dst_kind);

/* And a memset: "Memset (Device)". */
void lull_names_put_memset(char *to, size_t cap, u32 memory_kind);

/* By cuda_sync.kind: "Stream synchronisation". */
const char *lull_names_sync(u32 kind);

/* By overhead.kind: "Loading modules". */
const char *lull_names_overhead(u32 kind);

/*
 * How much of the name of a CUDA call people know: without the version of its interface, a last _v
 * and four digits.
 */
size_t lull_names_call_len(const char *name, size_t len);

#endif
