/*
 * term - the terminal (how wide, may it be coloured) and numbers as people read them.
 *
 * Buffers:  the format functions fill a small struct that is returned by value, so that several can
 *           be used in one printf(): printf("%s of %s", lull_format_bytes(a).text,
 *           lull_format_bytes(b).text).
 * Threads:  any; nothing is kept.
 */
#ifndef LULL_TEXT_TERM_H
#define LULL_TEXT_TERM_H

#include <stdio.h>

#include "base/types.h"

/* Tables never become narrower or wider than this, whatever the terminal says. */
#define LULL_TERM_MIN_WIDTH 80
#define LULL_TERM_MAX_WIDTH 200

enum lull_colour {
	LULL_COLOUR_NONE,
	LULL_COLOUR_BOLD,
	LULL_COLOUR_DIM,
	LULL_COLOUR_GREEN,
	LULL_COLOUR_YELLOW,
	LULL_COLOUR_RED,
	LULL_COLOUR_BLUE,
	LULL_COLOUR_MAGENTA,
	LULL_COLOUR_CYAN,
};

struct lull_number {
	char text[48];
};

/* Whether the stream is a terminal. */
bool lull_term_is_tty(FILE *stream);

/*
 * Columns of the terminal of the stream, within the limits above; the minimum if it is not a
 * terminal.
 */
int lull_term_width(FILE *stream);

/* Whether to colour: a terminal that is not dumb, and no NO_COLOR in the environment. */
bool lull_term_has_colour(FILE *stream);

/* Whether text may have characters beyond ASCII, as the locale of the environment says. */
bool lull_term_is_utf8(void);

/* The escape sequence that switches to the colour, NONE switches back; "" unless `is_on`. */
const char *lull_term_colour(enum lull_colour colour, bool is_on);

/* Columns that UTF-8 text takes, one per character. */
size_t lull_term_columns(const char *text);

/*
 * Print text broken at blanks so that no line passes `width`, with a newline at the end. The cursor
 * is taken to be at column `indent` already; the following lines are indented to there.
 */
void lull_term_wrap(FILE *to, const char *text, int indent, int width);

/* The same of formatted text, after `indent` blanks. */
void lull_term_say(FILE *to, int indent, int width, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* The same of a line that programs may read as well: it is broken on a terminal only. */
void lull_term_line(FILE *to, const char *text, int indent);

/* 850 ns, 1.23 ms, 12.3 s, 5 min 12 s. */
struct lull_number lull_format_ns(u64 dur_ns);

/* 512 B, 4.5 MiB. */
struct lull_number lull_format_bytes(u64 size_bytes);

/* 999, 12.3 k, 4.56 M. */
struct lull_number lull_format_count(u64 n);

/* A share as a percentage: 93, and 99.6 for what is nearly all, since 100 is all of it. */
struct lull_number lull_format_share(f64 share);

/* 1,234,567: every digit, grouped by three. */
struct lull_number lull_format_grouped(i64 n);

/*
 * The same for a number that is text already ("-1234.5"); digits after the point are not grouped.
 */
struct lull_number lull_format_group_text(const char *number);

#endif
