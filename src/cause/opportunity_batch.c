/*
 * batch: kernels too small for the device, and memory left for a larger batch.
 *
 * Signal:  kernels with fewer blocks than the device has multiprocessors; less than half of its
 *          memory in use, if that was recorded.
 * Not it:  updates of parameters, which do not depend on the batch; kernels whose shape is not
 *          known.
 */
#include <math.h>
#include <stdio.h>

#include "text/term.h"
#include "cause/opportunity.h"
#include "cause/thresholds.h"

static f64 n_blocks(const struct lull_launch_row *launch)
{
	return (f64)launch->grid_x * (f64)launch->grid_y * (f64)launch->grid_z;
}

static bool look(struct lull_look *l, struct lull_opportunity *o)
{
	const struct lull_reading *memory = &l->readings.at[LULL_READING_MEMORY];
	bool has_memory = memory->n && l->memory_bytes > 0;
	char left[72] = "";
	u64 ns = 0, n = 0;

	if (has_memory && memory->most > LULL_T(batch_memory) * l->memory_bytes)
		return false;
	for (size_t i = 1; i < l->n_shapes; i++) {
		f64 blocks = n_blocks(&l->launches[i - 1]);

		if (l->shapes[i].class == LULL_KERNEL_OPTIMIZER || blocks < 1 || blocks >= l->n_sms)
			continue;
		l->marks[i] = 1;
		ns += l->shapes[i].ns;
		n += l->shapes[i].n;
	}
	if (has_memory)
		snprintf(left, sizeof(left), "; %.12s of %.12s of memory are in use",
			 lull_format_bytes((u64)memory->most).text,
			 lull_format_bytes((u64)l->memory_bytes).text);
	o->touched_ns = (f64)ns / l->n_steps;
	snprintf(o->text, sizeof(o->text),
		 "%.0f kernels per step have fewer blocks than the device has multiprocessors "
		 "(%u)%s",
		 (f64)n / l->n_steps, l->n_sms, left);
	return n > 0;
}

/* Twice the batch in one go: a kernel that has the room takes as long as before. */
static void apply(const struct lull_look *l, struct lull_what_if *w)
{
	for (u32 i = 0; i < w->n_ops; i++) {
		u32 launch = lull_op_launch(w, i);
		f64 full;

		if (!l->marks[launch])
			continue;
		full = n_blocks(&l->launches[launch - 1]) / l->n_sms;
		w->ops[i].dur_ns *= fmax(full, 0.5);
	}
}

const struct lull_opportunity_kind lull_opportunity_batch = {
	.id = "batch",
	.title = "kernels that do not fill the device",
	.why = "A kernel with fewer blocks than the device has multiprocessors leaves some without "
	       "work. With twice the batch it takes hardly longer. The prediction is the time of "
	       "the same samples in batches of twice the size. Not reported if more than 45 % of "
	       "the memory are in use.",
	.fix = "twice the batch size, or several small pieces of work at once",
	.assumes = "twice the batch fits into memory, and learns as well; the step is given for "
		   "as many samples as now",
	.is_ceiling = true,
	.look = look,
	.apply = apply,
};
