#include "support/nvtx_instance.h"

#include <dlfcn.h>
#include <stdlib.h>

#define N_SLOTS 63u

/* The instance that is being loaded: the tool asks back without saying for whom. */
static struct nvtx_instance *asking;

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
	static const struct lull_nvtx_version_info version = { sizeof(version), LULL_NVTX_VERSION,
							       0, tell_version };

	return export_id == LULL_NVTX_EXPORT_CALLBACKS	   ? (const void *)&callbacks
	       : export_id == LULL_NVTX_EXPORT_VERSIONINFO ? (const void *)&version
							   : NULL;
}

static bool load_core(struct nvtx_instance *instance, void *tool)
{
#define AS_VARIABLE(slot, ours, theirs, ret, args) [slot] = (lull_nvtx_fn **)&instance->calls.ours,
	lull_nvtx_fn **const core[] = { LULL_NVTX_CORE(AS_VARIABLE) };
	lull_nvtx_fn **const core2[] = { LULL_NVTX_CORE2(AS_VARIABLE) };
#undef AS_VARIABLE
	int (*init)(lull_nvtx_get_export * get_export);

	for (size_t i = 0; i < LULL_COUNT_OF(core); i++)
		instance->core[i] = core[i];
	for (size_t i = 0; i < LULL_COUNT_OF(core2); i++)
		instance->core2[i] = core2[i];
	asking = instance;
	*(void **)&init = dlsym(tool, "InitializeInjectionNvtx2");
	return init && init(get_export) && instance->told_version == LULL_NVTX_VERSION;
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
	int (*init)(struct lull_nvtx_module_info * module);

	*(void **)&init = dlsym(tool, "InitializeInjectionNvtxExtension");
	return init && init(&module);
}

bool nvtx_instance_load(struct nvtx_instance *instance)
{
	const char *path = getenv("NVTX_INJECTION64_PATH");
	void *tool = path ? dlopen(path, RTLD_LAZY) : NULL;
	intptr_t payload[N_SLOTS] = { 0 }, counters[N_SLOTS] = { 0 }, unknown[N_SLOTS] = { 0 };

	if (!tool || !load_core(instance, tool) ||
	    !load_extension(tool, LULL_NVTX_EXT_PAYLOAD, payload) ||
	    !load_extension(tool, LULL_NVTX_EXT_COUNTERS, counters) ||
	    !load_extension(tool, 99, unknown))
		return false;
#define AS_TAKEN(slot, ours, theirs, ret, args) instance->calls.ours = (ret(*) args)payload[slot];
	LULL_NVTX_PAYLOAD(AS_TAKEN)
#undef AS_TAKEN
#define AS_TAKEN(slot, ours, theirs, ret, args) instance->calls.ours = (ret(*) args)counters[slot];
	LULL_NVTX_COUNTERS(AS_TAKEN)
#undef AS_TAKEN
	return true;
}
