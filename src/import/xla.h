/*
 * xla - what the Chrome traces of JAX and TensorFlow say of GPUs.
 *
 * Their profiler writes each GPU as a process ("/device:GPU:0") with its streams as threads
 * ("Stream #14(Compute)"), which other Chrome traces have no word for. These become devices and
 * streams with kernels, copies and memsets; calls of CUDA on threads of the host become calls;
 * annotations of the first name that has a step_num become steps, and "$train.py:41 step" a call of
 * Python. What a device's other threads show ("XLA Ops", "XLA Modules", "Steps") was summed up from
 * its streams, and is left out.
 *
 * A file has the names of all processes and threads before its events.
 */
#ifndef LULL_IMPORT_XLA_H
#define LULL_IMPORT_XLA_H

#include "import/chrome.h"

extern const struct lull_chrome_dialect lull_xla_dialect;

#endif
