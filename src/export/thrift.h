/*
 * thrift - the compact protocol of Thrift, in which Parquet describes itself: what an encoder
 * needs.
 *
 *	struct lull_thrift t = LULL_THRIFT_INIT;
 *	lull_thrift_i64(&t, 3, n_rows);			(field 3)
 *	lull_thrift_list(&t, 4, LULL_THRIFT_STRUCT, n);	(field 4: n structs follow)
 *	  lull_thrift_begin(&t);
 *	  ...
 *	  lull_thrift_end(&t);
 *	lull_thrift_end(&t);				(the outermost one)
 *	t.bytes.at, t.bytes.len
 *
 * Fields of a struct go up. Nothing can fail.
 */
#ifndef LULL_EXPORT_THRIFT_H
#define LULL_EXPORT_THRIFT_H

#include <assert.h>
#include <string.h>

#include "base/str.h"
#include "base/types.h"

#define LULL_THRIFT_DEPTH 8

enum lull_thrift_type {
	LULL_THRIFT_TRUE = 1,
	LULL_THRIFT_FALSE = 2,
	LULL_THRIFT_I8 = 3,
	LULL_THRIFT_I32 = 5,
	LULL_THRIFT_I64 = 6,
	LULL_THRIFT_BINARY = 8,
	LULL_THRIFT_LIST = 9,
	LULL_THRIFT_STRUCT = 12,
};

struct lull_thrift {
	struct lull_str bytes;
	int depth;
	int last[LULL_THRIFT_DEPTH + 1]; /* number of the last field of each open struct */
};

#define LULL_THRIFT_INIT               \
	{                              \
		.bytes = LULL_STR_INIT \
	}

/* One byte. */
static inline void lull_thrift_byte(struct lull_thrift *t, unsigned v)
{
	char c = (char)v;

	lull_str_add(&t->bytes, &c, 1);
}

/* A number, seven bits a byte. */
static inline void lull_thrift_varint(struct lull_thrift *t, u64 v)
{
	for (; v >= 0x80; v >>= 7)
		lull_thrift_byte(t, (unsigned)(v & 0x7f) | 0x80);
	lull_thrift_byte(t, (unsigned)v);
}

/* A signed number, small ones short. */
static inline void lull_thrift_zigzag(struct lull_thrift *t, i64 v)
{
	lull_thrift_varint(t, (u64)v << 1 ^ (v < 0 ? UINT64_MAX : 0));
}

/* Number and type of a field; its value follows. */
static inline void lull_thrift_field(struct lull_thrift *t, int id, enum lull_thrift_type type)
{
	int step = id - t->last[t->depth];

	assert(step > 0 && step < 16);
	lull_thrift_byte(t, (unsigned)step << 4 | type);
	t->last[t->depth] = id;
}

/* Begin a struct that is an element of a list. */
static inline void lull_thrift_begin(struct lull_thrift *t)
{
	assert(t->depth < LULL_THRIFT_DEPTH);
	t->last[++t->depth] = 0;
}

/* End the innermost struct. */
static inline void lull_thrift_end(struct lull_thrift *t)
{
	lull_thrift_byte(t, 0);
	t->depth--;
}

/* Begin a struct that is a field. */
static inline void lull_thrift_struct(struct lull_thrift *t, int id)
{
	lull_thrift_field(t, id, LULL_THRIFT_STRUCT);
	lull_thrift_begin(t);
}

/* A struct without fields. */
static inline void lull_thrift_empty(struct lull_thrift *t, int id)
{
	lull_thrift_struct(t, id);
	lull_thrift_end(t);
}

/* A field of type i32, which is how enums are written, too. */
static inline void lull_thrift_i32(struct lull_thrift *t, int id, i32 v)
{
	lull_thrift_field(t, id, LULL_THRIFT_I32);
	lull_thrift_zigzag(t, v);
}

/* A field of type i64. */
static inline void lull_thrift_i64(struct lull_thrift *t, int id, i64 v)
{
	lull_thrift_field(t, id, LULL_THRIFT_I64);
	lull_thrift_zigzag(t, v);
}

/* A field of type i8. */
static inline void lull_thrift_i8(struct lull_thrift *t, int id, unsigned v)
{
	lull_thrift_field(t, id, LULL_THRIFT_I8);
	lull_thrift_byte(t, v);
}

/* A field of type bool. */
static inline void lull_thrift_bool(struct lull_thrift *t, int id, bool v)
{
	lull_thrift_field(t, id, v ? LULL_THRIFT_TRUE : LULL_THRIFT_FALSE);
}

/* A text or bytes that are an element of a list. */
static inline void lull_thrift_bytes(struct lull_thrift *t, const void *bytes, size_t len)
{
	lull_thrift_varint(t, len);
	lull_str_add(&t->bytes, bytes, len);
}

/* A field that is a text or bytes. */
static inline void lull_thrift_binary(struct lull_thrift *t, int id, const void *bytes, size_t len)
{
	lull_thrift_field(t, id, LULL_THRIFT_BINARY);
	lull_thrift_bytes(t, bytes, len);
}

/* A field that is a text. */
static inline void lull_thrift_text(struct lull_thrift *t, int id, const char *text)
{
	lull_thrift_binary(t, id, text, strlen(text));
}

/* A field that is a list; its n elements follow. */
static inline void lull_thrift_list(struct lull_thrift *t, int id, enum lull_thrift_type type,
				    size_t n)
{
	lull_thrift_field(t, id, LULL_THRIFT_LIST);
	if (n < 15) {
		lull_thrift_byte(t, (unsigned)n << 4 | type);
	} else {
		lull_thrift_byte(t, 0xf0u | type);
		lull_thrift_varint(t, n);
	}
}

#endif
