/*
 * fleet - the reports in a folder and below it: GPU time that was lost, by cause and by job.
 *
 *	lull_fleet_read(&fleet, folder, true, err);	each report once; then from the index
 *	lull_fleet_sum(&fleet);				jobs and causes, the worst first
 *	lull_fleet_release(&fleet);
 *
 * Lost time:      what `lull why` gives to causes in the steady steps of each device: the same
 *                 numbers as in its JSON. A report that was recorded in windows (--duty) counts as
 *                 much as the run that it stands for.
 * Job:            reports with the same job id (lull-ranks(7)); without one, with the same command.
 * Index:          FOLDER/.lull-fleet keeps what was read. It is used for a report as long as size
 *                 and time of the file are the same, and for this version of lull only. Without
 *                 rights to write it everything is read each time.
 * Failures:       a report that cannot be read is an entry that says why. Only a folder that cannot
 *                 be read fails.
 * Cost:           `lull why` once for each report; then a stat() and a line of the index.
 */
#ifndef LULL_FLEET_FLEET_H
#define LULL_FLEET_FLEET_H

#include <stdio.h>

#include "base/err.h"
#include "base/types.h"
#include "base/vec.h"
#include "cause/cause.h"

#define LULL_FLEET_INDEX ".lull-fleet"

enum lull_fleet_state {
	LULL_FLEET_GOOD,
	LULL_FLEET_NO_ANSWER, /* it can be read; `trouble` says why nothing is said about it */
	LULL_FLEET_DAMAGED,   /* it cannot, or not all of it */
	LULL_FLEET_N_STATES,
};

/* One report. */
struct lull_fleet_entry {
	char *file; /* within the folder; owned like all texts here, none is NULL */
	u64 size_bytes;
	u64 mtime_ns;
	enum lull_fleet_state state;
	char *trouble;
	char *job, *host;
	i64 rank; /* -1: none */
	u64 start_utc_ns;
	u64 elapsed_ns;		    /* of the run that it stands for */
	u32 n_gpus;		    /* devices that worked */
	u64 gpu_ns;		    /* steady steps of all devices */
	u64 n_steps;		    /* of the device the answer is about */
	u64 step_ns;		    /* on average */
	u64 n_requests, p99_ns;	    /* answered requests of a server, and how long they take */
	int first;		    /* index of the first cause, -1 if there is none */
	u64 lost_ns[LULL_N_CAUSES]; /* of gpu_ns */
};

/* Reports of one job, and their sums. */
struct lull_fleet_job {
	const char *name;
	u32 n_reports, n_hosts;
	const char *host; /* the first of them */
	u64 gpu_ns, lost_ns;
	u64 by_cause_ns[LULL_N_CAUSES];
	int cause;	  /* that comes first where most was lost, -1: none does */
	u64 since_utc_ns; /* start of the first report of those at the end with this cause first */
	int latest;	  /* entry of the newest report with an answer, -1: none */
	u32 worst;	  /* entry that lost most with it first */
};

/* One cause over all jobs. */
struct lull_fleet_cause {
	int cause;
	u64 lost_ns;
	u32 n_jobs;
	u32 worst_job; /* index in `jobs` */
};

struct lull_fleet {
	char *folder;
	struct lull_vec entries; /* struct lull_fleet_entry, by file */
	struct lull_vec jobs;	 /* struct lull_fleet_job, those that lost most first */
	struct lull_vec causes;	 /* struct lull_fleet_cause, likewise */
	u64 gpu_ns, lost_ns;
	u32 n_hosts;
	u32 n_by_state[LULL_FLEET_N_STATES];
	u32 n_indexed; /* entries that came from the index */
};

/* Read all reports; `has_index`: use the index, and write it again if something is new. */
int lull_fleet_read(struct lull_fleet *f, const char *folder, bool has_index, struct lull_err *err);

/* Fill in jobs, causes and sums. */
void lull_fleet_sum(struct lull_fleet *f);

/* Free everything. */
void lull_fleet_release(struct lull_fleet *f);

/* A row for each report and cause, as Parquet; `path` is overwritten. */
int lull_fleet_write_parquet(const struct lull_fleet *f, const char *path, struct lull_err *err);

/* "good", "no-answer", "damaged". */
const char *lull_fleet_state_name(enum lull_fleet_state state);

/* ---- parts of it ---- */

/* Analyse one report: fills in all but file, size and time. */
void lull_fleet_examine(struct lull_fleet_entry *e, const char *path);

/* Take what the index in `folder` knows about these entries; those stay known that fit. */
u32 lull_fleet_index_load(const char *folder, struct lull_vec *entries, bool *is_known);

/* Write the index; nothing happens if that is not possible. */
void lull_fleet_index_store(const char *folder, const struct lull_vec *entries);

/* Free what an entry owns. */
void lull_fleet_entry_release(struct lull_fleet_entry *e);

#endif
