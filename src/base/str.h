/*
 * str - a growing, always NUL-terminated piece of text.
 *
 * Start with LULL_STR_INIT; `at` is never NULL after the first add and "" semantics hold through
 * lull_str_text().
 */
#ifndef LULL_BASE_STR_H
#define LULL_BASE_STR_H

#include <stdarg.h>

#include "base/types.h"

struct lull_str {
	char *at;
	size_t len;
	size_t cap;
};

#define LULL_STR_INIT      \
	{                  \
		NULL, 0, 0 \
	}

/* Free the text; s is empty afterwards. */
void lull_str_release(struct lull_str *s);

/* Drop the text, keep the memory. */
void lull_str_clear(struct lull_str *s);

/* Append bytes. */
void lull_str_add(struct lull_str *s, const char *text, size_t len);

/* Append a string. */
void lull_str_puts(struct lull_str *s, const char *text);

/* Append formatted text. */
void lull_str_addf(struct lull_str *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * Room for `len` bytes after the text, to be written to and taken by lull_str_take(). Valid until
 * anything else is appended.
 */
char *lull_str_room(struct lull_str *s, size_t len);

/* The text now ends at `end`, which lies in the room. */
void lull_str_take(struct lull_str *s, const char *end);

/* Write the digits of a whole number, at most 20 bytes, to `at`; returns where they end. */
char *lull_str_put_i64(char *at, i64 value);

/* Append a whole number; many times faster than "%lld". */
void lull_str_add_i64(struct lull_str *s, i64 value);

/* Append what "%.*f" gives, to the last digit; many times faster up to 3 decimals. */
void lull_str_add_fixed(struct lull_str *s, f64 value, int decimals);

/* Append formatted text from an argument list. */
void lull_str_vaddf(struct lull_str *s, const char *fmt, va_list ap);

/* The text, "" when nothing was added. Borrowed. */
const char *lull_str_text(const struct lull_str *s);

#endif
