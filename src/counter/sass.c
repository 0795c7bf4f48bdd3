#include "counter/sass.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A copy of text up to `len`, cut to the room there is. */
static void copy(char *to, size_t room, const char *text, size_t len)
{
	snprintf(to, room, "%.*s", (int)(len < room ? len : room - 1), text);
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* R4, UR12, not RZ (always 0) and not the R of a mnemonic. */
static size_t register_len(const char *at)
{
	size_t prefix = at[0] == 'U' && at[1] == 'R' ? 2 : at[0] == 'R' ? 1 : 0, len = prefix;

	while (prefix && isdigit((unsigned char)at[len]))
		len++;
	return prefix && len > prefix && !is_word(at[len]) ? len : 0;
}

static bool has_word(const char *list, const char *word, size_t len)
{
	for (const char *at = list; (at = strstr(at, word)); at++)
		if ((at == list || at[-1] == ' ') && (!at[len] || at[len] == ' '))
			return true;
	return false;
}

static void find_registers(struct lull_sass *s)
{
	for (const char *at = s->text; *at; at++) {
		size_t len = at == s->text || !is_word(at[-1]) ? register_len(at) : 0;
		size_t used = strlen(s->registers);
		char word[16];

		if (!len || len >= sizeof(word))
			continue;
		copy(word, sizeof(word), at, len);
		if (has_word(s->registers, word, len) || used + len + 2 > sizeof(s->registers))
			continue;
		snprintf(s->registers + used, sizeof(s->registers) - used, "%s%s", used ? " " : "",
			 word);
	}
}

/* An instruction: a comment with its offset in hex, then text up to a semicolon. */
static bool take_line(const char *line, size_t len, struct lull_sass *s)
{
	const char *end = line + len, *stop;
	char *after;

	while (line < end && isspace((unsigned char)*line))
		line++;
	if (end - line < 6 || strncmp(line, "/*", 2) != 0 || !isxdigit((unsigned char)line[2]))
		return false;
	memset(s, 0, sizeof(*s));
	s->offset_bytes = strtoull(line + 2, &after, 16);
	/* Encodings stand in comments, too, but after 0x. */
	if (line[3] == 'x' || strncmp(after, "*/", 2) != 0)
		return false;
	for (line = after + 2; line < end && isspace((unsigned char)*line);)
		line++;
	for (stop = line; stop < end && *stop != ';';)
		stop++;
	end = stop;
	while (end > line && isspace((unsigned char)end[-1]))
		end--;
	if (line < end && *line == '@') {
		size_t n = strcspn(line, " \t;");

		copy(s->predicate, sizeof(s->predicate), line, n);
		for (line += n; line < end && isspace((unsigned char)*line);)
			line++;
	}
	copy(s->text, sizeof(s->text), line, line < end ? (size_t)(end - line) : 0);
	find_registers(s);
	return *s->text != '\0';
}

/* The text after a mark in a line, NULL if the line does not have it. */
static const char *after(const char *line, size_t len, const char *mark)
{
	const char *at = memmem(line, len, mark, strlen(mark));

	return at ? at + strlen(mark) : NULL;
}

/* What the lines read so far say about those that follow. */
struct place {
	const char *function;
	u32 capability; /* of the device; 0 if it is not known */
	u32 code;	/* for which the present code is made; 0 if nothing says so */
	u32 taken;	/* for which the instructions were made that were taken */
	bool is_it;
};

/*
 * A program has code for several chips, and cuobjdump prints all of it. A chip runs code that was
 * made for it or for an older one of the same major version, and the driver takes the newest.
 */
static bool is_better(const struct place *at)
{
	if (!at->capability || !at->code)
		return !at->taken || at->taken == at->code;
	return at->code / 10 == at->capability / 10 && at->code <= at->capability &&
	       at->code >= at->taken;
}

/* Whether a line says of what the next ones are part. */
static bool is_heading(const char *line, size_t len, struct place *at)
{
	const char *name;
	size_t n_name = strlen(at->function), left;

	if ((name = after(line, len, "code for sm_"))) {
		at->code = (u32)strtoul(name, NULL, 10);
		at->is_it = false;
		return true;
	}
	name = after(line, len, "Function : ");
	if (!name)
		name = after(line, len, ".text.");
	if (!name) {
		at->is_it = at->is_it && !after(line, len, ".section\t");
		return false;
	}
	left = len - (size_t)(name - line);
	at->is_it = left >= n_name && strncmp(name, at->function, n_name) == 0 &&
		    (left == n_name || strchr(" \t,:\r\"", name[n_name])) && is_better(at);
	return true;
}

void lull_sass_parse(const char *text, const char *function, u32 capability, struct lull_vec *to)
{
	struct place at = { .function = function, .capability = capability };
	size_t n_before = to->n;

	while (*text) {
		size_t len = strcspn(text, "\n");
		struct lull_sass s;

		if (!is_heading(text, len, &at) && at.is_it && take_line(text, len, &s)) {
			if (at.taken != at.code)
				to->n = n_before;
			at.taken = at.code;
			*(struct lull_sass *)lull_vec_push(to) = s;
		}
		text += len + (text[len] == '\n');
	}
}

const struct lull_sass *lull_sass_at(const struct lull_vec *all, u64 offset_bytes)
{
	const struct lull_sass *at = all->at;

	for (size_t i = 0; i < all->n; i++)
		if (at[i].offset_bytes == offset_bytes)
			return &at[i];
	return NULL;
}
