#include "cmd/record/trace_words.h"

#include <string.h>

#include "text/opt.h"
#include "wire/wire.h"

#define WORD_DEFAULT(word) ", " word
#define WORD_ASKED(word)   ", " word
#define WORD_ALIAS(word)
#define HELP_DEFAULT(word) ", " word "*"
#define HELP_ASKED(word)   ", " word
#define HELP_ALIAS(word)

const char lull_trace_choices[] = "none"
#define TRACE(when, word, bits)	     WORD_##when(word)
#define TRACE_BOTH(word, bits, more) ", " word "[-verbose]"
#include "wire/sources.def"
	;

const char lull_trace_help[] = "sources: none"
#define TRACE(when, word, bits)	     HELP_##when(word)
#define TRACE_BOTH(word, bits, more) ", " word "[-verbose]"
#include "wire/sources.def"
			       " (default: those with *)";

enum { DEFAULT, ASKED, ALIAS };

/* A word may have several lines: its bits, and a variable each. */
static const struct {
	const char *name;
	u32 sources;
	int when;
	const char *variable;
} lines[] = {
#define TRACE(when, word, bits) { word, bits, when, NULL },
#define TRACE_BOTH(word, bits, more) \
	{ word, bits, ASKED, NULL }, { word "-verbose", (bits) | (more), ASKED, NULL },
#define TRACE_ENV(word, variable) { word, 0, ASKED, variable },
#include "wire/sources.def"
};

u32 lull_trace_default(void)
{
	u32 sources = 0;

	for (size_t i = 0; i < LULL_COUNT_OF(lines); i++)
		if (lines[i].when == DEFAULT)
			sources |= lines[i].sources;
	return sources;
}

bool lull_trace_word(const char *word, u32 *sources, struct lull_vec *env)
{
	bool is_known = false;

	for (size_t i = 0; i < LULL_COUNT_OF(lines); i++) {
		if (strcmp(word, lines[i].name) != 0)
			continue;
		*sources |= lines[i].sources;
		if (lines[i].variable)
			lull_opt_list_add(env, lines[i].variable);
		is_known = true;
	}
	return is_known;
}
