/*
 * nvtx_late: makes ranges before and while somebody attaches, until there is a file "end".
 *
 * By NVIDIA's own headers, or with OWN, where they are not installed, by an instance of the same
 * layout. Makes a file "seen" when it has functions of a tool. Ends with status 3, or 4 if
 * somebody's functions have stayed.
 *
 * Usage: nvtx_late [later | deaf]
 *
 * The first call comes once there is a file "go"; deaf: without a look at the environment (OWN).
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/nvtx/nvtx_abi.h"

#ifndef OWN
#include <nvtx3/nvToolsExt.h>

static void be_deaf(void)
{
}

static bool is_quiet(void)
{
	return !NVTX_VERSIONED_IDENTIFIER(nvtxGlobals).nvtxRangePushA_impl_fnptr &&
	       !NVTX_VERSIONED_IDENTIFIER(nvtxGlobals).nvtxDomainRangePushEx_impl_fnptr;
}
#else
static int find_table(u32 module, lull_nvtx_fn ****table, u32 *n);
static void tell_version(u32 version);

/* As nvtxGlobals_v3 begins; the functions are in another order. */
static struct {
	volatile unsigned int state;
	struct lull_nvtx_callbacks callbacks;
	struct lull_nvtx_version_info version;
	struct lull_nvtx_calls calls;
} globals = {
	.callbacks = { sizeof(globals.callbacks), find_table },
	.version = { sizeof(globals.version), 3, 0, tell_version },
};

#define AS_VARIABLE(slot, ours, theirs, ret, args) [slot] = (lull_nvtx_fn **)&globals.calls.ours,
static lull_nvtx_fn **core[] = { LULL_NVTX_CORE(AS_VARIABLE) };
static lull_nvtx_fn **core2[] = { LULL_NVTX_CORE2(AS_VARIABLE) };

static int find_table(u32 module, lull_nvtx_fn ****table, u32 *n)
{
	if (module != LULL_NVTX_MODULE_CORE && module != LULL_NVTX_MODULE_CORE2)
		return 0;
	*table = module == LULL_NVTX_MODULE_CORE ? core : core2;
	*n = module == LULL_NVTX_MODULE_CORE ? LULL_COUNT_OF(core) : LULL_COUNT_OF(core2);
	return 1;
}

static void tell_version(u32 version)
{
	(void)version;
}

static bool is_deaf;

static void be_deaf(void)
{
	is_deaf = true;
}

static const void *get_export(u32 id)
{
	return id == LULL_NVTX_EXPORT_CALLBACKS	    ? (const void *)&globals.callbacks
	       : id == LULL_NVTX_EXPORT_VERSIONINFO ? (const void *)&globals.version
						    : NULL;
}

/* As NVTX does at its first call. */
static void ask(void)
{
	const char *path = is_deaf ? NULL : getenv("NVTX_INJECTION64_PATH");
	void *tool = path ? dlopen(path, RTLD_LAZY) : NULL;
	int (*init)(lull_nvtx_get_export * get_export) = NULL;

	if (tool)
		*(void **)&init = dlsym(tool, "InitializeInjectionNvtx2");
	globals.state = 1;
	if (init)
		init(get_export);
	globals.state = 2;
}

static void nvtxRangePushA(const char *name)
{
	if (globals.state != 2)
		ask();
	if (globals.calls.range_push_a)
		globals.calls.range_push_a(name);
}

static void nvtxRangePop(void)
{
	if (globals.calls.range_pop)
		globals.calls.range_pop();
}

static bool is_quiet(void)
{
	return !globals.calls.range_push_a && !globals.calls.domain_range_push_ex;
}
#endif

static void make_file(const char *name)
{
	FILE *file = fopen(name, "w");

	if (file)
		fclose(file);
}

int main(int argc, char **argv)
{
	long n = 0, n_ranges = 0;

	if (argc > 1 && strcmp(argv[1], "deaf") == 0)
		be_deaf();
	while (access("end", F_OK) != 0) {
		/* With an argument: its first call comes once somebody is attached. */
		if (argc == 1 || access("go", F_OK) == 0) {
			nvtxRangePushA(n_ranges++ ? "outer" : "first");
			nvtxRangePushA("inner");
			usleep(500);
			nvtxRangePop();
			nvtxRangePop();
		}
		usleep(500);
		if (n++ == 5)
			make_file("ready");
		if (!is_quiet() && access("seen", F_OK) != 0)
			make_file("seen");
	}
	printf("0\n");
	return is_quiet() ? 3 : 4;
}
