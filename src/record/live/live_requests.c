#include "record/live/live_requests.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "record/live/pulse.h"
#include "text/prometheus.h"

/* A power of two. Ids count up, so requests that are open at a time have slots of their own. */
#define N_SLOTS 16384u

struct lull_live_slot {
	u64 id;
	u64 start_ns, end_ns;  /* 0: not seen yet */
	u64 first_ns, last_ns; /* of its tokens */
	u32 process;
	u8 end;
};

_Static_assert(LULL_PULSE_N_BUCKETS + 1 == LULL_COUNT_OF(((struct lull_live_times *)0)->counts),
	       "a count for each bucket");

enum lull_live_end lull_live_end_of(const char *name)
{
	if (!strcmp(name, LULL_REQUEST_HUNG_UP))
		return LULL_LIVE_HUNG_UP;
	if (!strcmp(name, LULL_REQUEST_FAILED) || (strlen(name) == 3 && *name == '5'))
		return LULL_LIVE_FAILED;
	return LULL_LIVE_ANSWERED;
}

static void count(struct lull_live_times *to, u64 ns)
{
	static const u64 bounds[] = LULL_PULSE_BUCKETS;
	size_t bucket = 0;

	while (bucket < LULL_PULSE_N_BUCKETS && ns > bounds[bucket])
		bucket++;
	to->counts[bucket]++;
	to->n++;
	to->sum_ns += ns;
}

/* The slot of a request. One that arrives takes the place of another; its later marks do not. */
static struct lull_live_slot *slot_of(struct lull_live_requests *q, const struct lull_live_mark *m)
{
	u64 key = m->id ^ ((u64)m->process << 10);
	struct lull_live_slot *s;

	if (!q->slots)
		q->slots = lull_alloc(N_SLOTS, sizeof(*q->slots));
	s = &q->slots[key % N_SLOTS];
	if (s->id == m->id && s->process == m->process)
		return s;
	if (s->start_ns && m->kind != LULL_REQUEST_ARRIVED)
		return NULL;
	q->n_closed += s->start_ns != 0;
	*s = (struct lull_live_slot){ .id = m->id, .process = m->process };
	return s;
}

static void add_token(struct lull_live_requests *q, struct lull_live_slot *s, u64 at_ns)
{
	q->n_tokens++;
	if (s->last_ns && at_ns >= s->last_ns)
		count(&q->between, at_ns - s->last_ns);
	if (!s->first_ns || at_ns < s->first_ns)
		s->first_ns = at_ns;
	s->last_ns = at_ns > s->last_ns ? at_ns : s->last_ns;
}

static void finish(struct lull_live_requests *q, struct lull_live_slot *s)
{
	q->n_closed++;
	q->n_ended[s->end]++;
	if (s->end == LULL_LIVE_ANSWERED && s->end_ns >= s->start_ns)
		count(&q->latency, s->end_ns - s->start_ns);
	if (s->end == LULL_LIVE_ANSWERED && s->first_ns >= s->start_ns && s->first_ns)
		count(&q->first_token, s->first_ns - s->start_ns);
	*s = (struct lull_live_slot){ 0 };
}

void lull_live_requests_add(struct lull_live_requests *q, const struct lull_live_mark *m)
{
	struct lull_live_slot *s = slot_of(q, m);

	if (!s)
		return;
	switch (m->kind) {
	case LULL_REQUEST_ARRIVED:
		q->n_arrived++;
		q->n_closed += s->start_ns != 0; /* the id is used again */
		s->start_ns = m->at_ns;
		break;
	case LULL_REQUEST_ENDED:
		s->end_ns = m->at_ns;
		s->end = (u8)m->end;
		break;
	case LULL_REQUEST_TOKEN:
		add_token(q, s, m->at_ns);
		break;
	default:
		break;
	}
	if (s->start_ns && s->end_ns)
		finish(q, s);
}

void lull_live_requests_forget(struct lull_live_requests *q)
{
	if (q->slots)
		memset(q->slots, 0, N_SLOTS * sizeof(*q->slots));
	q->n_closed = q->n_arrived;
}

static void write_times(const struct lull_live_times *t, const char *name, const char *help,
			struct lull_str *to)
{
	static const u64 bounds[] = LULL_PULSE_BUCKETS;
	unsigned long long n = 0;

	lull_prom_family(to, name, "histogram", help);
	for (size_t i = 0; i < LULL_PULSE_N_BUCKETS; i++) {
		n += t->counts[i];
		lull_str_addf(to, "%s_bucket{le=\"%g\"} %llu\n", name, (f64)bounds[i] / 1e9, n);
	}
	lull_str_addf(to, "%s_bucket{le=\"+Inf\"} %llu\n%s_sum %.9f\n%s_count %llu\n", name,
		      (unsigned long long)t->n, name, (f64)t->sum_ns / 1e9, name,
		      (unsigned long long)t->n);
}

void lull_live_requests_write(const struct lull_live_requests *q, struct lull_str *to)
{
	static const char *const ends[] = { "answered", "hung_up", "failed" };

	if (!q->slots)
		return;
	write_times(&q->latency, "lull_request_seconds", "Latency of requests that were answered.",
		    to);
	write_times(&q->first_token, "lull_request_first_token_seconds",
		    "Time from the arrival of a request to its first token.", to);
	write_times(&q->between, "lull_request_token_gap_seconds",
		    "Time between tokens of a request.", to);
	lull_prom_family(to, "lull_requests_total", "counter", "Requests that ended, by how.");
	for (size_t i = 0; i < LULL_N_LIVE_ENDS; i++)
		lull_str_addf(to, "lull_requests_total{end=\"%s\"} %llu\n", ends[i],
			      (unsigned long long)q->n_ended[i]);
	lull_prom_family(to, "lull_requests_open", "gauge",
			 "Requests that have arrived and not ended.");
	lull_str_addf(to, "lull_requests_open %llu\n",
		      (unsigned long long)(q->n_arrived - q->n_closed));
	lull_prom_family(to, "lull_request_tokens_total", "counter", "Tokens of all requests.");
	lull_str_addf(to, "lull_request_tokens_total %llu\n", (unsigned long long)q->n_tokens);
}

void lull_live_requests_release(struct lull_live_requests *q)
{
	free(q->slots);
	*q = (struct lull_live_requests){ 0 };
}
