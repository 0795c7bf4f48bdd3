/*
 * map - u64 keys to u32 values, open addressing.
 *
 * For interning: the key is a hash or an address. Key 0 is allowed. Grows by doubling; never
 * shrinks.
 */
#ifndef LULL_BASE_MAP_H
#define LULL_BASE_MAP_H

#include "base/types.h"

struct lull_map_entry {
	u64 key;
	u32 value;
	u32 is_used;
};

struct lull_map {
	struct lull_map_entry *at;
	size_t n;
	size_t cap;
};

/* An empty map. */
void lull_map_init(struct lull_map *m);

/* Free everything; the map is empty afterwards. */
void lull_map_release(struct lull_map *m);

/* The value's place for this key, or NULL. Valid until the next lull_map_add(). */
u32 *lull_map_find(const struct lull_map *m, u64 key);

/* The value's place for this key, added as 0 if it was absent; *is_new (may be NULL) says which. */
u32 *lull_map_add(struct lull_map *m, u64 key, bool *is_new);

#endif
