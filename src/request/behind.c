/*
 * behind - which slow requests others wait for, and where the time of slow ones is spent.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "request/tail.h"

#define NOBODY UINT32_MAX

/* Which turns each request has: those of i are from first[i] to first[i + 1]. */
static u32 *first_turns(const struct lull_requests *q)
{
	const struct lull_request_turn *t = q->turns.at;
	u32 *first = lull_alloc(q->all.n + 1, sizeof(*first));
	size_t k = 0;

	for (size_t i = 0; i <= q->all.n; i++) {
		while (k < q->turns.n && t[k].request < i)
			k++;
		first[i] = (u32)k;
	}
	return first;
}

/* What is known of all of them. */
struct line {
	const struct lull_requests *q;
	u32 *first; /* of the turns of each request */
	const int *because;
	const u64 *median_ns;
	u32 *behind;
	bool *is_on_thread;
	u64 longest_ns; /* of all requests */
};

/* For how long a request has what another one waits for. */
struct hold {
	u64 ns;
	u64 thread_ns; /* of it, a thread */
	u64 caused_ns; /* of it, what is due to the cause that makes the request slow */
};

static bool is_served_by(const struct lull_one_request *one, u32 lane)
{
	for (size_t i = 0; i < LULL_COUNT_OF(one->served_by); i++)
		if (one->served_by[i] == lane)
			return true;
	return false;
}

static u64 both_ns(const struct lull_request_turn *a, const struct lull_request_turn *b)
{
	u64 from_ns = a->from_ns > b->from_ns ? a->from_ns : b->from_ns;
	u64 to_ns = a->to_ns < b->to_ns ? a->to_ns : b->to_ns;

	return to_ns > from_ns ? to_ns - from_ns : 0;
}

/* How long request `a` has the device, or a thread of `b`, while `b` waits. */
static struct hold hold_of(const struct lull_requests *q, const u32 *first, u32 a, u32 b)
{
	const struct lull_request_turn *t = q->turns.at;
	const struct lull_one_request *waiting = lull_vec_get(&q->all, b);
	u64 device_ns = 0, thread_ns = 0;

	for (u32 k = first[b]; k < first[b + 1]; k++) {
		if (t[k].kind != LULL_TURN_WAITS)
			continue;
		for (u32 i = first[a]; i < first[a + 1]; i++) {
			if (t[i].kind == LULL_TURN_HAS_DEVICE)
				device_ns += both_ns(&t[k], &t[i]);
			else if (t[i].kind == LULL_TURN_HAS_THREAD &&
				 is_served_by(waiting, t[i].lane))
				thread_ns += both_ns(&t[k], &t[i]);
		}
	}
	/* Who has the thread has the device, too, while the thread waits for that. */
	return (struct hold){ .ns = thread_ns > device_ns ? thread_ns : device_ns,
			      .thread_ns = thread_ns };
}

static u64 extra_ns(const struct lull_one_request *one, int part, const u64 *median_ns)
{
	u64 ns = one->part_ns[part];

	return ns > median_ns[part] ? ns - median_ns[part] : 0;
}

static u64 least_ns(u64 a_ns, u64 b_ns)
{
	return a_ns < b_ns ? a_ns : b_ns;
}

static bool waits_for_turn(int part)
{
	return part == LULL_PART_OF_QUEUE || part == LULL_PART_OF_OTHERS;
}

/*
 * The one whose cause holds request `b` up for longest, of those that were open meanwhile. Without
 * that cause it would have had the thread or the device, too, but for less: in a burst, all wait
 * for all.
 */
static u32 find_one(const struct line *l, u32 b, struct hold *most)
{
	const struct lull_one_request *all = l->q->all.at;
	u32 best = NOBODY;

	*most = (struct hold){ 0 };
	for (size_t a = l->q->all.n; a-- > 0;) {
		struct hold h;

		if (all[a].start_ns >= all[b].end_ns)
			continue;
		if (all[a].start_ns + l->longest_ns < all[b].start_ns)
			break;
		if (a == b || l->because[a] < 0 || waits_for_turn(l->because[a]) ||
		    all[a].process != all[b].process || all[a].end_ns <= all[b].start_ns)
			continue;
		h = hold_of(l->q, l->first, (u32)a, b);
		h.caused_ns = least_ns(h.ns, extra_ns(&all[a], l->because[a], l->median_ns));
		if (h.caused_ns > most->caused_ns) {
			*most = h;
			best = (u32)a;
		}
	}
	return best;
}

static bool shares_thread(const struct lull_one_request *a, const struct lull_one_request *b)
{
	for (size_t i = 0; i < LULL_COUNT_OF(a->served_by); i++)
		if (a->served_by[i] && is_served_by(b, a->served_by[i]))
			return true;
	return false;
}

/* For how long a request has a thread that another one needs. */
static u64 thread_ns(const struct lull_requests *q, const u32 *first, u32 a, u32 b)
{
	const struct lull_request_turn *t = q->turns.at;
	const struct lull_one_request *waiting = lull_vec_get(&q->all, b);
	u64 sum_ns = 0;

	for (u32 i = first[a]; i < first[a + 1]; i++)
		if (t[i].kind == LULL_TURN_HAS_THREAD && is_served_by(waiting, t[i].lane))
			sum_ns += t[i].to_ns - t[i].from_ns;
	return sum_ns;
}

/*
 * Request `b` came when others were still waiting behind a slow one, or for a collection, which
 * stops all threads: until these are served, it waits for the same. Returns that slow one, and how
 * long its cause had the thread.
 */
static u32 find_in_line(const struct line *l, u32 b, u64 *held_ns)
{
	const struct lull_one_request *all = l->q->all.at;

	for (size_t a = b; a-- > 0 && all[a].start_ns + l->longest_ns >= all[b].start_ns;) {
		u32 slow = l->behind[a] != NOBODY ? l->behind[a] : (u32)a;

		if (all[a].end_ns <= all[b].start_ns || !shares_thread(&all[a], &all[b]) ||
		    l->because[slow] < 0)
			continue;
		*held_ns = extra_ns(&all[slow], l->because[slow], l->median_ns);
		if (l->because[slow] == LULL_PART_OF_GC)
			return slow;
		if (l->behind[a] == NOBODY || !l->is_on_thread[a])
			continue;
		*held_ns = least_ns(*held_ns, thread_ns(l->q, l->first, slow, b));
		return slow;
	}
	*held_ns = 0;
	return NOBODY;
}

void lull_request_tail_behind(u32 *behind, bool *is_on_thread, const struct lull_requests *q,
			      const int *because, const u64 *median_ns)
{
	const struct lull_one_request *all = q->all.at;
	struct line l = { .q = q,
			  .first = first_turns(q),
			  .because = because,
			  .median_ns = median_ns,
			  .behind = behind,
			  .is_on_thread = is_on_thread };

	for (size_t i = 0; i < q->all.n; i++)
		if (lull_request_ns(&all[i]) > l.longest_ns)
			l.longest_ns = lull_request_ns(&all[i]);
	for (size_t b = 0; b < q->all.n; b++) {
		f64 enough_ns;
		struct hold most;
		u32 one;

		if (!waits_for_turn(because[b]))
			continue;
		enough_ns = LULL_TAIL_SHARE * (f64)extra_ns(&all[b], because[b], median_ns);
		one = find_one(&l, (u32)b, &most);
		if ((f64)most.caused_ns < enough_ns) {
			one = find_in_line(&l, (u32)b, &most.caused_ns);
			most.ns = most.thread_ns = most.caused_ns;
		}
		if (one == NOBODY || (f64)most.caused_ns < enough_ns)
			continue;
		behind[b] = one;
		is_on_thread[b] = most.thread_ns * 2 > most.ns;
	}
	free(l.first);
}

/* Samples of a part by their function, and the function that has most. */
struct vote {
	const struct lull_requests *q;
	const int *because; /* only of requests that this part explains; NULL: of all */
	u32 part;
	u32 *counts; /* by frame */
	u32 function;
	u32 n, n_there;
};

static bool is_voter(const struct vote *v, const struct lull_request_place *p)
{
	return p->part == v->part && (!v->because || v->because[p->request] == (int)v->part);
}

static void vote(struct vote *v)
{
	const struct lull_request_place *p = v->q->places.at;
	u32 last = 0;

	for (size_t i = 0; i < v->q->places.n; i++)
		last = p[i].frame > last ? p[i].frame : last;
	v->counts = lull_alloc(last + 1, sizeof(*v->counts));
	for (size_t i = 0; i < v->q->places.n; i++) {
		if (!is_voter(v, &p[i]))
			continue;
		v->n += p[i].n;
		v->counts[p[i].function] += p[i].n;
		if (p[i].function && v->counts[p[i].function] > v->n_there) {
			v->n_there = v->counts[p[i].function];
			v->function = p[i].function;
		}
	}
	memset(v->counts, 0, (last + 1) * sizeof(*v->counts));
}

/* The line of the function with most samples; 0 if there is no function. */
static u32 find_line(const struct vote *v)
{
	const struct lull_request_place *p = v->q->places.at;
	u32 best = 0;

	for (size_t i = 0; i < v->q->places.n; i++) {
		if (!v->function || !is_voter(v, &p[i]) || p[i].function != v->function)
			continue;
		v->counts[p[i].frame] += p[i].n;
		best = !best || v->counts[p[i].frame] > v->counts[best] ? p[i].frame : best;
	}
	return best;
}

void lull_request_tail_place(struct lull_tail_cause *c, const struct lull_requests *q,
			     const int *because)
{
	struct vote v = { .q = q, .because = because, .part = c->part };

	vote(&v);
	c->frame = find_line(&v);
	c->n_there = v.n_there;
	c->n_samples = v.n;
	free(v.counts);
}

u32 lull_request_late_frame(const struct lull_requests *q)
{
	struct vote v = { .q = q, .part = LULL_PLACE_LATE };
	u32 frame;

	vote(&v);
	frame = v.n_there * 2 > v.n ? find_line(&v) : 0;
	free(v.counts);
	return frame;
}
