#include "base/intern.h"

#include <string.h>

#include "base/hash.h"

void lull_intern_init(struct lull_intern *in)
{
	lull_map_init(&in->by_hash);
	lull_vec_init(&in->offsets, sizeof(u64));
	lull_vec_init(&in->words, sizeof(u64));
}

void lull_intern_release(struct lull_intern *in)
{
	lull_map_release(&in->by_hash);
	lull_vec_release(&in->offsets);
	lull_vec_release(&in->words);
}

u32 lull_intern_add(struct lull_intern *in, const void *bytes, size_t len)
{
	bool is_new;
	u32 *number = lull_map_add(&in->by_hash, lull_hash(bytes, len), &is_new);

	if (!is_new)
		return *number;
	*number = (u32)in->offsets.n;
	*(u64 *)lull_vec_push(&in->offsets) = in->words.n;
	memcpy(lull_vec_extend(&in->words, len / sizeof(u64) + 1), bytes, len);
	return *number;
}

const void *lull_intern_get(const struct lull_intern *in, u32 number)
{
	return (const u64 *)in->words.at + *(const u64 *)lull_vec_get(&in->offsets, number);
}
