/*
 * join_samples - samples of the program counter from another run of the same program.
 *
 * The hardware reads counters or takes samples. A run of its own takes the samples; the run that
 * reads counters then gets them, by the number of the launch in its process, and processes by the
 * order of their first launch.
 */
#ifndef LULL_RECORD_GPU_JOIN_SAMPLES_H
#define LULL_RECORD_GPU_JOIN_SAMPLES_H

#include "record/recording.h"

/*
 * Add the samples of the report at `path` to those that wait for their launch. Samples of launches
 * that were not measured in this run are left out and counted. A report that cannot be read is said
 * in `err`.
 */
int lull_join_samples(struct lull_recording *r, const char *path, struct lull_err *err);

#endif
