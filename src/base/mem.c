#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is lost and what is not, besides this command; needs no memory when memory is gone. */
static char last_words[2048];

static void (*way_out)(const char *sentence);

void lull_mem_last_words(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(last_words, sizeof(last_words), fmt, args);
	va_end(args);
}

void lull_mem_give_up(void (*instead)(const char *sentence))
{
	way_out = instead;
}

static void *check(void *at, size_t n, size_t elem_bytes)
{
	if (at || !n || !elem_bytes)
		return at;
	if (way_out) {
		char sentence[128];

		snprintf(sentence, sizeof(sentence), "out of memory (%zu x %zu bytes)", n,
			 elem_bytes);
		way_out(sentence);
	}
	fprintf(stderr, "lull: out of memory (%zu x %zu bytes)%s%s\n", n, elem_bytes,
		*last_words ? "; " : "", last_words);
	exit(1);
}

void *lull_alloc(size_t n, size_t elem_bytes)
{
	return check(calloc(n, elem_bytes), n, elem_bytes);
}

void *lull_realloc(void *at, size_t n, size_t elem_bytes)
{
	return check(reallocarray(at, n, elem_bytes), n, elem_bytes);
}

char *lull_strndup(const char *text, size_t len)
{
	char *copy = lull_alloc(len + 1, 1);

	memcpy(copy, text, len);
	return copy;
}

char *lull_strdup(const char *text)
{
	return lull_strndup(text, strlen(text));
}

FILE *lull_memstream(char **at, size_t *len)
{
	return check(open_memstream(at, len), 1, sizeof(FILE));
}
