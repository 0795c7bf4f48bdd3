#include "agent/core/range.h"

/*
 * Ids of start/end ranges: the recording's number in the upper 16 bits, a count below. So the end
 * of a range that began in an earlier recording is told from the others without a table.
 */
#define ID_COUNT_BITS 48

static struct {
	_Atomic u64 n_started;
} ranges;

const struct lull_range_watch *lull_range_watch;

/* Many labels share a domain, so it is remembered. */
static bool define_domain(struct lull_thread *t, const struct lull_text *domain)
{
	if (!domain->hash || lull_is_defined(t, domain->hash))
		return true;
	if (!lull_define_string(t, domain->hash, domain->bytes, domain->len))
		return false;
	lull_remember(t, domain->hash);
	return true;
}

bool lull_label_define(struct lull_thread *t, u64 hash, const struct lull_text *name,
		       const struct lull_range_style *style)
{
	const struct lull_wire_label label = {
		.head.a = style->category,
		.hash = hash,
		.name = name->hash,
		.domain = style->domain.hash,
		.color = style->color,
		.api = style->api,
	};

	if (lull_range_watch)
		lull_range_watch->defined(hash, name, &style->domain);
	/*
	 * Of the three only the domain and the label are remembered: whoever knows the label needs
	 * not know its name. A label whose texts were dropped stays undefined, so that the next use
	 * tries again.
	 */
	if (define_domain(t, &style->domain) &&
	    (!name->hash || lull_define_string(t, name->hash, name->bytes, name->len)) &&
	    lull_define_label(t, &label)) {
		lull_remember(t, hash);
		return true;
	}
	return false;
}

static u64 id_base(const struct lull_thread *t)
{
	return (u64)t->record << ID_COUNT_BITS;
}

u64 lull_range_start(struct lull_thread *t, u32 domain_ix, u64 label, struct lull_tail tail)
{
	u32 size_bytes = (u32)sizeof(struct lull_wire_start) + tail.size_bytes;
	u64 n = atomic_fetch_add_explicit(&ranges.n_started, 1, memory_order_relaxed) + 1;
	u64 range_id = id_base(t) | n;
	struct lull_wire_start *e = lull_reserve_labelled(t, LULL_EVENT_start, size_bytes, label);

	if (e) {
		e->head.a = domain_ix << 16;
		e->label = label;
		e->range_id = range_id;
		lull_tail_write(e + 1, tail);
		lull_commit(t, size_bytes);
	}
	if (lull_range_watch)
		lull_range_watch->started(t, label, range_id);
	return range_id;
}

void lull_range_end(struct lull_thread *t, u32 domain_ix, u64 range_id, struct lull_tail tail)
{
	u32 size_bytes = (u32)sizeof(struct lull_wire_end) + tail.size_bytes;
	struct lull_wire_end *e;

	if (!range_id || range_id >> ID_COUNT_BITS != id_base(t) >> ID_COUNT_BITS)
		return;
	e = lull_reserve(t, LULL_EVENT_end, size_bytes);
	if (e) {
		e->head.a = domain_ix << 16;
		e->range_id = range_id;
		lull_tail_write(e + 1, tail);
		lull_commit(t, size_bytes);
	}
	if (lull_range_watch)
		lull_range_watch->ended(t, range_id);
	if (range_id == atomic_load_explicit(&lull_agent.live->capture_id, memory_order_relaxed))
		lull_capture_end(t);
}
