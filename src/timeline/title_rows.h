/*
 * title_rows - the tree of titles: devices and their streams, processes and their threads.
 *
 * Rows are made when something is found that belongs on them, and put in order at the end.
 */
#ifndef LULL_TIMELINE_TITLE_ROWS_H
#define LULL_TIMELINE_TITLE_ROWS_H

#include "base/map.h"
#include "timeline/timeline.h"

struct lull_tl_rows {
	struct lull_timeline *t;
	struct lull_map by_id; /* private: kind and id to row + 1 */
};

/* Begin with no rows. */
void lull_tl_rows_init(struct lull_tl_rows *rows, struct lull_timeline *t);

/* Free the map; the rows stay with the timeline. */
void lull_tl_rows_release(struct lull_tl_rows *rows);

/* The row of a device, a process or a thread of the report, made if there is none. */
u32 lull_tl_rows_device(struct lull_tl_rows *rows, u32 device);
u32 lull_tl_rows_process(struct lull_tl_rows *rows, u32 process);
u32 lull_tl_rows_thread(struct lull_tl_rows *rows, u32 lane);

/* The row of a source in a group, made if there is none. */
u32 lull_tl_rows_source(struct lull_tl_rows *rows, u32 source, u32 group);

/* A row of this kind below `parent`; `order` says where among the others. */
u32 lull_tl_rows_add(struct lull_tl_rows *rows, const char *kind, u32 parent, u64 order);

/*
 * Put rows in the order of the page and lanes in that of their rows; both are renumbered. All lanes
 * must have been added.
 */
void lull_tl_rows_sort(struct lull_timeline *t);

#endif
