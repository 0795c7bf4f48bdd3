#include "record/gpu/kernel_seen.h"

#include <string.h>

#include "base/sort.h"

/* Names that are said; more would hide the sentence. */
#define N_SAID 6u

struct seen {
	const char *name;
	u64 n;
};

static int by_count(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;

	return (x->n < y->n) - (x->n > y->n);
}

/* Two processes may have written the same name at the same time. */
static size_t collect(const struct lull_kwish *wish, struct seen *to)
{
	size_t n = 0;

	for (u32 i = 0; i < LULL_KWISH_N_SEEN; i++) {
		const struct lull_kwish_seen *slot = &wish->seen[i];
		size_t at = 0;

		if (atomic_load_explicit(&slot->state, memory_order_acquire) != 2)
			continue;
		while (at < n && strcmp(to[at].name, slot->name) != 0)
			at++;
		if (at == n)
			to[n++] = (struct seen){ slot->name, 0 };
		to[at].n += atomic_load(&slot->n);
	}
	return n;
}

void lull_kernel_seen(const struct lull_kwish *wish, struct lull_str *to)
{
	struct seen all[LULL_KWISH_N_SEEN];
	size_t n = collect(wish, all);
	u64 rest = atomic_load(&wish->n_launches);

	lull_sort(all, n, sizeof(*all), by_count);
	for (size_t i = 0; i < n && i < N_SAID; i++) {
		lull_str_addf(to, "%s%s %llu time%s", i ? ", " : "", all[i].name,
			      (unsigned long long)all[i].n, all[i].n == 1 ? "" : "s");
		rest -= all[i].n < rest ? all[i].n : rest;
	}
	if (n && rest)
		lull_str_puts(to, " and others");
}
