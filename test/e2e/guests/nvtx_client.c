/*
 * nvtx_client: the same program as nvtx_raw with NVIDIA's own headers, built where they are
 * installed.
 */
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCounters.h>
#include <nvtx3/nvToolsExtPayload.h>

#include "e2e/guests/nvtx_scenario.h"

int main(int argc, char **argv)
{
	/* The types differ in name only: test_nvtx_layout compares them. */
	static const struct lull_nvtx_calls calls = {
#define AS_CALL(slot, ours, theirs, ret, args) .ours = (ret(*) args)(lull_nvtx_fn *)nvtx##theirs,
		LULL_NVTX_CORE(AS_CALL) LULL_NVTX_CORE2(AS_CALL) LULL_NVTX_PAYLOAD(AS_CALL)
			LULL_NVTX_COUNTERS(AS_CALL)
#undef AS_CALL
	};

	return nvtx_scenario(&calls, &calls, argc > 1 ? argv[1] : NULL);
}
