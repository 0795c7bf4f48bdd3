#include "agent/core/arena.h"

#include <stdatomic.h>

#include "agent/core/agent.h"
#include "agent/core/sys.h"

/* Room for about a million registered names of 40 bytes; only address space until it is used. */
#define ARENA_BYTES ((size_t)64 << 20)

/* Where address space is limited, the part of the limit that it takes. */
#define ARENA_SHARE 64

/* What short programs need, in a page that is written anyway: they map nothing. */
#define FIRST_BYTES 1408u

static LULL_EARLY struct {
	_Alignas(8) u8 bytes[FIRST_BYTES];
	_Atomic u32 used_bytes;
} first;

static LULL_EARLY struct {
	_Atomic(u8 *) base;
	size_t size_bytes; /* the same for all who race for it */
	_Atomic size_t used_bytes;
} arena;

/* The mapping, made by the first caller; threads that race for it agree on one. */
static u8 *mapping(void)
{
	u8 *base = atomic_load_explicit(&arena.base, memory_order_acquire);
	size_t size_bytes = ARENA_BYTES;
	u64 limit;
	u8 *fresh;
	int saved = errno;

	if (base)
		return base;
	limit = lull_sys_limit_private() / ARENA_SHARE;
	if (limit < size_bytes)
		size_bytes = (size_t)limit & ~(size_t)7;
	arena.size_bytes = size_bytes;
	fresh = lull_sys_map(size_bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
	if (!fresh) {
		errno = saved;
		return NULL;
	}
	if (atomic_compare_exchange_strong(&arena.base, &base, fresh))
		base = fresh;
	else
		lull_sys_unmap(fresh, size_bytes);
	errno = saved;
	return base;
}

static void *take_first(size_t size_bytes)
{
	u32 at = atomic_load_explicit(&first.used_bytes, memory_order_relaxed);

	do {
		if (size_bytes > FIRST_BYTES - at)
			return NULL;
	} while (!atomic_compare_exchange_weak_explicit(&first.used_bytes, &at,
							at + (u32)size_bytes, memory_order_relaxed,
							memory_order_relaxed));
	return first.bytes + at;
}

void *lull_arena_take(size_t size_bytes)
{
	u8 *base;
	void *early;
	size_t at;

	size_bytes = (size_bytes + 7) & ~(size_t)7;
	early = take_first(size_bytes);
	if (early)
		return early;
	base = mapping();
	if (!base || size_bytes > arena.size_bytes)
		return NULL;
	at = atomic_load_explicit(&arena.used_bytes, memory_order_relaxed);
	do {
		if (at > arena.size_bytes - size_bytes)
			return NULL;
	} while (!atomic_compare_exchange_weak_explicit(&arena.used_bytes, &at, at + size_bytes,
							memory_order_relaxed,
							memory_order_relaxed));
	return base + at;
}

bool lull_arena_owns(const void *at)
{
	const u8 *base = atomic_load_explicit(&arena.base, memory_order_relaxed);

	return ((uintptr_t)at - (uintptr_t)first.bytes < FIRST_BYTES ||
		(base && (uintptr_t)at - (uintptr_t)base < arena.size_bytes)) &&
	       (uintptr_t)at % 8 == 0;
}
