/*
 * json - write JSON as a stream, without building a document.
 *
 *	struct lull_json j;
 *	lull_json_init(&j, stdout);
 *	lull_json_object(&j);
 *	lull_json_key(&j, "rows");
 *	lull_json_array(&j);
 *	lull_json_u64(&j, 1);
 *	lull_json_end(&j);	(the array)
 *	lull_json_end(&j);	(the object)
 *
 * What it gives:  commas, quotes and escapes; a string that is not UTF-8 gets U+FFFD for each bad
 *                 byte, and a number that JSON cannot say (NaN, infinity) becomes null. The result
 *                 is always valid JSON.
 * What it leaves: write errors stay in the FILE; its owner checks ferror() at the end.
 * Limits:         LULL_JSON_DEPTH nested objects and arrays.
 */
#ifndef LULL_TEXT_JSON_H
#define LULL_TEXT_JSON_H

#include <stdio.h>

#include "base/types.h"

#define LULL_JSON_DEPTH 64

struct lull_json {
	FILE *to;
	int depth;
	bool is_pretty;		     /* line breaks and indentation */
	bool has_key;		     /* a key was written, its value is next */
	char close[LULL_JSON_DEPTH]; /* '}' or ']' of each open level */
	bool has_any[LULL_JSON_DEPTH + 1];
};

/* Start a document on `to`, compact; set is_pretty afterwards for indented output. */
void lull_json_init(struct lull_json *j, FILE *to);

/* Open an object. */
void lull_json_object(struct lull_json *j);

/* Open an array. */
void lull_json_array(struct lull_json *j);

/* Close the innermost object or array. */
void lull_json_end(struct lull_json *j);

/* The key of the next value; inside an object only. */
void lull_json_key(struct lull_json *j, const char *key);

/* A string value, NUL-terminated; NULL gives null. */
void lull_json_text(struct lull_json *j, const char *text);

/* A string value of `len` bytes, which may hold NULs. */
void lull_json_bytes(struct lull_json *j, const char *text, size_t len);

/* An unsigned integer, all digits. */
void lull_json_u64(struct lull_json *j, u64 v);

/* A signed integer, all digits. */
void lull_json_i64(struct lull_json *j, i64 v);

/* A number that reads back as the same double. */
void lull_json_f64(struct lull_json *j, f64 v);

/* A number with this many digits after the point. */
void lull_json_fixed(struct lull_json *j, f64 v, int decimals);

/* true or false. */
void lull_json_bool(struct lull_json *j, bool v);

/* null. */
void lull_json_null(struct lull_json *j);

/* A value that is JSON already, `len` bytes of it. */
void lull_json_raw(struct lull_json *j, const char *text, size_t len);

/* A key and its value in one. */
static inline void lull_json_key_text(struct lull_json *j, const char *key, const char *text)
{
	lull_json_key(j, key);
	lull_json_text(j, text);
}

static inline void lull_json_key_u64(struct lull_json *j, const char *key, u64 v)
{
	lull_json_key(j, key);
	lull_json_u64(j, v);
}

static inline void lull_json_key_i64(struct lull_json *j, const char *key, i64 v)
{
	lull_json_key(j, key);
	lull_json_i64(j, v);
}

static inline void lull_json_key_f64(struct lull_json *j, const char *key, f64 v)
{
	lull_json_key(j, key);
	lull_json_f64(j, v);
}

static inline void lull_json_key_fixed(struct lull_json *j, const char *key, f64 v, int decimals)
{
	lull_json_key(j, key);
	lull_json_fixed(j, v, decimals);
}

static inline void lull_json_key_array(struct lull_json *j, const char *key)
{
	lull_json_key(j, key);
	lull_json_array(j);
}

#endif
