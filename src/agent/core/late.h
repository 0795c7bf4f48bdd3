/*
 * late - what sources ask where the agent came into a running program.
 */
#ifndef LULL_AGENT_CORE_LATE_H
#define LULL_AGENT_CORE_LATE_H

/* The folder of our package for Python, "" if there is none. */
const char *lull_late_python_path(void);

/* The path by which the program has loaded the agent. */
const char *lull_late_agent_path(void);

#endif
