#include "request/load_replay.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"
#include "request/summary.h"
#include "request/tail.h"

/* Numbers of servers that are tried. */
static const u32 widths[] = { 1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64, 96, 128 };
#define MAX_SERVERS 256u

/* One replay. */
struct run {
	const struct lull_requests *q;
	const u64 *service_ns; /* by request */
	u64 *latency_ns;       /* by request: what comes out */
	u32 n_servers, batch;
	f64 faster; /* requests come so many times as often */
};

static u64 arrival_of(const struct run *r, size_t i)
{
	const struct lull_one_request *all = r->q->all.at;

	return (u64)((f64)(all[i].start_ns - all[0].start_ns) / r->faster);
}

/* The server that is free first. */
static u32 next_free(const u64 *free_ns, u32 n)
{
	u32 best = 0;

	for (u32 i = 1; i < n; i++)
		if (free_ns[i] < free_ns[best])
			best = i;
	return best;
}

static void serve(const struct run *r)
{
	u64 free_ns[MAX_SERVERS] = { 0 };
	size_t n = r->q->all.n;

	for (size_t i = 0, k; i < n; i = k) {
		u32 server = next_free(free_ns, r->n_servers);
		u64 from_ns = arrival_of(r, i), longest_ns = 0;

		from_ns = free_ns[server] > from_ns ? free_ns[server] : from_ns;
		for (k = i; k < n && k - i < r->batch && arrival_of(r, k) <= from_ns; k++)
			longest_ns = r->service_ns[k] > longest_ns ? r->service_ns[k] : longest_ns;
		free_ns[server] = from_ns + longest_ns;
		for (size_t j = i; j < k; j++)
			r->latency_ns[j] = free_ns[server] - arrival_of(r, j);
	}
}

static struct lull_replayed replay(const struct run *r)
{
	struct lull_replayed to = { 0 };
	size_t n = r->q->all.n;

	serve(r);
	for (size_t i = 0; i < n; i++)
		to.mean_ns += (f64)r->latency_ns[i] / (f64)n;
	lull_sort_u64(r->latency_ns, n);
	to.p50_ns = lull_quantile(r->latency_ns, n, 0.5);
	to.p99_ns = lull_quantile(r->latency_ns, n, 0.99);
	return to;
}

static struct lull_replayed replay_as(struct run r, u32 n_servers, u32 batch, f64 faster)
{
	r.n_servers = n_servers;
	r.batch = batch;
	r.faster = faster;
	return replay(&r);
}

/* The number of servers that gives the recorded average. */
static void fit(struct lull_load_replay *to, const struct run *r, f64 mean_ns)
{
	f64 least = -1;

	for (size_t i = 0; i < LULL_COUNT_OF(widths); i++) {
		struct lull_replayed now = replay_as(*r, widths[i], 1, 1);
		f64 off = now.mean_ns > mean_ns ? now.mean_ns - mean_ns : mean_ns - now.mean_ns;

		if (least >= 0 && off >= least)
			continue;
		least = off;
		to->now = now;
		to->n_servers = widths[i];
	}
	to->is_known = least <= LULL_REPLAY_OFF * mean_ns && to->wait_share >= LULL_REPLAY_WAIT;
}

void lull_load_replay(struct lull_load_replay *to, const struct lull_requests *q)
{
	const struct lull_one_request *all = q->all.at;
	size_t n = q->all.n;
	u64 *service_ns = lull_alloc(n, sizeof(*service_ns));
	u64 *latency_ns = lull_alloc(n, sizeof(*latency_ns));
	struct run r = { .q = q, .service_ns = service_ns, .latency_ns = latency_ns };
	f64 mean_ns = 0, wait_ns = 0;

	*to = (struct lull_load_replay){ 0 };
	for (size_t i = 0; i < n; i++) {
		u64 turn_ns =
			all[i].part_ns[LULL_PART_OF_QUEUE] + all[i].part_ns[LULL_PART_OF_OTHERS];

		service_ns[i] = lull_request_ns(&all[i]) - turn_ns;
		mean_ns += (f64)lull_request_ns(&all[i]) / (f64)n;
		wait_ns += (f64)turn_ns / (f64)n;
	}
	if (n >= LULL_TAIL_MIN && q->has_work && mean_ns > 0) {
		to->wait_share = wait_ns / mean_ns;
		fit(to, &r, mean_ns);
		to->replica = replay_as(r, 2 * to->n_servers, 1, 1);
		to->batches = replay_as(r, to->n_servers, LULL_REPLAY_BATCH, 1);
		to->more = replay_as(r, to->n_servers, 1, 2);
	}
	free(service_ns);
	free(latency_ns);
}
