/*
 * readings - what was measured of the subject's device in its steady steps: clocks, power, use.
 *
 * What it gives:  for each metric that answers use, how many readings there are, their mean and the
 *                 largest; a call for each reading, for who needs more.
 * Devices:        the same device may have a row for each process that uses it, and one for its
 *                 readings; those are joined by its unique id.
 * Cost:           one walk over the table `counter`.
 */
#ifndef LULL_CAUSE_READINGS_H
#define LULL_CAUSE_READINGS_H

#include "base/types.h"
#include "cause/subject.h"

enum lull_reading_ix {
	LULL_READING_UTILIZATION, /* percent, as nvidia-smi says it */
	LULL_READING_SM_ACTIVE,	  /* percent */
	LULL_READING_TENSOR,	  /* percent: tensor cores */
	LULL_READING_DRAM,	  /* percent: bandwidth of the device's memory */
	LULL_READING_POWER,	  /* watts */
	LULL_READING_POWER_LIMIT, /* watts */
	LULL_READING_MEMORY,	  /* bytes in use, by all processes */
	LULL_READING_CLOCK,	  /* of the multiprocessors, as a share of the highest */
	LULL_READING_HELD_POWER,  /* percent of the time: power reduced the clock */
	LULL_READING_HELD_HEAT,	  /* percent of the time: temperature did */
	LULL_N_READINGS,
};

struct lull_reading {
	u64 n;
	f64 mean, most;
};

struct lull_readings {
	struct lull_reading at[LULL_N_READINGS];
	f64 highest_hz; /* clock of the device, 0 if not known */
};

/* Told each reading; `hz` is 1e6 for a value in MHz. */
typedef void lull_readings_visit(void *ctx, const char *name, f64 value, f64 hz);

/* Walk the readings of the subject's device in its steady steps. */
void lull_readings_walk(const struct lull_subject *s, lull_readings_visit *visit, void *ctx);

/* The highest clock of the subject's device, 0 if not known. */
f64 lull_readings_highest_hz(const struct lull_subject *s);

/* Sum them up. */
void lull_readings_init(struct lull_readings *r, const struct lull_subject *s);

/*
 * One line that says what "100 %" means: "nvidia-smi says 100 %; multiprocessors active 34 %,
 * tensor cores 5 %, memory bandwidth 12 %, 210 of 700 W". If only power was recorded: "the device
 * draws 210 of 700 W". Empty without any.
 */
void lull_readings_format(const struct lull_readings *r, char *to, size_t size);

#endif
