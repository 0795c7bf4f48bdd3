/*
 * fusion: rows of elementwise kernels and reductions that could be one kernel each.
 *
 * Signal:  such kernels follow each other on a stream. How much of the step they have does not
 *          matter, as it does for the cause unfused-elementwise: what fusing brings does.
 * Not it:  single ones between products.
 */
#include <stdio.h>

#include "cause/evidence.h"
#include "cause/opportunity.h"

static bool look(struct lull_look *l, struct lull_opportunity *o)
{
	const char *how = lull_how_to_fuse(l->subject);
	u64 ns = 0, n = 0;

	for (size_t i = 1; i < l->n_shapes; i++) {
		if (!lull_kernel_is_light((enum lull_kernel_class)l->shapes[i].class))
			continue;
		ns += l->shapes[i].ns;
		n += l->shapes[i].n;
	}
	o->touched_ns = (f64)ns / l->n_steps;
	snprintf(o->text, sizeof(o->text),
		 "%.0f elementwise, reduction and copy kernels per step, each of which reads and "
		 "writes memory again",
		 (f64)n / l->n_steps);
	if (how)
		snprintf(o->fix, sizeof(o->fix), "%s", how);
	return n > 0;
}

static void apply(const struct lull_look *l, struct lull_what_if *w)
{
	(void)l;
	lull_causes[LULL_CAUSE_IX_unfused_elementwise]->apply(w);
}

const struct lull_opportunity_kind lull_opportunity_fusion = {
	.id = "fusion",
	.title = "elementwise kernels one after the other",
	.why = "As the cause unfused-elementwise, but whatever share of the step such kernels "
	       "have: a row of them becomes as long as its longest kernel, or as its arithmetic.",
	.fix = "one kernel for each row of them",
	.fix_torch = "torch.compile, or fused operators (fused norms, fused cross entropy, "
		     "scaled_dot_product_attention)",
	.assumes = "all adjacent elementwise kernels can be fused",
	.causes = "unfused-elementwise",
	.is_ceiling = true,
	.look = look,
	.apply = apply,
};
