/*
 * nvtx_instance - what an NVTX instance does to find its tool, without NVIDIA's headers.
 *
 * Each struct is an instance of its own, as each shared object that is compiled with NVTX has one.
 */
#ifndef LULL_TEST_SUPPORT_NVTX_INSTANCE_H
#define LULL_TEST_SUPPORT_NVTX_INSTANCE_H

#include "agent/nvtx/nvtx_abi.h"

/* Tables have an entry for slot 0, which no function uses. */
#define NVTX_AS_COUNT(slot, ours, theirs, ret, args) +1

struct nvtx_instance {
	struct lull_nvtx_calls calls;
	lull_nvtx_fn **core[1 LULL_NVTX_CORE(NVTX_AS_COUNT)];
	lull_nvtx_fn **core2[1 LULL_NVTX_CORE2(NVTX_AS_COUNT)];
	u32 told_version;
};

/*
 * Load the tool that NVTX_INJECTION64_PATH names; false if there is none or it does not want this
 * instance.
 */
bool nvtx_instance_load(struct nvtx_instance *instance);

#endif
