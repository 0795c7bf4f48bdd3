/*
 * cuda - shared by the files of the CUDA source.
 *
 * How it records: calls of the driver and the runtime by callbacks on the calling thread: two
 *                 reads of the counter and one event, and no CUPTI record. A wrapper of
 *                 cudaLaunchKernel (cuda_runtime.c) is cheaper still. Device work by CUPTI's
 *                 activity records, converted to events on the thread that delivers them.
 * Flushing:       an agent thread flushes if no full buffer was returned for 100 ms, and when the
 *                 recorder requests it, so that a killed process loses about the last 200 ms of
 *                 device records. CUPTI keeps a buffer until all work in it is finished; the
 *                 records of finished work are copied out before. A flush delays launches made at
 *                 the same time.
 * Other tools:    another tool in the process may use CUPTI, too (cuda_share.c). So record kinds
 *                 and callbacks are only enabled through lull_cuda_want_kind() and
 *                 lull_cuda_want_call().
 */
#ifndef LULL_AGENT_CUDA_CUDA_H
#define LULL_AGENT_CUDA_CUDA_H

#include "agent/cuda/cupti.h"
#include "agent/core/ring.h"

/* Who wants a kind of record or a callback. */
enum { LULL_CUDA_WE = 1, LULL_CUDA_THEY = 2 };

/* CUPTI asks for room and gives it back full of records (cuda_buffers.c). */
void lull_cuda_requested(u8 **buffer, size_t *size_bytes, size_t *max_records);
void lull_cuda_completed(void *context, u32 stream, u8 *buffer, size_t size_bytes,
			 size_t valid_bytes);

/* How many buffers came back full, so far. */
u32 lull_cuda_n_full(void);

/*
 * How many CUPTI holds with something in them. After a flush: those with records of work that is
 * not finished, and of all that stands beside it.
 */
u32 lull_cuda_n_held(void);

/*
 * Before a flush: remember what CUPTI has. True if something with records was there at the last
 * mark, too. After the flush: take what is finished of that. CUPTI gives a buffer back only when
 * all in it is finished, which may be seconds later, and the process may be killed before. Both are
 * for the thread that flushes.
 */
bool lull_cuda_mark_held(void);
void lull_cuda_take_finished(void);

/* CUPTI was detached: buffers that it still has never come back. */
void lull_cuda_forget_out(void);

/*
 * Take all that CUPTI holds, finished or not; there will be no other chance. What is unfinished is
 * counted (cuda_records.c).
 */
void lull_cuda_flush_forced(void);

/* Allocate one or two buffers in advance, so that no thread of the program has to. */
void lull_cuda_stock(void);

/* Tell CUPTI that our buffers are zeroed when it gets them; else it zeroes them on its caller. */
void lull_cuda_zeroed(void);

/*
 * Turn the records of a buffer after `*last_record` (NULL: all) into events, and set it to the last
 * one read. If CUPTI still owns the buffer, stop at the first unfinished work (cuda_records.c).
 */
void lull_cuda_walk(u8 *buffer, size_t valid_bytes, void **last_record, bool is_held);

/*
 * The hash of a way to launch a kernel, defined in the thread's stream with the name; 0 if there
 * was no room. `shape->name` is filled in.
 */
u64 lull_cuda_launch(struct lull_thread *t, struct lull_wire_shape *shape, const char *name);

/*
 * The number of the last call that is in the present recording, or in the one that has just ended;
 * 0 if there is none. Numbers rise.
 */
u32 lull_cuda_last_call(void);

/* The function for CUPTI's callbacks, as the user's choices want it (cuda_calls.c). */
lull_cupti_callback *lull_cuda_callback(void);

/*
 * What a call of this name waits for, 0 for nothing; write an event for such a wait (cuda_waits.c).
 */
u32 lull_cuda_wait_of(const char *name);
void lull_cuda_waited(struct lull_thread *t, u32 wait, const void *data, u64 start, u64 dur_ticks);

/*
 * Enable or disable callbacks for recorded calls; enable those of calls with wrappers, too. Those
 * of calls that threads are in for all of a second stay enabled.
 */
void lull_cuda_watch_calls(bool is_on);
void lull_cuda_watch_wrapped(void);

/* Disable those that are left; once, and so often again. False if some are left. */
bool lull_cuda_let_go(u32 n_tries);
u32 lull_cuda_n_calls_on(void);

/* CUPTI was detached, and has none of them. */
void lull_cuda_forget_calls(void);

/* True if calls are recorded without stacks, and kernels are not measured. */
bool lull_cuda_is_plain(void);

/*
 * A launch of the runtime that is timed by its wrapper, without CUPTI's callbacks for it: the
 * thread, or NULL if nothing is recorded. Both keep errno.
 */
struct lull_thread *lull_cuda_launch_begins(void);
void lull_cuda_launch_ends(struct lull_thread *t, const struct lull_text *name, int result);

/*
 * cuda_runtime.c: put wrappers into the offset tables of files that launch through libcudart, also
 * of those loaded since the last call. Cheap if there are none, unless `is_again`; not safe in a
 * signal handler.
 */
void lull_cuda_wrap(bool is_again);

/* Take them out again. */
void lull_cuda_unwrap(void);

/* Whether a runtime call of this name needs no callback; enable or disable the wrappers. */
bool lull_cuda_is_wrapped_call(const char *name);
void lull_cuda_wrap_on(bool is_on);

/* A callback about a context or a module (cuda_objects.c). */
void lull_cuda_resource(u32 cbid, const void *data);

/* Turn callbacks about contexts and modules on or off. */
void lull_cuda_watch_resources(bool is_on);

/* Enable the requested unified memory records, once there is a context. */
void lull_cuda_watch_memory(bool is_on);

/* The program named a device, context or stream through NVTX; LULL_NAMED_*. */
void lull_cuda_named(u32 what, u64 handle, const char *name, size_t len);

/* Enable or disable a kind of record, or a callback, for one user of it; returns CUPTI's result. */
int lull_cuda_want_kind(u32 kind, u32 who, bool is_on);
int lull_cuda_want_call(u32 domain, u32 cbid, u32 who, bool is_on);

/* 1 while another tool is subscribed: it gets its callbacks through us. */
extern _Atomic u32 lull_cuda_has_neighbour __attribute__((visibility("hidden")));

/* Forward a callback, the records of a buffer, or a count of lost ones to another tool. */
void lull_cuda_share_called(u32 domain, u32 cbid, const void *data);
void lull_cuda_share_buffer(void *context, u32 stream, u8 *buffer, size_t valid_bytes);
void lull_cuda_share_dropped(u64 n);

/* True if another tool gets records of this kind. */
bool lull_cuda_share_has(u32 kind);

/* True if another tool uses CUPTI through us, or has done so. */
bool lull_cuda_share_is_used(void);

/* CUPTI was detached: nothing is enabled any more. */
void lull_cuda_share_reset(void);

/* Our subscription (cuda_attach.c). */
void *lull_cuda_subscriber(void);

/* Attach to CUPTI if we are not attached; false if that fails, with the reason counted. */
bool lull_cuda_attach(void);

/* Attached? Permanently detached? */
bool lull_cuda_is_attached(void);
bool lull_cuda_is_detached(void);

/*
 * A recording has ended: true if calls have to be followed further, because CUPTI will be detached.
 */
bool lull_cuda_follow_on(void);

/* Prepare to detach; the flushing thread calls it repeatedly. */
void lull_cuda_detach_soon(void);

/* In a program that was attached to and left before: attaching to CUPTI is possible again. */
void lull_cuda_attach_anew(void);

/*
 * The thread of lull attach, which is in no call, tries to detach. It leaves the first tries to the
 * program's launches.
 */
void lull_cuda_detach_aside(int n_tries);

/*
 * It could not, and the program goes on with CUPTI: with everything off, until lull_cuda_attach().
 */
void lull_cuda_stay_idle(void);

/*
 * The program called the agent outside of CUDA calls, such as at a step: detach if that is due.
 * And: the program ended a recording itself: detach now if it was the last, which takes
 * milliseconds.
 */
void lull_cuda_detach_here(void);
void lull_cuda_detach_now(void);

/* The same where the thread may be about to wait for another one. */
void lull_cuda_detach_waiting(void);

/* Whether several threads call CUDA, so that there is hardly a moment to detach. */
bool lull_cuda_is_crowded(void);

/*
 * The program does something that makes detaching unsafe: permanently; while it captures a graph.
 */
void lull_cuda_unsafe(void);
void lull_cuda_captured(bool is_begin);

/* The program uses a CUDA graph. Often; cheap. */
void lull_cuda_graph_seen(void);
void lull_cuda_forget_captures(void); /* their ends will not be seen */

/* Never detach again; if a thread is detaching, wait until it is done, a second at most. */
void lull_cuda_keep_attached(void);

/* Whether a thread is in this call, as far as is known; also through one of the runtime's. */
bool lull_cuda_is_in_call(u32 domain, u32 cbid);

/* Callbacks are about to be enabled, and none is: calls that began before are not known. */
void lull_cuda_begin_time(void);

/* A call starts or ends while nothing is recorded; `call` says which. */
void lull_cuda_follow_call(union lull_cuda_key call, bool is_end);

/* The end of a launch by a wrapper that began while nothing was recorded, or in another call. */
void lull_cuda_follow_launch_end(union lull_cuda_key call);

/* Count why CUPTI cannot be used: an issue for the report, with CUPTI's own message; false. */
bool lull_cuda_refuse(enum lull_issue issue, const char *what, const char *detail);
bool lull_cuda_refuse_result(enum lull_issue issue, const char *what, int rc);

/* True if nothing more can be recorded in this session. */
bool lull_cuda_is_over(void);

/* Clock for CUPTI's timestamps: the counter that all events use. */
static inline u64 lull_cuda_now(void)
{
	return lull_time();
}

/* A recording may start at any time, or is about to: CUPTI must be on before. */
static inline bool lull_cuda_is_watching(void)
{
	const struct lull_control *c = lull_agent.control;
	u32 watch = atomic_load_explicit(&c->watch, memory_order_relaxed);

	if (!watch || (watch & (LULL_WATCH_STEPS | LULL_WATCH_PROGRAM | LULL_WATCH_DUTY)))
		return atomic_load(&c->armed) != 0 && !lull_cuda_is_over();
	return !lull_cuda_is_over();
}

/* Start the CUDA source in this process; `is_needed`: attach to CUPTI now. */
void lull_cuda_set_up(bool is_needed);

/* True in the process that uses CUDA; a forked child must never call CUPTI. */
bool lull_cuda_is_mine(void);

/* Wake the thread that attaches, detaches and flushes, and give it a millisecond. */
void lull_cuda_rouse(void);

/*
 * The process is about to end: flush CUPTI once, and wait a second at most. Safe in a signal
 * handler.
 */
void lull_cuda_flush_at_exit(void);

#endif
