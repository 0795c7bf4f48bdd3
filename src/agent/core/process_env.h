/*
 * process_env - the environment with which the process starts children, or replaces itself by
 * exec(); part of process_exec.c.
 *
 * A program may start others with an environment that it built itself. Variables that the agent
 * needs are added where they are missing. A variable that exists with another value is kept, so
 * that a recorder started inside a recording has its own session. Lists (LD_PRELOAD, ASAN_OPTIONS)
 * are the exception: our entry is put before the existing ones. A program that cannot load the
 * agent gets the environment unchanged, but without the agent in LD_PRELOAD.
 *
 * All of this may run in the child of a vfork, in the memory of its parent, and on a small stack:
 *
 *	struct lull_child_env env;
 *
 *	lull_child_env_plan(&env, envp, can_hold);
 *	if (env.room_bytes)
 *		envp = lull_child_env_build(&env, alloca(env.room_bytes));
 */
#ifndef LULL_AGENT_CORE_PROCESS_ENV_H
#define LULL_AGENT_CORE_PROCESS_ENV_H

#include "base/types.h"

#define LULL_N_CHILD_VARS 7

struct lull_child_env {
	char *const *given;
	size_t n_given;
	size_t room_bytes; /* what the new one takes with its strings; 0: the given one will do */
	struct {
		u32 at; /* its place in the given one */
		u8 todo;
	} vars[LULL_N_CHILD_VARS];
};

/* What a child with this environment lacks, or has too much; nothing if it cannot be read. */
void lull_child_env_plan(struct lull_child_env *env, char *const *given, bool can_hold);

/* Make the new one in `room`, which it needs as long as it lives; the given one without room. */
char *const *lull_child_env_build(const struct lull_child_env *env, void *room);

/* Room that stays with the thread; NULL if there is none. Keeps errno. */
void *lull_child_env_room(size_t size_bytes);

/* The agent's path as LD_PRELOAD has it; NULL if the environment did not bring the agent. */
const char *lull_child_env_agent(void);

#endif
