/*
 * process - the parts of the process source that other files call; family of source_process.c.
 */
#ifndef LULL_AGENT_PROCESS_H
#define LULL_AGENT_PROCESS_H

/*
 * Files may have been loaded: tell the collector which, and look for Python. Cheap if none was;
 * keeps errno.
 */
void lull_process_loaded(void);

/*
 * Remember those variables of our environment that bring the agent into children. Once, before
 * main.
 */
void lull_process_keep_environment(void);

#endif
