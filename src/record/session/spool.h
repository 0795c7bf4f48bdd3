/*
 * spool - write a report to a local disk first, then copy it to its place in one write.
 *
 * A file system that many machines share is slow if a thousand ranks append small blocks each
 * second, and fast for one long write. So if the report's place is on one (NFS, Lustre, GPFS,
 * BeeGFS, Ceph, SMB), or the user names a folder, the recording goes to a local folder, and is
 * copied when it is sealed.
 */
#ifndef LULL_RECORD_SESSION_SPOOL_H
#define LULL_RECORD_SESSION_SPOOL_H

#include "base/err.h"
#include "base/str.h"
#include "base/types.h"

/* True if a file of this name would lie on a file system that machines share. */
bool lull_spool_is_shared(const char *path);

/*
 * Where to write what is to become `path`: a name of this process in `folder`, or, if that is NULL
 * and `path` is shared, in $TMPDIR or /tmp; else `path` itself. LULL_E_IO if the folder cannot be
 * written to.
 */
int lull_spool_place(const char *folder, const char *path, struct lull_str *to,
		     struct lull_err *err);

/*
 * Move the finished file `from` to `path`: nobody ever sees half of it there. After a failure it is
 * still at `from`, and the sentence says so.
 */
int lull_spool_deliver(const char *from, const char *path, struct lull_err *err);

#endif
