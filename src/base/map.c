#include "base/map.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"

void lull_map_init(struct lull_map *m)
{
	*m = (struct lull_map){ 0 };
}

void lull_map_release(struct lull_map *m)
{
	free(m->at);
	lull_map_init(m);
}

/* The entry that holds the key, or the free one where it would go. */
static struct lull_map_entry *probe(const struct lull_map *m, u64 key)
{
	size_t mask = m->cap - 1;
	size_t ix = lull_hash_mix(key ^ 0x9e3779b97f4a7c15ULL, 0xd6e8feb86659fd93ULL) & mask;

	while (m->at[ix].is_used && m->at[ix].key != key)
		ix = (ix + 1) & mask;
	return &m->at[ix];
}

static void grow(struct lull_map *m)
{
	struct lull_map bigger = { .n = m->n, .cap = m->cap ? m->cap * 2 : 64 };

	bigger.at = lull_alloc(bigger.cap, sizeof(*bigger.at));
	for (size_t i = 0; i < m->cap; i++)
		if (m->at[i].is_used)
			*probe(&bigger, m->at[i].key) = m->at[i];
	free(m->at);
	*m = bigger;
}

u32 *lull_map_find(const struct lull_map *m, u64 key)
{
	struct lull_map_entry *e;

	if (!m->cap)
		return NULL;
	e = probe(m, key);
	return e->is_used ? &e->value : NULL;
}

u32 *lull_map_add(struct lull_map *m, u64 key, bool *is_new)
{
	struct lull_map_entry *e;

	if (m->n * 4 >= m->cap * 3)
		grow(m);
	e = probe(m, key);
	if (is_new)
		*is_new = !e->is_used;
	if (!e->is_used) {
		*e = (struct lull_map_entry){ .key = key, .is_used = 1 };
		m->n++;
	}
	return &e->value;
}
