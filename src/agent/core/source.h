/*
 * source - something the agent records.
 *
 * A source is one file source_X.c with a `const struct lull_source lull_source_X` at its end and
 * one line in sources.def. start() runs once per image, in the constructor or after a fork, before
 * main.
 *
 * What it keeps of each thread is a struct of its own in thread_state.h.
 *
 * To add one:
 *   1. copy source_annotate.c to source_X.c and give it its own enum lull_source bit in
 *   wire/wire.h; 2. add SOURCE(X) to sources.def;
 *   3. if it writes a new kind of event: a line in wire/wire.def, a struct in wire/wire.h, a
 *   decoder in
 *      launch/; if that needs new columns: lines in trace/schema.def.
 */
#ifndef LULL_AGENT_CORE_SOURCE_H
#define LULL_AGENT_CORE_SOURCE_H

#include "base/types.h"

struct lull_source {
	const char *name;
	u32 bit; /* LULL_SOURCE_*: started only if control->sources has it; 0 = always */
	/* May be NULL; must not fail: what cannot work counts an issue and stays off. */
	void (*start)(void);
};

#define SOURCE(name) extern const struct lull_source lull_source_##name;
#include "agent/core/sources.def"
#undef SOURCE

#endif
