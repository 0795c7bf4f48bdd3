#include "model/names.h"

#include <ctype.h>
#include <stdio.h>

/* Length of "_v3020", the suffix of functions whose parameters changed with CUDA 3.2 and so on. */
#define VERSION_LEN 6

/* Kinds of overhead have their number in the upper half of the word, but for the first. */
#define OVERHEAD_SHIFT 16

/* By memcpy.copy_kind. */
static const char *const copies[] = {
	"Unknown",
	"Host-to-Device",
	"Device-to-Host",
	"Host-to-Array",
	"Array-to-Host",
	"Array-to-Array",
	"Array-to-Device",
	"Device-to-Array",
	"Device-to-Device",
	"Host-to-Host",
	"Peer-to-Peer",
	"Unified Host-to-Device",
	"Unified Device-to-Host",
	"Unified Device-to-Device",
};

u32 lull_names_copy_kind(u32 copy_kind)
{
	return copy_kind < LULL_COUNT_OF(copies) ? copy_kind : 0;
}

const char *lull_names_copy(u32 copy_kind)
{
	return copies[lull_names_copy_kind(copy_kind)];
}

const char *lull_names_memory(u32 memory_kind)
{
	static const char *const kinds[] = { "Unknown",	      "Pageable",      "Pinned",
					     "Device",	      "Array",	       "Managed",
					     "Device Static", "Managed Static" };

	return kinds[memory_kind < LULL_COUNT_OF(kinds) ? memory_kind : 0];
}

const char *lull_names_copy_letters(u32 copy_kind)
{
	static const char *const kinds[] = { "Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
					     "AtoD",	"DtoA", "DtoD", "HtoH", "PtoP" };

	return kinds[copy_kind < LULL_COUNT_OF(kinds) ? copy_kind : 0];
}

void lull_names_put_copy(char *to, size_t cap, u32 copy_kind, u32 src_kind, u32 dst_kind)
{
	snprintf(to, cap, "Memcpy %s (%s -> %s)", lull_names_copy_letters(copy_kind),
		 lull_names_memory(src_kind), lull_names_memory(dst_kind));
}

void lull_names_put_memset(char *to, size_t cap, u32 memory_kind)
{
	snprintf(to, cap, "Memset (%s)", lull_names_memory(memory_kind));
}

const char *lull_names_sync(u32 kind)
{
	static const char *const kinds[] = { "Synchronisation", "Event synchronisation",
					     "Stream waits for event", "Stream synchronisation",
					     "Context synchronisation" };

	return kinds[kind < LULL_COUNT_OF(kinds) ? kind : 0];
}

const char *lull_names_overhead(u32 kind)
{
	static const char *const kinds[] = { "Overhead",	 "Flushing buffers",
					     "Instrumenting",	 "Making resources",
					     "Loading modules",	 "Loading functions",
					     "Waiting for room", "Asking for buffers" };
	u32 ix = kind >> OVERHEAD_SHIFT;

	if (kind == 1)
		return "Compiling";
	return kinds[ix < LULL_COUNT_OF(kinds) ? ix : 0];
}

size_t lull_names_call_len(const char *name, size_t len)
{
	const char *suffix = len > VERSION_LEN ? name + len - VERSION_LEN : "";
	bool is_version = suffix[0] == '_' && suffix[1] == 'v';

	for (size_t i = 2; is_version && i < VERSION_LEN; i++)
		is_version = isdigit((unsigned char)suffix[i]);
	return is_version ? len - VERSION_LEN : len;
}
