/*
 * info - what a report is, from its index, its dimensions and the readings of power.
 *
 * What it gives:  the answer of `lull info`, for people or as JSON.
 * Cost:           no other fact is decoded: milliseconds, whatever the size of the report. If there
 *                 are more than 2 million readings of devices, power is left out.
 */
#ifndef LULL_CMD_INFO_H
#define LULL_CMD_INFO_H

#include <stdio.h>

#include "base/err.h"
#include "trace/reader.h"

/* Print it for people, as wide as the terminal, with the environment variables or without them.
 * LULL_E_IO if the stream fails. */
int lull_info_print(struct lull_reader *r, const char *path, bool has_environment, FILE *to,
		    struct lull_err *err);

/* Print it as one JSON object. */
void lull_info_json(struct lull_reader *r, const char *path, FILE *to);

/* A process as `lull info` shows it: a row of the table, and how deep it stands in the tree. */
struct lull_info_process {
	const struct lull_process_row *row;
	u32 id;
	u32 depth;
	u32 n_threads;
};

/*
 * All processes, children after their parent, in the order they began; *n receives the count. The
 * caller frees it.
 */
struct lull_info_process *lull_info_processes(struct lull_reader *r, size_t *n);

/* The duration of the recording: the end of the last row of any table. */
u64 lull_info_span_ns(struct lull_reader *r);

/* Whether a device of the recording was simulated, so that its times are no measurements. */
bool lull_info_is_simulated(struct lull_reader *r);

/* Power of a device over the recording; 0 if it was not recorded. */
struct lull_info_power {
	f64 mean_w, limit_w;
};

/*
 * Power by row of `device`; `rows` says which row stands for a device (model/device.h). The caller
 * frees it.
 */
struct lull_info_power *lull_info_powers(struct lull_reader *r, const u32 *rows);

/* "210 of 700 W", "210 W", or "" if it is not known. */
void lull_info_power_format(const struct lull_info_power *p, char *text, size_t cap_bytes);

/* How a process ended, such as "exit 0" or "signal 9". */
void lull_info_ending(const struct lull_process_row *p, char *text, size_t cap_bytes);

#endif
