/*
 * kernel_range - which ranges the launches to be measured have to be in (--nvtx-include).
 *
 * A label is looked at when it is defined; ranges are then known by the hash of their label, on the
 * way that every push takes anyway.
 */
#include "agent/core/range.h"
#include "agent/counters/counters.h"
#include "agent/counters/kernel_match.h"
#include "agent/counters/kernel_span.h"

/* Names with a colour or category of their own are labels of their own; few match. */
#define N_LABELS 256u

/* As much of a name as is told of a span. */
#define NAME_BYTES 128u

static struct {
	_Atomic u32 n;
	_Atomic u64 at[N_LABELS];
	char names[N_LABELS][NAME_BYTES];
	_Atomic u64 started; /* id of the start/end range that is measured, 0 = none */
} labels;

static const char *name_of(u64 label)
{
	for (u32 i = 0; i < N_LABELS; i++)
		if (atomic_load_explicit(&labels.at[i], memory_order_acquire) == label)
			return labels.names[i];
	return "";
}

static bool has_label(u64 label)
{
	u32 n = atomic_load_explicit(&labels.n, memory_order_acquire);

	for (u32 i = 0; i < n && i < N_LABELS; i++)
		if (atomic_load_explicit(&labels.at[i], memory_order_relaxed) == label)
			return true;
	return false;
}

static void begin(struct lull_thread *t, u64 label)
{
	if (lull_kernel_has_spans())
		lull_kernel_span_begin(t, name_of(label));
}

static void end(struct lull_thread *t)
{
	if (lull_kernel_has_spans())
		lull_kernel_span_end(t);
}

static void started(struct lull_thread *t, u64 label, u64 range_id)
{
	u64 none = 0;

	if (lull_kernel_has_spans() && has_label(label) &&
	    atomic_compare_exchange_strong(&labels.started, &none, range_id))
		lull_kernel_span_begin(t, name_of(label));
}

static void ended(struct lull_thread *t, u64 range_id)
{
	if (lull_kernel_has_spans() &&
	    atomic_compare_exchange_strong(&labels.started, &range_id, 0))
		lull_kernel_span_end(t);
}

static void label_defined(u64 label, const struct lull_text *name, const struct lull_text *domain)
{
	u32 n;

	if (!lull_kernel_match_range(name->bytes, name->len, domain->bytes, domain->len) ||
	    has_label(label))
		return;
	/* Two threads may add the same one: harmless. */
	n = atomic_load_explicit(&labels.n, memory_order_relaxed);
	while (n < N_LABELS && !atomic_compare_exchange_weak(&labels.n, &n, n + 1))
		continue;
	if (n >= N_LABELS)
		return;
	memcpy(labels.names[n], name->bytes, name->len < NAME_BYTES ? name->len : NAME_BYTES - 1);
	atomic_store_explicit(&labels.at[n], label, memory_order_release);
}

void lull_kernel_watch_ranges(void)
{
	static const struct lull_range_watch watch = {
		.defined = label_defined,
		.has = has_label,
		.begin = begin,
		.end = end,
		.started = started,
		.ended = ended,
	};

	lull_range_watch = &watch;
}
