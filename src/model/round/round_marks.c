/*
 * Candidates for rounds: steps of the program and of hooks, and ranges and operators that repeat.
 */
#include "model/round/round_find.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/sort.h"
#include "model/limits.h"
#include "model/span.h"

#define MAX_NAMED 6 /* names of ranges that are tried */
#define MAX_OPS	  2 /* names of operators */

/* A name of ranges or operators, without its digits. */
struct shape {
	u64 n_launches; /* inside of the outermost ones */
	u32 n;		/* how many there are */
	u32 n_outer;	/* of them not inside others that repeat */
	u32 loop;	/* candidate + 1, 0 if none */
	const char *name;
	u8 what;       /* enum shape_kind */
	bool is_epoch; /* has the rounds inside of it */
};

enum shape_kind { SHAPE_RANGE, SHAPE_HOOK, SHAPE_OP, SHAPE_MODULE, N_SHAPE_KINDS };

struct shapes {
	struct lull_loop_finder *f;
	u32 *of_ref[N_SHAPE_KINDS]; /* shape + 1 by label, op_label or frame; NONE: none */
	struct lull_vec all;	    /* struct shape */
	struct lull_map map;
	u8 *inside; /* by event: 1 << shape_kind of it and of those around it, if they repeat */
};

/* ---- the table `step` ---- */

/* The loop of the thread with the most steps, of those the program said or that hooks found. */
void lull_loops_from_table(struct lull_loop_finder *f, u8 source)
{
	size_t n, n_lanes;
	const struct lull_lane_row *lanes = lull_reader_dim(f->reader, LULL_TABLE_lane, &n_lanes);
	u32 *counts = lull_alloc(n_lanes + 1, sizeof(*counts)), best = 0;
	struct lull_loop *l =
		lull_loop_add(f, source == LULL_STEP_SAID ? LULL_ROUNDS_STEP : LULL_ROUNDS_HOOK);
	struct lull_step_cols cols;
	struct lull_cursor c;

	for (int pass = 0; pass < 2; pass++) {
		lull_cursor_init(&c, f->reader, LULL_TABLE_step, 0, UINT64_MAX);
		while ((n = lull_cursor_next(&c, &cols)) > 0) {
			for (size_t i = 0; i < n; i++) {
				u32 lane = cols.lane[i];
				u64 end_ns = lull_span_end_ns(cols.start_ns[i], cols.dur_ns[i]);

				if (!lane || lanes[lane - 1].process != f->process ||
				    cols.source[i] != source)
					continue;
				if (!pass) {
					counts[lane]++;
					best = counts[lane] > counts[best] ? lane : best;
				} else if (lane == best) {
					lull_loop_mark(l, cols.start_ns[i]);
					l->last_ns = end_ns > l->last_ns ? end_ns : l->last_ns;
				}
			}
		}
		lull_cursor_release(&c);
	}
	free(counts);
	if (!l->marks.n)
		lull_loop_drop(f);
}

/* ---- names of ranges and operators ---- */

/* A name without its digits: step_1 and step_2 are the same. */
static u64 hash_of(const char *name)
{
	u64 hash = 1469598103934665603ull;

	for (; *name; name++) {
		unsigned char ch = isdigit((unsigned char)*name) ? '#' : (unsigned char)*name;

		if (ch == '#' && isdigit((unsigned char)name[1]))
			continue;
		hash = (hash ^ (u64)tolower(ch)) * 1099511628211ull;
	}
	return hash;
}

static enum shape_kind kind_of(const struct lull_host_event *e)
{
	return e->kind == LULL_HOST_PYCALL ? SHAPE_MODULE
	       : e->kind == LULL_HOST_OP   ? SHAPE_OP
	       : e->is_hook		   ? SHAPE_HOOK
					   : SHAPE_RANGE;
}

/* PyTorch's profiler names calls of modules so among those of Python. */
static bool is_module(const char *name)
{
	return !strncmp(name, LULL_MODULE_PREFIX, sizeof(LULL_MODULE_PREFIX) - 1);
}

/* Ranges that a library makes in its own calls (CUB and Thrust, NCCL) name no part of a loop. */
static bool is_library(struct shapes *s, const struct lull_host_event *e)
{
	static const char *const domains[] = { "CCCL", "NCCL", NULL };
	size_t n;
	const struct lull_label_row *labels = lull_reader_dim(s->f->reader, LULL_TABLE_label, &n);
	const char *domain;

	if (kind_of(e) != SHAPE_RANGE || !e->ref)
		return false;
	domain = lull_reader_string(s->f->reader, labels[e->ref - 1].domain, NULL);
	for (size_t i = 0; domains[i]; i++) {
		if (!strcmp(domain, domains[i]))
			return true;
	}
	return !strcmp(domain, "TSL") && lull_name_is_xla_part(lull_host_name(e, s->f->reader));
}

/* The shape of an event; NULL for what is no operator, no module, and no range of the program. */
static struct shape *shape_of(struct shapes *s, const struct lull_host_event *e)
{
	enum shape_kind kind = kind_of(e);
	u32 *ix;
	bool is_new;

	if (e->kind > LULL_HOST_PYCALL)
		return NULL;
	ix = &s->of_ref[kind][e->ref];
	if (!*ix && (is_library(s, e) ||
		     (kind == SHAPE_MODULE && !is_module(lull_host_name(e, s->f->reader)))))
		*ix = LULL_NONE;
	if (*ix == LULL_NONE)
		return NULL;
	if (!*ix) {
		const char *name = lull_host_name(e, s->f->reader);
		u32 *known = lull_map_add(&s->map, hash_of(name) + kind, &is_new);

		if (is_new) {
			struct shape *shape = lull_vec_push(&s->all);

			shape->name = name;
			shape->what = (u8)(lull_name_is_xla_module(name) ? SHAPE_OP : kind);
			shape->is_epoch = strcasestr(name, "epoch");
			*known = (u32)s->all.n;
		}
		*ix = *known;
	}
	return lull_vec_get(&s->all, *ix - 1);
}

/* Count the shapes, and those of each that are inside no other that repeats. */
static void shapes_count(struct shapes *s)
{
	const struct lull_host_event *e = s->f->host->events.at;

	for (size_t i = 0; i < s->f->host->events.n; i++) {
		struct shape *shape = shape_of(s, &e[i]);

		if (shape)
			shape->n++;
	}
	for (size_t i = 0; i < s->f->host->events.n; i++) {
		struct shape *shape = shape_of(s, &e[i]);
		u8 around = e[i].parent == LULL_NONE ? 0 : s->inside[e[i].parent];

		s->inside[i] = around;
		/* A model that is called once has its modules inside all the same. */
		if (!shape || shape->is_epoch ||
		    (shape->n < LULL_LN(rounds_least) && shape->what != SHAPE_MODULE))
			continue;
		if (!(around & 1u << shape->what)) {
			shape->n_outer++;
			shape->n_launches += e[i].n_launches;
		}
		s->inside[i] |= (u8)(1u << shape->what);
	}
}

static bool is_outer(const struct shapes *s, size_t event, const struct shape *shape)
{
	const struct lull_host_event *e = s->f->host->events.at;
	u32 parent = e[event].parent;

	return parent == LULL_NONE || !(s->inside[parent] & 1u << shape->what);
}

static void shapes_init(struct shapes *s, struct lull_loop_finder *f)
{
	static const enum lull_table tables[N_SHAPE_KINDS] = {
		[SHAPE_RANGE] = LULL_TABLE_label,
		[SHAPE_HOOK] = LULL_TABLE_label,
		[SHAPE_OP] = LULL_TABLE_op_label,
		[SHAPE_MODULE] = LULL_TABLE_frame,
	};

	*s = (struct shapes){ .f = f };
	for (int i = 0; i < N_SHAPE_KINDS; i++) {
		size_t n;

		lull_reader_dim(f->reader, tables[i], &n);
		s->of_ref[i] = lull_alloc(n + 1, sizeof(u32));
	}
	s->inside = lull_alloc(f->host->events.n + 1, 1);
	lull_vec_init(&s->all, sizeof(struct shape));
	lull_map_init(&s->map);
	shapes_count(s);
}

static void shapes_release(struct shapes *s)
{
	for (int i = 0; i < N_SHAPE_KINDS; i++)
		free(s->of_ref[i]);
	free(s->inside);
	lull_vec_release(&s->all);
	lull_map_release(&s->map);
}

/* ---- which of them are tried ---- */

static struct lull_loop *make_loop(struct shapes *s, struct shape *shape,
				   enum lull_rounds_source source)
{
	struct lull_loop *l = lull_loop_add(s->f, source);

	l->name = shape->name;
	shape->loop = (u32)s->f->loops.n;
	return l;
}

/* Ranges named like steps: the most frequent name, wherever they are. */
static void choose_steps(struct shapes *s)
{
	struct shape *all = s->all.at, *best = NULL;

	for (size_t i = 0; i < s->all.n; i++) {
		if (all[i].what != SHAPE_OP && lull_name_is_step(all[i].name) &&
		    (!best || all[i].n > best->n))
			best = &all[i];
	}
	if (best)
		make_loop(s, best, LULL_ROUNDS_RANGE);
}

/* The `most` shapes of a kind with the most launches inside, at least this many. */
static void choose(struct shapes *s, enum shape_kind kind, enum lull_rounds_source source, u32 most,
		   u64 n_least)
{
	struct shape *all = s->all.at;

	for (u32 n = 0; n < most; n++) {
		struct shape *best = NULL;

		for (size_t i = 0; i < s->all.n; i++) {
			if (all[i].what == kind && !all[i].loop && !all[i].is_epoch &&
			    all[i].n_outer >= LULL_LN(rounds_least) &&
			    all[i].n_launches >= n_least &&
			    (!best || all[i].n_launches > best->n_launches))
				best = &all[i];
		}
		if (!best)
			return;
		make_loop(s, best, source);
	}
}

static void choose_by_name(struct shapes *s, enum shape_kind kind, const char *name,
			   enum lull_rounds_source source)
{
	struct shape *all = s->all.at;

	for (size_t i = 0; i < s->all.n; i++) {
		if (all[i].what == kind && !all[i].loop && !strcmp(all[i].name, name) &&
		    all[i].n_outer >= LULL_LN(rounds_least)) {
			make_loop(s, &all[i], source);
			return;
		}
	}
}

/* The module with the most launches that is called by no other. */
static struct shape *find_model(struct shapes *s)
{
	struct shape *all = s->all.at, *best = NULL;

	for (size_t i = 0; i < s->all.n; i++) {
		if (all[i].what == SHAPE_MODULE && all[i].n_outer &&
		    (!best || all[i].n_launches > best->n_launches))
			best = &all[i];
	}
	return best && best->n_launches ? best : NULL;
}

/* Its calls are rounds, where no hook saw them; what repeats in a few of them is a part of one. */
static void choose_model(struct shapes *s)
{
	const struct lull_host_event *e = s->f->host->events.at;
	struct shape *model = find_model(s), *all = s->all.at;
	u32 n = 0;

	for (size_t i = 0; i < s->all.n; i++) {
		if (all[i].loop && s->f->loops.n &&
		    ((struct lull_loop *)s->f->loops.at)[all[i].loop - 1].source ==
			    LULL_ROUNDS_FORWARD)
			return;
	}
	if (!model)
		return;
	if (model->n_outer >= LULL_LN(rounds_least)) {
		make_loop(s, model, LULL_ROUNDS_FORWARD);
		return;
	}
	s->f->model = model->name + sizeof(LULL_MODULE_PREFIX) - 1;
	for (size_t i = 0; i < s->f->host->events.n && n < LULL_LOOP_CALLS; i++) {
		if (shape_of(s, &e[i]) == model && is_outer(s, i, model))
			s->f->calls[n++] = (struct lull_span){ e[i].begin_ns, e[i].end_ns };
	}
	s->f->n_calls = n;
}

/* An update of the optimizer, by whichever name it has: "Optimizer.step#Adam.step". */
static void choose_updates(struct shapes *s)
{
	struct shape *all = s->all.at, *best = NULL;

	for (size_t i = 0; i < s->all.n; i++) {
		if (!all[i].loop && !strncasecmp(all[i].name, "Optimizer.step", 14) &&
		    (!best || all[i].n > best->n))
			best = &all[i];
	}
	/* An update ends a step: two of them have one whole step between them. */
	if (best && best->n > LULL_LN(rounds_least))
		make_loop(s, best, LULL_ROUNDS_OPTIMIZER);
}

/* ---- where the rounds begin ---- */

static bool is_waiting(const struct lull_node *node)
{
	return node->kind == LULL_KIND_OF_SYNC || (node->flags & LULL_NODE_OUT);
}

/*
 * A call of the model begins a round, and what was done after the call before it belongs to that
 * one: up to the last wait for a result, else up to the longest gap between calls of CUDA. So the
 * time until a request arrives, and what prepares it, belong to the round that follows.
 */
static u64 begin_between(const struct lull_loop_finder *f, u32 lane, u64 end_ns, u64 begin_ns)
{
	const struct lull_chain *c = f->chain;
	u32 chain = c->chain_of_lane[lane] ? c->chain_of_lane[lane] - 1u : 0, last;
	u64 at_ns = begin_ns, longest_ns = 0;

	if (end_ns >= begin_ns)
		return begin_ns;
	last = c->first[chain + 1];
	for (u32 i = lull_chain_find(c, chain, end_ns); i < last; i++) {
		const struct lull_node *node = &c->nodes[i];
		u64 gap_ns = lull_chain_gap_ns(c, i);
		u64 to_ns = node->begin_ns < begin_ns ? node->begin_ns : begin_ns;

		gap_ns = gap_ns > end_ns ? gap_ns : end_ns;
		if (to_ns > gap_ns && to_ns - gap_ns > longest_ns) {
			longest_ns = to_ns - gap_ns;
			at_ns = gap_ns;
		}
		if (node->begin_ns >= begin_ns)
			break;
		if (is_waiting(node) && node->end_ns <= begin_ns) {
			at_ns = node->end_ns;
			longest_ns = UINT64_MAX;
		}
	}
	return at_ns;
}

/* The calls of the model, of all threads, by time. */
struct call {
	u64 begin_ns;
	u64 end_ns;
	u32 lane;
};

static int by_begin(const void *a, const void *b)
{
	const struct call *x = a, *y = b;

	return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

/* The waits right after the last call of the model end its round; else the call does. */
static u64 end_of_last(const struct lull_loop_finder *f, const struct call *call)
{
	const struct lull_chain *c = f->chain;
	u32 chain = c->chain_of_lane[call->lane] ? c->chain_of_lane[call->lane] - 1u : 0;
	u64 end_ns = call->end_ns, limit_ns = call->end_ns + (call->end_ns - call->begin_ns);
	bool has_waited = false;

	for (u32 i = lull_chain_find(c, chain, call->end_ns); i < c->first[chain + 1]; i++) {
		if (f->buckets[i] == LULL_LOOP_NO_ITEM)
			continue;
		if (c->nodes[i].begin_ns > limit_ns || (has_waited && !is_waiting(&c->nodes[i])))
			break;
		if (is_waiting(&c->nodes[i])) {
			has_waited = true;
			end_ns = c->nodes[i].end_ns;
		}
	}
	return end_ns;
}

static void mark_calls(struct lull_loop_finder *f, struct lull_loop *l, struct lull_vec *calls)
{
	struct call *at = calls->at;
	u64 end_ns = 0;

	lull_sort(at, calls->n, sizeof(*at), by_begin);
	for (size_t i = 0; i < calls->n; i++) {
		lull_loop_mark(l, i ? begin_between(f, at[i].lane, end_ns, at[i].begin_ns)
				    : at[i].begin_ns);
		end_ns = at[i].end_ns > end_ns ? at[i].end_ns : end_ns;
	}
	l->last_ns = end_of_last(f, &at[calls->n - 1]);
	l->last_ns = l->last_ns > end_ns ? l->last_ns : end_ns;
}

static void mark_all(struct shapes *s)
{
	const struct lull_host_event *e = s->f->host->events.at;
	struct lull_loop *loops = s->f->loops.at;
	struct lull_vec calls;

	lull_vec_init(&calls, sizeof(struct call));
	for (size_t i = 0; i < s->f->host->events.n; i++) {
		const struct shape *shape = shape_of(s, &e[i]);
		struct lull_loop *l = shape && shape->loop ? &loops[shape->loop - 1] : NULL;

		if (!l || (l->source != LULL_ROUNDS_RANGE && l->source != LULL_ROUNDS_OPTIMIZER &&
			   !is_outer(s, i, shape)))
			continue;
		if (l->source == LULL_ROUNDS_FORWARD) {
			*(struct call *)lull_vec_push(&calls) =
				(struct call){ e[i].begin_ns, e[i].end_ns, e[i].lane };
			continue;
		}
		lull_loop_mark(l, l->source == LULL_ROUNDS_OPTIMIZER ? e[i].end_ns : e[i].begin_ns);
		l->last_ns = e[i].end_ns > l->last_ns ? e[i].end_ns : l->last_ns;
	}
	for (size_t i = 0; i < s->f->loops.n && calls.n; i++) {
		if (loops[i].source == LULL_ROUNDS_FORWARD)
			mark_calls(s->f, &loops[i], &calls);
	}
	lull_vec_release(&calls);
}

void lull_loops_from_ranges(struct lull_loop_finder *f)
{
	size_t n_before = f->loops.n;
	struct shapes s;

	shapes_init(&s, f);
	choose_steps(&s);
	choose_updates(&s);
	choose(&s, SHAPE_RANGE, LULL_ROUNDS_NAMED, MAX_NAMED, 1);
	choose_by_name(&s, SHAPE_HOOK, "forward", LULL_ROUNDS_FORWARD);
	choose_model(&s);
	choose(&s, SHAPE_OP, LULL_ROUNDS_OPS, MAX_OPS,
	       (u64)((f64)f->n_launches * LULL_L(op_least)) + 1);
	if (f->loops.n > n_before)
		mark_all(&s);
	shapes_release(&s);
}
