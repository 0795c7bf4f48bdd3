/*
 * arena - memory that the agent keeps until the process ends.
 *
 * What it gives: zeroed blocks, aligned to 8, that are never freed. Handles that a library keeps
 *                may point into it.
 * Memory:        one private mapping of address space, reserved on first use; pages are allocated
 *                when they are written.
 * Threads:       any, without locks. A forked child has its own copy at the same addresses.
 */
#ifndef LULL_AGENT_CORE_ARENA_H
#define LULL_AGENT_CORE_ARENA_H

#include "base/types.h"

/* A new block, or NULL when the arena is full or could not be mapped. */
void *lull_arena_take(size_t size_bytes);

/* True if `at` may be the address of a block: tells our handles from foreign ones. */
bool lull_arena_owns(const void *at);

#endif
