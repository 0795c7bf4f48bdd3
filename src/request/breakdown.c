/*
 * breakdown - what each moment of a request went to.
 *
 * At each moment the first of these decides:
 *   1. A thread works for the request and computes: what it does (a collection, a compilation, an
 *      allocation, loading code, a launch, code). Of several threads one is enough.
 *   2. It waits for Python's lock: that, or the collection that holds the lock. Or it is ready and
 *      has no CPU.
 *   3. It waits, or none works for the request, while the device works for it: computing or
 *      copying. A launch that takes long waits for room in the queue of the device.
 *   4. It waits for a device that works for other requests: theirs. It waits for a device that is
 *      done: it has no CPU.
 *   5. It waits for a lock: before its first launch, while other requests are open, that is its
 *      queue.
 *   6. No thread works for it: a thread that has worked for it, or took it, works for others; or
 *      it is in the queue, where that is before its first launch and others are open; or it waits
 *      for something that is not known.
 */
#include <stddef.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"
#include "request/requests_int.h"
#include "request/sweep.h"

/* What may hold besides the states of its threads, which come first. */
enum {
	OWN_COMPUTE = LULL_N_THREAD_STATES,
	OWN_COPY,
	ANY_WORK,     /* of a device, its own too */
	OTHERS_SLICE, /* one of its threads works for another request */
	COLLECTION,   /* in its process */
	OTHERS_OPEN,  /* another request of its process */
	ITSELF,	      /* the request */
	N_HOLD,
};
_Static_assert(N_HOLD <= LULL_SWEEP_MAX, "more kinds than a sweep counts");

/* From here to the next step so many requests are open. */
struct open_step {
	u64 at_ns;
	u32 n;
};

struct breakdown {
	struct lull_request_reader *q;
	struct lull_one_request *one;
	u32 ix;
	struct lull_vec edges; /* struct lull_edge */
	struct lull_vec lanes; /* u32: its threads */
	struct lull_vec *open; /* by process: struct open_step, by time */
	struct lull_vec
		pieces; /* struct lull_request_piece of this request, if anybody wants them */
	u64 first_launch_ns, first_slice_ns;
};

/* ---- what decides ---- */

static int working(const u32 *n)
{
	if (n[LULL_THREAD_COLLECTS])
		return LULL_PART_OF_GC;
	if (n[LULL_THREAD_COMPILES])
		return LULL_PART_OF_COMPILE;
	if (n[LULL_THREAD_IN_ALLOC])
		return LULL_PART_OF_ALLOC;
	if (n[LULL_THREAD_IN_LOAD])
		return LULL_PART_OF_LOAD;
	if (n[LULL_THREAD_IN_CUDA])
		return LULL_PART_OF_LAUNCH;
	if (n[LULL_THREAD_RUNS])
		return LULL_PART_OF_HOST;
	/* While the device works for it they wait for the device: for the end, or for room. */
	if ((n[LULL_THREAD_IN_COPY] || n[LULL_THREAD_IN_LONG_LAUNCH]) && !n[OWN_COMPUTE] &&
	    !n[OWN_COPY])
		return LULL_PART_OF_LAUNCH;
	if (n[LULL_THREAD_IN_LONG_COPY] && !n[OWN_COMPUTE])
		return n[OWN_COPY] || !n[ANY_WORK] ? LULL_PART_OF_COPY : LULL_PART_OF_OTHERS;
	if (n[LULL_THREAD_WANTS_LOCK])
		return n[COLLECTION] ? LULL_PART_OF_GC : LULL_PART_OF_LOCK;
	if (n[LULL_THREAD_WANTS_CPU])
		return LULL_PART_OF_CPU;
	if (n[OWN_COMPUTE])
		return LULL_PART_OF_GPU;
	return n[OWN_COPY] ? LULL_PART_OF_COPY : -1;
}

static enum lull_request_part waiting(const struct breakdown *b, const u32 *n, u64 at_ns)
{
	bool is_queued = at_ns < b->first_launch_ns && n[OTHERS_OPEN];

	if (n[LULL_THREAD_IN_SYNC]) {
		if (n[ANY_WORK])
			return LULL_PART_OF_OTHERS;
		/* The device is done, and the thread is not back. */
		return b->q->to->has_sched ? LULL_PART_OF_CPU : LULL_PART_OF_WAIT;
	}
	if (n[LULL_THREAD_IN_LOCK]) {
		if (is_queued)
			return LULL_PART_OF_QUEUE;
		return n[ANY_WORK] ? LULL_PART_OF_OTHERS : LULL_PART_OF_WAIT;
	}
	if (n[LULL_THREAD_WAITS] || n[LULL_THREAD_BLOCKED])
		return LULL_PART_OF_WAIT;
	if (n[OTHERS_SLICE])
		return n[COLLECTION] ? LULL_PART_OF_GC : LULL_PART_OF_OTHERS;
	if (is_queued || at_ns < b->first_slice_ns)
		return LULL_PART_OF_QUEUE;
	return LULL_PART_OF_WAIT;
}

static void keep_piece(struct breakdown *b, struct lull_request_piece piece)
{
	struct lull_vec *pieces = &b->pieces;
	struct lull_request_piece *last = pieces->n ? lull_vec_get(pieces, pieces->n - 1) : NULL;

	if (last && last->part == piece.part)
		last->to_ns = piece.to_ns;
	else
		*(struct lull_request_piece *)lull_vec_push(pieces) = piece;
}

static void visit(void *ctx, u64 from_ns, u64 to_ns, const u32 *counts)
{
	struct breakdown *b = ctx;
	int part;

	if (!counts[ITSELF])
		return;
	part = working(counts);
	if (part < 0)
		part = waiting(b, counts, from_ns);
	/* What earlier rounds of a loop have left to the device is work of the same loop. */
	if (b->one->is_round && part == LULL_PART_OF_OTHERS)
		part = LULL_PART_OF_GPU;
	b->one->part_ns[part] += to_ns - from_ns;
	if (b->one->n_tokens && from_ns < b->one->first_token_ns)
		b->one->prefill_ns[part] +=
			(to_ns < b->one->first_token_ns ? to_ns : b->one->first_token_ns) - from_ns;
	if (b->q->wants & (LULL_REQUESTS_WANT_PIECES | LULL_REQUESTS_WANT_WHERE))
		keep_piece(b, (struct lull_request_piece){ from_ns, to_ns, b->ix, (u8)part });
}

/* ---- what holds ---- */

static void hold(struct breakdown *b, u64 from_ns, u64 to_ns, u8 what)
{
	const struct lull_one_request *one = b->one;

	lull_sweep_add(&b->edges, from_ns > one->start_ns ? from_ns : one->start_ns,
		       to_ns < one->end_ns ? to_ns : one->end_ns, what);
}

/* The states of a thread while it works for the request. */
static void hold_slice(struct breakdown *b, const struct lull_request_slice *s)
{
	const struct lull_vec *states = &b->q->states[s->lane];
	const struct lull_state *all = states->at;
	size_t i = lull_vec_upper(states, offsetof(struct lull_state, from_ns), s->from_ns);
	u64 from_ns = s->from_ns;

	for (; from_ns < s->to_ns; i++) {
		u64 to_ns = i < states->n && all[i].from_ns < s->to_ns ? all[i].from_ns : s->to_ns;

		hold(b, from_ns, to_ns, i ? all[i - 1].state : LULL_THREAD_RUNS);
		from_ns = to_ns;
	}
	if (s->from_ns < b->first_slice_ns)
		b->first_slice_ns = s->from_ns;
}

/* A thread is its own from its first slice on; before that it waits for one to take it. */
static u64 own_from_ns(const struct breakdown *b, const struct lull_request_slice *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (s[i].lane == b->one->lane || s[i].request == b->ix)
			return s[i].lane == b->one->lane ? 0 : s[i].from_ns;
	return UINT64_MAX;
}

static void hold_slices(struct breakdown *b)
{
	const u32 *lanes = b->lanes.at;

	for (size_t i = 0; i < b->lanes.n; i++) {
		size_t n;
		const struct lull_request_slice *s = lull_request_slices_in(
			b->q, lanes[i], b->one->start_ns, b->one->end_ns, &n);
		u64 from_ns = own_from_ns(b, s, n);

		for (size_t k = 0; k < n; k++) {
			if (s[k].request == b->ix)
				hold_slice(b, &s[k]);
			else if (s[k].from_ns >= from_ns)
				hold(b, s[k].from_ns, s[k].to_ns, OTHERS_SLICE);
		}
	}
}

static void hold_own(struct breakdown *b, const struct lull_owned *own, size_t n)
{
	const struct lull_request_unit *work = b->q->work.at;

	for (size_t i = 0; i < n; i++) {
		const struct lull_request_unit *w = &work[own[i].work];

		hold(b, w->from_ns, w->to_ns, w->is_copy ? OWN_COPY : OWN_COMPUTE);
		b->one->gpu_ns += w->to_ns - w->from_ns;
		if (own[i].call_ns < b->first_launch_ns)
			b->first_launch_ns = own[i].call_ns;
	}
	b->one->n_launches = (u32)n;
	if (!n)
		b->first_launch_ns = 0;
}

static void hold_devices(struct breakdown *b)
{
	const struct lull_request_unit *w = b->q->work.at;
	size_t i = lull_vec_upper(&b->q->work, offsetof(struct lull_request_unit, reach_ns),
				  b->one->start_ns);

	for (; i < b->q->work.n && w[i].from_ns < b->one->end_ns; i++)
		hold(b, w[i].from_ns, w[i].to_ns, ANY_WORK);
}

static void hold_collections(struct breakdown *b)
{
	const struct lull_request_slice *s = b->q->collections.at;
	size_t i = lull_vec_upper(&b->q->collections, offsetof(struct lull_request_slice, id),
				  b->one->start_ns);

	for (; i < b->q->collections.n && s[i].from_ns < b->one->end_ns; i++)
		if (s[i].process == b->one->process)
			hold(b, s[i].from_ns, s[i].to_ns, COLLECTION);
}

/* ---- threads ---- */

static bool is_busy(u8 state)
{
	switch (state) {
	case LULL_THREAD_RUNS:
	case LULL_THREAD_IN_CUDA:
	case LULL_THREAD_IN_ALLOC:
	case LULL_THREAD_IN_LOAD:
	case LULL_THREAD_COMPILES:
	case LULL_THREAD_COLLECTS:
		return true;
	default:
		return false;
	}
}

/* Time of the slice in which the thread did not wait. */
static u64 busy_of(const struct lull_request_reader *q, const struct lull_request_slice *s)
{
	const struct lull_vec *states = &q->states[s->lane];
	const struct lull_state *all = states->at;
	size_t i = lull_vec_upper(states, offsetof(struct lull_state, from_ns), s->from_ns);
	u64 from_ns = s->from_ns, sum_ns = 0;

	for (; from_ns < s->to_ns; i++) {
		u64 to_ns = i < states->n && all[i].from_ns < s->to_ns ? all[i].from_ns : s->to_ns;

		if (is_busy(i ? all[i - 1].state : LULL_THREAD_RUNS))
			sum_ns += to_ns - from_ns;
		from_ns = to_ns;
	}
	return sum_ns;
}

static void add_thread_time(struct lull_request_reader *q)
{
	const struct lull_request_slice *s = q->slices.at;
	u64 sum_ns = 0;

	for (size_t i = 0; i < q->slices.n; i++) {
		if (!i || s[i].lane != s[i - 1].lane)
			sum_ns = 0;
		/* Of a batch once. */
		if (!i || s[i].lane != s[i - 1].lane || s[i].from_ns >= s[i - 1].to_ns)
			sum_ns += busy_of(q, &s[i]);
		/* A thread that serves only some of the requests is one of many. */
		if (sum_ns > q->to->thread_busy_ns && q->n_served[s[i].lane] * 2 >= q->to->all.n) {
			q->to->thread_busy_ns = sum_ns;
			q->to->busiest_lane = s[i].lane;
		}
	}
}

/* ---- all requests ---- */

static void find_lanes(struct breakdown *b, const u32 *first, const u32 *next)
{
	const struct lull_request_slice *slices = b->q->slices.at;

	b->lanes.n = 0;
	for (u32 i = first[b->ix]; i; i = next[i - 1]) {
		u32 lane = slices[i - 1].lane, *known = b->lanes.at;
		size_t k = 0;

		while (k < b->lanes.n && known[k] != lane)
			k++;
		if (k < b->lanes.n)
			continue;
		*(u32 *)lull_vec_push(&b->lanes) = lane;
		b->q->n_served[lane]++;
	}
}

/* The slices of each request as lists: index + 1 of its first one, and of the next of each. */
static void link_slices(const struct lull_request_reader *q, u32 *first, u32 *next)
{
	const struct lull_request_slice *s = q->slices.at;

	for (size_t i = q->slices.n; i-- > 0;) {
		if (s[i].request == LULL_NO_REQUEST)
			continue;
		next[i] = first[s[i].request];
		first[s[i].request] = (u32)(i + 1);
	}
}

/* Times in which another request of the process is open. */
static void hold_others(struct breakdown *b)
{
	const struct lull_vec *steps = &b->open[b->one->process];
	const struct open_step *at = steps->at;
	size_t i = lull_vec_upper(steps, offsetof(struct open_step, at_ns), b->one->start_ns);

	for (i -= i > 0; i < steps->n && at[i].at_ns < b->one->end_ns; i++)
		if (at[i].n > 1)
			hold(b, at[i].at_ns, i + 1 < steps->n ? at[i + 1].at_ns : UINT64_MAX,
			     OTHERS_OPEN);
}

static void break_down(struct breakdown *b, const struct lull_owned *own, size_t n_own)
{
	b->edges.n = b->pieces.n = 0;
	b->first_launch_ns = b->first_slice_ns = UINT64_MAX;
	hold(b, b->one->start_ns, b->one->end_ns, ITSELF);
	hold_slices(b);
	if (b->first_slice_ns == UINT64_MAX)
		b->first_slice_ns = 0; /* no thread is known to work for it */
	hold_own(b, own, n_own);
	hold_devices(b);
	hold_collections(b);
	hold_others(b);
	lull_sweep(&b->edges, visit, b);
	if (b->q->wants & LULL_REQUESTS_WANT_PIECES)
		lull_vec_add(&b->q->to->pieces, b->pieces.at, b->pieces.n);
	if (b->q->samples)
		lull_request_where(b->q, b->ix, b->lanes.at, b->lanes.n, &b->pieces);
}

/* One that starts or ends. */
static int step_by_time(const void *a, const void *b)
{
	const struct open_step *x = a, *y = b;

	return x->at_ns < y->at_ns ? -1 : x->at_ns > y->at_ns;
}

/* How many requests each process has open: first each change, then their sums. */
static void count_open(struct breakdown *b, size_t n_processes)
{
	const struct lull_one_request *all = b->q->to->all.at;

	b->open = lull_alloc(n_processes, sizeof(*b->open));
	for (size_t p = 0; p < n_processes; p++)
		lull_vec_init(&b->open[p], sizeof(struct open_step));
	for (size_t i = 0; i < b->q->to->all.n; i++) {
		struct open_step *two = lull_vec_extend(&b->open[all[i].process], 2);

		two[0] = (struct open_step){ all[i].start_ns, 1 };
		two[1] = (struct open_step){ all[i].end_ns, UINT32_MAX };
	}
	for (size_t p = 0; p < n_processes; p++) {
		struct open_step *at = b->open[p].at;

		lull_sort(at, b->open[p].n, sizeof(*at), step_by_time);
		for (size_t i = 1; i < b->open[p].n; i++)
			at[i].n += at[i - 1].n;
	}
}

void lull_request_break_down(struct lull_request_reader *q)
{
	struct breakdown b = { .q = q };
	const struct lull_owned *own = q->owned.at;
	u32 *first = lull_alloc(q->to->all.n + 1, sizeof(*first));
	u32 *next = lull_alloc(q->slices.n + 1, sizeof(*next));
	size_t at = 0, n_processes;

	lull_vec_init(&b.edges, sizeof(struct lull_edge));
	lull_vec_init(&b.lanes, sizeof(u32));
	lull_vec_init(&b.pieces, sizeof(struct lull_request_piece));
	link_slices(q, first, next);
	lull_reader_dim(q->reader, LULL_TABLE_process, &n_processes);
	count_open(&b, ++n_processes);
	for (b.ix = 0; b.ix < q->to->all.n; b.ix++) {
		size_t n = 0;

		while (at + n < q->owned.n && own[at + n].request == b.ix)
			n++;
		b.one = lull_vec_get(&q->to->all, b.ix);
		find_lanes(&b, first, next);
		break_down(&b, own + at, n);
		at += n;
	}
	lull_vec_release(&b.edges);
	lull_vec_release(&b.lanes);
	lull_vec_release(&b.pieces);
	for (size_t p = 0; p < n_processes; p++)
		lull_vec_release(&b.open[p]);
	free(b.open);
	free(first);
	free(next);
	add_thread_time(q);
}
