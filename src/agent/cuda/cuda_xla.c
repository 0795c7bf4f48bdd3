#include "agent/cuda/cuda_xla.h"

#include <stdlib.h>
#include <string.h>

#include "agent/core/loaded.h"

/* The kinds of commands that become graphs: none, if nothing follows. */
#define FLAG "--xla_gpu_enable_command_buffer="

/* jax_plugins/xla_cuda13/xla_cuda_plugin.so; others beside it are loaded before, and use CUDA. */
static int is_plugin(struct dl_phdr_info *file, size_t size, void *arg)
{
	bool *is_there = arg;

	(void)size;
	*is_there = file->dlpi_name && strstr(file->dlpi_name, "xla_cuda") != NULL;
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

bool lull_cuda_xla_has_graphs(void)
{
	const char *flags = getenv("XLA_FLAGS");
	bool is_there = false;

	lull_loaded_walk(is_plugin, &is_there);
	return is_there && !(flags && is_told(flags));
}
