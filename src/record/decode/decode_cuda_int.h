/*
 * decode_cuda_int - what the files that decode CUDA's events share.
 */
#ifndef LULL_RECORD_DECODE_DECODE_CUDA_INT_H
#define LULL_RECORD_DECODE_DECODE_CUDA_INT_H

#include "record/recording.h"

/* The row of a device in the open report. */
u32 lull_cuda_device(struct lull_recording *r, struct lull_process *p, u32 device_id);

/* The lane of the stream on which something ran. */
u32 lull_cuda_lane(struct lull_recording *r, struct lull_process *p,
		   const struct lull_wire_place *place);

/* A text that was defined in any report of the session, or NULL. */
const char *lull_cuda_text(struct lull_recording *r, u64 hash);

#endif
