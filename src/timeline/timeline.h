/*
 * timeline - a report as rows and lanes of pictures: what the page shows, at every zoom.
 *
 *	t = lull_timeline_new(reader, &options);
 *	t->rows, t->lanes, t->curves			(what there is)
 *	lull_detail_fold(t, lane, span, &fold)		(timeline/detail.h)
 *	lull_timeline_free(t);
 *
 * Rows:           what has a title: a device, a process, a thread, and below them what happened
 *                 there. A row has lanes, which are lines of the picture, each with levels of
 *                 detail (timeline/fold.h). The report's lanes (threads, streams) are groups here.
 * Index:          made by decoding the columns once; for large reports it is kept beside them
 *                 (timeline/store.h), so that the next time begins at once.
 * Details:        what is finer than the levels is read from the report's blocks, of which the
 *                 last ones used are kept (timeline/detail.h).
 * Ownership:      the timeline borrows the reader.
 * Threads:        one at a time.
 */
#ifndef LULL_TIMELINE_TIMELINE_H
#define LULL_TIMELINE_TIMELINE_H

#include "base/map.h"
#include "base/types.h"
#include "base/vec.h"
#include "model/span.h"
#include "timeline/fold.h"
#include "timeline/lane_source.h"
#include "trace/reader.h"

/* Rows that are not a source's: lull_sources[].kind names the others. */
#define LULL_ROW_DEVICE	   "device"
#define LULL_ROW_PROCESS   "process"
#define LULL_ROW_THREAD	   "thread"
#define LULL_ROW_IDLE	   "idle"
#define LULL_ROW_BUSY	   "busy"
#define LULL_ROW_CURVE	   "curve"
#define LULL_ROW_PROJECTED "projected"

#define LULL_NO_ROW UINT32_MAX

/* Lines of a device's lanes that belong to no table; projected ranges come after them. */
#define LULL_LINE_BUSY 0u
#define LULL_LINE_IDLE 1u

struct lull_row {
	char *key;	  /* the same in the next recording of the program, where it can be */
	const char *kind; /* a word for colours and heights */
	char *title;
	u32 parent;	/* row, LULL_NO_ROW if none */
	u32 first_lane; /* its lanes lie beside each other */
	u32 n_lanes;
	u32 curve; /* + 1; 0 if it is none */
	u64 order; /* private: place among its siblings */
	u64 n_events;
	u64 busy_ns;
	u32 id;	    /* lane, device or process row of the report it stands for */
	u32 source; /* + 1, of lull_sources; 0 if none */
};

struct lull_tl_lane {
	u32 row;
	u32 line; /* among the lanes of the row */
	u32 group;
	u32 source; /* of lull_sources; LULL_NO_ROW if it is no table */
	u64 n_events;
	u64 busy_ns;
	struct lull_lod lod;
};

/* Values over time. */
struct lull_point {
	u64 at_ns;
	f64 min, max, last;
};

struct lull_curve {
	u32 row;
	char *name;
	char *unit;
	u64 step_ns;		/* private: points closer than this are one */
	struct lull_vec points; /* struct lull_point */
};

/* A piece of idle time of a device, and why. */
struct lull_idle {
	struct lull_span span;
	u32 cause; /* name: LULL_NAME_CAUSE or LULL_FIXED_IDLE */
	u8 family;
};

struct lull_timeline_options {
	const char *path; /* of the report: its index lies beside it; NULL: none is read or kept */
	const char *cache_dir; /* where it is kept if that is not possible; may be NULL */
	bool has_no_index;     /* do not read one, and keep none */
	/* Told of progress, from 0 to 1; may be NULL. */
	void (*progress)(void *ctx, f64 share);
	void *ctx;
};

struct lull_detail;

struct lull_timeline {
	struct lull_reader *reader;
	struct lull_span span;
	u64 origin_ns;		/* what pages count from: begin of the span, down to 73 minutes */
	struct lull_vec rows;	/* struct lull_row, in the order of the page: parents first */
	struct lull_vec lanes;	/* struct lull_tl_lane */
	struct lull_vec curves; /* struct lull_curve */
	struct lull_vec causes; /* private to timeline/idle_cause.c */
	u64 n_events;
	u64 index_bytes;	 /* of the stored index, 0 if there is none */
	bool was_stored;	 /* the index was read, not made */
	struct lull_map lane_of; /* private: source, group and line to lane + 1 */
	struct lull_detail *detail;
};

/* Make the timeline of a report, or read it from its index. */
struct lull_timeline *lull_timeline_new(struct lull_reader *r,
					const struct lull_timeline_options *options);

/* One without rows, to be filled by timeline/build.h or timeline/store.h. */
struct lull_timeline *lull_timeline_empty(struct lull_reader *r);

/* Free everything but the reader. Accepts NULL. */
void lull_timeline_free(struct lull_timeline *t);

/* Row and lane by number, which must exist. */
struct lull_row *lull_timeline_row(const struct lull_timeline *t, u32 row);
struct lull_tl_lane *lull_timeline_lane(const struct lull_timeline *t, u32 lane);

/* The lane of an event, LULL_NO_ROW if it has none. */
u32 lull_timeline_find(const struct lull_timeline *t, u32 source, u32 group, u32 line);

/* The row of this key, LULL_NO_ROW if there is none. */
u32 lull_timeline_row_by_key(const struct lull_timeline *t, const char *key);

/* The number of a device as people know it, by its row in the report. */
u32 lull_timeline_device_id(const struct lull_timeline *t, u32 device);

#endif
