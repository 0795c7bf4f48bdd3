#include "request/tail.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"

static const struct {
	const char *title, *fix;
} texts[] = {
	[LULL_PART_OF_QUEUE] = { "they wait for their turn: requests arrive faster than they are "
				 "served",
				 "serve several requests in one batch, or add a replica" },
	[LULL_PART_OF_OTHERS] = { "the thread or the device works for other requests meanwhile",
				  "serve several requests in one batch; keep work that blocks out "
				  "of the "
				  "event loop (asyncio.to_thread)" },
	[LULL_PART_OF_HOST] = { "their own code on the CPU takes longer",
				"lull stats -r python_sum names the functions" },
	[LULL_PART_OF_GC] = { "a garbage collection holds the interpreter lock",
			      "gc.freeze() after loading, or gc.disable() and collect between "
			      "requests" },
	[LULL_PART_OF_COMPILE] = { "torch.compile compiles again",
				   "pad inputs to few shapes, or compile with dynamic=True; warm "
				   "up before "
				   "serving" },
	[LULL_PART_OF_LOCK] = { "they wait for Python's interpreter lock",
				"move work of other threads into processes, or call it with the "
				"lock "
				"released" },
	[LULL_PART_OF_CPU] = { "their threads are ready but have no CPU",
			       "fewer threads, or a CPU set of its own for the program" },
	[LULL_PART_OF_LAUNCH] = { "they spend more time in CUDA calls that start work",
				  "a CUDA graph, or fewer and larger kernels" },
	[LULL_PART_OF_ALLOC] = { "they allocate or free device memory",
				 "reserve memory before serving; do not call empty_cache() in "
				 "requests" },
	[LULL_PART_OF_LOAD] = { "code of kernels is loaded or compiled for them",
				"warm up before serving: a request of each shape and size; "
				"CUDA_MODULE_LOADING=EAGER" },
	[LULL_PART_OF_GPU] = { "they have more work for the device, such as a longer prompt or "
			       "answer",
			       "split long prompts, limit their length, or serve them apart" },
	[LULL_PART_OF_COPY] = { "they copy more to or from the device",
				"keep data on the device, use pinned memory" },
	[LULL_PART_OF_WAIT] = { "they wait for something else: files, network, locks, sleep",
				"lull stats -r osrt_sum names the calls" },
};

/* More work of the device while more requests are open is that of their batch. */
static bool is_of_batch(const struct lull_request_tail *t, const struct lull_tail_cause *c)
{
	return c->part == LULL_PART_OF_GPU && c->n_open >= t->n_open + 2;
}

/* Nothing is before them: not their turn is late, but the thread that serves them. */
static bool is_alone(const struct lull_tail_cause *c)
{
	return c->part == LULL_PART_OF_QUEUE && c->n_open < LULL_TAIL_ALONE;
}

const char *lull_request_tail_title(const struct lull_request_tail *t,
				    const struct lull_tail_cause *c)
{
	if (is_alone(c))
		return "the thread that serves them starts late, although hardly any other request "
		       "is open";
	return is_of_batch(t, c) ? "the device works for more requests at once: their batches are "
				   "larger, or hold prompts of others"
				 : texts[c->part].title;
}

const char *lull_request_tail_fix(const struct lull_request_tail *t,
				  const struct lull_tail_cause *c)
{
	if (c->n_behind && c->is_on_thread && c->part == LULL_PART_OF_WAIT)
		return "keep what blocks out of the thread that others need (in asyncio: "
		       "asyncio.to_thread); lull stats -r osrt_sum names the calls";
	if (is_alone(c))
		return "keep threads ready for requests instead of starting one for each; `lull "
		       "stats -r threads` says which threads lack a CPU";
	if (c->part == LULL_PART_OF_QUEUE && t->wait_share >= LULL_TAIL_WAITING)
		return "more threads in the pool that serves them, or asynchronous calls: requests "
		       "that are served mostly wait themselves";
	return is_of_batch(t, c) ? "let fewer prompts join a batch at a time, or split them "
				   "(chunked prefill)"
				 : texts[c->part].fix;
}

struct tail {
	const struct lull_requests *q;
	const struct lull_request_summary *summary;
	u64 median_ns[LULL_N_REQUEST_PARTS];
	u64 slow_ns;   /* longer ones are slow */
	int *because;  /* by request: the part that explains it, -1 for none */
	u32 *behind;   /* by request: the one that it waits for, UINT32_MAX for none */
	bool *is_done; /* by request: a cause explains it */
};

static void find_medians(struct tail *t)
{
	const struct lull_one_request *all = t->q->all.at;
	size_t n = t->q->all.n;
	u64 *values = lull_alloc(n, sizeof(*values));

	for (u32 p = 0; p < LULL_N_REQUEST_PARTS; p++) {
		for (size_t i = 0; i < n; i++)
			values[i] = all[i].part_ns[p];
		lull_sort_u64(values, n);
		t->median_ns[p] = lull_quantile(values, n, 0.5);
	}
	free(values);
}

static u64 extra_of(const struct tail *t, const struct lull_one_request *one, u32 part)
{
	u64 ns = one->part_ns[part];

	return ns > t->median_ns[part] ? ns - t->median_ns[part] : 0;
}

/* The part that exceeds its median most, and by how much. */
static int most_of(const struct tail *t, const struct lull_one_request *one, u64 *most_ns)
{
	int best = -1;

	*most_ns = 0;
	for (u32 p = 0; p < LULL_N_REQUEST_PARTS; p++) {
		u64 ns = extra_of(t, one, p);

		if (ns > *most_ns) {
			*most_ns = ns;
			best = (int)p;
		}
	}
	return best;
}

/* The same if it is most of what the request takes too long. */
static int explain(const struct tail *t, const struct lull_one_request *one)
{
	u64 over_ns = lull_request_ns(one) - t->summary->latency.p50_ns, most_ns;
	int best = most_of(t, one, &most_ns);

	return (f64)most_ns >= LULL_TAIL_SHARE * (f64)over_ns ? best : -1;
}

static f64 log_choose(f64 n, f64 k)
{
	return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1);
}

/*
 * The chance that `hit` or more of the n_slow requests are among the `n_hit` of all `n` that have
 * the property, if it had nothing to do with being slow.
 */
static f64 chance_of(u32 hit, u32 n_slow, u32 n_hit, size_t n)
{
	u32 most = n_slow < n_hit ? n_slow : n_hit;
	f64 sum = 0, all = log_choose((f64)n, n_slow);

	for (u32 k = hit; k <= most; k++) {
		if ((size_t)(n_slow - k) > n - n_hit)
			continue;
		sum += exp(log_choose(n_hit, k) + log_choose((f64)(n - n_hit), n_slow - k) - all);
	}
	return sum < 1 ? sum : 1;
}

/* Those of the requests that have as much of the part as explains a slow one. */
static bool has_much(const struct tail *t, const struct lull_one_request *one, u32 part)
{
	f64 enough_ns = LULL_TAIL_SHARE * (LULL_SLOW_FACTOR - 1) * (f64)t->summary->latency.p50_ns;

	return (f64)extra_of(t, one, part) >= enough_ns;
}

/* The 99th percentile if what the part adds to the slow ones it explains were not there. */
static u64 p99_without(const struct tail *t, u32 part)
{
	const struct lull_one_request *all = t->q->all.at;
	size_t n = t->q->all.n;
	u64 *values = lull_alloc(n, sizeof(*values)), p99_ns;

	for (size_t i = 0; i < n; i++) {
		values[i] = lull_request_ns(&all[i]);
		if (t->because[i] == (int)part && t->behind[i] == UINT32_MAX)
			values[i] -= extra_of(t, &all[i], part);
		else if (t->behind[i] != UINT32_MAX && t->because[t->behind[i]] == (int)part)
			values[i] -= extra_of(t, &all[i], (u32)t->because[i]);
	}
	lull_sort_u64(values, n);
	p99_ns = lull_quantile(values, n, 0.99);
	free(values);
	return p99_ns;
}

/* How many of the requests that no other cause explains are slow, and have much of a part. */
struct counts {
	u32 n_slow, n_hit, n_slow_hit;
	size_t n;
};

static struct counts count(const struct tail *t, u32 part)
{
	const struct lull_one_request *all = t->q->all.at;
	struct counts c = { 0 };

	for (size_t i = 0; i < t->q->all.n; i++) {
		bool is_slow = lull_request_ns(&all[i]) > t->slow_ns;
		bool is_hit = has_much(t, &all[i], part);

		if (t->is_done[i])
			continue;
		c.n++;
		c.n_slow += is_slow;
		c.n_hit += is_hit;
		c.n_slow_hit += is_hit && is_slow;
	}
	return c;
}

/*
 * How many parts can pass the test at all, by Tarone: one that few requests have much of could not,
 * even if all of these were slow, and takes no chance from the others.
 */
static u32 n_testable(const struct tail *t)
{
	f64 least[LULL_N_REQUEST_PARTS];
	u32 k, n;

	for (u32 p = 0; p < LULL_N_REQUEST_PARTS; p++) {
		struct counts c = count(t, p);
		u32 most = c.n_slow < c.n_hit ? c.n_slow : c.n_hit;

		least[p] = most ? chance_of(most, c.n_slow, c.n_hit, c.n) : 1;
	}
	for (k = 1; k < LULL_N_REQUEST_PARTS; k++) {
		n = 0;
		for (u32 p = 0; p < LULL_N_REQUEST_PARTS; p++)
			n += least[p] * k < LULL_TAIL_CHANCE;
		if (n <= k)
			break;
	}
	return k;
}

/* What the part explains, among the requests that no other cause explains. */
static struct lull_tail_cause measure(const struct tail *t, u32 part, u32 n_parts)
{
	const struct lull_one_request *all = t->q->all.at;
	struct lull_tail_cause cause = { .part = part };
	struct counts c = count(t, part);
	u64 longest_ns = 0;

	for (size_t i = 0; i < t->q->all.n; i++) {
		u64 ns = lull_request_ns(&all[i]);

		if (t->is_done[i] || t->because[i] != (int)part)
			continue;
		cause.n_slow++;
		cause.extra_ns += (f64)extra_of(t, &all[i], part);
		cause.n_open += all[i].n_open;
		if (ns > longest_ns) {
			longest_ns = ns;
			cause.example = (u32)i;
		}
	}
	if (!cause.n_slow)
		return cause;
	cause.extra_ns /= cause.n_slow;
	cause.n_open /= cause.n_slow;
	cause.n_usual = c.n_hit - c.n_slow_hit;
	cause.chance = n_parts * chance_of(c.n_slow_hit, c.n_slow, c.n_hit, c.n);
	return cause;
}

/* Those that add most time first. */
static int by_weight(const void *a, const void *b)
{
	const struct lull_tail_cause *x = a, *y = b;
	f64 x_ns = x->n_slow * x->extra_ns + x->n_behind * x->behind_ns;
	f64 y_ns = y->n_slow * y->extra_ns + y->n_behind * y->behind_ns;

	return x_ns > y_ns ? -1 : x_ns < y_ns;
}

/* The cause that adds most to what is left, if it passes the test. */
static bool find_next(struct tail *t, struct lull_request_tail *to)
{
	struct lull_tail_cause best = { .n_slow = 0 };
	u32 n_parts = n_testable(t);

	for (u32 p = 0; p < LULL_N_REQUEST_PARTS; p++) {
		struct lull_tail_cause cause = measure(t, p, n_parts);

		if (cause.n_slow && cause.chance < LULL_TAIL_CHANCE && by_weight(&cause, &best) < 0)
			best = cause;
	}
	if (!best.n_slow)
		return false;
	for (size_t i = 0; i < t->q->all.n; i++)
		t->is_done[i] |= t->because[i] == (int)best.part;
	to->n_unexplained -= best.n_slow;
	*(struct lull_tail_cause *)lull_vec_push(&to->causes) = best;
	return true;
}

/* Those that wait behind others are slow for the cause of these. */
static void move_behind(struct tail *t, struct lull_request_tail *to, bool *is_on_thread)
{
	const struct lull_one_request *all = t->q->all.at;
	struct lull_tail_cause *c = to->causes.at;

	for (size_t k = 0; k < to->causes.n; k++) {
		u32 n_on_thread = 0;

		c[k].behind_ns = 0;
		for (size_t i = 0; i < t->q->all.n; i++) {
			if (t->behind[i] == UINT32_MAX ||
			    t->because[t->behind[i]] != (int)c[k].part)
				continue;
			c[k].n_behind++;
			c[k].behind_ns += (f64)extra_of(t, &all[i], (u32)t->because[i]);
			n_on_thread += is_on_thread[i];
			to->n_unexplained -= !t->is_done[i];
			t->is_done[i] = true;
		}
		c[k].behind_ns /= c[k].n_behind ? c[k].n_behind : 1;
		c[k].is_on_thread = n_on_thread * 2 > c[k].n_behind;
	}
}

/* What is left of the causes from whose requests others were taken. */
static void measure_again(struct tail *t, struct lull_request_tail *to)
{
	const struct lull_one_request *all = t->q->all.at;
	struct lull_tail_cause *c = to->causes.at;
	size_t n = 0;

	for (size_t k = 0; k < to->causes.n; k++) {
		u64 longest_ns = 0;

		c[k].n_slow = 0;
		c[k].extra_ns = c[k].n_open = 0;
		for (size_t i = 0; i < t->q->all.n; i++) {
			if (t->because[i] != (int)c[k].part || t->behind[i] != UINT32_MAX)
				continue;
			c[k].n_slow++;
			c[k].extra_ns += (f64)extra_of(t, &all[i], c[k].part);
			c[k].n_open += all[i].n_open;
			if (lull_request_ns(&all[i]) > longest_ns) {
				longest_ns = lull_request_ns(&all[i]);
				c[k].example = (u32)i;
			}
		}
		if (!c[k].n_slow)
			continue;
		c[k].extra_ns /= c[k].n_slow;
		c[k].n_open /= c[k].n_slow;
		c[k].p99_ns = p99_without(t, c[k].part);
		c[n++] = c[k];
	}
	to->causes.n = n;
}

/* Only those that a cause explains make others wait. */
static void find_behind(struct tail *t, struct lull_request_tail *to)
{
	bool *is_on_thread = lull_alloc(t->q->all.n, sizeof(*is_on_thread));
	int *known = lull_alloc(t->q->all.n, sizeof(*known));

	for (size_t i = 0; i < t->q->all.n; i++) {
		bool is_turn =
			t->because[i] == LULL_PART_OF_QUEUE || t->because[i] == LULL_PART_OF_OTHERS;

		known[i] = t->is_done[i] || is_turn ? t->because[i] : -1;
		t->behind[i] = UINT32_MAX;
	}
	if (t->q->turns.n)
		lull_request_tail_behind(t->behind, is_on_thread, t->q, known, t->median_ns);
	move_behind(t, to, is_on_thread);
	measure_again(t, to);
	free(is_on_thread);
	free(known);
}

/* The slowest request without a cause, and what it has more of than others. */
static void find_rest(const struct tail *t, struct lull_request_tail *to)
{
	const struct lull_one_request *all = t->q->all.at;
	u64 longest_ns = t->slow_ns;

	for (size_t i = 0; i < t->q->all.n; i++) {
		if (t->is_done[i] || lull_request_ns(&all[i]) <= longest_ns)
			continue;
		longest_ns = lull_request_ns(&all[i]);
		to->rest = (u32)i;
		to->rest_part = most_of(t, &all[i], &to->rest_ns);
	}
}

/* How much of the time in which requests are served they wait for something else. */
static f64 wait_share(const struct lull_request_summary *s)
{
	f64 served_ns = s->latency.mean_ns - s->part_mean_ns[LULL_PART_OF_QUEUE] -
			s->part_mean_ns[LULL_PART_OF_OTHERS];

	return served_ns > 0 ? s->part_mean_ns[LULL_PART_OF_WAIT] / served_ns : 0;
}

/* The usual number of open requests, and the request that is nearest to the median. */
static void find_usual(const struct tail *t, struct lull_request_tail *to)
{
	const struct lull_one_request *all = t->q->all.at;
	u64 median_ns = t->summary->latency.p50_ns, least_ns = UINT64_MAX;
	size_t n = 0;

	for (size_t i = 0; i < t->q->all.n; i++) {
		u64 ns = lull_request_ns(&all[i]);
		u64 off_ns = ns > median_ns ? ns - median_ns : median_ns - ns;

		if (off_ns < least_ns) {
			least_ns = off_ns;
			to->usual = (u32)i;
		}
		if (ns > t->slow_ns)
			continue;
		to->n_open += all[i].n_open;
		n++;
	}
	to->n_open /= (f64)n; /* half of them are not slow */
}

void lull_request_tail_init(struct lull_request_tail *to, const struct lull_requests *q,
			    const struct lull_request_summary *s)
{
	const struct lull_one_request *all = q->all.at;
	struct tail t = { .q = q, .summary = s };

	*to = (struct lull_request_tail){ .is_known = q->all.n >= LULL_TAIL_MIN };
	lull_vec_init(&to->causes, sizeof(struct lull_tail_cause));
	if (!to->is_known)
		return;
	t.slow_ns = (u64)(LULL_SLOW_FACTOR * (f64)s->latency.p50_ns);
	t.because = lull_alloc(q->all.n, sizeof(*t.because));
	t.is_done = lull_alloc(q->all.n, sizeof(*t.is_done));
	t.behind = lull_alloc(q->all.n, sizeof(*t.behind));
	to->wait_share = wait_share(s);
	find_medians(&t);
	find_usual(&t, to);
	for (size_t i = 0; i < q->all.n; i++) {
		u64 ns = lull_request_ns(&all[i]);

		t.because[i] = ns > t.slow_ns ? explain(&t, &all[i]) : -1;
		to->n_slow += ns > t.slow_ns;
	}
	to->n_unexplained = to->n_slow;
	while (find_next(&t, to))
		;
	find_behind(&t, to);
	find_rest(&t, to);
	for (size_t i = 0; i < to->causes.n; i++)
		lull_request_tail_place(lull_vec_get(&to->causes, i), q, t.because);
	lull_sort(to->causes.at, to->causes.n, sizeof(struct lull_tail_cause), by_weight);
	free(t.because);
	free(t.is_done);
	free(t.behind);
}

void lull_request_tail_release(struct lull_request_tail *t)
{
	lull_vec_release(&t->causes);
}
