/*
 * kernel_range - which ranges the launches to be measured have to be in (--nvtx-include).
 *
 * A label is looked at when it is defined; ranges are then known by the hash of their label, on the
 * way that every push takes anyway.
 */
#include "agent/kernel.h"
#include "agent/kernel_match.h"

/* Names with a colour or category of their own are labels of their own; few match. */
#define N_LABELS 256u

static struct {
	_Atomic u32 n;
	_Atomic u64 at[N_LABELS];
} labels;

bool lull_kernel_has_label(u64 label)
{
	u32 n = atomic_load_explicit(&labels.n, memory_order_acquire);

	for (u32 i = 0; i < n && i < N_LABELS; i++)
		if (atomic_load_explicit(&labels.at[i], memory_order_relaxed) == label)
			return true;
	return false;
}

void lull_kernel_label(u64 label, const struct lull_text *name, const struct lull_text *domain)
{
	u32 n;

	if (!lull_kernel_match_range(name->bytes, name->len, domain->bytes, domain->len) ||
	    lull_kernel_has_label(label))
		return;
	/* Two threads may add the same one: harmless. */
	n = atomic_load_explicit(&labels.n, memory_order_relaxed);
	while (n < N_LABELS && !atomic_compare_exchange_weak(&labels.n, &n, n + 1))
		continue;
	if (n < N_LABELS)
		atomic_store_explicit(&labels.at[n], label, memory_order_release);
}
