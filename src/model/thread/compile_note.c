#include "model/thread/compile_note.h"

#include <stdlib.h>
#include <string.h>

#include "model/nest.h"

static const char *const words[LULL_N_NOTE_KINDS] = {
	[LULL_NOTE_GRAPH_BREAK] = "graph break",
	[LULL_NOTE_RECOMPILE] = "recompile",
	[LULL_NOTE_REFUSED] = "not compiled",
};

#define AT " at "

/* What follows ":LINE, " of a place; a colon that no number follows belongs to the file. */
static const char *after_line(const char *file, struct lull_compile_note *to)
{
	for (const char *colon = strchr(file, ':'); colon; colon = strchr(colon + 1, ':')) {
		const char *digits = colon + 1;
		size_t n = strspn(digits, "0123456789");

		if (n && n < 10 && strncmp(digits + n, ", ", 2) == 0) {
			to->n_file = (size_t)(colon - file);
			to->line = (u32)strtoul(digits, NULL, 10);
			return digits + n + 2;
		}
	}
	return NULL;
}

bool lull_compile_note_parse(const char *text, struct lull_compile_note *to)
{
	const char *colon;

	for (u32 kind = 0; kind < LULL_N_NOTE_KINDS; kind++) {
		size_t n = strlen(words[kind]);

		if (strncmp(text, words[kind], n) != 0 || strncmp(text + n, AT, strlen(AT)) != 0)
			continue;
		to->kind = (enum lull_compile_note_kind)kind;
		to->file = text + n + strlen(AT);
		to->function = after_line(to->file, to);
		colon = to->function ? strstr(to->function, ": ") : NULL;
		if (!colon)
			return false;
		to->n_function = (size_t)(colon - to->function);
		to->reason = colon + 2;
		return true;
	}
	return false;
}

bool lull_compile_note_of(struct lull_reader *r, u32 label, struct lull_compile_note *to)
{
	size_t n;
	const struct lull_label_row *labels = lull_reader_dim(r, LULL_TABLE_label, &n);

	if (!label || label > n || labels[label - 1].api != LULL_LABEL_API_HOOK)
		return false;
	return lull_compile_note_parse(lull_reader_string(r, labels[label - 1].name, NULL), to);
}

const char *lull_compile_note_word(enum lull_compile_note_kind kind)
{
	return words[kind];
}
