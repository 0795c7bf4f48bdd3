/*
 * short-kernels: many kernels of a few microseconds, with pauses between them.
 *
 * Signal:  the mean kernel is shorter than 10 us.
 * Not it:  a few short ones among long ones.
 */
#include <stdio.h>

#include "cause/opportunity.h"
#include "cause/thresholds.h"

static bool look(struct lull_look *l, struct lull_opportunity *o)
{
	u64 ns = 0, n = 0, short_ns = 0;

	for (size_t i = 0; i < l->n_shapes; i++) {
		const struct lull_shape *shape = &l->shapes[i];

		ns += shape->ns;
		n += shape->n;
		if ((f64)shape->ns < LULL_T(short_kernel_ns) * (f64)shape->n)
			short_ns += shape->ns;
	}
	if (!n || (f64)ns >= LULL_T(short_kernel_ns) * (f64)n)
		return false;
	o->touched_ns = (f64)short_ns / l->n_steps;
	snprintf(o->text, sizeof(o->text), "%.0f kernels per step, %.1f us each on average",
		 (f64)n / l->n_steps, (f64)ns / (f64)n / 1e3);
	return true;
}

static void apply(const struct lull_look *l, struct lull_what_if *w)
{
	(void)l;
	lull_causes[LULL_CAUSE_IX_launch_bound]->apply(w);
}

const struct lull_opportunity_kind lull_opportunity_short_kernels = {
	.id = "short-kernels",
	.title = "many short kernels",
	.why = "Between two kernels of a stream a device pauses for about 1 us, in a CUDA graph "
	       "for "
	       "0.3 us. Reported if kernels take less than 10 us on average. The prediction is "
	       "that of launch-bound: a graph of the step.",
	.fix = "CUDA graphs, fewer and larger kernels",
	.fix_torch = "torch.compile(mode=\"reduce-overhead\"), or CUDA graphs",
	.assumes = "shapes do not change, and the whole step can be captured",
	.causes = "launch-bound",
	.is_ceiling = true,
	.look = look,
	.apply = apply,
};
