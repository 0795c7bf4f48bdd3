/*
 * late - what sources ask where the agent came into a running program.
 */
#ifndef LULL_AGENT_CORE_LATE_H
#define LULL_AGENT_CORE_LATE_H

/* The folder of our package for Python, "" if there is none. */
const char *lull_late_python_path(void);

/* The path by which the program has loaded the agent. */
const char *lull_late_agent_path(void);

/*
 * What the program calls in place of getenv() while the agent is there. To NVTX, which asks at its
 * first call where a tool is, it says that the agent is one.
 */
char *lull_late_getenv(const char *name);

#endif
