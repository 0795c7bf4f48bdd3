/*
 * pidns - processes that know themselves by another number than we do.
 *
 * Inside a PID namespace of its own (unshare -p, containers) a process has a small number, which
 * out here is somebody else's. Its agent says which namespace that number is of.
 */
#ifndef LULL_RECORD_PROCESS_PIDNS_H
#define LULL_RECORD_PROCESS_PIDNS_H

#include "base/types.h"

/* What names our own namespace, 0 if /proc does not say. */
u64 lull_pidns_own(void);

/* Our number of the process that is `pid` in the namespace; 0 if there is none (any more). */
u32 lull_pidns_find(u64 pid_ns, u32 pid);

#endif
