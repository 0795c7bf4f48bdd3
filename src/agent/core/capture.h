/*
 * capture - recordings that start and end with a range of the program (--capture-range=nvtx).
 *
 * The recorder names a range in the control page and sets `watch`. While no recording is running,
 * sources pass each range that starts to lull_capture_begin(). If it is the named one, the
 * recording starts with this range as its first event. When the range ends, range.h calls
 * lull_capture_end().
 *
 * Cost:    with `watch` unset, one additional load while no recording is running; one compare in
 *          pop and end otherwise.
 * Threads: any. A compare-and-swap of the control word `record` decides which thread starts the
 *          recording.
 * Fork:    a child inherits the recording, but does not end it: the range belongs to the parent.
 */
#ifndef LULL_AGENT_CORE_CAPTURE_H
#define LULL_AGENT_CORE_CAPTURE_H

#include "agent/core/ring.h"

/* True if ranges must be looked at although nothing is recorded. */
static inline bool lull_capture_is_watching(void)
{
	return (atomic_load_explicit(&lull_agent.control->watch, memory_order_relaxed) &
		LULL_WATCH_RANGES) != 0;
}

/*
 * A range begins while nothing is recorded. This thread, recording, if the range begins a
 * recording; then emit it and tell which one holds the recording with one of the two functions
 * below. Else NULL.
 */
struct lull_thread *lull_capture_begin(const struct lull_text *name,
				       const struct lull_text *domain);

/*
 * The program called cudaProfilerStart() or cudaProfilerStop(): begin or end a recording, if that
 * is what the recorder waits for (--capture-range=cudaProfilerApi).
 */
void lull_capture_by_call(bool is_start);

/* Begin a recording; false if one is on, or the recorder is not ready or does not want one. */
bool lull_capture_take(void);

/* End the present recording, if there is one. */
void lull_capture_give(void);

/* True while the recorder closes the last report and will be ready for another one. */
bool lull_capture_is_closing(void);

/* The recording lasts until this thread pops the level of this domain. */
void lull_capture_hold_push(struct lull_thread *t, u32 domain_ix, int level);

/* The recording lasts until some thread ends this range. */
void lull_capture_hold_start(u64 range_id);

/* The range that holds the recording has ended and is emitted: stop recording. */
void lull_capture_end(struct lull_thread *t);

#endif
