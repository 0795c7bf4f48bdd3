/*
 * compile_note - what torch.compile says about a graph break or a recompilation.
 *
 * python/lull/_compile.py records each one as a mark of the hooks, whose name is the note:
 *
 *	graph break at FILE:LINE, FUNCTION: REASON
 */
#ifndef LULL_MODEL_THREAD_COMPILE_NOTE_H
#define LULL_MODEL_THREAD_COMPILE_NOTE_H

#include "base/types.h"
#include "trace/reader.h"

enum lull_compile_note_kind {
	LULL_NOTE_GRAPH_BREAK, /* a graph ends at this line, and Python goes on */
	LULL_NOTE_RECOMPILE,   /* a guard of the function that starts there has failed */
	LULL_NOTE_REFUSED,     /* the function that starts there is not compiled */
	LULL_N_NOTE_KINDS,
};

/* Texts are borrowed from the name; file and function are not terminated. */
struct lull_compile_note {
	enum lull_compile_note_kind kind;
	const char *file;
	size_t n_file;
	u32 line;
	const char *function;
	size_t n_function;
	const char *reason;
};

/* Read a note; false if the text is none. */
bool lull_compile_note_parse(const char *text, struct lull_compile_note *to);

/* The note that a label of a mark is; false if it is another one. */
bool lull_compile_note_of(struct lull_reader *r, u32 label, struct lull_compile_note *to);

/* "graph break", as the name starts. */
const char *lull_compile_note_word(enum lull_compile_note_kind kind);

#endif
