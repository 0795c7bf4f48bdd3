/*
 * process - the parts of the process source that other files call; family of source_process.c.
 */
#ifndef LULL_AGENT_CORE_PROCESS_H
#define LULL_AGENT_CORE_PROCESS_H

#include "wire/wire.h"

/*
 * Files may have been loaded: tell the recorder and the sources. Cheap if none was;
 * keeps errno.
 */
void lull_process_loaded(void);

/*
 * A thread is about to be started: the same for files that were loaded without our dlopen(), but
 * not each time if threads are many.
 */
void lull_process_starts_thread(void);

/* In a forked child: it has started no threads. */
void lull_process_forked(void);

/*
 * Remember those variables of our environment that bring the agent into children. Once, before
 * main.
 */
void lull_process_keep_environment(void);

/*
 * Tell the name of a thread, 0 = the caller: LULL_EVENT_thread_name where the program names it for
 * the kernel, LULL_EVENT_thread_label where somebody names it for the reader of a report.
 */
void lull_process_name(enum lull_event_type type, u32 tid, const char *name, size_t len);

/* From here on an exec opens no files of its own, which a filter of system calls might forbid. */
void lull_process_sandboxed(void);

#endif
