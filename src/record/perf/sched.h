/*
 * sched - context switches put together into stays of a thread on a CPU.
 *
 * What it gives:  one row per stay, in the order in which the stays end.
 * What it checks: a stay whose other end was lost is left out, never stretched; after lost records
 *                 the open stays are forgotten, because a switch-out may be among the lost.
 * Ownership:      embedded: lull_sched_init(), lull_sched_release().
 * Threads:        one thread only.
 * Cost:           one hash lookup per event; 32 bytes per living thread, twice that with the map.
 */
#ifndef LULL_RECORD_PERF_SCHED_H
#define LULL_RECORD_PERF_SCHED_H

#include "base/map.h"
#include "base/types.h"
#include "base/vec.h"

enum lull_sched_end {
	LULL_SCHED_WAITS = 1,
	LULL_SCHED_PREEMPTED = 2,
	LULL_SCHED_ENDED = 3,
	LULL_SCHED_RECORDING_ENDED = 4,
};

/* One stay of a thread on a CPU. */
struct lull_sched_stay {
	u32 pid, tid;
	u64 start_ns;
	u64 dur_ns;
	u32 cpu;
	enum lull_sched_end end_reason;
};

/* The thread an event is about, and where and when it happened. */
struct lull_sched_event {
	u32 pid, tid;
	u64 time_ns;
	u32 cpu;
};

typedef void lull_sched_row_fn(void *ctx, const struct lull_sched_stay *row);

struct lull_sched {
	lull_sched_row_fn *row;
	void *ctx;
	u64 start_ns;		 /* when the recording began or was resumed */
	struct lull_map by_tid;	 /* private: tid to index into `threads` */
	struct lull_vec threads; /* private: what is known of each thread */
	size_t n_dead;		 /* private: of `threads`, waiting to be swept */
};

/*
 * Begin; `row` is called with `ctx` for each stay. A thread first seen leaving its CPU was on it
 * since `start_ns`.
 */
void lull_sched_init(struct lull_sched *s, u64 start_ns, lull_sched_row_fn *row, void *ctx);

/* Free everything; open stays are dropped. */
void lull_sched_release(struct lull_sched *s);

/* The thread got a CPU. */
void lull_sched_in(struct lull_sched *s, const struct lull_sched_event *e);

/* The thread left its CPU; `is_preempted` if it was still runnable. */
void lull_sched_out(struct lull_sched *s, const struct lull_sched_event *e, bool is_preempted);

/* A new thread: not on a CPU yet, so that a switch-out without a switch-in makes no stay. */
void lull_sched_fork(struct lull_sched *s, const struct lull_sched_event *e);

/* The thread ended; it is forgotten. */
void lull_sched_exit(struct lull_sched *s, const struct lull_sched_event *e);

/* Records were lost: what is on a CPU now is not known any more. */
void lull_sched_lost(struct lull_sched *s);

/* The recording was paused or ended: close the open stays there. */
void lull_sched_pause(struct lull_sched *s, u64 time_ns);

/* The recording resumes; a thread first seen leaving its CPU was on it since `time_ns`. */
void lull_sched_resume(struct lull_sched *s, u64 time_ns);

#endif
