#include "cause/replay/replay.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cause/cause.h"
#include "cause/replay/replay_int.h"
#include "cause/thresholds.h"

#define PASSES	4
#define QUEUE	LULL_REPLAY_QUEUE
#define STREAMS (4096 + LULL_REPLAY_SIDES)

#define CALIBRATE_ROUNDS 30

/* What the host itself takes for a call. */
struct own {
	f64 before; /* its gap, or how long after the first thread's last call */
	f64 call;
};

struct run {
	const struct lull_what_if *w;
	f64 clock[8];	 /* of each chain */
	f64 *stream;	 /* end of the last unit */
	f64 *end;	 /* of each op of this pass */
	struct own *own; /* of each call */
	f64 ring[QUEUE];
	u64 n_enqueued;
	f64 first; /* start of the last call of the first chain */
	f64 all;   /* end of everything */
};

static f64 max(f64 a, f64 b)
{
	return a > b ? a : b;
}

static void start_op(struct run *r, u32 ix, f64 called)
{
	const struct lull_replay_op *op = &r->w->ops[ix];
	f64 begin = called + op->launch_ns;

	if (r->stream[op->stream] > 0)
		begin = max(begin, r->stream[op->stream] + op->next_ns);
	if (op->after != LULL_NONE && !r->w->ops[op->after].is_gone)
		begin = max(begin, r->end[op->after] + op->lag_ns);
	r->end[ix] = begin + op->dur_ns * (op->is_carried ? r->w->host : 1);
	r->stream[op->stream] = r->end[ix];
	r->all = max(r->all, r->end[ix]);
	r->ring[r->n_enqueued++ % QUEUE] = r->end[ix];
}

/* What causes other than the launch path have of the gap, as it was. */
static f64 paused_ns(const struct lull_what_if *w, u32 ix)
{
	const struct lull_subject *s = w->replay->subject;
	const struct lull_slice *slices = s->slices.at;
	u32 node = w->nodes[ix].node;
	u8 path = (u8)lull_cause_default(LULL_CAUSE_RESIDUE);
	f64 sum = 0;

	for (size_t i = s->chain.nodes[node].slice;
	     i != LULL_NONE && i < s->slices.n && slices[i].node == node; i++)
		sum += slices[i].cause == path ? 0 : (f64)(slices[i].to_ns - slices[i].from_ns);
	return sum;
}

/* Of the gap that is left, what is warm caches' gain. */
static f64 cooled_ns(const struct lull_what_if *w, const struct lull_replay_node *n, f64 was_ns,
		     u32 ix)
{
	f64 others_ns;

	if (w->warm >= 1)
		return 0;
	others_ns = max(paused_ns(w, ix) - max(was_ns - n->gap_ns, 0), 0);
	return max(n->gap_ns - others_ns, 0) * (1 - w->warm);
}

/* The gap as it is without recording, or with. */
static f64 gap_of(const struct lull_what_if *w, const struct lull_replay_node *n, u32 ix)
{
	const struct lull_replay_node *was = lull_vec_get(&w->replay->nodes, ix);
	f64 kept;

	if (w->is_raw || was->gap_ns <= 0)
		return n->gap_ns * w->host;
	kept = max(was->gap_ns - was->over_ns * w->scale, LULL_T(gap_kept) * was->gap_ns);
	if (n->gap_ns == was->gap_ns && w->warm >= 1)
		return kept * w->host;
	return (n->gap_ns - cooled_ns(w, n, was->gap_ns, ix)) * kept / was->gap_ns * w->host;
}

/* The same of the call. */
static f64 call_of(const struct lull_what_if *w, const struct lull_replay_node *n, u32 ix)
{
	const struct lull_replay_node *was = lull_vec_get(&w->replay->nodes, ix);
	f64 kept;

	if (w->is_raw || n->kind != LULL_KIND_OF_LAUNCH || was->call_ns <= 0)
		return n->call_ns * w->host;
	kept = max(was->call_ns - w->replay->over_ns * w->scale, LULL_T(gap_kept) * was->call_ns);
	if (n->call_ns != was->call_ns)
		kept *= n->call_ns / was->call_ns;
	return kept * w->host * w->warm;
}

/* How much a fix took from the gap. */
static f64 shorter(const struct lull_what_if *w, u32 ix)
{
	const struct lull_replay_node *was = lull_vec_get(&w->replay->nodes, ix);

	return max(was->gap_ns - w->nodes[ix].gap_ns, 0);
}

static void run_node(struct run *r, u32 ix)
{
	const struct lull_replay_node *n = &r->w->nodes[ix];
	const struct own *own = &r->own[ix];
	f64 *t = &r->clock[n->chain], called;
	u32 last = LULL_NONE;

	if (n->is_after)
		*t = max(*t, r->first + own->before);
	else
		*t += own->before;
	if (!n->chain)
		r->first = *t;
	if (n->is_gone)
		return;
	called = *t;
	if (n->wait == LULL_REPLAY_STREAM || n->wait == LULL_REPLAY_DEVICE) {
		f64 until = n->wait == LULL_REPLAY_DEVICE ? r->all : r->stream[n->stream];

		*t = max(*t + own->call, until + n->return_ns);
		return;
	}
	for (u32 i = n->op; i < n->op + n->n_ops; i++) {
		if (r->w->ops[i].is_gone)
			continue;
		start_op(r, i, called);
		last = i;
	}
	*t += own->call;
	if (n->wait == LULL_REPLAY_OWN && last != LULL_NONE)
		*t = max(*t, r->end[last] + n->return_ns);
	if (r->n_enqueued >= QUEUE)
		*t = max(*t, r->ring[r->n_enqueued % QUEUE]);
}

/* They are the same in each pass, and to find them takes a look at the nodes as they were. */
static struct own *all_own(const struct lull_what_if *w)
{
	struct own *own = lull_realloc(NULL, w->n + 1, sizeof(*own));

	for (u32 i = 0; i < w->n; i++) {
		const struct lull_replay_node *n = &w->nodes[i];

		own[i].before = n->is_after ? max(n->after_ns - shorter(w, i), 0) : gap_of(w, n, i);
		own[i].call = call_of(w, n, i);
	}
	return own;
}

f64 lull_what_if_run(const struct lull_what_if *w)
{
	struct run *r = lull_alloc(1, sizeof(*r));
	f64 first = 0, step;

	r->w = w;
	r->own = all_own(w);
	r->stream = lull_alloc(STREAMS, sizeof(*r->stream));
	r->end = lull_alloc(w->n_ops + 1, sizeof(*r->end));
	for (int pass = 0; pass < PASSES; pass++) {
		f64 host = 0;

		/* Other threads go on no sooner than the first does. */
		for (size_t k = 1; k < LULL_COUNT_OF(r->clock); k++)
			r->clock[k] = max(r->clock[k], r->clock[0]);
		for (u32 i = 0; i < w->n; i++)
			run_node(r, i);
		for (size_t k = 0; k < LULL_COUNT_OF(r->clock); k++)
			host = max(host, r->clock[k]);
		r->all = max(r->all, 0);
		if (!pass)
			first = max(r->all, w->n_ops ? 0 : host);
	}
	step = (r->all - first) / (PASSES - 1) / w->replay->n_rounds;
	free(r->own);
	free(r->stream);
	free(r->end);
	free(r);
	return max(step, w->floor_ns);
}

f64 lull_replay_rest_ns(const struct lull_replay *p, f64 without_ns)
{
	const struct lull_replay_node *nodes = p->nodes.at;
	const struct lull_replay_op *ops = p->ops.at;
	f64 host = 0, device = 0;

	for (size_t i = 0; i < p->nodes.n; i++)
		host += nodes[i].chain			   ? 0
			: nodes[i].flags & LULL_NODE_PAGED ? nodes[i].gap_ns + p->call_ns
							   : nodes[i].gap_ns + nodes[i].call_ns;
	for (size_t i = 0; i < p->ops.n; i++)
		device += ops[i].is_carried ? 0 : ops[i].dur_ns;
	host = (host / p->n_rounds - without_ns) * p->host * p->warm;
	return max(host, device / p->n_rounds);
}

void lull_what_if_init(struct lull_what_if *w, const struct lull_replay *p, int scenario)
{
	*w = (struct lull_what_if){ .replay = p,
				    .n = (u32)p->nodes.n,
				    .n_ops = (u32)p->ops.n,
				    .scale = 1,
				    .host = p->host,
				    .warm = 1,
				    .scenario = scenario };
	w->nodes = lull_realloc(NULL, w->n + 1, sizeof(*w->nodes));
	w->ops = lull_realloc(NULL, w->n_ops + 1, sizeof(*w->ops));
	if (w->n)
		memcpy(w->nodes, p->nodes.at, w->n * sizeof(*w->nodes));
	if (w->n_ops)
		memcpy(w->ops, p->ops.at, w->n_ops * sizeof(*w->ops));
}

void lull_what_if_release(struct lull_what_if *w)
{
	free(w->nodes);
	free(w->ops);
}

/* What recording cost the host in a step. */
static f64 recording_ns(const struct lull_what_if *w)
{
	f64 sum = 0;

	for (u32 i = 0; i < w->n; i++) {
		const struct lull_replay_node *n = &w->nodes[i];

		sum += n->gap_ns - gap_of(w, n, i) + n->call_ns - call_of(w, n, i);
	}
	return sum / w->replay->n_rounds;
}

/* What recording leaves of the time in gaps. */
static f64 host_part(const struct lull_what_if *w)
{
	f64 all = 0, kept = 0;

	for (u32 i = 0; i < w->n; i++) {
		all += w->nodes[i].gap_ns;
		kept += gap_of(w, &w->nodes[i], i);
	}
	return all > 0 ? kept / all : 1;
}

void lull_replay_init(struct lull_replay *p, const struct lull_subject *s)
{
	struct lull_what_if w;

	*p = (struct lull_replay){ .subject = s, .host = 1 };
	lull_vec_init(&p->nodes, sizeof(struct lull_replay_node));
	lull_vec_init(&p->ops, sizeof(struct lull_replay_op));
	p->link[LULL_COPY_IN] = lull_replay_link_speed(s, LULL_COPY_IN);
	p->link[LULL_COPY_OUT] = lull_replay_link_speed(s, LULL_COPY_OUT);
	lull_replay_build(p, s);
	lull_what_if_init(&w, p, 0);
	w.is_raw = true;
	p->as_is_ns = lull_what_if_run(&w);
	w.is_raw = false;
	p->free_ns = lull_what_if_run(&w);
	p->host_part = host_part(&w);
	p->hidden_ns = max(recording_ns(&w) - max(p->as_is_ns - p->free_ns, 0), 0);
	p->error = p->measured_ns > 0 ? p->as_is_ns / p->measured_ns - 1 : 0;
	lull_what_if_release(&w);
}

void lull_replay_calibrate(struct lull_replay *p, f64 step_ns)
{
	f64 low = LULL_T(calibrate_low), high = LULL_T(calibrate_high);
	struct lull_what_if w;

	lull_what_if_init(&w, p, 0);
	w.host = low;
	/* If the host at its fastest is no faster, the device sets the pace. */
	if (lull_what_if_run(&w) < LULL_T(calibrate_host) * p->free_ns) {
		for (int i = 0; i < CALIBRATE_ROUNDS; i++) {
			w.host = (low + high) / 2;
			if (lull_what_if_run(&w) > step_ns)
				high = w.host;
			else
				low = w.host;
		}
		p->host = (low + high) / 2;
	}
	p->free_ns = step_ns;
	lull_what_if_release(&w);
}

void lull_replay_release(struct lull_replay *p)
{
	lull_vec_release(&p->nodes);
	lull_vec_release(&p->ops);
}

/* ---- what a fix takes away ---- */

static f64 less(f64 was, f64 is)
{
	return was > is ? was - is : 0;
}

/* Of the host, before and in this call: a wait takes as long as it took. */
static f64 host_removed_ns(const struct lull_what_if *w, const struct lull_what_if *cold, u32 i)
{
	const struct lull_replay_node *was = lull_vec_get(&w->replay->nodes, i), *is = &w->nodes[i];
	const struct lull_node *node = &w->replay->subject->chain.nodes[was->node];
	bool is_free = is->is_gone || is->wait != was->wait;
	f64 ns = less(gap_of(cold, was, i), gap_of(w, is, i));

	return ns + (is_free ? (f64)(node->end_ns - node->begin_ns) * fmax(w->host, 1)
			     : less(call_of(cold, was, i), call_of(w, is, i)) +
				       less(was->return_ns, is->return_ns));
}

/* Of the device: what is gone, shorter, sooner, or runs beside the rest. */
static f64 device_removed_ns(const struct lull_what_if *w, u32 i)
{
	const struct lull_replay_op *was = lull_vec_get(&w->replay->ops, i), *is = &w->ops[i];
	f64 ns = less(was->launch_ns, is->launch_ns) + less(was->next_ns, is->next_ns);

	if (was->after != is->after)
		ns += was->lag_ns;
	if (is->is_gone || is->stream != was->stream)
		return ns + was->dur_ns;
	return ns + less(was->dur_ns, is->dur_ns);
}

f64 lull_what_if_removed_ns(const struct lull_what_if *w)
{
	struct lull_what_if cold = *w;
	f64 sum = 0;

	cold.warm = 1;
	for (u32 i = 0; i < w->n; i++)
		sum += host_removed_ns(w, &cold, i);
	for (u32 i = 0; i < w->n_ops; i++)
		sum += device_removed_ns(w, i);
	return sum / w->replay->n_rounds;
}

f64 lull_what_if_fewer_ns(const struct lull_what_if *w)
{
	const struct lull_replay_op *was = w->replay->ops.at;
	f64 sum = 0;

	for (u32 i = 0; i < w->n_ops; i++) {
		u8 kind = w->replay->subject->units.at[was[i].unit].kind;

		if (kind == LULL_UNIT_KERNEL || kind == LULL_UNIT_MEMSET)
			sum += w->ops[i].is_gone ? was[i].dur_ns
						 : less(was[i].dur_ns, w->ops[i].dur_ns);
	}
	return sum / w->replay->n_rounds;
}

/* ---- what pauses cost beyond themselves ---- */

/* How much of a pause the fix takes away before or in this call. */
static f64 pause_ns(const struct lull_what_if *w, u32 i)
{
	const struct lull_replay_node *was = lull_vec_get(&w->replay->nodes, i), *is = &w->nodes[i];
	const struct lull_node *node = &w->replay->subject->chain.nodes[was->node];
	f64 gap_ns = less(was->gap_ns, is->gap_ns), call_ns = 0;

	if (is->is_gone || is->wait != was->wait)
		call_ns = (f64)(node->end_ns - node->begin_ns);
	return (gap_ns >= LULL_T(gap_long_ns) ? gap_ns : 0) +
	       (call_ns >= LULL_T(gap_long_ns) ? call_ns : 0);
}

void lull_what_if_warm(struct lull_what_if *w)
{
	f64 sum = 0;

	for (u32 i = 0; w->replay->warm < 1 && i < w->n; i++)
		sum += pause_ns(w, i);
	if (sum / w->replay->n_rounds >= LULL_T(gain) * w->replay->measured_ns)
		w->warm = w->replay->warm;
}

/* ---- what fixes are made of ---- */

f64 lull_what_if_slices_ns(const struct lull_what_if *w, u32 node, u8 cause)
{
	const struct lull_subject *s = w->replay->subject;
	u32 ix = w->nodes[node].node;
	const struct lull_slice *slices = s->slices.at;
	f64 sum = 0;

	for (size_t i = s->chain.nodes[ix].slice;
	     i != LULL_NONE && i < s->slices.n && slices[i].node == ix; i++)
		sum += slices[i].cause == cause ? (f64)(slices[i].to_ns - slices[i].from_ns) : 0;
	return sum;
}

void lull_what_if_drop_slices(struct lull_what_if *w, u32 node, u8 cause)
{
	f64 ns = lull_what_if_slices_ns(w, node, cause);

	w->nodes[node].gap_ns = max(w->nodes[node].gap_ns - ns, 0);
}

/* What causes other than this one and the launch path have of the gap, as it was. */
static f64 others_ns(const struct lull_what_if *w, u32 node, u8 cause)
{
	const struct lull_subject *s = w->replay->subject;
	u32 ix = w->nodes[node].node;
	const struct lull_slice *slices = s->slices.at;
	u8 path = (u8)lull_cause_default(LULL_CAUSE_RESIDUE);
	f64 sum = 0;

	for (size_t i = s->chain.nodes[ix].slice;
	     i != LULL_NONE && i < s->slices.n && slices[i].node == ix; i++)
		sum += slices[i].cause == cause || slices[i].cause == path
			       ? 0
			       : (f64)(slices[i].to_ns - slices[i].from_ns);
	return sum;
}

void lull_what_if_drop_path(struct lull_what_if *w, u32 node, u8 cause, f64 ns)
{
	f64 *gap_ns = &w->nodes[node].gap_ns;
	f64 most_ns = max(*gap_ns - others_ns(w, node, cause), 0);

	*gap_ns -= ns < most_ns ? ns : most_ns;
}

void lull_what_if_pin(struct lull_what_if *w, u32 node)
{
	struct lull_replay_node *n = &w->nodes[node];
	const struct lull_units *units = &w->replay->subject->units;

	for (u32 i = n->op; i < n->op + n->n_ops; i++) {
		const struct lull_unit *unit = &units->at[w->ops[i].unit];
		const struct lull_copy *copy;
		f64 pinned_ns;

		if (unit->kind != LULL_UNIT_COPY)
			continue;
		copy = lull_units_copy(units, unit);
		pinned_ns =
			(f64)copy->size_bytes /
				w->replay->link[copy->direction == LULL_COPY_OUT ? LULL_COPY_OUT
										 : LULL_COPY_IN] *
				1e9 +
			LULL_T(next_ns);
		w->ops[i].is_carried = false;
		if (pinned_ns < w->ops[i].dur_ns)
			w->ops[i].dur_ns = pinned_ns;
		if (w->ops[i].launch_ns > w->replay->launch_ns)
			w->ops[i].launch_ns = w->replay->launch_ns;
	}
	if (n->wait == LULL_REPLAY_OWN) {
		n->wait = LULL_REPLAY_RUNS;
		n->call_ns = w->replay->call_ns;
	}
	if (n->call_ns > w->replay->call_ns)
		n->call_ns = w->replay->call_ns;
}

void lull_what_if_remove(struct lull_what_if *w, u32 node)
{
	struct lull_replay_node *n = &w->nodes[node];

	n->is_gone = true;
	for (u32 i = n->op; i < n->op + n->n_ops; i++)
		w->ops[i].is_gone = true;
}

/* The fastest copy of at least 4 MiB between pinned memory and the device, in bytes a second. */
static f64 fastest_pinned(const struct lull_units *units, u8 direction)
{
	f64 best = 0;

	for (u32 i = 0; i < units->n; i++) {
		const struct lull_unit *unit = &units->at[i];
		const struct lull_copy *copy;
		f64 speed;

		if (unit->kind != LULL_UNIT_COPY || unit->end_ns == unit->begin_ns)
			continue;
		copy = lull_units_copy(units, unit);
		if (copy->direction != direction || lull_copy_is_pageable(copy) ||
		    lull_copy_is_managed(copy) || copy->size_bytes < LULL_TN(pinned_bytes))
			continue;
		speed = (f64)copy->size_bytes / (f64)(unit->end_ns - unit->begin_ns) * 1e9;
		best = max(best, speed);
	}
	return best;
}

f64 lull_replay_link_speed(const struct lull_subject *s, u8 direction)
{
	/* PCIe x16 as copies reach it; what is in the trace comes first. */
	static const struct {
		const char *name;
		f64 speed;
	} links[] = { { "GB200", 200e9 },   { "GH200", 200e9 }, { "B200", 55e9 }, { "H200", 55e9 },
		      { "H100", 55e9 },	    { "H20", 55e9 },	{ "L40", 25e9 },  { "A100", 25e9 },
		      { "A10", 25e9 },	    { "RTX", 25e9 },	{ "V100", 12e9 }, { "T4", 12e9 },
		      { "Simulated", 12e9 } };
	size_t n;
	const struct lull_device_row *devices = lull_reader_dim(s->reader, LULL_TABLE_device, &n);
	u32 device = s->device;
	const char *name = device && device <= n
				   ? lull_reader_string(s->reader, devices[device - 1].name, NULL)
				   : "";
	f64 speed = fastest_pinned(&s->units, direction);

	for (size_t i = 0; speed == 0 && i < LULL_COUNT_OF(links); i++) {
		if (strstr(name, links[i].name))
			speed = links[i].speed;
	}
	return speed > 0 ? speed : LULL_T(link_speed);
}
