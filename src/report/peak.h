/*
 * peak - what a device can compute at most, by precision, from its name (peaks.def).
 */
#ifndef LULL_REPORT_PEAK_H
#define LULL_REPORT_PEAK_H

#include "base/types.h"

enum lull_precision {
	LULL_PRECISION_FP64,
	LULL_PRECISION_FP32, /* without tensor cores */
	LULL_PRECISION_TF32,
	LULL_PRECISION_HALF, /* fp16 and bf16 */
	LULL_PRECISION_FP8,
	LULL_N_PRECISIONS,
};

/* For people: "fp32", "fp16/bf16", ... */
extern const char *const lull_precision_names[LULL_N_PRECISIONS];

/* Operations a second, 0 if the device is not known or lacks the precision. */
f64 lull_peak_flops(const char *device, enum lull_precision precision);

/*
 * The precision of an operator by the types of its inputs (model/op_math.h): that of the first
 * floating-point input. LULL_N_PRECISIONS if there is none.
 */
enum lull_precision lull_precision_of(const char *types);

#endif
