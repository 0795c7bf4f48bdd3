/*
 * step_windows - the steady steps of a report, as `lull why` sees them.
 *
 * Of the process and device with the most work: windows of the device, marked or found by what
 * repeats, warm-up left out (model/rounds.h).
 */
#ifndef LULL_MODEL_STEP_WINDOWS_H
#define LULL_MODEL_STEP_WINDOWS_H

#include "base/types.h"
#include "base/vec.h"
#include "model/span.h"
#include "trace/reader.h"

/* Append the steady steps to `windows` (struct lull_span), by time; returns how many. */
u32 lull_step_windows(struct lull_vec *windows, struct lull_reader *r);

#endif
