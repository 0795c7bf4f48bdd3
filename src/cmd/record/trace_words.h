/*
 * trace_words - the words of --trace, as wire/sources.def lists them.
 */
#ifndef LULL_CMD_RECORD_TRACE_WORDS_H
#define LULL_CMD_RECORD_TRACE_WORDS_H

#include "base/types.h"
#include "base/vec.h"

/* All words for --help, with those that count without the option. */
extern const char lull_trace_help[];

/* All words, for who gave another one. */
extern const char lull_trace_choices[];

/* The bits (LULL_SOURCE_*) that are on without --trace. */
u32 lull_trace_default(void);

/*
 * Add the bits of a word to `sources`, and the variables that the program has to get for it to
 * `env` (lull_opt_list_add()). False if it is none.
 */
bool lull_trace_word(const char *word, u32 *sources, struct lull_vec *env);

#endif
