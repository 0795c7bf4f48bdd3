/*
 * request: the requests of servers. lull.h and the hooks in python/ call what is here.
 *
 * What a thread works for is a flat list: the ranges of the domain are ended before others begin,
 * so an event loop that switches between requests needs no more than a call for each switch.
 */
#include "agent/core/source.h"

#include "agent/core/range.h"
#include "agent/nvtx/request_tell.h"

/* A batch of more requests than this is recorded as one of this many. */
#define MAX_BATCH 256u

/* Longer ones are none: a traceparent has 55 characters. */
#define MAX_TRACE 64u

/* A payload, and the text after it. */
struct tail {
	struct lull_wire_payload payload;
	char text[MAX_TRACE];
};

static struct lull_range_style style_of(enum lull_request_kind kind)
{
	static const char domain[] = LULL_REQUEST_DOMAIN;

	return (struct lull_range_style){
		.domain = lull_text(domain, sizeof(domain) - 1),
		.domain_ix = LULL_DOMAIN_REQUEST,
		.category = kind,
		.api = LULL_API_REQUEST,
	};
}

static struct lull_tail tail_of(struct tail *tail, u64 id, const struct lull_text *text)
{
	u32 len = text && text->len < MAX_TRACE ? (u32)text->len : 0;

	memset(tail, 0, sizeof(*tail));
	tail->payload.type = LULL_REQUEST_PAYLOAD;
	tail->payload.n_bytes = len;
	tail->payload.value = id;
	if (len)
		memcpy(tail->text, text->bytes, len);
	return (struct lull_tail){ tail, (u32)sizeof(tail->payload) + (len + 7u) / 8u * 8u };
}

/* As lull_range_mark(), with a time of its own. */
static void put_mark(struct lull_thread *t, u64 label, struct lull_tail tail, u64 counter)
{
	u32 size_bytes = (u32)sizeof(struct lull_wire_range) + tail.size_bytes;
	struct lull_wire_range *e;

	if (!label) {
		lull_count_drop(t);
		return;
	}
	e = lull_reserve_at(t, LULL_EVENT_mark, size_bytes, counter);
	if (!e)
		return;
	e->head.a = LULL_DOMAIN_REQUEST << 16;
	e->label = label;
	lull_tail_write(e + 1, tail);
	lull_commit(t, size_bytes);
}

bool lull_request_is_on(void)
{
	return lull_agent.control->sources & LULL_SOURCE_REQUEST;
}

void lull_request_arrived(const struct lull_request *request, u64 counter)
{
	struct lull_range_style style = style_of(LULL_REQUEST_ARRIVED);
	struct lull_thread *t = lull_recording();
	struct tail tail;

	if (t && lull_request_is_on())
		put_mark(t, lull_label(t, &request->name, &style),
			 tail_of(&tail, request->id, &request->trace),
			 counter ? counter : lull_time());
}

void lull_request_mark(enum lull_request_kind kind, u64 id, const struct lull_text *name)
{
	struct lull_range_style style = style_of(kind);
	struct lull_thread *t = lull_recording();
	struct tail tail;

	if (t && lull_request_is_on())
		put_mark(t, lull_label(t, name, &style), tail_of(&tail, id, NULL), lull_time());
}

void lull_request_work(const struct lull_text *name, const u64 *ids, u32 n)
{
	struct lull_range_style style = style_of(LULL_REQUEST_WORK);
	struct lull_thread *t = lull_recording();
	struct tail tail;
	u64 label;

	if (!t || !lull_request_is_on())
		return;
	while (t->request.level)
		lull_range_pop(t, LULL_DOMAIN_REQUEST, LULL_NO_TAIL);
	if (!n)
		return;
	label = lull_label(t, name, &style);
	for (u32 i = 0; i < n && i < MAX_BATCH; i++)
		lull_range_push(t, LULL_DOMAIN_REQUEST, label, tail_of(&tail, ids[i], NULL));
}

static void renewed(struct lull_thread *t)
{
	t->request.level = 0;
}

const struct lull_source lull_source_request = {
	.renewed = renewed,
};
