#include "cause/gaps.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "cause/cause.h"
#include "cause/location.h"
#include "cause/position.h"
#include "cause/thresholds.h"
#include "model/thread/doing.h"

static bool is_slow_call(const struct lull_node *node)
{
	return node->kind == LULL_KIND_OF_LAUNCH &&
	       node->end_ns - node->begin_ns >= LULL_TN(stall_ns);
}

/* The long gaps and their places. Returns how many could be stalls. */
static u32 find_gaps(struct lull_gaps *g, struct lull_subject *s, struct lull_map *places)
{
	struct lull_positions p;
	u32 n_stalls = 0;

	lull_positions_init(&p, s);
	for (u32 i = 0; i < s->chain.n; i++) {
		const struct lull_node *node = &s->chain.nodes[i];
		u64 gap_ns = node->begin_ns - lull_chain_gap_ns(&s->chain, i);
		u64 position = node->round == LULL_NONE ? 0 : lull_position_of(&p, node);
		struct lull_gap *gap;
		bool is_new;
		u32 *place;

		if (node->round == LULL_NONE ||
		    (gap_ns < LULL_TN(gap_long_ns) && !is_slow_call(node)))
			continue;
		place = lull_map_add(places, position, &is_new);
		if (is_new) {
			*place = (u32)g->places.n;
			lull_vec_push(&g->places);
		}
		gap = lull_vec_push(&g->all);
		*gap = (struct lull_gap){ .node = i, .place = *place, .gap_ns = gap_ns };
		n_stalls += node->round && (gap_ns >= LULL_TN(stall_ns) || is_slow_call(node));
		if (node->round >= s->rounds.first_steady && gap_ns >= LULL_TN(gap_long_ns))
			((struct lull_gap_place *)lull_vec_get(&g->places, *place))->n++;
	}
	lull_positions_release(&p);
	return n_stalls;
}

/* ---- stalls ---- */

/* How long a position took in one step; sorted, the median is in the middle. */
struct took {
	u32 place;
	u32 is_call;
	u64 ns;
};

static int by_took(const void *a, const void *b)
{
	const struct took *x = a, *y = b;

	if (x->place != y->place)
		return x->place < y->place ? -1 : 1;
	if (x->is_call != y->is_call)
		return x->is_call < y->is_call ? -1 : 1;
	return (x->ns > y->ns) - (x->ns < y->ns);
}

/* All durations at the places that were found, in steps 0 and up. */
static void collect(struct lull_vec *took, struct lull_subject *s, const struct lull_map *places)
{
	struct lull_positions p;

	lull_positions_init(&p, s);
	for (u32 i = 0; i < s->chain.n; i++) {
		const struct lull_node *node = &s->chain.nodes[i];
		const u32 *place;

		if (node->round == LULL_NONE)
			continue;
		place = lull_map_find(places, lull_position_of(&p, node));
		if (!place)
			continue;
		*(struct took *)lull_vec_push(took) =
			(struct took){ *place, 0,
				       node->begin_ns - lull_chain_gap_ns(&s->chain, i) };
		*(struct took *)lull_vec_push(took) =
			(struct took){ *place, 1, node->end_ns - node->begin_ns };
	}
	lull_positions_release(&p);
}

/* The usual duration of each place: [2 * place + is_call]. */
static u64 *usual(struct lull_vec *took, size_t n_places)
{
	u64 *base_ns = lull_alloc(2 * n_places + 2, sizeof(*base_ns));
	struct took *at = took->at;

	if (took->n)
		lull_sort(at, took->n, sizeof(*at), by_took);
	for (size_t i = 0, j; i < took->n; i = j) {
		for (j = i;
		     j < took->n && at[j].place == at[i].place && at[j].is_call == at[i].is_call;
		     j++)
			;
		/* Of two, the smaller one: it had nothing in its way. */
		base_ns[2 * at[i].place + at[i].is_call] = at[i + (j - i - 1) / 2].ns;
	}
	return base_ns;
}

static u64 beyond(u64 ns, u64 base_ns)
{
	return ns >= LULL_TN(stall_ns) && ns >= LULL_TN(stall_times) * base_ns ? ns - base_ns : 0;
}

/* Share of the host's time that is in calls, in the steady steps. */
static f64 share_in_calls(const struct lull_subject *s)
{
	u64 calls_ns = 0, all_ns = 0;

	for (u32 i = 0; i < s->chain.n; i++) {
		const struct lull_node *node = &s->chain.nodes[i];

		if (node->round == LULL_NONE || node->round < s->rounds.first_steady)
			continue;
		calls_ns += node->end_ns - node->begin_ns;
		all_ns += node->end_ns - lull_chain_gap_ns(&s->chain, i);
	}
	return all_ns ? (f64)calls_ns / (f64)all_ns : 0;
}

/*
 * A thread waits for the lock between operators, never inside a CUDA call; preemption strikes
 * anywhere. So if stalls spare the calls, it was the lock; the odds that preemption missed them all
 * by chance lower the confidence.
 */
static void judge(struct lull_subject *s)
{
	struct lull_stalls *st = &s->stalls;
	u32 n = st->n_gaps + st->n_calls;
	f64 missed = 1;

	st->call_share = share_in_calls(s);
	for (u32 i = 0; i < n && i < 1000; i++)
		missed *= 1 - st->call_share;
	st->kind = LULL_STALL_UNKNOWN;
	if (st->n_gaps < LULL_TN(stall_count))
		return;
	if (st->n_calls > LULL_T(stall_in_calls) * st->call_share * n) {
		/* The scheduler's records would show it. */
		if (s->host.has_sched)
			return;
		st->kind = LULL_STALL_OS;
		st->confidence = LULL_T(preempted_trust);
	} else if (lull_subject_is_python(s) && !s->host.has_gil) {
		st->kind = LULL_STALL_GIL;
		st->confidence = 1 - missed;
	}
}

/* At least five gaps of a switch interval in each step: others take turns with the lock. */
static bool find_convoy(struct lull_gaps *g, struct lull_subject *s)
{
	struct lull_gap *gaps = g->all.at;
	u32 n = 0;

	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < g->all.n; i++) {
			u32 round = s->chain.nodes[gaps[i].node].round;

			if (round < s->rounds.first_steady ||
			    gaps[i].gap_ns < LULL_TN(convoy_min_ns) ||
			    gaps[i].gap_ns > LULL_TN(convoy_max_ns))
				continue;
			n += !pass;
			if (pass)
				gaps[i].stall_ns = gaps[i].gap_ns;
		}
		if (n < LULL_TN(convoy_count) * lull_rounds_n_steady(&s->rounds) ||
		    !lull_subject_is_python(s) || s->host.has_gil)
			return false;
	}
	s->stalls.kind = LULL_STALL_GIL;
	s->stalls.confidence = LULL_T(convoy_trust);
	s->stalls.n_gaps = n;
	return true;
}

/* Time of the stalls in which samples found the thread on a CPU. */
static u64 sampled_ns(const struct lull_subject *s, const struct lull_node *node, u64 from_ns)
{
	const struct lull_host_sample *at = s->host.samples.at;
	u64 sum = 0;

	for (size_t i = lull_host_sample_at(&s->host, node->lane, from_ns);
	     i < s->host.samples.n && at[i].lane == node->lane && at[i].at_ns < node->begin_ns; i++)
		sum += at[i].weight_ns;
	return sum;
}

/* A thread that runs waits neither for a CPU nor for a lock: it just has more to do. */
static void drop_running(struct lull_gaps *g, struct lull_subject *s)
{
	struct lull_gap *gaps = g->all.at;
	u64 ran_ns = 0;

	for (size_t i = 0; i < g->all.n; i++) {
		const struct lull_node *node = &s->chain.nodes[gaps[i].node];

		if (gaps[i].stall_ns)
			ran_ns += sampled_ns(s, node, node->begin_ns - gaps[i].gap_ns);
	}
	if ((f64)ran_ns < LULL_T(stall_ran) * (f64)s->stalls.sum_ns)
		return;
	for (size_t i = 0; i < g->all.n; i++)
		gaps[i].stall_ns = gaps[i].call_stall_ns = 0;
	s->stalls = (struct lull_stalls){ .kind = LULL_STALL_NONE };
}

static void find_stalls(struct lull_gaps *g, struct lull_subject *s, const struct lull_map *places)
{
	struct lull_gap *gaps = g->all.at;
	struct lull_vec took;
	u64 *base_ns;

	lull_vec_init(&took, sizeof(struct took));
	collect(&took, s, places);
	base_ns = usual(&took, g->places.n);
	for (size_t i = 0; i < g->all.n; i++) {
		struct lull_gap *gap = &gaps[i];
		const struct lull_node *node = &s->chain.nodes[gap->node];

		if (!node->round)
			continue;
		/* A wait, a copy or an allocation is long for its own reasons. */
		if (node->kind != LULL_KIND_OF_SYNC || gap->gap_ns >= LULL_TN(stall_ns))
			gap->stall_ns = beyond(gap->gap_ns, base_ns[2 * gap->place]);
		if (is_slow_call(node))
			gap->call_stall_ns =
				beyond(node->end_ns - node->begin_ns, base_ns[2 * gap->place + 1]);
		s->stalls.n_gaps += gap->stall_ns != 0;
		s->stalls.n_calls += gap->call_stall_ns != 0;
		s->stalls.sum_ns += gap->stall_ns;
	}
	if (s->stalls.sum_ns)
		drop_running(g, s);
	if (s->stalls.n_gaps + s->stalls.n_calls)
		judge(s);
	free(base_ns);
	lull_vec_release(&took);
}

/* ---- samples ---- */

const u32 lull_gap_bits[LULL_GAP_BITS] = {
	LULL_IN_LOADER, LULL_IN_STORAGE, LULL_IN_FRAMEWORK, LULL_IN_COMPILE, LULL_IN_GC,
	LULL_IN_FAULT,	LULL_IN_TOUCH,	 LULL_IN_CPU_OP,    LULL_IN_FILE,    LULL_IN_QUEUE,
	LULL_IN_LOCK,	LULL_IN_SOCKET,	 LULL_IN_EVENTS,    LULL_IN_DEMAND,  LULL_IN_MANAGED,
	LULL_IN_WRITE,	LULL_IN_RESULT,
};

/* What a stack says, looked up once. */
struct fact {
	u32 bits;
	u32 frame; /* of the program */
	u64 function;
};

struct facts {
	const struct lull_subject *s;
	bool is_torch;
	struct lull_map known; /* stack to index in all */
	struct lull_vec all;   /* struct fact */
};

/* Libraries of PyTorch for CPUs make their loops while the program runs. */
static u32 bits_of(const struct facts *f, u32 stack)
{
	u32 bits = lull_location_stack_bits(f->s->reader, stack);

	if (f->is_torch && lull_location_is_generated(f->s->reader, stack))
		bits |= LULL_IN_CPU_OP;
	return bits;
}

static struct fact fact_of(struct facts *f, u32 stack)
{
	bool is_new;
	u32 *ix = lull_map_add(&f->known, stack, &is_new);

	if (is_new) {
		*ix = (u32)f->all.n;
		*(struct fact *)lull_vec_push(&f->all) =
			(struct fact){ bits_of(f, stack), lull_location_frame(f->s, stack),
				       lull_location_function(f->s, stack) };
	}
	return *(struct fact *)lull_vec_get(&f->all, *ix);
}

/* The call of the C library that a sample is in, or NULL. */
static const struct lull_host_event *call_at(const struct lull_subject *s,
					     const struct lull_host_sample *sample)
{
	u32 ix = lull_host_at(&s->host, sample->lane, sample->at_ns);
	const struct lull_host_event *e =
		ix == LULL_NONE ? NULL : lull_vec_get(&s->host.events, ix);

	return e && e->kind == LULL_HOST_OSCALL ? e : NULL;
}

/* Whether a sample of Python is in a call of the C library that waits for another thread. */
static void count_wait(struct lull_gap_place *place, const struct lull_subject *s,
		       const struct lull_host_event *e, u32 bits)
{
	if (!e || !(e->inside & LULL_IN_QUEUE))
		return;
	place->n_waits++;
	place->n_locks += !(bits & (LULL_IN_QUEUE | LULL_IN_EVENTS | LULL_IN_DEMAND)) &&
			  lull_location_is_lock(s->reader, e->stack);
}

bool lull_gap_waits_for_lock(const struct lull_gap_place *p)
{
	return p->n_locks * 2 > p->n_waits;
}

/* The function with the majority, if there is one, survives, and so does the line in it. */
static void vote_for(struct lull_gap_votes *v, const struct fact *fact,
		     const struct lull_host_sample *sample)
{
	if (sample->is_idle && v->has_run)
		return;
	if (!sample->is_idle && !v->has_run)
		v->n_stack = 0;
	v->has_run = !sample->is_idle;
	if (v->n_stack && fact->function != v->function) {
		v->n_stack--;
		return;
	}
	if (!v->n_stack || !v->n_frame || fact->frame == v->frame) {
		v->n_frame = v->n_stack && fact->frame == v->frame ? v->n_frame + 1 : 1;
		v->frame = fact->frame;
		v->stack = sample->stack;
	} else {
		v->n_frame--;
	}
	v->function = fact->function;
	v->n_stack++;
}

static void lead(struct lull_gap_function *f, u64 function)
{
	if (!f->n)
		f->function = function;
	if (f->function == function)
		f->n++;
	else
		f->n--;
}

/* Who writes, and who works when no call is made. */
static void count_writing(struct lull_gap_votes *v, const struct lull_host_event *e, u64 function)
{
	if (!e)
		lead(&v->between, function);
	else if (e->inside & LULL_IN_WRITE)
		lead(&v->writing, function);
}

bool lull_gap_fills(const struct lull_gap_place *p)
{
	const struct lull_gap_votes *v = p->python.n ? &p->python : &p->native;

	return v->writing.n && v->between.n && v->writing.function &&
	       v->writing.function == v->between.function;
}

static void count_sample(struct lull_gap_place *place, struct facts *facts,
			 const struct lull_host_sample *sample)
{
	struct fact fact = fact_of(facts, sample->stack);
	struct lull_gap_votes *v = sample->is_python ? &place->python : &place->native;
	const struct lull_host_event *call = call_at(facts->s, sample);

	count_wait(place, facts->s, sample->is_python ? call : NULL, fact.bits);
	v->n++;
	for (size_t i = 0; i < LULL_GAP_BITS; i++)
		v->n_in[i] += !!(fact.bits & lull_gap_bits[i]);
	vote_for(v, &fact, sample);
	count_writing(v, call, fact.function);
}

static u32 voted(const struct lull_gap_votes *v)
{
	u32 bits = 0;

	for (size_t i = 0; i < LULL_GAP_BITS; i++)
		bits |= v->n_in[i] * 2 > v->n ? lull_gap_bits[i] : 0;
	return bits & LULL_IN_LOADER ? bits & ~(u32)LULL_IN_STORAGE : bits;
}

u32 lull_gap_voted(const struct lull_gap_place *p)
{
	/* Where it is, Python knows; what the machine does there, native stacks. */
	const u32 machine = LULL_IN_GC | LULL_IN_FAULT | LULL_IN_TOUCH | LULL_IN_CPU_OP |
			    LULL_IN_FILE | LULL_IN_WRITE | LULL_IN_MANAGED | LULL_IN_COMPILE;

	return p->python.n ? voted(&p->python) | (voted(&p->native) & machine) : voted(&p->native);
}

u32 lull_gap_stack(const struct lull_gap_place *p)
{
	return p->python.stack ? p->python.stack : p->native.stack;
}

/* Count the samples of the thread in [from_ns, to_ns) for the place. */
static void vote(struct lull_gap_place *place, struct facts *facts, u32 lane, u64 from_ns,
		 u64 to_ns)
{
	const struct lull_subject *s = facts->s;
	const struct lull_host_sample *at = s->host.samples.at;

	for (size_t i = lull_host_sample_at(&s->host, lane, from_ns);
	     i < s->host.samples.n && at[i].lane == lane && at[i].at_ns < to_ns; i++)
		count_sample(place, facts, &at[i]);
}

/* Whether a sample found the thread on a CPU in [from_ns, to_ns). */
static bool was_running(const struct lull_subject *s, u32 lane, u64 from_ns, u64 to_ns)
{
	const struct lull_host_sample *at = s->host.samples.at;

	for (size_t i = lull_host_sample_at(&s->host, lane, from_ns);
	     i < s->host.samples.n && at[i].lane == lane && at[i].at_ns < to_ns; i++) {
		if (!at[i].is_idle)
			return true;
	}
	return false;
}

/*
 * The thread whose samples say what a gap is for: that of the call after it; where that one waits
 * for the thread that made the call before, this one.
 */
static u32 voter(const struct lull_subject *s, const struct lull_node *node, u64 from_ns)
{
	if (node->flags & LULL_NODE_FIRST || node[-1].lane == node->lane ||
	    was_running(s, node->lane, from_ns, node->begin_ns) ||
	    !was_running(s, node[-1].lane, from_ns, node->begin_ns))
		return node->lane;
	return node[-1].lane;
}

static void ask_samples(struct lull_gaps *g, const struct lull_subject *s)
{
	const struct lull_gap *gaps = g->all.at;
	struct facts facts = { .s = s, .is_torch = lull_subject_is_torch(s) };

	lull_map_init(&facts.known);
	lull_vec_init(&facts.all, sizeof(struct fact));

	for (size_t i = 0; i < g->all.n; i++) {
		const struct lull_node *node = &s->chain.nodes[gaps[i].node];
		struct lull_gap_place *place = lull_vec_get(&g->places, gaps[i].place);
		u64 from_ns = node->begin_ns - gaps[i].gap_ns;

		place->gap_ns += gaps[i].gap_ns;
		place->others_ns += lull_others_ns(&s->others, from_ns, node->begin_ns);
		vote(place, &facts, voter(s, node, from_ns), from_ns, node->begin_ns);
	}
	lull_map_release(&facts.known);
	lull_vec_release(&facts.all);
}

void lull_gaps_init(struct lull_gaps *g, struct lull_subject *s)
{
	struct lull_map places;
	u32 n_stalls;

	lull_vec_init(&g->all, sizeof(struct lull_gap));
	lull_vec_init(&g->places, sizeof(struct lull_gap_place));
	lull_map_init(&places);
	n_stalls = find_gaps(g, s, &places);
	/* Where waits for the lock and for a CPU were recorded, nothing has to be guessed. */
	if (n_stalls && !(s->host.has_gil && s->host.has_sched) && !find_convoy(g, s))
		find_stalls(g, s, &places);
	ask_samples(g, s);
	lull_map_release(&places);
}

void lull_gaps_release(struct lull_gaps *g)
{
	lull_vec_release(&g->all);
	lull_vec_release(&g->places);
}
