/*
 * lane_source - the tables that lie on the timeline, and how their rows become events in lanes.
 *
 *	lull_blocks_init(&b, reader);
 *	n = lull_blocks_decode(&b, source, block_ix);
 *	b.events					(n of them, by lane group, then start)
 *
 * What it gives:  per block of a table: begin, end, name, class, and the group and line of the
 *                 timeline each event belongs to. A group is a stream, a device or a thread.
 * Order:          inside a group by start.
 *
 * To add one:     a line in `lull_sources` of lane_source.c, its colour in ui/src/theme.ts.
 */
#ifndef LULL_TIMELINE_LANE_SOURCE_H
#define LULL_TIMELINE_LANE_SOURCE_H

#include "base/types.h"
#include "base/vec.h"
#include "trace/block.h"
#include "trace/reader.h"

enum lull_group_by {
	LULL_BY_STREAM, /* group: lane id; streams of a device with many: LULL_GROUP_DEVICE + id */
	LULL_BY_DEVICE, /* group: LULL_GROUP_DEVICE + device id */
	LULL_BY_THREAD, /* group: lane id */
};

#define LULL_GROUP_DEVICE (1u << 31)

/* Lines of a group: one, as many as it takes, or by the depth that was recorded. */
enum lull_lines {
	LULL_LINES_ONE,
	LULL_LINES_FIT,
	LULL_LINES_DEPTH,
};

/* What the column says that names an event. */
enum lull_lane_naming {
	LULL_NAMED_STRING,
	LULL_NAMED_LAUNCH,
	LULL_NAMED_LABEL,
	LULL_NAMED_OP,
	LULL_NAMED_FRAME,
	LULL_NAMED_STACK,
	LULL_NAMED_COPY,
	LULL_NAMED_MEMSET,
	LULL_NAMED_GRAPH,
	LULL_NAMED_STEP,
	LULL_NAMED_GIL,
	LULL_NAMED_CPU,
};

#define LULL_SOURCE_IS_WORK    1u /* what a device is busy with */
#define LULL_SOURCE_HAS_SHARES 2u /* classes are worth telling in a fold */
#define LULL_SOURCE_IS_MOMENT  4u /* has no duration */

struct lull_lane_source {
	const char *kind; /* what the page calls the row: its colours and height hang on it */
	const char *title;
	enum lull_table table;
	enum lull_group_by by;
	enum lull_lines lines;
	enum lull_lane_naming naming;
	const char *name_column; /* NULL if it needs none */
	unsigned flags;		 /* LULL_SOURCE_IS_... */
};

/* All of them, ended by one without a kind. */
extern const struct lull_lane_source lull_sources[];

#define LULL_N_LINES 64u /* of a group, at most; what is deeper shares the last */

/* One thing that happened, on its line. */
struct lull_tl_event {
	u64 start_ns;
	u64 end_ns;
	u32 name; /* timeline/name.h */
	u32 group;
	u32 row; /* in its block */
	u8 line;
	u8 class;
};

/* Decodes blocks; one for each thread of control. */
struct lull_blocks {
	struct lull_reader *reader;
	u32 *device_of;	   /* private: by lane id */
	u32 *stream_group; /* private: by lane id */
	u32 *names_of_launch, *names_of_label, *names_of_op, *names_of_frame;
	u8 *class_of_string; /* private: + 1; CLASS_SLOTS for each string */
	size_t n_strings;
	struct lull_cursor *cursors; /* private: one for each source, opened at first use */
	struct lull_vec events;	     /* struct lull_tl_event of the last block */
};

/* Prepare; the reader must live longer. */
void lull_blocks_init(struct lull_blocks *b, struct lull_reader *r);

/* Free everything. */
void lull_blocks_release(struct lull_blocks *b);

/* Decode a block of the source's table into b->events. Lines of LULL_LINES_FIT are not set. */
size_t lull_blocks_decode(struct lull_blocks *b, const struct lull_lane_source *source,
			  size_t block_ix);

/* The lines of one group that are taken, and until when. */
struct lull_lines_state {
	u64 end_ns[LULL_N_LINES];
};

/* Give an event of LULL_LINES_FIT its line: the first that is free. */
void lull_lines_fit(struct lull_lines_state *state, const struct lull_lane_source *source,
		    struct lull_tl_event *event);

#endif
