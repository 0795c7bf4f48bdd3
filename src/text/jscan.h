/*
 * jscan - read JSON of any size as a stream, without building a document.
 *
 * A window moves over the text. The functions below return pointers into it. If a value is not
 * completely in the window they return LULL_JSCAN_MORE; the caller then goes back to the start of
 * the value, calls lull_jscan_refill() there, and tries again. Values are small compared with the
 * window, so little is read twice.
 *
 *	struct lull_jtext key;
 *	int got = lull_jscan_string(j, &key);
 *
 * What it takes:  more than JSON. Control characters in strings, bad UTF-8 and bad escapes are
 *                 taken as they are and repaired by lull_jtext_add(); NaN, Infinity and other words
 *                 are values that are absent; numbers may be strings.
 * Depth:          nothing here recurses; any depth is skipped.
 * Memory:         the window: 1 MiB, doubled up to LULL_JSCAN_MAX_BYTES for values that need it.
 * Speed:          strings are looked through 16 bytes at a time where the CPU can (NEON, SSE2),
 *                 8 elsewhere.
 * Threads:        one at a time.
 */
#ifndef LULL_TEXT_JSCAN_H
#define LULL_TEXT_JSCAN_H

#include "base/err.h"
#include "base/str.h"
#include "base/stream.h"
#include "base/types.h"

/* A value larger than this is skipped; no known trace has such an event. */
#define LULL_JSCAN_MAX_BYTES (16u << 20)

/* What a function found. */
enum lull_jscan_result {
	LULL_JSCAN_OK = 0,
	LULL_JSCAN_MORE = 1, /* the window ends inside: refill and try again */
	LULL_JSCAN_BAD = 2,  /* this is not JSON */
	LULL_JSCAN_END = 3,  /* of the object or array; it is after j->p */
};

struct lull_jscan {
	struct lull_stream *stream;
	char *window;	 /* private */
	size_t cap;	 /* private: without the padding */
	const char *p;	 /* the next character; never past `end` */
	const char *end; /* of what is in the window; a NUL is there */
	u64 window_off;	 /* private: where in the text the window begins */
	bool is_end;	 /* the text ends at `end` */
};

/* The raw text between the quotes of a string, or the raw text of a number or word. */
struct lull_jtext {
	const char *at;
	size_t len;
	bool has_escapes; /* there are backslashes in it */
};

/*
 * Read a piece of text that is in memory, such as an object that was taken whole; it is copied.
 * Ends with lull_jscan_release().
 */
void lull_jscan_init_text(struct lull_jscan *j, const struct lull_jtext *text);

/* Start to read. `stream` is borrowed and read from its current position. */
int lull_jscan_init(struct lull_jscan *j, struct lull_stream *stream, struct lull_err *err);

/* Free the window. */
void lull_jscan_release(struct lull_jscan *j);

/* Begin again with the stream, which the caller has rewound. */
int lull_jscan_restart(struct lull_jscan *j, struct lull_err *err);

/*
 * Get more text after `keep`, a place in the window that becomes j->p; what lies before it is
 * forgotten. LULL_E_NOT_FOUND if the text has ended or the window must not grow any more; *err is
 * then untouched. Another code if reading failed.
 */
int lull_jscan_refill(struct lull_jscan *j, const char *keep, struct lull_err *err);

/* Where in the text the next character lies. */
u64 lull_jscan_off(const struct lull_jscan *j);

/* Go to the next character that is not white space; it is at j->p, NUL if the window ends. */
char lull_jscan_peek(struct lull_jscan *j);

/* Take a string; j->p must be at its first quote and is then past its last one. */
enum lull_jscan_result lull_jscan_string(struct lull_jscan *j, struct lull_jtext *text);

/*
 * Take any value: a string gives what is between its quotes, anything else its characters as they
 * stand, objects and arrays included. *first receives its first character.
 */
enum lull_jscan_result lull_jscan_value(struct lull_jscan *j, struct lull_jtext *text, char *first);

/*
 * Take the key of the next pair of an object, up to its colon; j->p must be after the brace, or
 * after the value of the pair before.
 */
enum lull_jscan_result lull_jscan_pair(struct lull_jscan *j, struct lull_jtext *key);

/*
 * Skip any value, however large it is, refilling as needed. LULL_E_NOT_FOUND if the text ends in
 * it.
 */
int lull_jscan_skip(struct lull_jscan *j, struct lull_err *err);

/* The number in a text, without decimals; false if it does not begin with one. */
bool lull_jtext_i64(const struct lull_jtext *text, i64 *value);

/*
 * A number times 1000, exact up to three decimals and rounded after them: microseconds become
 * nanoseconds. False if there is none, or if it does not fit.
 */
bool lull_jtext_milli(const struct lull_jtext *text, i64 *value);

/* The number in a text; false if there is none. */
bool lull_jtext_f64(const struct lull_jtext *text, f64 *value);

/* Whether the text is exactly this one. */
bool lull_jtext_is(const struct lull_jtext *text, const char *word);

/*
 * Append the text with its escapes resolved, as UTF-8; what is none becomes U+FFFD. Returns how
 * often it did.
 */
size_t lull_jtext_add(struct lull_str *to, const struct lull_jtext *text);

#endif
