/*
 * text - reports as readable text, for tests and examples.
 *
 *	# one row per line; columns that are not named are 0
 *	file epoch=5s utc=1700000000s		(optional; must come first)
 *	process pid=10 name=train
 *	lane process=1 tid=10 name="main thread"
 *	label name="forward"
 *	range start=100us dur=20us lane=1 label=1
 *	lane#1 name="renamed"			(a dimension row written again)
 *	flush					(ends the blocks)
 *
 * Columns:        by the names of schema.def, with or without their unit (start_ns or start).
 *                 Generic over the schema: a new table needs nothing here.
 * Values:         whole numbers, decimal or 0x...; times as in base/duration.h: 1.5ms, 2s; f64 as C
 *                 writes it; texts as one word or in quotes with \" \\ \n \t inside. References are
 *                 row ids: rows of a dimension count from 1.
 * Errors:         LULL_E_FORMAT with the line number.
 */
#ifndef LULL_TRACE_TEXT_H
#define LULL_TRACE_TEXT_H

#include "base/err.h"
#include "base/types.h"
#include "trace/writer.h"

/* Add the rows of `text` to a writer; a `file` line is skipped. */
int lull_text_add(struct lull_writer *w, const char *text, struct lull_err *err);

/* Make a sealed report of `text` at `path`. After a failure no file is left. */
int lull_text_write(const char *text, const char *path, struct lull_err *err);

#endif
