/*
 * salvage - finish the report of a recorder that died.
 *
 * The unfinished file has everything up to its last checkpoint. The shared memory of the session,
 * which survives both the recorder and the program, has the rest. Together they are the complete
 * recording: each event exactly once.
 */
#ifndef LULL_RECORD_SESSION_SALVAGE_H
#define LULL_RECORD_SESSION_SALVAGE_H

#include "base/err.h"
#include "record/session/session.h"

struct lull_salvage_result {
	u64 n_rows;	 /* rows in the report */
	u64 n_recovered; /* of these, from shared memory */
	u32 n_processes; /* whose memory was read */
	u32 n_alive;	 /* of these, still running: what they write from now on is not in it */
};

/*
 * The session of a dead recorder that was writing this report (final name or .part), if it is still
 * there.
 */
bool lull_salvage_find(const char *report_path, struct lull_session_entry *entry);

/* Write the rest of the session's events, seal its report, remove the session. */
int lull_salvage(const struct lull_session_entry *entry, struct lull_salvage_result *result,
		 struct lull_err *err);

#endif
