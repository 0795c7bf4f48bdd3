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

/* Whether a line names a function, and whether that is this one. */
static bool names_function(const char *line, size_t len, const char *function, bool *is_it)
{
	static const char *const marks[] = { "Function : ", ".text." };
	size_t n_name = strlen(function);

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		const char *at = memmem(line, len, marks[i], strlen(marks[i]));
		size_t left;

		if (!at)
			continue;
		at += strlen(marks[i]);
		left = len - (size_t)(at - line);
		*is_it = left >= n_name && strncmp(at, function, n_name) == 0 &&
			 (left == n_name || strchr(" \t,:\r\"", at[n_name]));
		return true;
	}
	return false;
}

void lull_sass_parse(const char *text, const char *function, struct lull_vec *to)
{
	bool is_it = false;

	while (*text) {
		size_t len = strcspn(text, "\n");
		struct lull_sass s;

		if (!names_function(text, len, function, &is_it) && is_it &&
		    take_line(text, len, &s))
			*(struct lull_sass *)lull_vec_push(to) = s;
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
