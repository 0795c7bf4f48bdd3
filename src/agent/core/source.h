/*
 * source - a kind of events that the agent records.
 *
 * A source is one file source_X.c with a `const struct lull_source lull_source_X` at its end, and
 * its lines in wire/sources.def. The agent's core iterates over that list and names no source: to
 * notify sources, it calls the functions below of each source that is enabled, in the order of the
 * list. Each of them may be NULL, and none can fail: a source that cannot work counts an issue and
 * stays disabled.
 *
 * Per-thread state of a source is its struct in thread_state.h.
 *
 * To add one:
 *   1. copy source_annotate.c to source_X.c;
 *   2. its lines in wire/sources.def: SOURCE, SOURCE_BIT, and TRACE for its word of --trace, which
 *      the manual pages of lull profile and lull launch have to explain (tools/check-docs);
 *   3. if it writes a new kind of event: its line in wire/wire.def and its struct in wire/wire.h;
 *   4. its decoder in record/decode/; if that needs new columns: lines in trace/schema.def.
 */
#ifndef LULL_AGENT_CORE_SOURCE_H
#define LULL_AGENT_CORE_SOURCE_H

#include "base/types.h"

struct lull_thread;

struct lull_source {
	/* Once per image: in the constructor before main, in a forked child, or on the
	 * agent's own thread in a program that runs (lull_agent.is_late). */
	void (*start)(void);
	/* start() has work to do in each forked child; see also lull_sources_follow_forks(). */
	bool is_of_each_fork;
	/* Files may have been loaded. Often; cheap if there was none. Keep errno. */
	void (*loaded)(void);
	/* A recording is new to this thread: forget what is of the one before. */
	void (*renewed)(struct lull_thread *t);
	/* The program is about to begin a recording. False: not ready for it, waited 1 ms. */
	bool (*prepare)(void);
	/* The program has begun a recording, on this thread. */
	void (*began)(void);
	/* The program has ended the recording itself and can wait for some milliseconds. */
	void (*ended)(void);
	/* The program tells us something, in no call of a library. Often. */
	void (*passed)(void);
	/* It calls the C library, in no call of another one, perhaps to wait for a thread. */
	void (*calls)(void);
	/* The process ends by exit(): write what is held back. */
	void (*flush)(void);
	/* The same where no exit handlers run, legal in a signal handler and in a vfork child. */
	void (*leave)(void);
	/* The same before an exec, which may fail: the process may continue. */
	void (*execs)(void);
	/* From here on nothing of ours may call the kernel. */
	void (*stop)(void);
	/* Now and then on the agent's own thread, which may wait, where the agent came late. */
	void (*idle)(void);
	/* Leave a program that goes on: nothing of ours may be called after this (late.c). */
	void (*withdraw)(void);
};

#define SOURCE(name, bits) extern const struct lull_source lull_source_##name;
#include "wire/sources.def"

/* Start what the recorder asked for; once per image. The others do nothing before this. */
void lull_sources_start(void);

/* Call the function of that name of each source that is on. */
void lull_sources_loaded(void);
void lull_sources_renewed(struct lull_thread *t);
void lull_sources_began(void);
void lull_sources_ended(void);
void lull_sources_passed(void);
void lull_sources_calls(void);
void lull_sources_flush(void);
void lull_sources_leave(void);
void lull_sources_execs(void);
void lull_sources_stop(void);
void lull_sources_idle(void);
void lull_sources_withdraw(void);

/*
 * From here on start() is called in each forked child at once: there is something that the child
 * has to tell, or that is looked at from outside. Otherwise its image may wait for its first event,
 * and start() is left out.
 */
void lull_sources_follow_forks(void);

/* True if all are ready for a recording. */
bool lull_sources_prepare(void);

#endif
