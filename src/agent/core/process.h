/*
 * process - the parts of the process source that other files call; family of source_process.c.
 */
#ifndef LULL_AGENT_CORE_PROCESS_H
#define LULL_AGENT_CORE_PROCESS_H

#include "base/types.h"

/*
 * Files may have been loaded: tell the collector and the sources. Cheap if none was;
 * keeps errno.
 */
void lull_process_loaded(void);

/*
 * Remember those variables of our environment that bring the agent into children. Once, before
 * main.
 */
void lull_process_keep_environment(void);

/* From here on an exec opens no files of its own, which a filter of system calls might forbid. */
void lull_process_sandboxed(void);

#endif
