/*
 * decode_cuda_int - what the files that decode CUDA's events share.
 */
#ifndef LULL_LAUNCH_DECODE_CUDA_INT_H
#define LULL_LAUNCH_DECODE_CUDA_INT_H

#include "launch/recording.h"

/* The row of a device in the open report. */
u32 lull_cuda_device(struct lull_recording *r, struct lull_process *p, u32 device_id);

/* The lane of the stream on which something ran. */
u32 lull_cuda_lane(struct lull_recording *r, struct lull_process *p,
		   const struct lull_wire_place *place);

/* A text that was defined in any report of the session, or NULL. */
const char *lull_cuda_text(struct lull_recording *r, u64 hash);

#endif
