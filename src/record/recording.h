/*
 * recording - one report in the making: converts events to rows.
 *
 * The recorder keeps one struct for its whole lifetime; a report is open between
 * lull_recording_begin() and lull_recording_finish(). Descriptions of processes (modules, names,
 * payload schemas) are kept in between, so that a second report of the same session has them too.
 *
 * Input times are CLOCK_MONOTONIC; rows get time since the report's epoch.
 */
#ifndef LULL_RECORD_RECORDING_H
#define LULL_RECORD_RECORDING_H

#include "base/err.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/types.h"
#include "base/vec.h"
#include "record/axis.h"
#include "record/clock.h"
#include "record/process/tree.h"
#include "symbol/files.h"
#include "symbol/stacks.h"
#include "symbol/unwind.h"
#include "wire/wire.h"
#include "trace/writer.h"

/* An NVTX category, kept for every report of the session. */
struct lull_category {
	u64 domain; /* hash */
	u32 number;
	char *name;
};

/* An issue of the open report, counted. */
struct lull_trouble {
	u16 issue;
	struct lull_process *process; /* NULL: the recorder itself */
	u64 count;
	char *detail;
};

/* String ids of a name, and of what was in it as JSON. */
struct lull_op_name {
	u32 name;
	u32 data;
};

struct lull_recording {
	struct lull_clock *clock;
	struct lull_tree *tree;
	struct lull_files files;
	struct lull_unwind unwind;

	/* The report that is open; writer is NULL between reports. */
	struct lull_writer *writer;
	u64 epoch_ns;
	u64 n_events;		  /* rows so far */
	i64 own_rank;		  /* of the recorder (session/job_rank.h), -1 none */
	u32 rank_row;		  /* of the table meta, which says it; 0 none */
	bool has_job;		  /* the report names its job already */
	char job[LULL_JOB_BYTES]; /* as a process of ours knows it, "" if none does */
	struct lull_stacks stacks;
	struct lull_map strings;   /* hash of a name -> string id */
	struct lull_map launches;  /* hash of a launch shape -> launch id */
	struct lull_map labels;	   /* hash of a label -> label id */
	struct lull_map op_labels; /* hash of an operator's label -> op_label id */
	/* decode_range.c: names without what is true of one range only (text/op_name.h). */
	struct lull_map op_names;     /* hash of a name -> index + 1 in op_name_list */
	struct lull_vec op_name_list; /* struct lull_op_name */
	struct lull_map op_ranges;    /* hash of what such labels have in common -> label id */
	struct lull_map op_data;      /* hash of a label -> string id of what its range alone has */
	struct lull_map py_frames;    /* hash of a place in a Python program -> frame id */
	struct lull_map py_stacks;    /* hash of a Python stack -> stack id */
	struct lull_vec troubles;     /* struct lull_trouble */
	/* How the device's times fit the host's (device_clock.h). */
	struct lull_device_fit {
		i64 lead_ns, tail_ns; /* shortest distances so far */
		u64 n_leads, n_tails;
	} device_clock;
	struct lull_vec held_work; /* struct lull_device_work, until its call is known */
	/* decode_kernel.h: its vectors, and whether kernels are measured at all. */
	struct lull_vec profiled, held_profiled, held_pcsamples, known_kernels;
	bool is_measuring;
	bool is_unresolved;	  /* leave addresses without names */
	struct lull_pulse *pulse; /* sees every row; NULL if nobody asks */
	struct lull_axis *axis;	  /* of a recording in windows, else NULL; borrowed */
	struct lull_duty *duty;	  /* sees every step of such a one; else NULL */
	const char *debug_dirs;	  /* where to look for debug files, colon list or NULL */

	/* Kept over reports. */
	struct lull_map
		texts; /* hash of a name -> index + 1 in text_list, for names of (always) events */
	struct lull_vec text_list;  /* char * */
	struct lull_vec categories; /* struct lull_category */
	struct lull_intern
		schema_texts; /* of all processes: forked ones have those of their parents */

	/* decode_nccl.c. */
	struct lull_map nccl_labels;  /* label of the open report -> index + 1 in text_list */
	struct lull_vec nccl_layouts; /* struct lull_nccl_layout */
	struct lull_vec nccl_comms;   /* struct lull_nccl_comm */
};

/* Nothing recorded yet. `clock` and `tree` are borrowed for life. */
void lull_recording_init(struct lull_recording *r, struct lull_clock *clock,
			 struct lull_tree *tree);

/* Free everything; an open report is discarded. */
void lull_recording_release(struct lull_recording *r);

/* Open a report; its time 0 is `epoch_ns`. */
int lull_recording_begin(struct lull_recording *r, const char *path, u64 epoch_ns,
			 struct lull_err *err);

/* Go on with an unsealed report, as lull_writer_reopen() does. */
int lull_recording_resume(struct lull_recording *r, const char *path, u64 epoch_ns,
			  struct lull_err *err);

/* True if a report is open. */
static inline bool lull_recording_is_on(const struct lull_recording *r)
{
	return r->writer != NULL;
}

/* Time since the epoch; 0 for what happened before. */
static inline u64 lull_recording_ns(const struct lull_recording *r, u64 mono_ns)
{
	if (r->axis)
		return lull_axis_ns(r->axis, mono_ns);
	return mono_ns > r->epoch_ns ? mono_ns - r->epoch_ns : 0;
}

/* Row id of a process, of a thread, in the open report; added at first use. */
u32 lull_recording_process(struct lull_recording *r, struct lull_process *p);
u32 lull_recording_lane(struct lull_recording *r, struct lull_task *task);

/* String id of a text. */
u32 lull_recording_text(struct lull_recording *r, const char *text);

/* String id of a name that an agent defined, 0 if it did not (or the hash is 0). */
u32 lull_recording_name(const struct lull_recording *r, u64 hash);

/* The text of such a name, "" if it is not known or there were too many to keep them. */
const char *lull_recording_kept(const struct lull_recording *r, u64 hash);

/* From now on `pulse` sees every row; it is told the labels that are there already. */
void lull_recording_watch(struct lull_recording *r, struct lull_pulse *pulse);

/* Append a fact row. */
void lull_recording_add(struct lull_recording *r, enum lull_table table, const void *row);

/* Count an issue; `process` may be NULL, `detail` too (the first one given is kept). */
void lull_recording_issue(struct lull_recording *r, enum lull_issue issue,
			  struct lull_process *process, u64 n, const char *detail);

/* Note a fact about the machine or the recording. */
void lull_recording_meta(struct lull_recording *r, const char *key, const char *value);

/*
 * Write what is buffered, the ranges that are open, and how far each image has been read: after it
 * returns 0, the chunks may be given back.
 */
int lull_recording_checkpoint(struct lull_recording *r, u64 now_ns, struct lull_err *err);

/* End open ranges and steps at `now_ns`, as at the end; the report stays open. */
void lull_recording_close_open(struct lull_recording *r, u64 now_ns);

/* End open ranges and steps at `now_ns`, name addresses, write the last dimensions, seal. */
int lull_recording_finish(struct lull_recording *r, u64 now_ns, struct lull_err *err);

/* Give the addresses of the open report their names (resolve_names.c); part of finishing. */
void lull_recording_resolve(struct lull_recording *r);

/* Leave the report to another process, which has a copy of all of this. */
void lull_recording_abandon(struct lull_recording *r);

/* Drop the report. */
void lull_recording_discard(struct lull_recording *r);

#endif
