#include "cause/opportunity.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "cause/thresholds.h"
#include "model/device.h"

#define OPPORTUNITY(name) extern const struct lull_opportunity_kind lull_opportunity_##name;
#include "cause/opportunities.def"
#undef OPPORTUNITY

const struct lull_opportunity_kind *const lull_opportunities[LULL_N_OPPORTUNITIES] = {
#define OPPORTUNITY(name) &lull_opportunity_##name,
#include "cause/opportunities.def"
#undef OPPORTUNITY
};

/* ---- what they look at ---- */

static void sum_shapes(struct lull_look *l)
{
	const struct lull_subject *s = l->subject;

	for (u32 i = 0; i < s->units.n; i++) {
		const struct lull_unit *unit = &s->units.at[i];
		struct lull_shape *shape;

		if (unit->kind != LULL_UNIT_KERNEL || unit->round == LULL_NONE ||
		    unit->round < s->rounds.first_steady || unit->what >= l->n_shapes)
			continue;
		shape = &l->shapes[unit->what];
		shape->ns += unit->end_ns - unit->begin_ns;
		shape->n++;
		shape->class = unit->class;
	}
}

static void look_init(struct lull_look *l, const struct lull_why *why)
{
	struct lull_device_row device = lull_device_joined(why->reader, why->lead->device);
	size_t n;

	memset(l, 0, sizeof(*l));
	l->why = why;
	l->subject = why->lead;
	l->n_steps = lull_why_n_steps(why);
	l->launches = lull_reader_dim(why->reader, LULL_TABLE_launch, &n);
	l->n_shapes = n + 1;
	l->shapes = lull_alloc(l->n_shapes, sizeof(*l->shapes));
	l->marks = lull_alloc(l->n_shapes, sizeof(*l->marks));
	l->n_sms = device.n_sms;
	l->capability = device.capability;
	l->memory_bytes = (f64)device.memory_bytes;
	lull_readings_init(&l->readings, why->lead);
	sum_shapes(l);
}

static void look_release(struct lull_look *l)
{
	free(l->shapes);
	free(l->marks);
}

/* ---- what it would bring ---- */

/*
 * The step with this opportunity taken, or as it is. As for causes, it loses no more than what is
 * taken away: a copy on another stream makes no wait of the host shorter by more than itself.
 */
static f64 replay(const struct lull_look *l, const struct lull_opportunity_kind *kind, int scenario)
{
	struct lull_what_if w;
	f64 step_ns;

	lull_what_if_init(&w, &l->why->replay, scenario);
	w.scale = lull_scenario_of(&w, LULL_T(recording_good), 1, LULL_T(recording_poor));
	/* As for causes: how fast the host is without a recorder is the largest doubt. */
	if (!l->why->is_calibrated && scenario < 0)
		w.host *= LULL_T(host_good);
	if (kind)
		kind->apply(l, &w);
	step_ns = lull_what_if_run(&w);
	if (kind)
		step_ns = fmax(step_ns, replay(l, NULL, scenario) - lull_what_if_removed_ns(&w));
	lull_what_if_release(&w);
	return step_ns;
}

/*
 * By how much the step gets shorter. Where the replay is off, it may not say how long the step is,
 * but still by which part a faster device shortens it.
 */
static void predict(const struct lull_look *l, struct lull_opportunity *o, f64 base_ns)
{
	const struct lull_why *why = l->why;
	f64 scale = base_ns > 0 ? why->free_ns / base_ns : 0, a, b;

	o->prediction.step_ns = fmin(replay(l, o->kind, 0) * scale, why->free_ns);
	o->gain_ns = why->free_ns - o->prediction.step_ns;
	if (o->gain_ns < LULL_T(opportunity) * why->free_ns || *why->no_prediction)
		return;
	a = replay(l, o->kind, -1) * scale;
	b = replay(l, o->kind, 1) * scale;
	o->prediction.is_known = true;
	o->prediction.low_ns = fmin(fmin(a, b), o->prediction.step_ns);
	o->prediction.high_ns = fmax(fmin(fmax(a, b), why->free_ns), o->prediction.step_ns);
	o->prediction.ratio = o->prediction.step_ns > 0 ? why->free_ns / o->prediction.step_ns : 1;
}

/* ---- the list ---- */

/* Whether the first cause says the same. */
static bool is_said(const struct lull_why *why, const struct lull_opportunity_kind *kind)
{
	const struct lull_finding *first = lull_why_first(why);

	return kind->causes && first && strstr(kind->causes, lull_causes[first->cause]->id);
}

static void add(struct lull_why *why, struct lull_look *l, const struct lull_opportunity_kind *kind,
		f64 base_ns)
{
	struct lull_opportunity o = { .kind = kind };
	bool is_torch = lull_subject_is_torch(why->lead);

	snprintf(o.fix, sizeof(o.fix), "%s",
		 is_torch && kind->fix_torch ? kind->fix_torch : kind->fix);
	snprintf(o.assumes, sizeof(o.assumes), "%s", kind->assumes);
	memset(l->marks, 0, l->n_shapes);
	if (is_said(why, kind) || !kind->look(l, &o))
		return;
	o.share = o.touched_ns / why->step_ns;
	predict(l, &o, base_ns);
	if (o.gain_ns >= LULL_T(opportunity) * why->free_ns)
		*(struct lull_opportunity *)lull_vec_push(&why->opportunities) = o;
}

static int by_gain(const void *a, const void *b)
{
	const struct lull_opportunity *x = a, *y = b;

	if (x->gain_ns != y->gain_ns)
		return x->gain_ns < y->gain_ns ? 1 : -1;
	return strcmp(x->kind->id, y->kind->id);
}

/* Leave out those that are part of a larger one. */
static void drop_covered(struct lull_vec *opportunities)
{
	struct lull_opportunity *all = opportunities->at;
	size_t n = 0;

	for (size_t i = 0; i < opportunities->n; i++) {
		size_t k = 0;

		while (k < n &&
		       !(all[k].kind->covers && strstr(all[k].kind->covers, all[i].kind->id)))
			k++;
		if (k == n)
			all[n++] = all[i];
	}
	opportunities->n = n;
}

/* Where the device is busy and one of them brings much, it is what to do first. */
static void lead(struct lull_why *why)
{
	const struct lull_opportunity *o = why->opportunities.at;
	struct lull_finding *first;

	if (why->first < 0 || !why->opportunities.n || o->gain_ns < LULL_T(leading) * why->free_ns)
		return;
	first = lull_vec_get(&why->findings, (size_t)why->first);
	if (first->cause == lull_cause_default(LULL_CAUSE_BUSY))
		snprintf(first->advice.fix, sizeof(first->advice.fix), "%.350s (%s, see below)",
			 o->fix, o->kind->id);
}

void lull_why_opportunities(struct lull_why *why)
{
	struct lull_look l;
	f64 base_ns;

	look_init(&l, why);
	lull_readings_format(&l.readings, why->utilization, sizeof(why->utilization));
	if (why->compute_share * why->step_ns >= LULL_T(opportunity_busy) * why->free_ns) {
		base_ns = replay(&l, NULL, 0);
		for (int i = 0; i < LULL_N_OPPORTUNITIES; i++)
			add(why, &l, lull_opportunities[i], base_ns);
	}
	if (why->opportunities.n)
		lull_sort(why->opportunities.at, why->opportunities.n,
			  sizeof(struct lull_opportunity), by_gain);
	drop_covered(&why->opportunities);
	lead(why);
	look_release(&l);
}
