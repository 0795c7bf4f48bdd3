/*
 * join_samples - program counter samples from another run of the same program.
 *
 * The hardware either reads counters or takes samples, so a separate run takes the samples. They
 * are added to the report of the run that reads counters: launches are matched by their number in
 * the process, processes by the order of their first launch.
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
