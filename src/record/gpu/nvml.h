/*
 * nvml - state of devices from NVIDIA's management library: power, clocks, temperature, memory,
 * utilisation, throttling, links; and GPM counters where the device has them.
 *
 * What it gives:  values by metric (metrics.def) at each reading. Values that a device or driver
 *                 does not provide are left out.
 * Where:          in the sampler's process only: the library may block for long, or crash.
 * Cost:           about 1 ms per device and reading; PCIe without GPM takes 40 ms more.
 */
#ifndef LULL_RECORD_GPU_NVML_H
#define LULL_RECORD_GPU_NVML_H

#include "base/err.h"
#include "base/types.h"

#define METRIC(id, name, unit, source, meaning) LULL_METRIC_##id,
#define LIVE(id, name, unit, source)
enum lull_metric_kind {
#include "record/live/metrics.def"
	LULL_N_METRICS, /* those before are recorded */
	LULL_METRIC_none = LULL_N_METRICS,
#undef METRIC
#undef LIVE
#define METRIC(id, name, unit, source, meaning)
#define LIVE(id, name, unit, source) LULL_METRIC_##id,
#include "record/live/metrics.def"
	LULL_N_VALUES,
};
#undef METRIC
#undef LIVE

#define LULL_MAX_GPUS 32u

/* A device as the driver numbers it. */
struct lull_gpu_facts {
	char name[96];
	char uuid[40]; /* 32 hex digits, as CUPTI's */
	u64 memory_bytes;
	char pci_bus_id[32]; /* 00000000:03:00.0; "" if not known, as the next */
	char driver[80];     /* its version */
};

/* Told one value; those from LULL_N_METRICS on come only after lull_nvml_want_live(). */
typedef void lull_metric_fn(void *ctx, enum lull_metric_kind metric, f64 value);

struct lull_nvml;

/*
 * Load and initialise the library: $LULL_NVML_PATH, else libnvidia-ml.so.1. LULL_E_NOT_FOUND if
 * there is none, LULL_E_UNSUPPORTED if it refuses.
 */
int lull_nvml_open(struct lull_nvml **nvml, struct lull_err *err);

/* Shut it down. NULL is fine. */
void lull_nvml_close(struct lull_nvml *nvml);

/* Devices, LULL_MAX_GPUS at most. */
u32 lull_nvml_n_devices(const struct lull_nvml *nvml);

/* What a device is. */
const struct lull_gpu_facts *lull_nvml_facts(const struct lull_nvml *nvml, u32 device_ix);

/* True if GPM counters come with lull_nvml_sample(). */
bool lull_nvml_has_gpm(const struct lull_nvml *nvml, u32 device_ix);

/* From now on the values for --metrics-port (LIVE in metrics.def) are told, too. */
void lull_nvml_want_live(struct lull_nvml *nvml);

/* Look at a device. Rates need two looks, so the first has fewer values. */
void lull_nvml_sample(struct lull_nvml *nvml, u32 device_ix, lull_metric_fn *tell, void *ctx);

/*
 * The processes that compute on a device, by their pids in the host's PID namespace; at most
 * `room`. Returns how many; 0 also if the library does not say.
 */
u32 lull_nvml_processes(struct lull_nvml *nvml, u32 device_ix, u32 *pids, u32 room);

#endif
