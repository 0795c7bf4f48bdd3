/*
 * vec - a growing array of one element type.
 *
 *	struct lull_vec v;
 *	lull_vec_init(&v, sizeof(struct thing));
 *	struct thing *t = lull_vec_push(&v);	(zeroed; valid until the next push)
 *	struct thing *all = v.at;		(v.n of them)
 *	lull_vec_release(&v);
 */
#ifndef LULL_BASE_VEC_H
#define LULL_BASE_VEC_H

#include "base/types.h"

struct lull_vec {
	void *at;
	size_t n;
	size_t cap;
	size_t elem_bytes;
};

/* An empty array of elements of this size. */
void lull_vec_init(struct lull_vec *v, size_t elem_bytes);

/* Free the elements; v is empty afterwards and may be used again. */
void lull_vec_release(struct lull_vec *v);

/* Append one zeroed element and return it. */
void *lull_vec_push(struct lull_vec *v);

/* Append `n` zeroed elements and return the first. */
void *lull_vec_extend(struct lull_vec *v, size_t n);

/* Room for `n` more elements: neither zeroed nor counted, v->n is the caller's to raise. */
void *lull_vec_room(struct lull_vec *v, size_t n);

/* Append `n` elements copied from `from`. */
void lull_vec_add(struct lull_vec *v, const void *from, size_t n);

/*
 * How many elements have a key of at most `key`, where the key is the u64 at `key_off` in each and
 * the elements are sorted by it: the index of the first one after `key`.
 */
size_t lull_vec_upper(const struct lull_vec *v, size_t key_off, u64 key);

/* Element `ix`, which must exist. */
void *lull_vec_get(const struct lull_vec *v, size_t ix);

#endif
