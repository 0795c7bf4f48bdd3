/*
 * live_devices - the latest state of devices, for --metrics-port.
 *
 * What it gives:  the values of dcgm.def with the names, types, units and labels of NVIDIA's DCGM
 *                 exporter, so that its dashboards and alerts work.
 * Averages:       counters that the hardware samples thousands of times a second (source pm) are
 *                 told as the mean of the last whole second; all else as it was last seen.
 * Age:            values older than 10 s are not told: the sampler may have ended.
 * Memory:         fixed, about 100 KiB.
 * Threads:        the recorder's thread only.
 */
#ifndef LULL_RECORD_LIVE_LIVE_DEVICES_H
#define LULL_RECORD_LIVE_LIVE_DEVICES_H

#include "base/str.h"
#include "base/types.h"
#include "record/gpu/nvml.h"

struct lull_live_value {
	f64 told;     /* of sampled counters: mean of the last whole second */
	u64 time_ns;  /* when it was last seen, 0 = never */
	u64 since_ns; /* start of the second below */
	f64 sum;
	u64 n;
};

struct lull_live_device {
	struct lull_gpu_facts facts;
	bool is_known; /* the sampler has announced it */
	struct lull_live_value values[LULL_N_VALUES];
};

struct lull_live_devices {
	char host[256]; /* label Hostname */
	struct lull_live_device at[LULL_MAX_GPUS];
};

/* No device yet; takes the name of this host. */
void lull_live_init(struct lull_live_devices *l);

/* A device was announced. */
void lull_live_announce(struct lull_live_devices *l, u32 device_ix,
			const struct lull_gpu_facts *facts);

/* A value was seen. Numbers that are no device or metric are ignored. */
void lull_live_add(struct lull_live_devices *l, u32 device_ix, u32 metric, u64 time_ns, f64 value);

/* Append the text for Prometheus; families without a value are left out. */
void lull_live_write(const struct lull_live_devices *l, u64 now_ns, struct lull_str *to);

#endif
