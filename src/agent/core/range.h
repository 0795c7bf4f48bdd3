/*
 * range - ranges and marks as NVTX and lull.h both emit them; inline, on the hot path.
 *
 * A domain is a small number (0 = the default domain) with a nesting level per thread, so that the
 * recorder can match starts and ends even if events between them were dropped. Levels are counted
 * during a recording and start at 0 in each: an end without a start in the same recording is not
 * emitted.
 *
 * A label has everything about a range except its time. Only its hash is looked up: a label is
 * defined after its name and domain, so if the label is defined, they are, too.
 */
#ifndef LULL_AGENT_CORE_RANGE_H
#define LULL_AGENT_CORE_RANGE_H

#include "agent/core/capture.h"
#include "agent/core/ring.h"

/* Where a label comes from; lull_wire_label.api. */
enum lull_api {
	LULL_API_NVTX = 1,
	LULL_API_ANNOTATE = 2, /* lull.h */
	LULL_API_TORCH = 6,    /* hooks of PyTorch */
	LULL_API_REQUEST = 7,  /* requests of servers */
};

/* Everything that names a range besides its text. */
struct lull_range_style {
	struct lull_text domain; /* empty = the default one */
	u32 domain_ix;
	u32 category;
	u32 color;
	u32 api; /* enum lull_api */
};

/*
 * What follows the fixed part of an event: struct lull_wire_payload and data, a multiple of 8
 * bytes.
 */
struct lull_tail {
	const void *bytes;
	u32 size_bytes;
};

#define LULL_NO_TAIL ((struct lull_tail){ 0 })

/* What a source is told that has to know the ranges around what it records. */
struct lull_range_watch {
	/* A label is defined; it may be one of those that ranges are looked at for. */
	void (*defined)(u64 label, const struct lull_text *name, const struct lull_text *domain);
	bool (*has)(u64 label);
	/* The outermost range of such a label begins and ends on this thread. */
	void (*begin)(struct lull_thread *t, u64 label);
	void (*end)(struct lull_thread *t);
	/* A range of any label begins and ends that may end on another thread. */
	void (*started)(struct lull_thread *t, u64 label, u64 range_id);
	void (*ended)(struct lull_thread *t, u64 range_id);
};

/* Set by that source before main; NULL in nearly all sessions. */
extern const struct lull_range_watch *lull_range_watch __attribute__((visibility("hidden")));

/*
 * The hash of this label is not known to the thread: define it, after its texts. False if there was
 * no room for that. In range.c.
 */
bool lull_label_define(struct lull_thread *t, u64 hash, const struct lull_text *name,
		       const struct lull_range_style *style);

/*
 * The label of a name in this style, defined in the thread's stream. 0 if the definition found no
 * room: then the event must not be written either, or it would have no name.
 */
static inline u64 lull_label(struct lull_thread *t, const struct lull_text *name,
			     const struct lull_range_style *style)
{
	u64 hash = lull_label_hash(name->hash, style->domain.hash, style->category, style->color,
				   style->api);

	if (__builtin_expect(!lull_is_defined(t, hash), 0) &&
	    !lull_label_define(t, hash, name, style))
		return 0;
	return hash;
}

/* Room for an event with this label; NULL if it is dropped (and counted), as it is without one. */
static inline void *lull_reserve_labelled(struct lull_thread *t, u16 type, u32 size_bytes,
					  u64 label)
{
	if (__builtin_expect(!label, 0)) {
		lull_count_drop(t);
		return NULL;
	}
	return lull_reserve(t, type, size_bytes);
}

/* The domain of PyTorch's phases; NVTX's never get that far. */
#define LULL_DOMAIN_TORCH 0xffffu
/* And that of the requests that threads work for. */
#define LULL_DOMAIN_REQUEST 0xfffeu

/* Where the level of a domain is counted. */
static inline u16 *lull_level(struct lull_thread *t, u32 domain_ix)
{
	if (__builtin_expect(domain_ix == LULL_DOMAIN_TORCH, 0))
		return &t->torch.level;
	if (__builtin_expect(domain_ix == LULL_DOMAIN_REQUEST, 0))
		return &t->request.level;
	return &t->level[domain_ix < LULL_N_DOMAINS ? domain_ix : LULL_N_DOMAINS - 1];
}

static inline void lull_tail_write(void *to, struct lull_tail tail)
{
	if (tail.size_bytes)
		memcpy(to, tail.bytes, tail.size_bytes);
}

/* A range begins; returns the level it has (0 = outermost). */
static inline int lull_range_push(struct lull_thread *t, u32 domain_ix, u64 label,
				  struct lull_tail tail)
{
	u16 *level = lull_level(t, domain_ix);
	u32 size_bytes = (u32)sizeof(struct lull_wire_range) + tail.size_bytes;
	struct lull_wire_range *e = lull_reserve_labelled(t, LULL_EVENT_push, size_bytes, label);

	if (e) {
		e->head.a = *level | domain_ix << 16;
		e->label = label;
		lull_tail_write(e + 1, tail);
		lull_commit(t, size_bytes);
	}
	if (__builtin_expect(lull_range_watch != NULL, 0) && !t->capture &&
	    lull_range_watch->has(label)) {
		t->capture = lull_capture_key(domain_ix, *level);
		lull_range_watch->begin(t, label);
	}
	return (*level)++;
}

/* The innermost range of the domain ends; returns its level, or -1 if none was open. */
static inline int lull_range_pop(struct lull_thread *t, u32 domain_ix, struct lull_tail tail)
{
	u16 *level = lull_level(t, domain_ix);
	u32 size_bytes = (u32)sizeof(struct lull_event) + tail.size_bytes;
	struct lull_event *e;
	u32 depth = *level;

	if (!depth)
		return -1;
	depth--;
	*level = (u16)depth;
	e = lull_reserve(t, LULL_EVENT_pop, size_bytes);
	if (e) {
		e->a = depth | domain_ix << 16;
		lull_tail_write(e + 1, tail);
		lull_commit(t, size_bytes);
	}
	if (__builtin_expect(t->capture == lull_capture_key(domain_ix, depth), 0))
		lull_capture_end(t);
	return (int)depth;
}

/* A moment. */
static inline void lull_range_mark(struct lull_thread *t, u32 domain_ix, u64 label,
				   struct lull_tail tail)
{
	u32 size_bytes = (u32)sizeof(struct lull_wire_range) + tail.size_bytes;
	struct lull_wire_range *e = lull_reserve_labelled(t, LULL_EVENT_mark, size_bytes, label);

	if (e) {
		e->head.a = domain_ix << 16;
		e->label = label;
		lull_tail_write(e + 1, tail);
		lull_commit(t, size_bytes);
	}
}

/*
 * A range begins that may end on another thread; returns its id: unique in the process, never 0. In
 * range.c.
 */
u64 lull_range_start(struct lull_thread *t, u32 domain_ix, u64 label, struct lull_tail tail);

/* Such a range ends. An id of another recording, or 0, is ignored. In range.c. */
void lull_range_end(struct lull_thread *t, u32 domain_ix, u64 range_id, struct lull_tail tail);

#endif
