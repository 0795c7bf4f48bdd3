/*
 * oscall - time a call of the C library; inline, on the hot path of every wrapper.
 *
 * lull_timed_NAME(arguments) calls the real function and, if that took longer than the threshold,
 * writes an `oscall` event. One exists for each line of wire/osrt.def; wrappers end in it:
 *
 *	int close(int fd)
 *	{
 *		if (!lull_oscall_is_on())
 *			return lull_real.close(fd);	a tail call: it costs a load and a branch
 *		return lull_timed_close(fd);
 *	}
 *
 * What it promises: result, errno and cancellation are those of the real call; nothing is held
 * while it runs.
 * Nesting:          timed calls that libc makes or lets others make inside an OUTER call are not
 *                   recorded.
 *
 * A call may never return: the thread is cancelled, or a signal handler jumps out of it. So there
 * is no depth to count down. A LEAF call leaves no mark at all. For an OUTER one the thread
 * remembers where on the stack its record lies, and a later call is inside that one only if it is
 * deeper (stacks grow down) and the record is still there.
 */
#ifndef LULL_AGENT_CALLS_OSCALL_H
#define LULL_AGENT_CALLS_OSCALL_H

#include "agent/core/real.h"
#include "agent/core/ring.h"
#include "agent/core/source.h"
#include "agent/core/stack.h"

enum lull_call_nest { LEAF, OUTER };

/* A call on its way, in the frame of its lull_timed_*. */
struct lull_oscall {
	struct lull_thread *t;
	u64 start;
};

struct lull_osrt {
	const _Atomic u32 *record; /* &control->record once the source has started, else a zero */
	_Atomic u32 is_pointing;   /* calls tell that their thread is in no call of CUDA */
};

extern struct lull_osrt lull_osrt __attribute__((visibility("hidden")));

#define OSCALL(ix, kind, nest, type, name, params, args, worth) type lull_timed_##name params;
#include "wire/osrt.def"
#undef OSCALL

/*
 * True if the call the thread remembers is really on its way. Slow: it has to look at memory that
 * may be gone.
 */
bool lull_oscall_is_inside(struct lull_thread *t);

/*
 * Write the event of a call that took dur_ticks; keeps errno. `regs` are those of the function that
 * made it.
 */
void lull_oscall_record(const struct lull_oscall *call, u64 dur_ticks,
			const struct lull_wire_oscall *e, const struct lull_wire_regs *regs);

/*
 * osrt_spare.c: leave the locks of the CUDA libraries and of Python alone. Cheap if no file was
 * loaded since, unless it is to look again; keeps errno. Not legal in a signal handler.
 */
void lull_osrt_spare(bool is_again);

/*
 * osrt_late.c: put the wrappers into the offset tables of a program that runs already, also of
 * files that were loaded since; take them out. Not legal in a signal handler.
 */
void lull_osrt_enter(void);
void lull_osrt_withdraw(void);

/*
 * Nothing is recorded any more: let calls of the program tell sources that it is in no call of a
 * library (lull_sources_calls()). Wrappers are taken out of CUDA's own libraries before.
 */
void lull_osrt_points(bool is_on);

/* The program calls a function of the C library, from its own code, and not in a handler. */
static inline void lull_osrt_point(void)
{
	if (__builtin_expect(atomic_load_explicit(&lull_osrt.is_pointing, memory_order_relaxed), 0))
		lull_sources_calls();
}

/* True if calls are to be timed. */
static inline bool lull_oscall_is_on(void)
{
	return __builtin_expect(atomic_load_explicit(lull_osrt.record, memory_order_relaxed) != 0,
				0);
}

/*
 * A call begins; false if it is not to be timed because it is part of another, or the agent's own.
 */
static inline bool lull_oscall_begin(struct lull_oscall *call, enum lull_call_nest nest)
{
	struct lull_thread *t = lull_thread();

	if (__builtin_expect(!t || t->is_quiet, 0))
		return false;
	if (__builtin_expect(t->osrt.call > (u64)call, 0) && lull_oscall_is_inside(t))
		return false;
	call->t = t;
	call->start = lull_time();
	if (nest == OUTER) {
		t->osrt.start = call->start;
		/* A handler that comes from here on finds the record complete. */
		atomic_signal_fence(memory_order_seq_cst);
		t->osrt.call = (u64)call;
	}
	return true;
}

/* The call has returned; gives its length in ticks. */
static inline u64 lull_oscall_end(struct lull_oscall *call, enum lull_call_nest nest)
{
	u64 dur_ticks = lull_time() - call->start;

	if (nest == OUTER)
		call->t->osrt.call = 0;
	return dur_ticks;
}

#endif
