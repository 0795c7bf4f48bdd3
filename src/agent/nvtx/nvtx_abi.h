/*
 * nvtx_abi - NVTX's binary interface in C, made from nvtx.def.
 *
 * What it gives: constants LULL_NVTX_*, structures struct lull_nvtx_*, and struct lull_nvtx_calls,
 *                the functions of NVTX as pointers: what a tool fills in and what a client calls.
 * Handles:       struct lull_nvtx_domain and lull_nvtx_string are the tool's to define; clients
 *                only pass them.
 */
#ifndef LULL_AGENT_NVTX_NVTX_ABI_H
#define LULL_AGENT_NVTX_NVTX_ABI_H

#include <stddef.h>
#include <wchar.h>

#include "agent/nvtx/nvtx.def"
#include "base/types.h"

struct lull_nvtx_domain;
struct lull_nvtx_string;

/* A function of any type; cast before the call. */
typedef void lull_nvtx_fn(void);

/* Tables are arrays of pointers to the variables that hold the functions; entry 0 is unused. */
typedef int lull_nvtx_find_table(u32 module, lull_nvtx_fn ****table, u32 *n);
typedef void lull_nvtx_tell_version(u32 version);
typedef const void *lull_nvtx_get_export(u32 export_id);

#define AS_ENUM(id, name) LULL_NVTX_MODULE_##name = id,
enum lull_nvtx_module { LULL_NVTX_MODULES(AS_ENUM) };
#undef AS_ENUM

#define AS_ENUM(id, name) LULL_NVTX_EXPORT_##name = id,
enum lull_nvtx_export { LULL_NVTX_EXPORTS(AS_ENUM) };
#undef AS_ENUM

#define AS_ENUM(ours, value, theirs) LULL_NVTX_##ours = value,
enum lull_nvtx_value { LULL_NVTX_VALUES(AS_ENUM) };
#undef AS_ENUM

#define AS_ENUM(id, name, theirs, bytes) LULL_NVTX_TYPE_##name = id,
enum lull_nvtx_type { LULL_NVTX_TYPES(AS_ENUM) };
#undef AS_ENUM

#define AS_FIELD(S, V, type, ours, theirs, off) type ours;
#define AS_STRUCT(name, theirs, bytes, fields) \
	struct lull_nvtx_##name {              \
		fields(AS_FIELD, name, theirs) \
	};
LULL_NVTX_STRUCTS(AS_STRUCT)
#undef AS_STRUCT
#undef AS_FIELD

#define AS_CHECK(S, V, type, ours, theirs, off) \
	_Static_assert(offsetof(struct lull_nvtx_##S, ours) == (off), "layout of " #S "." #ours);
#define AS_CHECKS(name, theirs, bytes, fields)                                        \
	_Static_assert(sizeof(struct lull_nvtx_##name) == (bytes), "size of " #name); \
	fields(AS_CHECK, name, theirs)
LULL_NVTX_STRUCTS(AS_CHECKS)
#undef AS_CHECKS
#undef AS_CHECK

struct lull_nvtx_calls {
#define AS_POINTER(slot, ours, theirs, ret, args) ret(*ours) args;
	LULL_NVTX_CORE(AS_POINTER)
	LULL_NVTX_CORE2(AS_POINTER)
	LULL_NVTX_PAYLOAD(AS_POINTER)
	LULL_NVTX_COUNTERS(AS_POINTER)
#undef AS_POINTER
};

#endif
