/*
 * viewer_int - what the parts of a timeline share: rows that became events, the families of
 * tracks they belong to, and the names they have.
 */
#ifndef LULL_EXPORT_VIEWER_INT_H
#define LULL_EXPORT_VIEWER_INT_H

#include "base/map.h"
#include "export/viewer.h"

/*
 * Tracks come in families: one for each lane and class, one for each counter. A family grows
 * further tracks when its events overlap.
 */
enum lull_viewer_class {
	LULL_VIEWER_STEPS,
	LULL_VIEWER_PYTHON, /* Python's calls: ranges begin in one of them and end in another */
	LULL_VIEWER_MAIN,   /* what a thread or stream does, nested */
	LULL_VIEWER_RANGES, /* ranges that were started and ended by id */
	LULL_VIEWER_WAITS,  /* synchronisations of a stream */
	LULL_VIEWER_ON_CPU,
	LULL_VIEWER_N_CLASSES
};

enum lull_viewer_counting {
	LULL_VIEWER_VALUE, /* the counter is the value */
	LULL_VIEWER_SUM,   /* the counter is the sum of the values so far */
	LULL_VIEWER_RATE,  /* the counter is how fast the value grows, per second of time */
};

struct lull_viewer_record {
	u64 start_ns;
	u64 dur_ns;
	u64 flow_id;
	u64 values[LULL_VIEWER_VALUES]; /* counters: the value's bits in the first */
	u32 family;
	u32 what;
	u16 rank; /* where times are the same, the smaller one is outside */
	u8 type;
	u8 flow;
	u8 n_values;
	u8 value_ids[LULL_VIEWER_VALUES];
};

_Static_assert(sizeof(struct lull_viewer_record) == 64, "one line of a cache");

/* ---- names ---- */

/* Ids of names by the id of what they come from, such as a label. */
struct lull_viewer_names {
	struct lull_vec by_id; /* u32, 0 if not met yet */
};

struct lull_viewer_tracks; /* viewer_tracks.c */
struct lull_viewer_flows;  /* viewer_flows.c */

struct lull_viewer {
	struct lull_reader *reader;
	const struct lull_export_options *options;
	const struct lull_viewer_sink *sink;
	struct lull_viewer_tracks *tracks;
	struct lull_viewer_flows *flows;
	struct lull_viewer_names *names; /* of the source whose rows are read */
	struct lull_map hashed;		 /* names of things that have no row of their own */
	u32 n_whats;
	u64 n_events;
	u64 n_left_out; /* slices that overlapped too many others */
	/* Dimensions, row id 1 first. */
	const struct lull_lane_row *lanes;
	const struct lull_label_row *labels;
	const struct lull_launch_row *launches;
	const struct lull_op_label_row *op_labels;
	const struct lull_frame_row *frames;
	const struct lull_device_row *devices;
	size_t n_lanes, n_labels, n_launches, n_op_labels, n_frames, n_devices;
};

/* One table on the timeline. */
struct lull_viewer_source {
	enum lull_table table;
	/* Make an event of row `i` of `cols`, the table's struct lull_X_cols; false if there is
	 * none to be made. Times and rank are set already. */
	bool (*row)(struct lull_viewer *t, const void *cols, size_t i,
		    struct lull_viewer_record *rec);
};

/*
 * Where the id of a name is kept that belongs to row `id` of a dimension, or to the text `id`; 0 if
 * it has none yet. For the source whose row is being read.
 */
u32 *lull_viewer_name(struct lull_viewer *t, u32 id);

/* The id of a name that is a word of ours; `id` is different for each word of the source. */
u32 lull_viewer_word(struct lull_viewer *t, u32 id, const char *category, const char *word);

/* Like lull_viewer_name() for what has no row: `key` is a hash of what makes it different. */
u32 *lull_viewer_hashed(struct lull_viewer *t, u64 key);

/* Tell the sink of a name; returns its id. */
u32 lull_viewer_add(struct lull_viewer *t, struct lull_viewer_what *what);

/* Set name and category. */
void lull_viewer_call(struct lull_viewer_what *what, const char *category, const char *name,
		      size_t len);

/* Add something that events of this name tell; nothing if the text is none. */
void lull_viewer_text(struct lull_viewer *t, struct lull_viewer_what *what,
		      enum lull_viewer_arg_id id, u32 text);
void lull_viewer_bytes(struct lull_viewer_what *what, enum lull_viewer_arg_id id, const char *text,
		       size_t len);
void lull_viewer_number(struct lull_viewer_what *what, enum lull_viewer_arg_id id, u64 number);

/* Add something that this event tells. */
static inline void lull_viewer_value(struct lull_viewer_record *rec, enum lull_viewer_arg_id id,
				     u64 bits)
{
	rec->value_ids[rec->n_values] = (u8)id;
	rec->values[rec->n_values++] = bits;
}

/* ---- tracks ---- */

/* Read the lanes. */
struct lull_viewer_tracks *lull_viewer_tracks_new(struct lull_viewer *t);

/* Free everything. Accepts NULL. */
void lull_viewer_tracks_free(struct lull_viewer_tracks *tracks);

/* The family of a lane; 0 is a lane, too: that of an unknown thread. */
u32 lull_viewer_family(const struct lull_viewer *t, u32 lane, enum lull_viewer_class kind);

/* A family that belongs to no lane: a counter, or slices of a process. */
struct lull_viewer_family {
	u32 process; /* 0 if of none */
	u32 device;  /* a row id, 0 if of none */
	const char *name;
	const char *unit; /* NULL: not a counter */
	enum lull_viewer_counting counting;
};

/* The number of that family; `key` is different for each. Texts are copied. */
u32 lull_viewer_other(struct lull_viewer *t, u64 key, const struct lull_viewer_family *family);

/* Give the record, which comes in the order of its family, to the sink. */
void lull_viewer_place(struct lull_viewer *t, const struct lull_viewer_record *rec);

/* ---- flows ---- */

/* Find out which calls started something that is recorded, too. */
struct lull_viewer_flows *lull_viewer_flows_new(struct lull_viewer *t);

/* Free everything. Accepts NULL. */
void lull_viewer_flows_free(struct lull_viewer_flows *flows);

/* Set the flow of a call, or of work, of this process if its other end is recorded. */
void lull_viewer_flow(struct lull_viewer *t, struct lull_viewer_record *rec, u32 process,
		      u32 correlation, enum lull_viewer_flow flow);

#endif
