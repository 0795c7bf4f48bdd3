/*
 * gpu_sampler - a child process of the recorder that samples devices.
 *
 * Why a process: libraries of the driver block, start threads, need CUDA, and may crash; none of
 * that may affect the recorder. It ends when the recorder closes the pipe.
 *
 * Samples come through a pipe: a struct lull_gpu_message, then size_bytes of the data for its kind.
 * Times are CLOCK_MONOTONIC.
 */
#ifndef LULL_RECORD_GPU_GPU_SAMPLER_H
#define LULL_RECORD_GPU_GPU_SAMPLER_H

#include <sys/types.h>

#include "base/err.h"
#include "base/types.h"
#include "record/gpu/nvml.h"

enum lull_gpu_message_kind {
	LULL_GPU_DEVICE = 1,  /* struct lull_gpu_facts: there is such a device */
	LULL_GPU_VALUES = 2,  /* struct lull_gpu_value each */
	LULL_GPU_REFUSED = 3, /* text: counters were asked for and are not to be had */
	LULL_GPU_ABSENT = 4,  /* text: nothing at all is to be had */
	LULL_GPU_LOST = 5,    /* samples were dropped: u64 how often */
};

struct lull_gpu_message {
	u32 kind;
	u32 size_bytes;
	u64 time_ns;
	u32 device_ix;
	u32 pad;
};

struct lull_gpu_value {
	u32 metric; /* enum lull_metric_kind */
	u32 pad;
	f64 value;
};

/* Largest message after its head. */
#define LULL_GPU_MESSAGE_MAX 1024u

struct lull_gpu_sampler_options {
	u64 devices;	/* bit for each device to look at; UINT64_MAX all */
	u64 pm_rate_hz; /* sample counters so often; 0: do not */
	bool is_live;	/* values for --metrics-port, too */
};

/* True if it makes sense to start one: the driver is loaded, or $LULL_NVML_PATH names a library. */
bool lull_gpu_is_likely(void);

/* A sampler that runs. */
struct lull_gpu_sampler {
	pid_t pid; /* 0: it has ended and been waited for */
	int fd;	   /* its messages, not blocking */
};

/* Start it, as a child of this process. */
int lull_gpu_sampler_start(struct lull_gpu_sampler *sampler,
			   const struct lull_gpu_sampler_options *options, struct lull_err *err);

/* End it, within a third of a second: one that hangs in the driver is left to itself. */
void lull_gpu_sampler_stop(struct lull_gpu_sampler *sampler);

#endif
