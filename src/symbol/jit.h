/*
 * jit - names of code generated at run time, from the files that programs write for perf.
 *
 * Two kinds of file:
 *	perf-PID.map	text, one line per function: start and size in hex, name; without times
 *	jit-PID.dump	the binary "jitdump" of perf: functions with the time they came or moved
 *
 * What it checks: every length against the file; a line or record that makes no
 *                 sense is skipped, one that does not fit ends the reading. What was read before
 *                 stays.
 * Ownership:      names are borrowed until the next read or release.
 * Threads:        one at a time.
 * Cost:           linear in the file; a find is a binary search (the first one after a read sorts).
 */
#ifndef LULL_SYMBOL_JIT_H
#define LULL_SYMBOL_JIT_H

#include "base/err.h"
#include "base/str.h"
#include "base/types.h"
#include "base/vec.h"

struct lull_jit {
	struct lull_vec functions; /* private */
	struct lull_vec max_end;   /* private: of u64, highest end among functions [0, i] */
	struct lull_str names;	   /* private: all names, each with its NUL */
	bool is_sorted;
};

/* No functions yet. */
void lull_jit_init(struct lull_jit *j);

/* Free everything. */
void lull_jit_release(struct lull_jit *j);

/* Add the functions of a perf-PID.map. LULL_E_IO if it cannot be read. */
int lull_jit_read_map(struct lull_jit *j, const char *path, struct lull_err *err);

/* Add the functions of a jitdump file. LULL_E_FORMAT if it is none. */
int lull_jit_read_dump(struct lull_jit *j, const char *path, struct lull_err *err);

/*
 * Add the map of a process: /tmp/perf-PID.map as the process sees it, with the pid as the process
 * knows it, else ours. LULL_E_NOT_FOUND if there is none. Best called while the process still
 * exists.
 */
int lull_jit_read_process(struct lull_jit *j, u32 pid, struct lull_err *err);

/*
 * The function at this address at this time (CLOCK_MONOTONIC), or NULL. Functions without a time
 * are valid at any time; of several the latest counts. UINT64_MAX asks for the last state.
 */
const char *lull_jit_find(struct lull_jit *j, u64 addr, u64 time_ns);

#endif
