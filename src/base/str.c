#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void lull_str_release(struct lull_str *s)
{
	free(s->at);
	*s = (struct lull_str)LULL_STR_INIT;
}

void lull_str_clear(struct lull_str *s)
{
	s->len = 0;
	if (s->at)
		s->at[0] = '\0';
}

static void reserve(struct lull_str *s, size_t extra)
{
	size_t need = s->len + extra + 1;
	size_t cap = s->cap ? s->cap : 64;

	while (cap < need)
		cap *= 2;
	if (cap == s->cap)
		return;
	s->at = lull_realloc(s->at, cap, 1);
	s->cap = cap;
}

void lull_str_add(struct lull_str *s, const char *text, size_t len)
{
	reserve(s, len);
	if (len)
		memcpy(s->at + s->len, text, len);
	s->len += len;
	s->at[s->len] = '\0';
}

void lull_str_puts(struct lull_str *s, const char *text)
{
	lull_str_add(s, text, strlen(text));
}

void lull_str_vaddf(struct lull_str *s, const char *fmt, va_list ap)
{
	va_list again;
	int n;

	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	if (n < 0)
		return;
	reserve(s, (size_t)n);
	vsnprintf(s->at + s->len, (size_t)n + 1, fmt, ap);
	s->len += (size_t)n;
}

void lull_str_addf(struct lull_str *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	lull_str_vaddf(s, fmt, ap);
	va_end(ap);
}

const char *lull_str_text(const struct lull_str *s)
{
	return s->at ? s->at : "";
}
