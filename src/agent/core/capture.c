#include "agent/core/capture.h"

#include "agent/core/range.h"
#include "agent/core/source.h"

static bool is_text(const struct lull_text *text, const char *wanted, size_t room)
{
	if (!text->len)
		return !wanted[0];
	return text->len < room && memcmp(text->bytes, wanted, text->len) == 0 &&
	       wanted[text->len] == '\0';
}

static bool is_wanted(const struct lull_control *c, const struct lull_text *name,
		      const struct lull_text *domain)
{
	if (!c->capture_range[0] || !is_text(name, c->capture_range, sizeof(c->capture_range)))
		return false;
	return strcmp(c->capture_domain, "*") == 0 ||
	       is_text(domain, c->capture_domain, sizeof(c->capture_domain));
}

/*
 * Turn the recording on; false if somebody else did, or the recorder is not ready for another one.
 * The ticket in next_record is handed out once: the recorder puts a new one there when it has
 * closed the last report.
 */
static bool take_record(struct lull_control *c)
{
	u32 next, expected = 0;

	if (!lull_agent.image)
		return false;
	if (c->capture_repeats && atomic_load(&c->capture_began) >= c->capture_repeats)
		return false;
	next = atomic_exchange(&c->next_record, 0);
	if (!next) {
		/* Nobody records, and nobody is ready to: the report before this is not closed. */
		if (!atomic_load(&c->record))
			atomic_fetch_add(&c->capture_missed, 1);
		return false;
	}
	atomic_store(&c->capture_pid, lull_agent.image->pid);
	atomic_store(&c->start_counter, lull_time());
	atomic_store(&c->last_record, next);
	/*
	 * Before any event of the recording can be seen: the recorder opens the report when it
	 * sees the count.
	 */
	atomic_fetch_add(&c->capture_began, 1);
	if (!atomic_compare_exchange_strong(&c->record, &expected, next))
		return false;
	lull_sources_began();
	return true;
}

struct lull_thread *lull_capture_begin(const struct lull_text *name, const struct lull_text *domain)
{
	struct lull_control *c = lull_agent.control;
	struct lull_thread *t;

	lull_sources_passed();
	if (!lull_capture_is_watching() || !is_wanted(c, name, domain) || !lull_thread() ||
	    !take_record(c))
		return NULL;
	t = lull_recording();
	/* The recorder may have stopped it already; then there is nothing to hold. */
	if (t)
		atomic_store_explicit(&lull_agent.live->capture_id, 0, memory_order_relaxed);
	return t;
}

bool lull_capture_take(void)
{
	return take_record(lull_agent.control);
}

void lull_capture_give(void)
{
	struct lull_control *c = lull_agent.control;

	if (!atomic_load(&c->record))
		return;
	atomic_store(&c->stop_counter, lull_time());
	if (atomic_exchange(&c->record, 0))
		atomic_fetch_add(&c->capture_ended, 1);
}

bool lull_capture_is_closing(void)
{
	struct lull_control *c = lull_agent.control;

	return !atomic_load(&c->record) && !atomic_load(&c->next_record) &&
	       (!c->capture_repeats || atomic_load(&c->capture_began) < c->capture_repeats);
}

void lull_capture_by_call(bool is_start)
{
	struct lull_control *c = lull_agent.control;

	if (!(atomic_load_explicit(&c->watch, memory_order_relaxed) & LULL_WATCH_PROFILER_API))
		return;
	if (is_start)
		take_record(c);
	else
		lull_capture_give();
}

void lull_capture_hold_push(struct lull_thread *t, u32 domain_ix, int level)
{
	t->capture = lull_capture_key(domain_ix, (u32)level);
}

void lull_capture_hold_start(u64 range_id)
{
	atomic_store_explicit(&lull_agent.live->capture_id, range_id, memory_order_relaxed);
}

void lull_capture_end(struct lull_thread *t)
{
	struct lull_control *c = lull_agent.control;
	u32 record = t->record;

	t->capture = 0;
	if (lull_range_watch) {
		lull_range_watch->end(t); /* it held no recording */
		return;
	}
	atomic_store_explicit(&lull_agent.live->capture_id, 0, memory_order_relaxed);
	/*
	 * Only the recording that this range began: the recorder may have ended it and begun
	 * another.
	 */
	atomic_store(&c->stop_counter, lull_time());
	if (atomic_compare_exchange_strong(&c->record, &record, 0))
		atomic_fetch_add(&c->capture_ended, 1);
}
