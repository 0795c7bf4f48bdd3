/*
 * nvtx_raw: an NVTX client without NVIDIA's headers, with two instances, as two libraries would
 * have.
 */
#include <stdio.h>

#include "e2e/guests/nvtx_scenario.h"
#include "support/nvtx_instance.h"

int main(int argc, char **argv)
{
	static struct nvtx_instance first, second;

	if (!nvtx_instance_load(&first) || !nvtx_instance_load(&second)) {
		fprintf(stderr, "nvtx_raw: no tool\n");
		return 2;
	}
	return nvtx_scenario(&first.calls, &second.calls, argc > 1 ? argv[1] : NULL);
}
