/*
 * intern - equal pieces of bytes get equal numbers.
 *
 * For texts and for structs without padding that serve as a key. Numbers are dense, start at 0 and
 * follow the order of the first adds.
 *
 * Ownership:      bytes are copied, aligned like a u64, with a NUL after them.
 */
#ifndef LULL_BASE_INTERN_H
#define LULL_BASE_INTERN_H

#include "base/map.h"
#include "base/types.h"
#include "base/vec.h"

struct lull_intern {
	struct lull_map by_hash;
	struct lull_vec offsets; /* private: u64, where in words each piece begins */
	struct lull_vec words;	 /* private: u64, the pieces */
};

/* Nothing in it. */
void lull_intern_init(struct lull_intern *in);

/* Free everything. */
void lull_intern_release(struct lull_intern *in);

/* The number of these bytes, a new one if they are new. */
u32 lull_intern_add(struct lull_intern *in, const void *bytes, size_t len);

/* The bytes of a number, valid until the next add. */
const void *lull_intern_get(const struct lull_intern *in, u32 number);

#endif
