/*
 * range - ranges and marks as NVTX and lull.h both emit them; inline, on the hot path.
 *
 * A domain is a small number (0 = the default one) with a nesting level per thread, so that the collector can
 * match begins and ends even when events between them were dropped.
 */
#ifndef LULL_AGENT_RANGE_H
#define LULL_AGENT_RANGE_H

#include "agent/ring.h"

/* Everything that names a range besides its text; text hashes are already defined in the thread's stream. */
struct lull_range_style {
	u64 domain;	/* hash of the domain's name, 0 = default */
	u32 domain_ix;
	u32 category;
	u32 color;
	u32 api;	/* 1 NVTX, 2 lull.h */
};

/* The label of a name in this style, defined in the thread's stream. */
static inline u64 lull_label(struct lull_thread *t, u64 name, const struct lull_range_style *style)
{
	u64 hash = lull_label_hash(name, style->domain, style->category, style->color, style->api);

	if (__builtin_expect(!lull_is_defined(t, hash), 0)) {
		struct lull_wire_label label = {
			.head.a = style->category,
			.hash = hash,
			.name = name,
			.domain = style->domain,
			.color = style->color,
			.api = style->api,
		};

		lull_define_label(t, &label);
	}
	return hash;
}

/* Where the level of a domain is counted. */
static inline u16 *lull_level(struct lull_thread *t, u32 domain_ix)
{
	return &t->level[domain_ix < LULL_N_DOMAINS ? domain_ix : LULL_N_DOMAINS - 1];
}

/* A range begins; returns the level it has (0 = outermost). */
static inline int lull_range_push(struct lull_thread *t, u32 domain_ix, u64 label)
{
	u16 *level = lull_level(t, domain_ix);
	struct lull_wire_range *e = lull_reserve(t, LULL_EVENT_push, sizeof(*e));

	if (e) {
		e->head.a = *level | domain_ix << 16;
		e->label = label;
		lull_commit(t, sizeof(*e));
	}
	return (*level)++;
}

/* The innermost range of the domain ends; returns its level, or -1 if none was open. */
static inline int lull_range_pop(struct lull_thread *t, u32 domain_ix)
{
	u16 *level = lull_level(t, domain_ix);
	struct lull_event *e;

	if (!*level)
		return -1;
	(*level)--;
	e = lull_reserve(t, LULL_EVENT_pop, sizeof(*e));
	if (e) {
		e->a = *level | domain_ix << 16;
		lull_commit(t, sizeof(*e));
	}
	return *level;
}

/* A moment. */
static inline void lull_range_mark(struct lull_thread *t, u32 domain_ix, u64 label)
{
	struct lull_wire_range *e = lull_reserve(t, LULL_EVENT_mark, sizeof(*e));

	if (e) {
		e->head.a = domain_ix << 16;
		e->label = label;
		lull_commit(t, sizeof(*e));
	}
}

#endif
