/*
 * device-copies: kernels and copies that only put data elsewhere on the device.
 *
 * Signal:  kernels whose names say that they copy, concatenate or transpose, and copies within the
 *          device, have at least 20 % of the time in which the device computes.
 * Not it:  gathers, scatters and lookups, which may be the work itself: an embedding is one;
 *          conversions to another type; copies beside an elementwise kernel or a reduction that
 *          takes as long: these could be one kernel, which is fusion.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cause/opportunity.h"
#include "cause/thresholds.h"
#include "text/labels.h"

enum mark { MARK_NONE, MARK_MOVE };

static bool has_any(const char *name, const char *const *words)
{
	for (; *words; words++) {
		if (strcasestr(name, *words))
			return true;
	}
	return false;
}

/* Whether a kernel of this name only moves data, all of what it is given. */
static bool is_move(const char *name, enum lull_kernel_class class)
{
	static const char *const lookups[] = { "gather", "scatter", "index", "embedding",
					       "take",	 "pack",    NULL };
	/* PyTorch's copies are loops of its own; those that convert load or store "with cast". */
	static const char *const copies[] = { "direct_copy_kernel", "nchwToNhwc", "nhwcToNchw",
					      NULL };

	if (has_any(name, copies))
		return !strcasestr(name, "WithCast");
	return class == LULL_KERNEL_COPY && !has_any(name, lookups);
}

/* Whether the op beside this one works on data for as long as this one moves it. */
static bool is_beside(const struct lull_look *l, u32 op, u32 other)
{
	const struct lull_replay_op *ops = l->why->replay.ops.at;
	const struct lull_unit *unit;

	if (other >= l->why->replay.ops.n || ops[other].stream != ops[op].stream)
		return false;
	unit = &l->subject->units.at[ops[other].unit];
	return unit->kind == LULL_UNIT_KERNEL && l->marks[unit->what] != MARK_MOVE &&
	       (unit->class == LULL_KERNEL_ELEMENTWISE || unit->class == LULL_KERNEL_REDUCTION) &&
	       ops[other].dur_ns >= ops[op].dur_ns;
}

static bool is_counted(const struct lull_look *l, u32 op)
{
	const struct lull_replay_op *ops = l->why->replay.ops.at;
	const struct lull_unit *unit = &l->subject->units.at[ops[op].unit];

	if (unit->kind == LULL_UNIT_COPY)
		return lull_units_copy(&l->subject->units, unit)->direction == LULL_COPY_WITHIN;
	return unit->kind == LULL_UNIT_KERNEL && l->marks[unit->what] == MARK_MOVE &&
	       !is_beside(l, op, op - 1) && !is_beside(l, op, op + 1);
}

/* The kernel that has most of the time; NULL if copies have. */
static const char *largest_of(const struct lull_look *l, const f64 *sum_ns)
{
	size_t largest = 0;

	for (size_t i = 1; i < l->n_shapes; i++) {
		if (sum_ns[i] > sum_ns[largest])
			largest = i;
	}
	return largest ? lull_reader_string(l->why->reader, l->launches[largest - 1].name, NULL)
		       : NULL;
}

static void describe(const struct lull_look *l, const char *name, f64 n, struct lull_opportunity *o)
{
	struct lull_labels labels;

	lull_labels_init(&labels, true);
	if (name)
		lull_labels_add(&labels, &name, 1);
	snprintf(o->text, sizeof(o->text),
		 "%.0f kernels and copies per step only put data elsewhere on the device, most of "
		 "it %s",
		 n, name ? lull_labels_get(&labels, name) : "copies");
	lull_labels_release(&labels);
	if (name && strcasestr(name, "cat") && lull_subject_is_torch(l->subject))
		snprintf(o->fix, sizeof(o->fix),
			 "allocate once and write in place (buffer[:, t] = new) instead of "
			 "torch.cat() of what grows; views instead of copies");
}

static bool look(struct lull_look *l, struct lull_opportunity *o)
{
	const struct lull_replay *p = &l->why->replay;
	const struct lull_replay_op *ops = p->ops.at;
	f64 *sum_ns = lull_alloc(l->n_shapes, sizeof(*sum_ns)), n = 0;

	for (size_t i = 1; i < l->n_shapes; i++)
		l->marks[i] =
			is_move(lull_reader_string(l->why->reader, l->launches[i - 1].name, NULL),
				(enum lull_kernel_class)l->shapes[i].class)
				? MARK_MOVE
				: MARK_NONE;
	for (u32 k = 0; k < p->ops.n; k++) {
		const struct lull_unit *unit = &l->subject->units.at[ops[k].unit];

		if (!is_counted(l, k))
			continue;
		sum_ns[unit->kind == LULL_UNIT_KERNEL ? unit->what : 0] += ops[k].dur_ns;
		o->touched_ns += ops[k].dur_ns / p->n_rounds;
		n++;
	}
	describe(l, largest_of(l, sum_ns), n / p->n_rounds, o);
	free(sum_ns);
	return o->touched_ns >= LULL_T(moved) * l->why->compute_share * l->why->step_ns && n > 0;
}

/* What is new has to be written all the same: its launch stays. */
static void apply(const struct lull_look *l, struct lull_what_if *w)
{
	for (u32 i = 0; i < w->n_ops; i++) {
		if (is_counted(l, i))
			w->ops[i].dur_ns = 0;
	}
}

const struct lull_opportunity_kind lull_opportunity_device_copies = {
	.id = "device-copies",
	.title = "data is copied within the device",
	.why = "A kernel that copies, concatenates or transposes computes nothing: it takes the "
	       "time to read and write all it is given, such as a cache that grows by one row and "
	       "is copied whole. Reported if this is at least 20 % of the time in which the "
	       "device computes. Counted are kernels whose names say so and copies within the "
	       "device, but not gathers and lookups, which may be the work itself, conversions, "
	       "and copies beside an elementwise kernel or a reduction that takes as long: these "
	       "are fusion's. The prediction gives them no time, but keeps their launches.",
	.fix = "buffers that are allocated once and written in place; views or strides instead of "
	       "copies",
	.fix_torch = "views instead of .contiguous(), .clone() and .repeat(); one memory layout "
		     "for all (torch.channels_last for convolutions)",
	.assumes = "what is copied can be written or read where it is",
	.is_ceiling = true,
	.look = look,
	.apply = apply,
};
