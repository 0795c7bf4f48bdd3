/*
 * unit - cmocka with what it needs around it, and text that a function printed.
 */
#ifndef LULL_TEST_UNIT_UNIT_H
#define LULL_TEST_UNIT_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/skip.h"

/* A stream whose bytes can be compared: print into `to`, then unit_expect(). */
struct unit_stream {
	FILE *to;
	char *text;
	size_t len;
};

/* Open the stream. */
static inline void unit_open(struct unit_stream *s)
{
	*s = (struct unit_stream){ NULL, NULL, 0 };
	s->to = open_memstream(&s->text, &s->len);
	assert_non_null(s->to);
}

/* Compare what was printed with `expect`, and close the stream. */
static inline void unit_expect(struct unit_stream *s, const char *expect)
{
	fclose(s->to);
	assert_string_equal(s->text, expect);
	free(s->text);
}

#endif
