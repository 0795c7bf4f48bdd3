/*
 * process - the parts of the process source that other files call; family of source_process.c.
 */
#ifndef LULL_AGENT_CORE_PROCESS_H
#define LULL_AGENT_CORE_PROCESS_H

#include "base/types.h"

/*
 * Files may have been loaded: tell the collector which, and look for Python. Cheap if none was;
 * keeps errno.
 */
void lull_process_loaded(void);

/*
 * osrt_spare.c: leave the locks of the CUDA libraries and of Python alone. Cheap if no file was
 * loaded since, unless it is to look again; keeps errno. Not legal in a signal handler.
 */
void lull_osrt_spare(bool is_again);

/*
 * Remember those variables of our environment that bring the agent into children. Once, before
 * main.
 */
void lull_process_keep_environment(void);

/* From here on an exec opens no files of its own, which a filter of system calls might forbid. */
void lull_process_sandboxed(void);

#endif
