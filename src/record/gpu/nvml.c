#include "record/gpu/nvml.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/time.h"

/* Names of NVML's numbers. */
enum { CLOCK_SM = 1, CLOCK_MEMORY = 2, PCIE_TX = 0, PCIE_RX = 1 };
enum {
	FIELD_MEMORY_TEMPERATURE = 82,
	FIELD_NVLINK_TX = 138,
	FIELD_NVLINK_RX = 139,
	ALL_LINKS = -1
};

/* Bits of the clocks event reasons. */
#define REASONS_POWER	0x84u /* software power cap, hardware power brake */
#define REASONS_THERMAL 0x60u /* software and hardware thermal slowdown */

/* NVML's structures. */
struct memory_info {
	u64 total, free, used;
};
struct memory_info_v2 {
	u32 version;
	u64 total, reserved, free, used;
};
#define MEMORY_INFO_V2 ((u32)sizeof(struct memory_info_v2) | 2u << 24)
struct pci_info {
	char old_bus_id[16];
	u32 domain, bus, device, device_id, subsystem_id;
	char bus_id[32];
};
struct rates {
	u32 gpu, memory;
};
struct field_value {
	u32 field, scope;
	i64 timestamp, latency_us;
	u32 type;
	i32 result;
	union {
		f64 d;
		u32 u;
		u64 ull;
	} value;
};
struct gpm_support {
	u32 version, is_supported;
};
struct gpm_metric {
	u32 id;
	i32 result;
	f64 value;
	const char *names[3];
};

/* What GPM is asked for, by its numbers; rates come in MiB a second. */
static const struct {
	u32 id;
	enum lull_metric_kind metric;
	f64 scale;
} gpm_metrics[] = {
	{ 1, LULL_METRIC_live_graphics_active, 1 }, { 2, LULL_METRIC_gpm_sm_active, 1 },
	{ 3, LULL_METRIC_gpm_occupancy, 1 },	    { 5, LULL_METRIC_gpm_tensor_active, 1 },
	{ 10, LULL_METRIC_gpm_dram_active, 1 },	    { 11, LULL_METRIC_gpm_fp64_active, 1 },
	{ 12, LULL_METRIC_gpm_fp32_active, 1 },	    { 13, LULL_METRIC_gpm_fp16_active, 1 },
	{ 20, LULL_METRIC_gpm_pcie_tx, 1 << 20 },   { 21, LULL_METRIC_gpm_pcie_rx, 1 << 20 },
	{ 60, LULL_METRIC_gpm_nvlink_rx, 1 << 20 }, { 61, LULL_METRIC_gpm_nvlink_tx, 1 << 20 },
};

#define N_GPM LULL_COUNT_OF(gpm_metrics)

struct gpm_request {
	u32 version, n;
	void *before, *after;
	struct gpm_metric metrics[N_GPM];
};

struct device {
	void *handle;
	struct lull_gpu_facts facts;
	bool has_gpm;
	void *gpm[2];	     /* samples; the older is [gpm_ix] */
	u32 n_gpm;	     /* taken so far */
	u64 nvlink_ns;	     /* when the counters below were read, 0 = never */
	u64 nvlink_bytes[2]; /* sent, received */
};

struct lull_nvml {
	void *library;
#define NVML(name, is_required, params) int(*name) params;
#include "record/gpu/nvml.def"
#undef NVML
	struct device devices[LULL_MAX_GPUS];
	u32 n_devices;
	bool is_live; /* values for --metrics-port are wanted */
};

static int find_functions(struct lull_nvml *n, struct lull_err *err)
{
#define NVML(name, is_required, params)                    \
	n->name = (int(*) params)dlsym(n->library, #name); \
	if (is_required && !n->name)                       \
		return lull_fail(err, LULL_E_UNSUPPORTED, "libnvidia-ml has no %s", #name);
#include "record/gpu/nvml.def"
#undef NVML
	return 0;
}

/* GPU-8f6d1a2b-... as 32 digits. */
static void shorten_uuid(char *to, const char *from)
{
	size_t n = 0;

	if (strncmp(from, "GPU-", 4) == 0)
		from += 4;
	for (; *from && n < 32; from++)
		if (isxdigit((unsigned char)*from))
			to[n++] = (char)tolower((unsigned char)*from);
	to[n] = '\0';
}

static void set_up_gpm(struct lull_nvml *n, struct device *d)
{
	struct gpm_support support = { .version = 1 };

	if (!n->nvmlGpmQueryDeviceSupport || !n->nvmlGpmSampleAlloc || !n->nvmlGpmSampleGet ||
	    !n->nvmlGpmMetricsGet || n->nvmlGpmQueryDeviceSupport(d->handle, &support) != 0 ||
	    !support.is_supported)
		return;
	d->has_gpm =
		n->nvmlGpmSampleAlloc(&d->gpm[0]) == 0 && n->nvmlGpmSampleAlloc(&d->gpm[1]) == 0;
}

/* Where it is and what drives it: labels of metrics. */
static void add_place(struct lull_nvml *n, struct device *d)
{
	struct lull_gpu_facts *f = &d->facts;
	struct pci_info pci = { .bus_id = "" };

	if (n->nvmlDeviceGetPciInfo_v3 && n->nvmlDeviceGetPciInfo_v3(d->handle, &pci) == 0)
		snprintf(f->pci_bus_id, sizeof(f->pci_bus_id), "%.31s", pci.bus_id);
	if (!n->nvmlSystemGetDriverVersion ||
	    n->nvmlSystemGetDriverVersion(f->driver, sizeof(f->driver)) != 0)
		f->driver[0] = '\0';
}

static void add_device(struct lull_nvml *n, u32 ix)
{
	struct device *d = &n->devices[n->n_devices];
	struct memory_info memory;
	char uuid[96] = "";

	*d = (struct device){ 0 };
	if (n->nvmlDeviceGetHandleByIndex_v2(ix, &d->handle) != 0)
		return;
	n->nvmlDeviceGetName(d->handle, d->facts.name, sizeof(d->facts.name));
	n->nvmlDeviceGetUUID(d->handle, uuid, sizeof(uuid));
	shorten_uuid(d->facts.uuid, uuid);
	if (n->nvmlDeviceGetMemoryInfo && n->nvmlDeviceGetMemoryInfo(d->handle, &memory) == 0)
		d->facts.memory_bytes = memory.total;
	add_place(n, d);
	set_up_gpm(n, d);
	n->n_devices++;
}

static int start(struct lull_nvml *n, struct lull_err *err)
{
	const char *named = getenv("LULL_NVML_PATH");
	u32 count = 0;
	int rc;

	n->library = dlopen(named && *named ? named : "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!n->library)
		return lull_fail(err, LULL_E_NOT_FOUND, "no libnvidia-ml.so.1 (%s)", dlerror());
	if (find_functions(n, err))
		return err->code;
	rc = n->nvmlInit_v2();
	if (rc)
		return lull_fail(err, LULL_E_UNSUPPORTED, "nvmlInit failed with error %d", rc);
	rc = n->nvmlDeviceGetCount_v2(&count);
	if (rc)
		return lull_fail(err, LULL_E_UNSUPPORTED, "nvmlDeviceGetCount failed with error %d",
				 rc);
	for (u32 i = 0; i < count && i < LULL_MAX_GPUS; i++)
		add_device(n, i);
	return 0;
}

int lull_nvml_open(struct lull_nvml **nvml, struct lull_err *err)
{
	struct lull_nvml *n = lull_alloc(1, sizeof(*n));
	int rc = start(n, err);

	if (rc) {
		free(n);
		n = NULL;
	}
	*nvml = n;
	return rc;
}

void lull_nvml_close(struct lull_nvml *n)
{
	if (!n)
		return;
	n->nvmlShutdown();
	free(n); /* the library stays: it may have left threads behind */
}

u32 lull_nvml_n_devices(const struct lull_nvml *n)
{
	return n->n_devices;
}

const struct lull_gpu_facts *lull_nvml_facts(const struct lull_nvml *n, u32 device_ix)
{
	return &n->devices[device_ix].facts;
}

bool lull_nvml_has_gpm(const struct lull_nvml *n, u32 device_ix)
{
	return n->devices[device_ix].has_gpm;
}

void lull_nvml_want_live(struct lull_nvml *n)
{
	n->is_live = true;
}

/* A look under way. */
struct look {
	struct lull_nvml *n;
	struct device *d;
	lull_metric_fn *tell;
	void *ctx;
};

static void say(const struct look *l, enum lull_metric_kind metric, f64 value)
{
	if (metric < LULL_N_METRICS || l->n->is_live)
		l->tell(l->ctx, metric, value);
}

static void look_at_load(const struct look *l)
{
	struct lull_nvml *n = l->n;
	struct memory_info memory;
	struct rates rates;
	u32 value;

	if (n->nvmlDeviceGetPowerUsage && n->nvmlDeviceGetPowerUsage(l->d->handle, &value) == 0)
		say(l, LULL_METRIC_nvml_power, value / 1000.0);
	if (n->nvmlDeviceGetEnforcedPowerLimit &&
	    n->nvmlDeviceGetEnforcedPowerLimit(l->d->handle, &value) == 0)
		say(l, LULL_METRIC_nvml_power_limit, value / 1000.0);
	if (n->nvmlDeviceGetTemperature &&
	    n->nvmlDeviceGetTemperature(l->d->handle, 0, &value) == 0)
		say(l, LULL_METRIC_nvml_temperature, value);
	if (n->nvmlDeviceGetMemoryInfo && n->nvmlDeviceGetMemoryInfo(l->d->handle, &memory) == 0)
		say(l, LULL_METRIC_nvml_memory_used, (f64)memory.used);
	if (n->nvmlDeviceGetUtilizationRates &&
	    n->nvmlDeviceGetUtilizationRates(l->d->handle, &rates) == 0) {
		say(l, LULL_METRIC_nvml_utilization, rates.gpu);
		say(l, LULL_METRIC_nvml_memory_utilization, rates.memory);
	}
}

/* Drivers before 510 do not tell reserved memory from used. */
static void look_at_live_memory(const struct look *l)
{
	struct memory_info_v2 memory = { .version = MEMORY_INFO_V2 };
	struct memory_info old;
	struct lull_nvml *n = l->n;

	if (n->nvmlDeviceGetMemoryInfo_v2 &&
	    n->nvmlDeviceGetMemoryInfo_v2(l->d->handle, &memory) == 0) {
		say(l, LULL_METRIC_live_memory_reserved, (f64)memory.reserved);
	} else {
		if (!n->nvmlDeviceGetMemoryInfo ||
		    n->nvmlDeviceGetMemoryInfo(l->d->handle, &old) != 0)
			return;
		memory = (struct memory_info_v2){ 0, old.total, 0, old.free, old.used };
	}
	say(l, LULL_METRIC_live_memory_total, (f64)memory.total);
	say(l, LULL_METRIC_live_memory_free, (f64)memory.free);
	say(l, LULL_METRIC_live_memory_used, (f64)memory.used);
}

static void look_at_live(const struct look *l)
{
	struct field_value field = { .field = FIELD_MEMORY_TEMPERATURE };
	struct lull_nvml *n = l->n;
	u64 millijoules;
	u32 milliwatts;

	look_at_live_memory(l);
	if (n->nvmlDeviceGetPowerManagementLimit &&
	    n->nvmlDeviceGetPowerManagementLimit(l->d->handle, &milliwatts) == 0)
		say(l, LULL_METRIC_live_power_limit, milliwatts / 1000.0);
	if (n->nvmlDeviceGetTotalEnergyConsumption &&
	    n->nvmlDeviceGetTotalEnergyConsumption(l->d->handle, &millijoules) == 0)
		say(l, LULL_METRIC_live_energy, (f64)millijoules);
	if (n->nvmlDeviceGetFieldValues &&
	    n->nvmlDeviceGetFieldValues(l->d->handle, 1, &field) == 0 && !field.result)
		say(l, LULL_METRIC_live_memory_temperature, field.value.u);
}

static void look_at_clocks(const struct look *l)
{
	struct lull_nvml *n = l->n;
	int (*get_reasons)(void *, u64 *) = n->nvmlDeviceGetCurrentClocksEventReasons;
	u64 reasons;
	u32 value;

	if (n->nvmlDeviceGetClockInfo) {
		if (n->nvmlDeviceGetClockInfo(l->d->handle, CLOCK_SM, &value) == 0)
			say(l, LULL_METRIC_nvml_sm_clock, value);
		if (n->nvmlDeviceGetClockInfo(l->d->handle, CLOCK_MEMORY, &value) == 0)
			say(l, LULL_METRIC_nvml_memory_clock, value);
	}
	if (!get_reasons)
		get_reasons = n->nvmlDeviceGetCurrentClocksThrottleReasons;
	if (!get_reasons || get_reasons(l->d->handle, &reasons) != 0)
		return;
	say(l, LULL_METRIC_nvml_clocks_event, (f64)reasons);
	say(l, LULL_METRIC_nvml_throttle_power, reasons & REASONS_POWER ? 100 : 0);
	say(l, LULL_METRIC_nvml_throttle_thermal, reasons & REASONS_THERMAL ? 100 : 0);
}

/* NVLink's counters only ever rise; PCIe's call measures for 20 ms by itself. */
static void look_at_links(const struct look *l)
{
	struct field_value fields[2] = { { .field = FIELD_NVLINK_TX, .scope = (u32)ALL_LINKS },
					 { .field = FIELD_NVLINK_RX, .scope = (u32)ALL_LINKS } };
	u64 now_ns = lull_now_ns(), bytes[2];
	struct device *d = l->d;
	u32 kilobytes;

	if (l->n->nvmlDeviceGetPcieThroughput && l->n->n_devices <= 2) {
		if (l->n->nvmlDeviceGetPcieThroughput(d->handle, PCIE_RX, &kilobytes) == 0)
			say(l, LULL_METRIC_nvml_pcie_rx, kilobytes * 1000.0);
		if (l->n->nvmlDeviceGetPcieThroughput(d->handle, PCIE_TX, &kilobytes) == 0)
			say(l, LULL_METRIC_nvml_pcie_tx, kilobytes * 1000.0);
	}
	if (!l->n->nvmlDeviceGetFieldValues ||
	    l->n->nvmlDeviceGetFieldValues(d->handle, 2, fields) != 0 || fields[0].result ||
	    fields[1].result)
		return;
	bytes[0] = fields[0].value.ull << 10;
	bytes[1] = fields[1].value.ull << 10;
	if (d->nvlink_ns && bytes[0] >= d->nvlink_bytes[0] && bytes[1] >= d->nvlink_bytes[1]) {
		f64 seconds = (f64)(now_ns - d->nvlink_ns) / 1e9;

		say(l, LULL_METRIC_nvml_nvlink_tx, (f64)(bytes[0] - d->nvlink_bytes[0]) / seconds);
		say(l, LULL_METRIC_nvml_nvlink_rx, (f64)(bytes[1] - d->nvlink_bytes[1]) / seconds);
	}
	d->nvlink_ns = now_ns;
	memcpy(d->nvlink_bytes, bytes, sizeof(bytes));
}

/* Counters since the look before, averaged by the driver. */
static void look_at_gpm(const struct look *l)
{
	struct device *d = l->d;
	struct gpm_request request = { .version = 1, .n = N_GPM };
	u32 newest = d->n_gpm % 2;

	if (l->n->nvmlGpmSampleGet(d->handle, d->gpm[newest]) != 0) {
		d->has_gpm = false;
		return;
	}
	if (d->n_gpm++ == 0)
		return;
	request.before = d->gpm[!newest];
	request.after = d->gpm[newest];
	for (size_t i = 0; i < N_GPM; i++)
		request.metrics[i].id = gpm_metrics[i].id;
	if (l->n->nvmlGpmMetricsGet(&request) != 0)
		return;
	for (size_t i = 0; i < N_GPM; i++)
		if (request.metrics[i].result == 0 && request.metrics[i].value >= 0)
			say(l, gpm_metrics[i].metric,
			    request.metrics[i].value * gpm_metrics[i].scale);
}

void lull_nvml_sample(struct lull_nvml *n, u32 device_ix, lull_metric_fn *tell, void *ctx)
{
	struct look look = { n, &n->devices[device_ix], tell, ctx };

	look_at_load(&look);
	look_at_clocks(&look);
	if (n->is_live)
		look_at_live(&look);
	if (look.d->has_gpm)
		look_at_gpm(&look);
	if (!look.d->has_gpm)
		look_at_links(&look);
}

struct process_info {
	u32 pid;
	u64 used_bytes;
	u32 gpu_instance, compute_instance;
};

/* More than this compute on no device. */
#define MAX_PROCESSES 1024u

u32 lull_nvml_processes(struct lull_nvml *nvml, u32 device_ix, u32 *pids, u32 room)
{
	struct process_info *all;
	u32 n = MAX_PROCESSES;

	if (!nvml->nvmlDeviceGetComputeRunningProcesses_v3)
		return 0;
	all = lull_alloc(MAX_PROCESSES, sizeof(*all));
	if (nvml->nvmlDeviceGetComputeRunningProcesses_v3(nvml->devices[device_ix].handle, &n,
							  all) != 0)
		n = 0;
	n = n < room ? n : room;
	for (u32 i = 0; i < n; i++)
		pids[i] = all[i].pid;
	free(all);
	return n;
}
