/*
 * requests: each request of a server, what its time went to, and why slow ones are slow.
 *
 *	{"n", "p50", "p99", "parts": [[word, meaning], ...], "usual": index,
 *	 "lengths": {"least", "most", "counts": [n, ...]},
 *	 "causes": [{"part", "because", "fix", "n", "example"}, ...],
 *	 "requests": [[id, start, end, first token or 0, ns of each part ...], ...]}
 *
 * Only those that were answered. Of more than MAX_SHOWN, the slowest half of that and some of the
 * others are told; "usual" and "example" are indexes of these. "lengths" counts all of them, in
 * bins of which each is as many times as long as the one before.
 */
#include "page/page.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"
#include "request/tail.h"

#define MAX_SHOWN 2000u
#define N_BINS	  40u

struct shown {
	const struct lull_requests *q;
	u32 *place; /* by request: index among those told + 1, 0 if it is not */
	u32 *order; /* requests, the slowest first */
};

static int slowest_first(const void *a, const void *b, void *ctx)
{
	const struct lull_one_request *all = ctx;
	u64 x = lull_request_ns(&all[*(const u32 *)a]), y = lull_request_ns(&all[*(const u32 *)b]);

	return x > y ? -1 : x < y;
}

/* The slowest, every so-manyth of the others, and those that the answer speaks of. */
static void choose(struct shown *s, const struct lull_request_tail *tail)
{
	const struct lull_tail_cause *causes = tail->causes.at;
	size_t n = s->q->all.n, stride = n / (MAX_SHOWN / 2) + 1;
	u32 place = 0;

	for (size_t i = 0; i < n; i++)
		s->order[i] = (u32)i;
	lull_sort_r(s->order, n, sizeof(*s->order), slowest_first, s->q->all.at);
	for (size_t i = 0; i < n; i++)
		s->place[s->order[i]] = n <= MAX_SHOWN || i < MAX_SHOWN / 2 || i % stride == 0;
	s->place[tail->usual] = 1;
	for (size_t i = 0; i < tail->causes.n; i++)
		s->place[causes[i].example] = 1;
	for (size_t i = 0; i < n; i++)
		if (s->place[i])
			s->place[i] = ++place;
}

static void put_causes(struct lull_json *j, const struct shown *s,
		       const struct lull_request_tail *tail)
{
	const struct lull_tail_cause *c = tail->causes.at;

	lull_json_key(j, "causes");
	lull_json_array(j);
	for (size_t i = 0; i < tail->causes.n; i++) {
		lull_json_object(j);
		lull_json_key_text(j, "part", lull_request_part_word(c[i].part));
		lull_json_key_text(j, "because", lull_request_tail_title(tail, &c[i]));
		lull_json_key_text(j, "fix", lull_request_tail_fix(tail, &c[i]));
		lull_json_key_u64(j, "n", c[i].n_slow);
		lull_json_key_u64(j, "example", s->place[c[i].example] - 1);
		lull_json_end(j);
	}
	lull_json_end(j);
}

/* How many take how long; `order` must be sorted. */
static void put_lengths(struct lull_json *j, const struct shown *s)
{
	const struct lull_one_request *all = s->q->all.at;
	u64 most_ns = s->q->all.n ? lull_request_ns(&all[s->order[0]]) : 1;
	u64 least_ns = s->q->all.n ? lull_request_ns(&all[s->order[s->q->all.n - 1]]) : 1;
	u64 counts[N_BINS] = { 0 };
	f64 scale;

	least_ns = least_ns ? least_ns : 1;
	scale = N_BINS / log(fmax(1.01, (f64)most_ns / (f64)least_ns));
	for (size_t i = 0; i < s->q->all.n; i++) {
		f64 ratio = (f64)lull_request_ns(&all[i]) / (f64)least_ns;
		f64 bin = ratio > 1 ? floor(scale * log(ratio)) : 0;

		counts[bin < N_BINS ? (u32)bin : N_BINS - 1]++;
	}
	lull_json_key(j, "lengths");
	lull_json_object(j);
	lull_json_key_u64(j, "least", least_ns);
	lull_json_key_u64(j, "most", most_ns);
	lull_json_key(j, "counts");
	lull_json_array(j);
	for (u32 i = 0; i < N_BINS; i++)
		lull_json_u64(j, counts[i]);
	lull_json_end(j);
	lull_json_end(j);
}

static void put_one(struct lull_json *j, const struct lull_one_request *one, u64 origin_ns)
{
	lull_json_array(j);
	lull_json_u64(j, one->id);
	lull_json_u64(j, one->start_ns - origin_ns);
	lull_json_u64(j, one->end_ns - origin_ns);
	lull_json_u64(j, one->n_tokens ? one->first_token_ns - origin_ns : 0);
	for (u32 p = 0; p < LULL_N_REQUEST_PARTS; p++)
		lull_json_u64(j, one->part_ns[p]);
	lull_json_end(j);
}

static void put_all(struct lull_json *j, const struct shown *s, u64 origin_ns)
{
	const struct lull_one_request *all = s->q->all.at;

	lull_json_key(j, "parts");
	lull_json_array(j);
	for (u32 p = 0; p < LULL_N_REQUEST_PARTS; p++) {
		lull_json_array(j);
		lull_json_text(j, lull_request_part_word(p));
		lull_json_text(j, lull_request_part_brief(p));
		lull_json_end(j);
	}
	lull_json_end(j);
	lull_json_key(j, "requests");
	lull_json_array(j);
	for (size_t i = 0; i < s->q->all.n; i++)
		if (s->place[i])
			put_one(j, &all[i], origin_ns);
	lull_json_end(j);
}

static void put(struct lull_question *to, const struct lull_requests *q)
{
	struct shown s = { .q = q };
	struct lull_request_summary summary;
	struct lull_request_tail tail;
	struct lull_json j;

	s.place = lull_alloc(q->all.n, sizeof(*s.place));
	s.order = lull_alloc(q->all.n, sizeof(*s.order));
	lull_request_summary_init(&summary, q);
	lull_request_tail_init(&tail, q, &summary);
	choose(&s, &tail);
	lull_json_init(&j, to->to);
	lull_json_object(&j);
	lull_json_key_u64(&j, "n", q->all.n);
	lull_json_key_u64(&j, "p50", summary.latency.p50_ns);
	lull_json_key_u64(&j, "p99", summary.latency.p99_ns);
	lull_json_key_u64(&j, "usual", s.place[tail.usual] - 1);
	put_lengths(&j, &s);
	put_causes(&j, &s, &tail);
	put_all(&j, &s, to->report->timeline->origin_ns);
	lull_json_end(&j);
	lull_request_tail_release(&tail);
	lull_request_summary_release(&summary);
	free(s.place);
	free(s.order);
}

static int run(struct lull_question *q, struct lull_err *err)
{
	struct lull_requests requests;
	int rc = lull_requests_init(&requests, q->reader, LULL_SPAN_ALL, LULL_REQUESTS_WANT_WHERE,
				    err);

	if (!rc)
		rc = lull_requests_keep_answered(&requests, err);
	if (!rc)
		put(q, &requests);
	lull_requests_release(&requests);
	return rc;
}

const struct lull_answer lull_answer_requests = {
	.name = "requests",
	.type = "application/json",
	.is_slow = true,
	.is_packed = true,
	.run = run,
};
