#include "agent/cuda/cuda_xla.h"

#include <stdlib.h>
#include <string.h>

#include "agent/core/loaded.h"
#include "base/types.h"

/* The kinds of commands that become graphs: none, if nothing follows. */
#define FLAG "--xla_gpu_enable_command_buffer="

/*
 * jax_plugins/xla_cuda13/xla_cuda_plugin.so; others beside it, or in jax_cuda12_plugin/, use CUDA
 * first. Until 2024 they were in jaxlib/cuda/.
 */
static int is_plugin(struct dl_phdr_info *file, size_t size, void *arg)
{
	static const char *const parts[] = { "/xla_cuda1", "/xla_cuda_plugin", "/jax_cuda1",
					     "/jaxlib/cuda/" };
	bool *is_there = arg;

	(void)size;
	for (size_t i = 0; i < LULL_COUNT_OF(parts) && file->dlpi_name; i++)
		*is_there = *is_there || strstr(file->dlpi_name, parts[i]);
	return *is_there;
}

/* The last one of several counts. */
static bool is_told(const char *flags)
{
	const char *at = strstr(flags, FLAG);
	bool is_empty = false;

	while (at) {
		at += sizeof(FLAG) - 1;
		is_empty = *at == '\0' || *at == ' ';
		at = strstr(at, FLAG);
	}
	return is_empty;
}

enum lull_cuda_xla lull_cuda_xla(void)
{
	const char *flags = getenv("XLA_FLAGS");
	bool is_there = false;

	lull_loaded_walk(is_plugin, &is_there);
	if (!is_there)
		return LULL_CUDA_XLA_NONE;
	return flags && is_told(flags) ? LULL_CUDA_XLA_PLAIN : LULL_CUDA_XLA_GRAPHS;
}
