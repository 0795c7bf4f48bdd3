/*
 * unfused-elementwise: the device is busy with many kernels that only read and write memory.
 *
 * Signal:  the device is busy, at least 60 % of its kernel time is elementwise, and running each
 *          row of such kernels as one would make the step at least 10 % shorter.
 * Not it:  one large fused kernel; elementwise kernels between matmuls that cannot be joined.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cause/cause.h"
#include "cause/evidence.h"
#include "cause/replay/replay.h"
#include "cause/thresholds.h"
#include "cause/why_int.h"

struct row {
	u32 first; /* op that stays, LULL_NONE if no row is open */
	f64 longest_ns, sum_ns;
	u8 *costs; /* by launch: enum cost, looked up at the first kernel of it */
};

enum cost { UNKNOWN, CHEAP, COSTLY };

static bool is_costly(const struct lull_what_if *w, const struct row *row,
		      const struct lull_unit *unit)
{
	u8 *cost = &row->costs[unit->what];

	if (*cost == UNKNOWN)
		*cost = lull_kernel_is_costly(lull_units_name(unit, w->replay->subject->reader))
				? COSTLY
				: CHEAP;
	return *cost == COSTLY;
}

static f64 part_of(const struct lull_what_if *w, const struct row *row, u32 op)
{
	const struct lull_unit *unit = &w->replay->subject->units.at[w->ops[op].unit];
	f64 scenario = w->scenario < 0	 ? LULL_T(fused_good)
		       : w->scenario > 0 ? LULL_T(fused_poor)
					 : 1;

	return scenario * (is_costly(w, row, unit) ? LULL_T(fused_costly) : LULL_T(fused_cheap));
}

static void close_row(struct lull_what_if *w, struct row *row)
{
	if (row->first != LULL_NONE)
		w->ops[row->first].dur_ns =
			row->longest_ns > row->sum_ns ? row->longest_ns : row->sum_ns;
	row->first = LULL_NONE;
}

static void add_op(struct lull_what_if *w, struct row *row, u32 node, u32 op)
{
	f64 dur_ns = w->ops[op].dur_ns, added_ns = dur_ns * part_of(w, row, op);

	if (row->first == LULL_NONE || w->ops[row->first].stream != w->ops[op].stream) {
		close_row(w, row);
		row->first = op;
		row->longest_ns = dur_ns;
		row->sum_ns = added_ns;
		return;
	}
	row->longest_ns = dur_ns > row->longest_ns ? dur_ns : row->longest_ns;
	row->sum_ns += added_ns;
	w->ops[op].is_gone = true;
	if (w->nodes[node].n_ops == 1) {
		w->nodes[node].is_gone = true;
		w->nodes[node].gap_ns = 0;
	}
}

/*
 * What comes after a reduction needs its result, and so passes over the data again; and a copy puts
 * the data into another order.
 */
static bool ends_row(const struct lull_unit *unit)
{
	return unit->kind == LULL_UNIT_KERNEL &&
	       (unit->class == LULL_KERNEL_REDUCTION || unit->class == LULL_KERNEL_COPY);
}

static void apply(struct lull_what_if *w)
{
	const struct lull_units *units = &w->replay->subject->units;
	u32 n_launches = lull_reader_n_dim(w->replay->subject->reader, LULL_TABLE_launch);
	struct row row = { .first = LULL_NONE, .costs = lull_alloc(n_launches + 1, 1) };
	/*
	 * Nobody marked these steps: if they have several kernels, they may be rounds of one step,
	 * which nothing keeps apart.
	 */
	bool is_unit = w->scenario <= 0 && w->n_ops >= 2 * w->replay->n_rounds &&
		       w->replay->subject->rounds.source == LULL_ROUNDS_PERIOD;

	/* Nothing says that equal launches which were only put into groups belong together. */
	bool is_group = w->replay->subject->rounds.source == LULL_ROUNDS_GROUP;

	for (u32 i = 0; i < w->n; i++) {
		if ((w->nodes[i].starts && !is_unit) || is_group ||
		    w->nodes[i].wait != LULL_REPLAY_RUNS)
			close_row(w, &row);
		for (u32 k = w->nodes[i].op; k < w->nodes[i].op + w->nodes[i].n_ops; k++) {
			const struct lull_unit *unit = &units->at[w->ops[k].unit];

			if (unit->kind == LULL_UNIT_KERNEL &&
			    lull_kernel_is_light((enum lull_kernel_class)unit->class))
				add_op(w, &row, i, k);
			else
				close_row(w, &row);
			if (ends_row(unit))
				close_row(w, &row);
		}
	}
	close_row(w, &row);
	free(row.costs);
}

static f64 light_share(const struct lull_subject *s)
{
	u64 sum = 0, light_ns = 0;

	for (int i = 0; i < LULL_N_KERNEL_CLASSES; i++) {
		sum += s->class_ns[i];
		light_ns += lull_kernel_is_light((enum lull_kernel_class)i) ? s->class_ns[i] : 0;
	}
	return sum ? (f64)light_ns / (f64)sum : 0;
}

static f64 busy(struct lull_why *why)
{
	if (light_share(why->lead) < LULL_T(elementwise) ||
	    lull_why_fixed_ns(why, LULL_CAUSE_IX_unfused_elementwise, 0) >=
		    LULL_T(fused) * why->free_ns)
		return 0;
	return why->compute_share * why->step_ns;
}

static void suit(const struct lull_why *why, bool is_torch, struct lull_advice *advice)
{
	const char *how = lull_how_to_fuse(why->lead);

	(void)is_torch;
	if (how)
		snprintf(advice->fix, sizeof(advice->fix), "%s", how);
}

const struct lull_cause lull_cause_unfused_elementwise = {
	.id = "unfused-elementwise",
	.title = "the device is busy with many small memory-bound kernels",
	.because = "it runs many elementwise kernels one after the other, each of which reads and "
		   "writes memory again",
	.why = "An elementwise kernel takes as long as its memory traffic. A series of them "
	       "moves the same data again and again; one fused kernel moves it once. Reported if "
	       "the device is at least 90 % busy, memory-bound kernels (elementwise, reductions, "
	       "copies) are 60 % of the kernel time, and the fused step would take less than 0.9 "
	       "of the time. A series ends with a reduction or a copy, since what follows "
	       "passes over the data again. The prediction makes each series as long as its "
	       "longest kernel, or as long as its arithmetic, if that is more: 0.33 of the time of "
	       "tanh, exp and "
	       "similar kernels, 0.014 of the others (fitted to one pair of recordings).",
	.fix = "one kernel that does everything in one pass over memory",
	.fix_torch = "torch.compile, or a fused kernel",
	.assumes = "all adjacent elementwise kernels can be fused",
	.kind = LULL_CAUSE_BUSY,
	.is_ceiling = true,
	.needs = LULL_NEED_WORK,
	.apply = apply,
	.busy = busy,
	.suit = suit,
	.prove = lull_show_kernels,
};
