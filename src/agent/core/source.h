/*
 * source - something the agent records.
 *
 * A source is one file source_X.c with a `const struct lull_source lull_source_X` at its end and
 * one line in wire/sources.def. start() runs once per image, in the constructor or after a fork,
 * before main.
 *
 * What it keeps of each thread is a struct of its own in thread_state.h.
 *
 * To add one:
 *   1. copy source_annotate.c to source_X.c;
 *   2. its lines in wire/sources.def: SOURCE, SOURCE_BIT, and TRACE for its word of --trace;
 *   3. if it writes a new kind of event: its line in wire/wire.def and its struct in wire/wire.h;
 *   4. its decoder in record/decode/; if that needs new columns: lines in trace/schema.def.
 */
#ifndef LULL_AGENT_CORE_SOURCE_H
#define LULL_AGENT_CORE_SOURCE_H

#include "base/types.h"

struct lull_source {
	/* May be NULL; must not fail: what cannot work counts an issue and stays off. */
	void (*start)(void);
};

#define SOURCE(name, bits) extern const struct lull_source lull_source_##name;
#include "wire/sources.def"

#endif
