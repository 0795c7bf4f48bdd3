/*
 * pickle - the plain values of a Python pickle, read without running anything.
 *
 * What it gives:  numbers, texts, lists, tuples and dictionaries as a tree of values.
 * What it checks: every opcode and length. A pickle is a program that may import modules and call
 *                 functions; of its opcodes only those are known here that make plain values, and
 *                 any other one is refused (LULL_E_UNSUPPORTED), before anything is done.
 * Versions:       protocols 2 to 5, binary; that is what Python 3 writes.
 * Shared values:  a list may be in many places, and even in itself: whoever walks the tree must
 *                 bound its steps.
 * Ownership:      texts borrow from the bytes.
 * Memory:         at most 16 bytes for each byte of the pickle, mostly much less.
 */
#ifndef LULL_IMPORT_PICKLE_H
#define LULL_IMPORT_PICKLE_H

#include "base/err.h"
#include "base/map.h"
#include "base/types.h"
#include "base/vec.h"

/* Larger ones are refused: values know their texts by 32-bit offsets. */
#define LULL_PICKLE_MAX_BYTES (2048ULL << 20)

struct lull_pickle {
	const u8 *bytes;
	size_t n_bytes;
	u32 root;		/* the value that it is, 0 if it is none */
	size_t off;		/* private */
	struct lull_vec values; /* private: struct value; ids count from 1 */
	struct lull_vec parts;	/* private: struct part, pieces of containers */
	struct lull_vec items;	/* private: u32, what containers have */
	struct lull_vec stack;	/* private: u32 */
	struct lull_vec marks;	/* private: u32, heights of the stack */
	struct lull_map memo;	/* private: number to value */
};

/* Read it. LULL_E_FORMAT: it is damaged or ends early. The caller releases *p in any case. */
int lull_pickle_parse(struct lull_pickle *p, const u8 *bytes, size_t n_bytes, struct lull_err *err);

/* Free it. */
void lull_pickle_release(struct lull_pickle *p);

/* The value of a key, among the first 64 of a dictionary; 0 if there is none, or `dict` is none. */
u32 lull_pickle_get(const struct lull_pickle *p, u32 dict, const char *key);

/* A whole number; `otherwise` if the value is none. */
i64 lull_pickle_int(const struct lull_pickle *p, u32 value, i64 otherwise);

/* A text and its length; "" if the value is none. It is not terminated. */
const char *lull_pickle_text(const struct lull_pickle *p, u32 value, size_t *len);

/* Whether the value is this text. */
bool lull_pickle_is(const struct lull_pickle *p, u32 value, const char *text);

/* Where a walk over a list is. */
struct lull_pickle_walk {
	u32 part;
	u32 ix;
};

/* Start at the first item of a list or tuple; of any other value there is none. */
struct lull_pickle_walk lull_pickle_walk(const struct lull_pickle *p, u32 list);

/* The next item, 0 at the end. */
u32 lull_pickle_next(const struct lull_pickle *p, struct lull_pickle_walk *walk);

#endif
