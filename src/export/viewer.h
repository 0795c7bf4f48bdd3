/*
 * viewer - a report as trace viewers show it: tracks with slices, moments and counters on them, and
 * arrows from calls to the work they started. What formats for trace viewers are made of.
 *
 * What it gives:  events track by track in the order of time, parents before what is inside them.
 *                 On one track nothing overlaps: a slice lies inside another one or beside it. What
 *                 does not fit, such as kernels of one stream that ran together, goes to a further
 *                 track of the same name.
 * Order:          a group, a track and a name are told before the first event that has them. Tracks
 *                 take turns.
 * Left out:       samples, which are for flame graphs (folded, pprof).
 * Memory:         rows that cannot be placed yet, because a block with earlier ones is still to
 *                 come: some blocks of 65,536 rows, 64 bytes each, never more than 2 M rows. Where
 *                 a file has more, later ones may land on a further track.
 *
 * To add a table: a function that makes an event of a row in one of the viewer_*.c, its line in
 *                 viewer_sources.def, and a row in test/golden/export/chrome.
 */
#ifndef LULL_EXPORT_VIEWER_H
#define LULL_EXPORT_VIEWER_H

#include "export/export.h"

/* ---- attributes of an event ---- */

enum lull_viewer_arg_id {
#define VIEWER_ARG(id, kind, name) LULL_VIEWER_ARG_##id,
#include "export/viewer_args.def"
#undef VIEWER_ARG
	LULL_VIEWER_N_ARGS
};

enum lull_viewer_arg_kind {
	LULL_VIEWER_U64,
	LULL_VIEWER_I64,
	LULL_VIEWER_F64,
	LULL_VIEWER_TEXT,
};

/* Name and kind of each, by enum lull_viewer_arg_id. */
struct lull_viewer_arg_desc {
	const char *name;
	enum lull_viewer_arg_kind kind;
};
extern const struct lull_viewer_arg_desc lull_viewer_args[LULL_VIEWER_N_ARGS];

struct lull_viewer_arg {
	enum lull_viewer_arg_id id;
	u64 number; /* the value's bits, unless it is a text */
	const char *text;
	size_t len;
};

#define LULL_VIEWER_MAX_ARGS 12u /* that a name brings */
#define LULL_VIEWER_VALUES   3u	 /* that differ from event to event */

/* ---- what things are called ---- */

/* What many events have in common. */
struct lull_viewer_what {
	u32 id; /* dense, from 1 */
	const char *category;
	const char *name;
	size_t name_len;
	u32 n_args;
	struct lull_viewer_arg args[LULL_VIEWER_MAX_ARGS];
};

/* Numbers of our own begin here: systems number processes and threads up to 4,194,304 at most. */
#define LULL_VIEWER_OWN_NUMBERS 10000000u

enum lull_viewer_group_kind {
	LULL_VIEWER_MACHINE, /* what belongs to no process */
	LULL_VIEWER_PROCESS,
	LULL_VIEWER_DEVICE, /* a device as one process sees it */
};

struct lull_viewer_group {
	u32 id; /* 0 is the machine */
	enum lull_viewer_group_kind kind;
	u32 parent; /* the process of a device */
	u32 pid;    /* of a process; a number of our own where two have the same or none */
	u32 order;
	const char *name;
};

struct lull_viewer_track {
	u32 id; /* dense, from 1 */
	u32 group;
	u32 tid;    /* of a thread's own track, 0 for others */
	u32 number; /* 1; 2, 3, ... take events that overlap those before */
	u32 order;  /* within the group */
	const char *name;
	bool is_counter;
	const char *unit; /* of a counter; "" if none */
};

/* ---- events ---- */

enum lull_viewer_type { LULL_VIEWER_SLICE, LULL_VIEWER_MOMENT, LULL_VIEWER_COUNTER };

enum lull_viewer_flow {
	LULL_VIEWER_FLOW_NONE,
	LULL_VIEWER_FLOW_OUT,	  /* a call that started work */
	LULL_VIEWER_FLOW_IN,	  /* the work */
	LULL_VIEWER_FLOW_THROUGH, /* work of which the call started several */
};

struct lull_viewer_event {
	enum lull_viewer_type type;
	u32 track;
	u32 what; /* 0 for counters */
	u64 start_ns;
	u64 dur_ns;
	f64 value; /* of a counter */
	enum lull_viewer_flow flow;
	u64 flow_id;
	u32 n_values;
	u8 value_ids[LULL_VIEWER_VALUES]; /* enum lull_viewer_arg_id */
	u64 values[LULL_VIEWER_VALUES];	  /* bits */
};

/* Callbacks. Their pointers are valid during the call. */
struct lull_viewer_sink {
	void *ctx;
	void (*group)(void *ctx, const struct lull_viewer_group *group);
	void (*track)(void *ctx, const struct lull_viewer_track *track);
	void (*what)(void *ctx, const struct lull_viewer_what *what);
	void (*event)(void *ctx, const struct lull_viewer_event *event);
};

/* Tell the sink all of the report that the options want. Returns how many events were told. */
u64 lull_viewer_tell(struct lull_reader *r, const struct lull_export_options *options,
		     const struct lull_viewer_sink *sink);

#endif
