/*
 * store - the index of a timeline in a file, so that a large report opens at once.
 *
 *	0   8   "LULLVIEW"
 *	8   4   version
 *	12  4   CRC32C of the payload
 *	16  16  id of the recording
 *	32  8   length of the report
 *	40  8   length of the payload, unpacked
 *	48      payload: rows, lanes with their levels, curves; numbers as varints, column by
 *	        column; packed by zstd
 *
 * Where:          beside the report as NAME.lull-view; if that cannot be written, in the folder for
 *                 caches, named after the recording.
 * What it checks: everything. An index that is of another report, of another version, cut or
 *                 damaged is not used, and made again.
 */
#ifndef LULL_TIMELINE_STORE_H
#define LULL_TIMELINE_STORE_H

#include "timeline/timeline.h"

/* Fill an empty timeline from its index; false if there is none that fits. */
bool lull_store_read(struct lull_timeline *t, const struct lull_timeline_options *options);

/* Keep the index; nothing happens if it can be written nowhere. */
void lull_store_write(struct lull_timeline *t, const struct lull_timeline_options *options);

#endif
