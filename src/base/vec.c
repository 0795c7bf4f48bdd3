#include "base/vec.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void lull_vec_init(struct lull_vec *v, size_t elem_bytes)
{
	*v = (struct lull_vec){ .elem_bytes = elem_bytes };
}

void lull_vec_release(struct lull_vec *v)
{
	free(v->at);
	lull_vec_init(v, v->elem_bytes);
}

static void grow(struct lull_vec *v, size_t n)
{
	size_t cap = v->cap ? v->cap : 16;

	while (cap < n)
		cap *= 2;
	if (cap == v->cap)
		return;
	v->at = lull_realloc(v->at, cap, v->elem_bytes);
	v->cap = cap;
}

void *lull_vec_room(struct lull_vec *v, size_t n)
{
	if (n > v->cap - v->n)
		grow(v, v->n + n);
	return (char *)v->at + v->n * v->elem_bytes;
}

void *lull_vec_extend(struct lull_vec *v, size_t n)
{
	char *first;

	grow(v, v->n + n);
	first = (char *)v->at + v->n * v->elem_bytes;
	memset(first, 0, n * v->elem_bytes);
	v->n += n;
	return first;
}

void *lull_vec_push(struct lull_vec *v)
{
	return lull_vec_extend(v, 1);
}

void lull_vec_add(struct lull_vec *v, const void *from, size_t n)
{
	if (!n)
		return;
	grow(v, v->n + n);
	memcpy((char *)v->at + v->n * v->elem_bytes, from, n * v->elem_bytes);
	v->n += n;
}

size_t lull_vec_upper(const struct lull_vec *v, size_t key_off, u64 key)
{
	size_t low = 0, high = v->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		u64 at_mid;

		memcpy(&at_mid, (const u8 *)v->at + mid * v->elem_bytes + key_off, sizeof(at_mid));
		if (at_mid <= key)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

void *lull_vec_get(const struct lull_vec *v, size_t ix)
{
	assert(ix < v->n);
	return (char *)v->at + ix * v->elem_bytes;
}
