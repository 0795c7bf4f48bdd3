/*
 * libnvml - a stand-in for libnvidia-ml.so.1: devices whose state is set by knobs (sim/README.md).
 *
 * Power takes turns between two values, so that averages, least and greatest can be told apart.
 */
#include <stdio.h>
#include <string.h>

#include "sim_int.h"

/* Declared from the list that the recorder looks them up by. */
#define NVML(name, is_required, params) int name params;
#include "record/gpu/nvml.def"
#undef NVML

#define N_DEVICES 4

enum { OK = 0, UNINITIALIZED = 1, INVALID = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4 };

static struct {
	u32 n_looks; /* at power */
} devices[N_DEVICES];

static u32 n_gpm_samples;

static bool lacks(const char *what)
{
	const char *text = getenv("LULL_SIM_NVML_LACKS");

	return text && strstr(text, what);
}

SIM_EXPORT int nvmlInit_v2(void)
{
	return lacks("init") ? NO_PERMISSION : OK;
}

SIM_EXPORT int nvmlShutdown(void)
{
	return OK;
}

SIM_EXPORT int nvmlDeviceGetCount_v2(u32 *n)
{
	*n = (u32)sim_knob("LULL_SIM_NVML_DEVICES", 1);
	return OK;
}

SIM_EXPORT int nvmlDeviceGetHandleByIndex_v2(u32 ix, void **device)
{
	if (ix >= N_DEVICES)
		return INVALID;
	*device = &devices[ix];
	return OK;
}

SIM_EXPORT int nvmlDeviceGetName(void *device, char *name, u32 room)
{
	(void)device;
	snprintf(name, room, "%s", SIM_DEVICE_NAME);
	return OK;
}

/* Device 0 is the one of libcuda. */
SIM_EXPORT int nvmlDeviceGetUUID(void *device, char *uuid, u32 room)
{
	u32 ix = (u32)((__typeof__(&devices[0]))device - devices);
	char hex[33];

	for (int i = 0; i < 16; i++)
		snprintf(hex + 2 * i, 3, "%02x", (u8)SIM_DEVICE_UUID[i] ^ (i == 15 ? ix : 0));
	snprintf(uuid, room, "GPU-%.8s-%.4s-%.4s-%.4s-%s", hex, hex + 8, hex + 12, hex + 16,
		 hex + 20);
	return OK;
}

struct memory_info {
	u64 total, free, used;
};

SIM_EXPORT int nvmlDeviceGetMemoryInfo(void *device, void *to)
{
	struct memory_info *info = to;

	(void)device;
	info->total = SIM_DEVICE_MEMORY;
	info->used = (u64)sim_knob("LULL_SIM_NVML_MEMORY", 1 << 30);
	info->free = info->total - info->used;
	return OK;
}

struct memory_info_v2 {
	u32 version;
	u64 total, reserved, free, used;
};

/* As the older call, but what the driver keeps is told apart. */
SIM_EXPORT int nvmlDeviceGetMemoryInfo_v2(void *device, void *to)
{
	struct memory_info_v2 *info = to;

	(void)device;
	if (info->version != (u32)(sizeof(*info) | 2u << 24))
		return INVALID;
	info->total = SIM_DEVICE_MEMORY;
	info->reserved = 512ull << 20;
	info->used = (u64)sim_knob("LULL_SIM_NVML_MEMORY", 1 << 30) - info->reserved;
	info->free = info->total - info->used - info->reserved;
	return lacks("memory-v2") ? NOT_SUPPORTED : OK;
}

SIM_EXPORT int nvmlSystemGetDriverVersion(char *version, u32 room)
{
	snprintf(version, room, "%s", "580.95.05");
	return OK;
}

struct pci_info {
	char old_bus_id[16];
	u32 domain, bus, device, device_id, subsystem_id;
	char bus_id[32];
};

SIM_EXPORT int nvmlDeviceGetPciInfo_v3(void *device, void *to)
{
	u32 ix = (u32)((__typeof__(&devices[0]))device - devices);
	struct pci_info *info = to;

	memset(info, 0, sizeof(*info));
	info->bus = 3 + ix;
	snprintf(info->bus_id, sizeof(info->bus_id), "00000000:%02X:00.0", info->bus);
	return OK;
}

/* It rises with every look. */
SIM_EXPORT int nvmlDeviceGetTotalEnergyConsumption(void *device, u64 *millijoules)
{
	*millijoules = 5000000ull + 20000ull * ((__typeof__(&devices[0]))device)->n_looks;
	return lacks("power") ? NOT_SUPPORTED : OK;
}

/* Fields by number; NVLink is not there. */
struct field_value {
	u32 field, scope;
	i64 timestamp, latency_us;
	u32 type;
	i32 result;
	u64 value;
};

SIM_EXPORT int nvmlDeviceGetFieldValues(void *device, i32 n, void *values)
{
	struct field_value *fields = values;

	(void)device;
	for (i32 i = 0; i < n; i++) {
		fields[i].result = fields[i].field == 82 ? OK : NOT_SUPPORTED;
		fields[i].value = 48;
	}
	return OK;
}

SIM_EXPORT int nvmlDeviceGetPowerUsage(void *device, u32 *milliwatts)
{
	u32 n = ((__typeof__(&devices[0]))device)->n_looks++;

	*milliwatts = (u32)(1000 * sim_knob("LULL_SIM_NVML_POWER", 200)) + (n % 2 ? 100000 : 0);
	return lacks("power") ? NOT_SUPPORTED : OK;
}

SIM_EXPORT int nvmlDeviceGetEnforcedPowerLimit(void *device, u32 *milliwatts)
{
	(void)device;
	*milliwatts = 700000;
	return lacks("power") ? NOT_SUPPORTED : OK;
}

SIM_EXPORT int nvmlDeviceGetPowerManagementLimit(void *device, u32 *milliwatts)
{
	(void)device;
	*milliwatts = 650000;
	return lacks("power") ? NOT_SUPPORTED : OK;
}

SIM_EXPORT int nvmlDeviceGetClockInfo(void *device, u32 type, u32 *mhz)
{
	(void)device;
	*mhz = type == 1 ? (u32)sim_knob("LULL_SIM_NVML_SM_CLOCK", 1980) : 3201;
	return OK;
}

SIM_EXPORT int nvmlDeviceGetTemperature(void *device, u32 sensor, u32 *celsius)
{
	(void)device, (void)sensor;
	*celsius = 41;
	return OK;
}

struct rates {
	u32 gpu, memory;
};

SIM_EXPORT int nvmlDeviceGetUtilizationRates(void *device, void *to)
{
	struct rates *rates = to;

	(void)device;
	rates->gpu = 100;
	rates->memory = 12;
	return OK;
}

SIM_EXPORT int nvmlDeviceGetCurrentClocksEventReasons(void *device, u64 *reasons)
{
	(void)device;
	*reasons = (u64)sim_knob("LULL_SIM_NVML_REASONS", 0);
	return OK;
}

SIM_EXPORT int nvmlDeviceGetPcieThroughput(void *device, u32 counter, u32 *kilobytes)
{
	(void)device;
	*kilobytes = counter ? 2000 : 1000;
	return OK;
}

struct gpm_support {
	u32 version, is_supported;
};

SIM_EXPORT int nvmlGpmQueryDeviceSupport(void *device, void *to)
{
	struct gpm_support *support = to;

	(void)device;
	support->is_supported = !lacks("gpm");
	return OK;
}

SIM_EXPORT int nvmlGpmSampleAlloc(void **sample)
{
	*sample = calloc(1, 8);
	return *sample ? OK : INVALID;
}

SIM_EXPORT int nvmlGpmSampleGet(void *device, void *sample)
{
	(void)device;
	*(u32 *)sample = ++n_gpm_samples;
	return OK;
}

struct gpm_request {
	u32 version, n;
	const u32 *before, *after;
	struct {
		u32 id;
		int result;
		f64 value;
		const char *names[3];
	} metrics[];
};

/* Each metric has its number as its value; links are not there. */
SIM_EXPORT int nvmlGpmMetricsGet(void *from)
{
	struct gpm_request *request = from;

	if (request->version != 1 || *request->before >= *request->after)
		return INVALID;
	for (u32 i = 0; i < request->n; i++) {
		request->metrics[i].result = request->metrics[i].id >= 60 ? NOT_SUPPORTED : OK;
		request->metrics[i].value = request->metrics[i].id;
	}
	return OK;
}

struct process_info {
	u32 pid;
	u64 used_bytes;
	u32 gpu_instance, compute_instance;
};

/* All on device 0: the numbers in the file that LULL_SIM_NVML_PIDS names. */
SIM_EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void *device, u32 *n, void *to)
{
	const char *path = getenv("LULL_SIM_NVML_PIDS");
	FILE *from = path && device == &devices[0] ? fopen(path, "re") : NULL;
	struct process_info *all = to;
	u32 room = *n, pid;

	*n = 0;
	while (from && *n < room && fscanf(from, "%u", &pid) == 1)
		all[(*n)++] = (struct process_info){ .pid = pid, .used_bytes = 1 << 20 };
	if (from)
		fclose(from);
	return OK;
}
