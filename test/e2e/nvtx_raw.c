/*
 * nvtx_raw: an NVTX client without NVIDIA's headers. It loads the tool as an NVTX instance does on its first call,
 * twice, as two libraries with instances of their own would.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "e2e/nvtx_scenario.h"

#define N_SLOTS 63u

/* Tables have an entry for slot 0, which no function uses, and NVTX says how many entries there are. */
#define AS_VARIABLE(slot, ours, theirs, ret, args) [slot] = (lull_nvtx_fn **)&instance->calls.ours,
#define AS_COUNT(slot, ours, theirs, ret, args) +1

struct instance {
	struct lull_nvtx_calls calls;
	lull_nvtx_fn **core[LULL_NVTX_CORE(AS_COUNT) + 1];
	lull_nvtx_fn **core2[LULL_NVTX_CORE2(AS_COUNT) + 1];
	u32 told_version;
};

static struct instance instances[2], *asking;

static int find_table(u32 module, lull_nvtx_fn ****table, u32 *n)
{
	if (module == LULL_NVTX_MODULE_CORE) {
		*table = asking->core;
		*n = LULL_COUNT_OF(asking->core);
	} else if (module == LULL_NVTX_MODULE_CORE2) {
		*table = asking->core2;
		*n = LULL_COUNT_OF(asking->core2);
	} else {
		return 0;
	}
	return 1;
}

static void tell_version(u32 version)
{
	asking->told_version = version;
}

static const void *get_export(u32 export_id)
{
	static const struct lull_nvtx_callbacks callbacks = { sizeof(callbacks), find_table };
	static const struct lull_nvtx_version_info version = { sizeof(version), LULL_NVTX_VERSION, 0, tell_version };

	return export_id == LULL_NVTX_EXPORT_CALLBACKS	 ? (const void *)&callbacks
	       : export_id == LULL_NVTX_EXPORT_VERSIONINFO ? (const void *)&version
							   : NULL;
}

static bool load_extension(void *tool, u16 module_id, intptr_t *slots)
{
	struct lull_nvtx_segment segment = { .n_slots = N_SLOTS, .slots = slots };
	struct lull_nvtx_module_info module = {
		.version = LULL_NVTX_VERSION,
		.struct_bytes = sizeof(module),
		.module_id = module_id,
		.n_segments = 1,
		.segments = &segment,
	};
	int (*init)(struct lull_nvtx_module_info *module);

	*(void **)&init = dlsym(tool, "InitializeInjectionNvtxExtension");
	return init && init(&module);
}

static bool load(struct instance *instance, void *tool)
{
	lull_nvtx_fn **const core[] = { LULL_NVTX_CORE(AS_VARIABLE) };
	lull_nvtx_fn **const core2[] = { LULL_NVTX_CORE2(AS_VARIABLE) };
	intptr_t payload[N_SLOTS] = { 0 }, counters[N_SLOTS] = { 0 }, unknown[N_SLOTS] = { 0 };
	int (*init)(lull_nvtx_get_export *get_export);

	for (size_t i = 0; i < LULL_COUNT_OF(core); i++)
		instance->core[i] = core[i];
	for (size_t i = 0; i < LULL_COUNT_OF(core2); i++)
		instance->core2[i] = core2[i];
	asking = instance;
	*(void **)&init = dlsym(tool, "InitializeInjectionNvtx2");
	if (!init || !init(get_export) || instance->told_version != LULL_NVTX_VERSION)
		return false;
	if (!load_extension(tool, LULL_NVTX_EXT_PAYLOAD, payload) ||
	    !load_extension(tool, LULL_NVTX_EXT_COUNTERS, counters) || !load_extension(tool, 99, unknown))
		return false;
#define AS_TAKEN(slot, ours, theirs, ret, args) instance->calls.ours = (ret(*) args)payload[slot];
	LULL_NVTX_PAYLOAD(AS_TAKEN)
#undef AS_TAKEN
#define AS_TAKEN(slot, ours, theirs, ret, args) instance->calls.ours = (ret(*) args)counters[slot];
	LULL_NVTX_COUNTERS(AS_TAKEN)
#undef AS_TAKEN
	return true;
}

int main(int argc, char **argv)
{
	const char *path = getenv("NVTX_INJECTION64_PATH");
	void *tool = path ? dlopen(path, RTLD_LAZY) : NULL;

	if (!tool || !load(&instances[0], tool) || !load(&instances[1], tool)) {
		fprintf(stderr, "nvtx_raw: no tool\n");
		return 2;
	}
	return nvtx_scenario(&instances[0].calls, &instances[1].calls, argc > 1 ? argv[1] : NULL);
}
