/*
 * cuda_names - names of errors and addresses of functions.
 */
#include "cuda_int.h"

#include <stdio.h>
#include <string.h>

static const struct {
	int error;
	const char *name;
	const char *text;
} errors[] = {
	{ SIM_OK, "CUDA_SUCCESS", "no error" },
	{ SIM_E_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument" },
	{ SIM_E_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory" },
	{ SIM_E_UNINITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error" },
	{ SIM_E_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal" },
	{ SIM_E_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context" },
	{ SIM_E_PTX, "CUDA_ERROR_INVALID_PTX", "no kernel in the PTX text" },
	{ SIM_E_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle" },
	{ SIM_E_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found" },
	{ SIM_E_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready" },
	{ SIM_E_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
	  "operation not permitted when stream is capturing" },
	{ SIM_E_CAPTURE_UNMATCHED, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
	  "the stream is not capturing" },
};

int cuGetErrorName(int error, const char **text)
{
	for (size_t i = 0; i < LULL_COUNT_OF(errors); i++) {
		if (errors[i].error == error) {
			*text = errors[i].name;
			return SIM_OK;
		}
	}
	*text = NULL;
	return SIM_E_VALUE;
}

int cuGetErrorString(int error, const char **text)
{
	for (size_t i = 0; i < LULL_COUNT_OF(errors); i++) {
		if (errors[i].error == error) {
			*text = errors[i].text;
			return SIM_OK;
		}
	}
	*text = NULL;
	return SIM_E_VALUE;
}

/* A flag of cuGetProcAddress(): calls of the default stream mean the one of the thread. */
#define PER_THREAD_STREAM 2u

typedef void any_call(void);

static const struct {
	const char *name;
	any_call *function;
} calls[] = {
#define CALL(cbid, name, params) { #name, (any_call *)name },
#include "calls.def"
#undef CALL
};

/* Calls whose name without a suffix means another function from some version on. */
static const struct {
	const char *symbol;
	int version;
	const char *name;
} renamed[] = {
	{ "cuCtxCreate", 13000, "cuCtxCreate_v4" },
	{ "cuEventElapsedTime", 12080, "cuEventElapsedTime_v2" },
	{ "cuEventElapsedTime", 0, "cuEventElapsedTime" },
	{ "cuGraphInstantiate", 12000, "cuGraphInstantiateWithFlags" },
	{ "cuGetProcAddress", 12000, "cuGetProcAddress_v2" },
	{ "cuGetProcAddress", 0, "cuGetProcAddress" },
};

static any_call *find(const char *name)
{
	for (size_t i = 0; i < LULL_COUNT_OF(calls); i++)
		if (strcmp(calls[i].name, name) == 0)
			return calls[i].function;
	return NULL;
}

static any_call *find_by_version(const char *symbol, int version)
{
	char newer[64];
	any_call *function;

	for (size_t i = 0; i < LULL_COUNT_OF(renamed); i++)
		if (strcmp(renamed[i].symbol, symbol) == 0 && version >= renamed[i].version)
			return find(renamed[i].name);
	snprintf(newer, sizeof(newer), "%s_v2", symbol);
	function = find(newer);
	return function ? function : find(symbol);
}

static any_call *find_per_thread(const char *symbol)
{
	char name[64];

	snprintf(name, sizeof(name), "%s_ptsz", symbol);
	return find(name);
}

int cuGetProcAddress(const char *symbol, void **function, int version, u64 flags)
{
	return cuGetProcAddress_v2(symbol, function, version, flags, NULL);
}

int cuGetProcAddress_v2(const char *symbol, void **function, int version, u64 flags, int *status)
{
	struct sim_call call = SIM_ENTER(cuGetProcAddress_v2);
	any_call *found = flags & PER_THREAD_STREAM ? find_per_thread(symbol) : NULL;

	if (!found)
		found = find_by_version(symbol, version);
	*(any_call **)function = found;
	if (status)
		*status = found ? 0 : 1;
	return lull_sim_leave(&call, found ? SIM_OK : SIM_E_NOT_FOUND);
}
