/*
 * locate - where the parts of this installation are, without a configured path.
 */
#ifndef LULL_RECORD_SESSION_LOCATE_H
#define LULL_RECORD_SESSION_LOCATE_H

#include "base/err.h"
#include "base/str.h"

/* The library that is loaded into the target. */
#define LULL_AGENT_NAME "liblull-agent.so"

/*
 * Set `path` to the absolute path of the agent library: $LULL_AGENT_PATH (the file, or its folder),
 * or beside this command, in ../lib or ../lib/lull of it, or in the folder it was installed to. The
 * copy that came with the command is preferred, because both must be of one version.
 * LULL_E_NOT_FOUND with the places that were tried.
 */
int lull_locate_agent(struct lull_str *path, struct lull_err *err);

/*
 * Set `path` to the folder with our Python package: `python` beside the agent, or in the folder
 * above it, where the sources have it. False if there is none.
 */
bool lull_locate_python(const char *agent_path, struct lull_str *path);

/*
 * Set `path` to CUPTI's library: $LULL_CUPTI_PATH, what the loader finds, or the usual places of
 * toolkits and of Python's packages. False if there is none. Loads it on the way.
 */
bool lull_locate_cupti(struct lull_str *path);

#endif
