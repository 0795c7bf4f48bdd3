/*
 * small-grids: launches of one small kernel after the other, where one could do the work of all.
 *
 * Signal:  rows of launches of one kernel with one grid, with nothing between them, none of which
 *          gives more than half of the device something to do.
 * Not it:  kernels that take turns, such as those of a recurrent network or a solver, where each
 *          needs the result before it; kernels that run at the same time; short rows, such as the
 *          passes of a sort; equal launches that were only put into groups.
 * Unknown: steps of a simulation look the same, each of which needs the one before. No recording
 *          says what a kernel reads, so the answer says what it assumes.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cause/opportunity.h"
#include "cause/thresholds.h"
#include "counter/occupancy.h"
#include "text/labels.h"
#include "text/term.h"

/* Ops that follow each other, and the nodes that launched them. */
struct row {
	u32 launch;
	u32 op, n;
	u32 node, last_node;
};

/*
 * Blocks of this launch that the device has room for, and that it needs to be busy. Of a kernel
 * that only computes a few warps are enough; one that waits for memory gains from more.
 */
static void count_blocks(const struct lull_look *l, const struct lull_launch_row *launch, f64 *room,
			 f64 *busy)
{
	const struct lull_chip *chip = lull_chip_find(l->capability);
	struct lull_launch_shape shape = {
		launch->block_x * launch->block_y * launch->block_z,
		launch->registers,
		launch->static_shared_bytes + launch->dynamic_shared_bytes,
	};
	struct lull_occupancy fit = { 0 };
	f64 enough;

	*room = *busy = 0;
	if (!chip || !l->n_sms || !shape.n_threads)
		return;
	lull_occupancy(chip, &shape, &fit);
	if (!fit.n_blocks)
		return;
	enough = LULL_T(busy_warps) * chip->n_schedulers * fit.n_blocks / fit.n_warps;
	*room = (f64)fit.n_blocks * l->n_sms;
	*busy = fmax(fmin(fit.n_blocks, enough), 1) * l->n_sms;
}

/* The part of a busy device that a launch keeps busy; 1 where that is not known. */
static f64 part_of(const struct lull_look *l, u32 launch, int scenario)
{
	const struct lull_launch_row *row = &l->launches[launch - 1];
	f64 blocks = (f64)row->grid_x * row->grid_y * row->grid_z, room, busy;

	count_blocks(l, row, &room, &busy);
	/* At worst nothing but idle multiprocessors is gained. */
	if (scenario)
		busy = scenario < 0 ? room : l->n_sms;
	return busy > 0 ? fmin(blocks / busy, 1) : 1;
}

static bool is_small(const struct lull_look *l, u32 launch)
{
	return launch && launch < l->n_shapes && part_of(l, launch, 0) <= LULL_T(small_grid);
}

/* Whether this kernel is one more of the row: the same, where and after the last one ended. */
static bool goes_on(const struct lull_look *l, const struct row *row, u32 op)
{
	const struct lull_replay_op *ops = l->why->replay.ops.at;
	const struct lull_unit *last, *unit = &l->subject->units.at[ops[op].unit];

	if (!row->n)
		return false;
	last = &l->subject->units.at[ops[op - 1].unit];
	return unit->kind == LULL_UNIT_KERNEL && unit->what == row->launch &&
	       unit->stream == last->stream && unit->begin_ns >= last->end_ns;
}

static void close_row(struct lull_vec *rows, struct row *row)
{
	if (row->n >= LULL_T(launches_alike))
		*(struct row *)lull_vec_push(rows) = *row;
	row->n = 0;
}

/* All rows (struct row) of the steps that are replayed. */
static void find_rows(const struct lull_look *l, struct lull_vec *rows)
{
	const struct lull_replay *p = &l->why->replay;
	const struct lull_replay_node *nodes = p->nodes.at;
	const struct lull_replay_op *ops = p->ops.at;
	struct row row = { 0 };

	lull_vec_init(rows, sizeof(struct row));
	if (l->subject->rounds.source == LULL_ROUNDS_GROUP)
		return;
	for (u32 i = 0; i < p->nodes.n; i++) {
		if (nodes[i].starts || nodes[i].wait != LULL_REPLAY_RUNS)
			close_row(rows, &row);
		for (u32 k = nodes[i].op; k < nodes[i].op + nodes[i].n_ops; k++) {
			const struct lull_unit *unit = &l->subject->units.at[ops[k].unit];

			if (!goes_on(l, &row, k)) {
				close_row(rows, &row);
				if (unit->kind != LULL_UNIT_KERNEL || !is_small(l, unit->what))
					continue;
				row = (struct row){ .launch = unit->what, .op = k, .node = i };
			}
			row.n++;
			row.last_node = i;
		}
	}
	close_row(rows, &row);
}

/* "price has 64 blocks, where 1,584 fit at once" */
static void describe(const struct lull_look *l, u32 id, char *to, size_t cap)
{
	const struct lull_launch_row *launch = &l->launches[id - 1];
	const char *name = lull_reader_string(l->why->reader, launch->name, NULL);
	struct lull_labels labels;
	f64 room, busy;

	count_blocks(l, launch, &room, &busy);
	lull_labels_init(&labels, true);
	lull_labels_add(&labels, &name, 1);
	snprintf(to, cap, "%s has %s blocks, where %s fit at once", lull_labels_get(&labels, name),
		 lull_format_grouped((i64)launch->grid_x * launch->grid_y * launch->grid_z).text,
		 lull_format_grouped((i64)room).text);
	lull_labels_release(&labels);
}

static bool look(struct lull_look *l, struct lull_opportunity *o)
{
	const struct lull_replay *p = &l->why->replay;
	const struct lull_replay_op *ops = p->ops.at;
	f64 *sum_ns = lull_alloc(l->n_shapes, sizeof(*sum_ns));
	char text[200] = "";
	struct lull_vec rows;
	u32 largest = 0;
	f64 n = 0;

	find_rows(l, &rows);
	for (size_t i = 0; i < rows.n; i++) {
		const struct row *row = lull_vec_get(&rows, i);

		for (u32 k = row->op; k < row->op + row->n; k++)
			sum_ns[row->launch] += ops[k].dur_ns / p->n_rounds;
		n += row->n;
		if (sum_ns[row->launch] > sum_ns[largest])
			largest = row->launch;
	}
	for (size_t i = 0; i < l->n_shapes; i++)
		o->touched_ns += sum_ns[i];
	if (largest)
		describe(l, largest, text, sizeof(text));
	snprintf(o->text, sizeof(o->text),
		 "%.0f launches per step repeat the small kernel before them: %s", n / p->n_rounds,
		 text);
	lull_vec_release(&rows);
	free(sum_ns);
	return largest > 0;
}

/* The first launch of each row does the work of all. */
static void join(const struct lull_look *l, struct lull_what_if *w, const struct row *row)
{
	f64 part = part_of(l, row->launch, w->scenario), sum_ns = 0, longest_ns = 0;

	for (u32 k = row->op; k < row->op + row->n; k++) {
		sum_ns += w->ops[k].dur_ns;
		longest_ns = fmax(longest_ns, w->ops[k].dur_ns);
		w->ops[k].is_gone = k > row->op;
	}
	w->ops[row->op].dur_ns = fmax(longest_ns, sum_ns * part);
	for (u32 i = row->node + 1; i <= row->last_node; i++) {
		if (w->nodes[i].n_ops != 1 || w->nodes[i].op >= row->op + row->n)
			continue;
		w->nodes[i].is_gone = true;
		w->nodes[i].gap_ns = 0;
	}
}

static void apply(const struct lull_look *l, struct lull_what_if *w)
{
	struct lull_vec rows;

	find_rows(l, &rows);
	for (size_t i = 0; i < rows.n; i++)
		join(l, w, lull_vec_get(&rows, i));
	lull_vec_release(&rows);
}

const struct lull_opportunity_kind lull_opportunity_small_grids = {
	.id = "small-grids",
	.title = "small launches, one at a time",
	.why = "A stream runs one kernel after the other, and a kernel of few blocks leaves most "
	       "of the device idle, although the device counts as busy. Reported where a "
	       "kernel is launched 16 times and more in a row with the same grid, and each launch "
	       "has at most half of the warps that keep the device busy: 4 for each scheduler, or "
	       "as many as fit. The prediction makes each row one launch that takes this part of "
	       "the time, and no less than its longest kernel. Whether the launches need each "
	       "other's results, as the steps of a simulation do, is not in a recording: then "
	       "only short-kernels helps.",
	.fix = "one launch for all of them, with a grid that runs over the items, too; or several "
	       "streams",
	.fix_torch = "batch the work: one operation over a larger tensor, torch.bmm(), "
		     "torch.vmap(); or several streams",
	.assumes = "none of these launches needs the result of another",
	.covers = "batch",
	.is_ceiling = true,
	.look = look,
	.apply = apply,
};
