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
	if (n)
		memcpy(lull_vec_extend(v, n), from, n * v->elem_bytes);
}

void *lull_vec_get(const struct lull_vec *v, size_t ix)
{
	assert(ix < v->n);
	return (char *)v->at + ix * v->elem_bytes;
}
