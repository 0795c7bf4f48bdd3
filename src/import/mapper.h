/*
 * mapper - rows of a report out of events: what all importers of JSON traces share.
 *
 * What it gives:  ids for texts, processes, threads, streams, devices, labels and frames, each made
 *                 at first use and remembered; the nesting depth of ranges, operators and calls;
 *                 counts of what has no place in a report.
 * Processes:      the first process whose threads are met is the one that uses the devices: these
 *                 traces do not say who launched a kernel.
 * Order:          rows that nest are collected by the block, so that the depth is right also where
 *                 a file is not in order; rows further apart than a block get the depth they seem
 *                 to have.
 * Memory:         some 12 MB, and what the report has of names, labels and launches.
 */
#ifndef LULL_IMPORT_MAPPER_H
#define LULL_IMPORT_MAPPER_H

#include "text/jscan.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "import/jevent.h"
#include "import/import.h"

/* Values of label.api of imported ranges. */
enum lull_label_api {
	LULL_LABEL_ANNOTATION = 3,
	LULL_LABEL_ON_DEVICE = 4,
	LULL_LABEL_CHROME = 5,
};

/* Tables whose rows nest. */
enum lull_nesting { LULL_NESTING_RANGE, LULL_NESTING_OP, LULL_NESTING_PYCALL, LULL_N_NESTINGS };

struct lull_mapper {
	struct lull_import_job *job;
	struct lull_writer *writer;
	i64 origin_ns;		/* of the file's clock: time 0 of the report */
	struct lull_map texts;	/* private: hash of a text as it stands to its id */
	struct lull_map things; /* private: hash of a kind and what tells it apart to a row id */
	struct lull_vec lanes;	/* private: struct lane */
	struct lull_vec nesting[LULL_N_NESTINGS]; /* private: rows that wait for their depth */
	struct lull_vec gaps;			  /* private: struct gap, what has no place */
	struct lull_map gap_ixs;		  /* private */
	struct lull_str scratch;		  /* private */
	u64 n_other;	   /* things that became "(other)" because there were too many */
	bool is_other;	   /* private: the thing last asked for is one */
	u64 n_repaired;	   /* texts with bytes that are no characters */
	u32 main_process;  /* row id, 0 if none yet */
	bool has_main_pid; /* private: a thread of it was met */
};

/* Begin with an open writer of the job. */
void lull_mapper_init(struct lull_mapper *m, struct lull_import_job *job, i64 origin_ns);

/* Write what waits and what was counted. */
void lull_mapper_finish(struct lull_mapper *m);

/* Free everything. */
void lull_mapper_release(struct lull_mapper *m);

/* Time of the report for a time of the file; one before its start is 0. */
u64 lull_mapper_time(const struct lull_mapper *m, i64 ts_ns);

/* The id of a text as it stands in the file. */
u32 lull_mapper_text(struct lull_mapper *m, const struct lull_jtext *text);

/* The same for a word of ours. */
u32 lull_mapper_word(struct lull_mapper *m, const char *word);

/*
 * The row id of a thing of this kind (any number that is its own) with this hash: its place, 0 if
 * it is new and the caller has to fill it in. After 256 Ki of them all new ones of a kind are
 * one, and lull_mapper_text() returns "(other)" for it.
 */
u32 *lull_mapper_thing(struct lull_mapper *m, u32 kind, u64 hash);

/* Hash of a text as it stands, 1 if it is empty. */
u64 lull_mapper_hash(const struct lull_jtext *text);

/* The row of a process. */
u32 lull_mapper_process(struct lull_mapper *m, const struct lull_jevent_ref *pid);

/* Whether events of threads of this process were met. */
bool lull_mapper_knows_process(const struct lull_mapper *m, const struct lull_jevent_ref *pid);

/* The lane of a thread. */
u32 lull_mapper_thread(struct lull_mapper *m, const struct lull_jevent_ref *pid,
		       const struct lull_jevent_ref *tid);

/* The row of a device of the main process. */
u32 lull_mapper_device(struct lull_mapper *m, u32 device_id);

/* The lane of a stream of the main process. */
u32 lull_mapper_stream(struct lull_mapper *m, u32 device_id, u32 context_id, u32 stream_id);

/* The label of ranges and marks of this name; `domain` may be empty. */
u32 lull_mapper_label(struct lull_mapper *m, const struct lull_jtext *name,
		      const struct lull_jtext *domain, enum lull_label_api api);

/* Add a row of a table that nests; its depth is filled in. */
void lull_mapper_nest(struct lull_mapper *m, enum lull_nesting kind, const void *row);

/* Say when something happened on a lane, so that the lane's start is known. */
void lull_mapper_saw(struct lull_mapper *m, u32 lane, u64 start_ns);

/* Count an event, or an argument, that has no place. `what` is its kind, `which` its name. */
void lull_mapper_gap(struct lull_mapper *m, enum lull_issue issue, const char *what,
		     const struct lull_jtext *which);

/* Set the name of a process or a thread, where the file gives one. */
void lull_mapper_name_process(struct lull_mapper *m, const struct lull_jevent_ref *pid,
			      const struct lull_jtext *name);
void lull_mapper_name_thread(struct lull_mapper *m, const struct lull_jevent_ref *pid,
			     const struct lull_jevent_ref *tid, const struct lull_jtext *name);

#endif
