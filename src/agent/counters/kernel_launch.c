#include "agent/counters/kernel_launch.h"

#include <dlfcn.h>
#include <string.h>

#include "agent/cuda/cupti.h"
#include "agent/core/real.h"

/* Parameters of cuLaunchKernel and cuLaunchCooperativeKernel. */
struct plain_params {
	void *function;
	u32 grid[3];
	u32 block[3];
	u32 shared_bytes;
	void *stream;
};

/* CUlaunchAttribute, CUlaunchConfig, and the parameters of cuLaunchKernelEx. */
struct attribute {
	u32 id;
	u32 pad;
	u32 value[16];
};
struct config {
	u32 grid[3];
	u32 block[3];
	u32 shared_bytes;
	void *stream;
	const struct attribute *attributes;
	u32 n_attributes;
};
struct config_params {
	const struct config *config;
	void *function;
};
_Static_assert(sizeof(struct attribute) == 72, "as cuda.h lays it out");

#define ATTRIBUTE_CLUSTER 4u  /* CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION */
#define MAX_ATTRIBUTES	  64u /* there are a dozen kinds */

/* CUfunction_attribute. */
enum { SHARED_BYTES = 1, LOCAL_BYTES = 3, N_REGISTERS = 4 };

static struct {
	bool has_tried;
	int (*cuFuncGetAttribute)(int *value, int attribute, void *function);
	int (*cuKernelGetFunction)(void **function, void *kernel);
	int (*cuKernelGetAttribute)(int *value, int attribute, void *kernel, int device);
	int (*cuStreamIsCapturing)(void *stream, int *status);
	int (*cuCtxGetCurrent)(void **context);
	int (*cuCtxGetDevice)(int *device);
	int (*cuThreadExchangeStreamCaptureMode)(int *mode);
	int (*cuCtxSynchronize)(void);
} driver;

static void find_driver(void)
{
	void *lib;

	if (driver.has_tried)
		return;
	lib = lull_real.dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
	if (lib) {
		*(void **)&driver.cuFuncGetAttribute = dlsym(lib, "cuFuncGetAttribute");
		*(void **)&driver.cuKernelGetFunction = dlsym(lib, "cuKernelGetFunction");
		*(void **)&driver.cuKernelGetAttribute = dlsym(lib, "cuKernelGetAttribute");
		*(void **)&driver.cuStreamIsCapturing = dlsym(lib, "cuStreamIsCapturing");
		*(void **)&driver.cuCtxGetCurrent = dlsym(lib, "cuCtxGetCurrent");
		*(void **)&driver.cuThreadExchangeStreamCaptureMode =
			dlsym(lib, "cuThreadExchangeStreamCaptureMode");
		*(void **)&driver.cuCtxGetDevice = dlsym(lib, "cuCtxGetDevice");
		*(void **)&driver.cuCtxSynchronize = dlsym(lib, "cuCtxSynchronize");
	}
	driver.has_tried = true;
}

enum lull_launch_kind lull_launch_kind(const char *call)
{
	if (strncmp(call, "cuLaunchKernelEx", 16) == 0)
		return LULL_LAUNCH_CONFIG;
	if (strcmp(call, "cuLaunchKernel") == 0 || strcmp(call, "cuLaunchKernel_ptsz") == 0)
		return LULL_LAUNCH_PLAIN;
	if (strcmp(call, "cuLaunchCooperativeKernel") == 0 ||
	    strcmp(call, "cuLaunchCooperativeKernel_ptsz") == 0)
		return LULL_LAUNCH_COOPERATIVE;
	if (strcmp(call, "cuGraphLaunch") == 0 || strcmp(call, "cuGraphLaunch_ptsz") == 0)
		return LULL_LAUNCH_GRAPH;
	if (strcmp(call, "cuProfilerStart") == 0)
		return LULL_LAUNCH_START;
	if (strcmp(call, "cuProfilerStop") == 0)
		return LULL_LAUNCH_STOP;
	return LULL_LAUNCH_NONE;
}

static u32 attribute_of(void *function, int attribute)
{
	int value = 0;

	if (!driver.cuFuncGetAttribute ||
	    driver.cuFuncGetAttribute(&value, attribute, function) != 0)
		return 0;
	return (u32)value;
}

static u32 kernel_attribute_of(const struct lull_launch *launch, int attribute)
{
	int value = 0;

	if (!driver.cuKernelGetAttribute ||
	    driver.cuKernelGetAttribute(&value, attribute, launch->function,
					(int)launch->device_ix) != 0)
		return 0;
	return (u32)value;
}

/*
 * What a launch is given may be a kernel of a library, which is no function before it is asked for
 * in the present context; the runtime launches these. Every function has registers.
 */
static void read_function(struct lull_launch *launch)
{
	struct lull_wire_shape *shape = &launch->shape;
	void *function = launch->function;

	shape->registers = attribute_of(function, N_REGISTERS);
	if (!shape->registers && driver.cuKernelGetFunction &&
	    driver.cuKernelGetFunction(&function, launch->function) == 0)
		shape->registers = attribute_of(function, N_REGISTERS);
	if (shape->registers) {
		shape->static_shared_bytes = attribute_of(function, SHARED_BYTES);
		shape->local_bytes = attribute_of(function, LOCAL_BYTES);
		return;
	}
	shape->registers = kernel_attribute_of(launch, N_REGISTERS);
	shape->static_shared_bytes = kernel_attribute_of(launch, SHARED_BYTES);
	shape->local_bytes = kernel_attribute_of(launch, LOCAL_BYTES);
}

static void read_config(struct lull_wire_shape *shape, const struct config *config)
{
	for (u32 i = 0; i < config->n_attributes && i < MAX_ATTRIBUTES; i++)
		if (config->attributes[i].id == ATTRIBUTE_CLUSTER)
			memcpy(shape->cluster, config->attributes[i].value, sizeof(shape->cluster));
}

bool lull_launch_read(struct lull_launch *launch, enum lull_launch_kind kind, const void *data)
{
	const void *params = lull_cupti_call_params(data);
	const struct plain_params *plain = params;
	const struct config_params *with_config = params;

	*launch = (struct lull_launch){ .symbol = lull_cupti_call_symbol(data),
					.context = lull_cupti_call_context(data),
					.context_id = lull_cupti_call_context_id(data),
					.correlation = lull_cupti_call_correlation(data) };
	if (!params || !launch->symbol)
		return false;
	find_driver();
	if (kind == LULL_LAUNCH_CONFIG) {
		const struct config *config = with_config->config;

		if (!config)
			return false;
		memcpy(launch->shape.grid, config->grid, sizeof(config->grid));
		memcpy(launch->shape.block, config->block, sizeof(config->block));
		launch->shape.dynamic_shared_bytes = config->shared_bytes;
		launch->stream = config->stream;
		launch->function = with_config->function;
		read_config(&launch->shape, config);
		return true;
	}
	memcpy(launch->shape.grid, plain->grid, sizeof(plain->grid));
	memcpy(launch->shape.block, plain->block, sizeof(plain->block));
	launch->shape.dynamic_shared_bytes = plain->shared_bytes;
	launch->stream = plain->stream;
	launch->function = plain->function;
	return true;
}

bool lull_launch_is_captured(const struct lull_launch *launch)
{
	int status = 0;

	return driver.cuStreamIsCapturing &&
	       driver.cuStreamIsCapturing(launch->stream, &status) == 0 && status != 0;
}

void lull_launch_complete(struct lull_launch *launch)
{
	int device = 0;

	if (driver.cuCtxGetDevice && driver.cuCtxGetDevice(&device) == 0)
		launch->device_ix = (u32)device;
	if (lull_cupti.cuptiGetStreamIdEx)
		lull_cupti.cuptiGetStreamIdEx(launch->context, launch->stream, 0,
					      &launch->stream_id);
	read_function(launch);
}

bool lull_launch_here(struct lull_launch *launch)
{
	int device = 0;

	*launch = (struct lull_launch){ .symbol = "" };
	find_driver();
	if (!driver.cuCtxGetCurrent || driver.cuCtxGetCurrent(&launch->context) != 0 ||
	    !launch->context)
		return false;
	if (driver.cuCtxGetDevice && driver.cuCtxGetDevice(&device) == 0)
		launch->device_ix = (u32)device;
	if (lull_cupti.cuptiGetContextId)
		lull_cupti.cuptiGetContextId(launch->context, &launch->context_id);
	return true;
}

/* CU_STREAM_CAPTURE_MODE_RELAXED: a wait must not spoil what some thread captures. */
#define RELAXED 2

bool lull_launch_wait(void)
{
	int mode = RELAXED;
	bool is_idle, has_mode;

	find_driver();
	has_mode = driver.cuThreadExchangeStreamCaptureMode &&
		   driver.cuThreadExchangeStreamCaptureMode(&mode) == 0;
	is_idle = driver.cuCtxSynchronize && driver.cuCtxSynchronize() == 0;
	if (has_mode)
		driver.cuThreadExchangeStreamCaptureMode(&mode);
	return is_idle;
}
