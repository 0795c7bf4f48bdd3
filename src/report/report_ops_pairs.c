/*
 * ops_pairs: what the backward pass of each forward operator costs.
 */
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "base/sort.h"
#include "model/op_pairs.h"
#include "report/report.h"

static const struct lull_out_column columns[] = {
	{ .name = "Calls",
	  .kind = LULL_OUT_INT,
	  .doc = "forward operators whose backward function ran" },
	{ .name = "Forward CPU",
	  .kind = LULL_OUT_NS,
	  .doc = "their time on their threads, including operators inside them",
	  .is_spare = true },
	{ .name = "Forward CUDA",
	  .kind = LULL_OUT_NS,
	  .doc = "time of the kernels and copies launched inside them" },
	{ .name = "Backward CPU",
	  .kind = LULL_OUT_NS,
	  .doc = "time of their backward functions on their threads" },
	{ .name = "Backward CUDA",
	  .kind = LULL_OUT_NS,
	  .doc = "time of the kernels and copies launched inside these" },
	{ .name = "Backward CUDA",
	  .kind = LULL_OUT_PERCENT,
	  .doc = "share in the sum of all pairs",
	  .is_spare = true },
	{ .name = "Ratio",
	  .kind = LULL_OUT_FLOAT,
	  .decimals = 2,
	  .doc = "Backward CUDA divided by Forward CUDA; the same of CPU time if devices did "
		 "nothing" },
	{ .name = "Forward", .kind = LULL_OUT_TEXT, .doc = "operator" },
	{ .name = "Backward", .kind = LULL_OUT_TEXT, .doc = "function that computes its gradient" },
};

struct group {
	u32 key[3]; /* name, 1 for an annotation, name of the backward function or 0 */
	u64 n_calls;
	u64 forward_ns, forward_device_ns;
	u64 backward_ns, backward_device_ns;
	u32 last; /* forward node that was counted last */
};

/* Instead of a name: steps of PyTorch's schedule, which are numbered. */
#define STEPS UINT32_MAX
static const char step[] = "ProfilerStep#", steps[] = "ProfilerStep*";

struct pairs {
	struct lull_reader *reader;
	struct lull_ops ops;
	struct lull_op_pairs found;
	struct lull_intern keys; /* of groups, which have the same numbers */
	struct lull_vec groups;
	u64 device_ns; /* of all backward functions */
};

static void add(struct pairs *p, const struct lull_op_pair *pair, u32 number, u32 backward_name)
{
	const struct lull_op_node *nodes = p->ops.nodes.at;
	const struct lull_op_node *node = &nodes[number - 1], *back = &nodes[pair->backward - 1];
	bool is_annotation = node->kind == LULL_OP_ANNOTATION;
	u32 key[3] = { node->name, is_annotation, backward_name }, ix;
	struct group *group;

	/* The steps of a schedule are one kind of thing. */
	if (is_annotation && !strncmp(lull_reader_string(p->reader, node->name, NULL), step, 13))
		key[0] = STEPS;

	ix = lull_intern_add(&p->keys, key, sizeof(key));
	if (ix == p->groups.n)
		memcpy(((struct group *)lull_vec_push(&p->groups))->key, key, sizeof(key));
	group = lull_vec_get(&p->groups, ix);
	/* What holds several that came back counts once; they come in any order. */
	group->backward_ns += back->end_ns - back->start_ns;
	group->backward_device_ns += back->device_all_ns;
	if (group->last == number)
		return;
	group->last = number;
	group->n_calls++;
	group->forward_ns += node->end_ns - node->start_ns;
	group->forward_device_ns += node->device_all_ns;
}

static int by_forward(const void *a, const void *b)
{
	const struct lull_op_pair *x = a, *y = b;

	if (x->forward != y->forward)
		return x->forward < y->forward ? -1 : 1;
	return (x->backward > y->backward) - (x->backward < y->backward);
}

static void collect(struct pairs *p, bool has_outer)
{
	const struct lull_op_node *nodes = p->ops.nodes.at;
	const struct lull_op_pair *pair = p->found.all.at;

	/* By forward operator, so that all inside of one follow each other. */
	if (p->found.all.n)
		lull_sort(p->found.all.at, p->found.all.n, sizeof(*pair), by_forward);
	for (size_t i = 0; i < p->found.all.n; i++, pair++) {
		u32 name = nodes[pair->backward - 1].name;

		p->device_ns += nodes[pair->backward - 1].device_all_ns;
		add(p, pair, pair->forward, name);
		for (u32 ix = nodes[pair->forward - 1].parent; has_outer && ix;
		     ix = nodes[ix - 1].parent)
			add(p, pair, ix, 0);
	}
}

static int by_cost(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	if (x->backward_device_ns != y->backward_device_ns)
		return x->backward_device_ns > y->backward_device_ns ? -1 : 1;
	if (x->backward_ns != y->backward_ns)
		return x->backward_ns > y->backward_ns ? -1 : 1;
	return (x->forward_ns < y->forward_ns) - (x->forward_ns > y->forward_ns);
}

static void put(const struct pairs *p, struct lull_out *out, const struct group *g)
{
	bool has_device = g->forward_device_ns && g->backward_device_ns;

	lull_out_row(out);
	lull_out_i64(out, (i64)g->n_calls);
	lull_out_i64(out, (i64)g->forward_ns);
	lull_out_i64(out, (i64)g->forward_device_ns);
	lull_out_i64(out, (i64)g->backward_ns);
	lull_out_i64(out, (i64)g->backward_device_ns);
	lull_out_f64(out, p->device_ns ? 100 * (f64)g->backward_device_ns / (f64)p->device_ns : 0);
	/* Divided by 0, no time leaves the cell empty. */
	lull_out_f64(out, has_device ? (f64)g->backward_device_ns / (f64)g->forward_device_ns
				     : (f64)g->backward_ns / (f64)g->forward_ns);
	lull_out_text(out,
		      g->key[0] == STEPS ? steps : lull_reader_string(p->reader, g->key[0], NULL));
	lull_out_text(out,
		      g->key[2] ? lull_op_plain_name(lull_reader_string(p->reader, g->key[2], NULL))
				: NULL);
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	struct pairs p = { .reader = r };
	size_t n_rows;

	if (lull_report_arg_rows(options, SIZE_MAX, &n_rows, err))
		return err->code;
	lull_intern_init(&p.keys);
	lull_vec_init(&p.groups, sizeof(struct group));
	lull_ops_init(&p.ops, r, lull_report_window(options), LULL_OPS_WITH_COSTS);
	lull_op_pairs_init(&p.found, &p.ops, r);
	collect(&p, lull_report_has_arg(options, "outer"));
	if (p.groups.n)
		lull_sort(p.groups.at, p.groups.n, sizeof(struct group), by_cost);
	for (size_t i = 0; i < p.groups.n && i < n_rows; i++)
		put(&p, out, lull_vec_get(&p.groups, i));
	lull_op_pairs_release(&p.found);
	lull_ops_release(&p.ops);
	lull_vec_release(&p.groups);
	lull_intern_release(&p.keys);
	return LULL_OK;
}

const struct lull_report lull_report_ops_pairs = {
	.name = "ops_pairs",
	.display = "Forward and Backward",
	.summary = "what the backward pass of each operator costs",
	.help = "Each forward operator with the function that computes its gradient, linked by the "
		"sequence number that both carry; most time of devices in the backward pass first. "
		"outer adds rows for the operators and annotations around, with the backward time "
		"of all that is inside them; rows=N shows N rows.",
	.args = "outer rows=",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(op),
	.empty = "no operator was found with its backward function: the recording has no sequence "
		 "numbers, or no backward pass",
	.page = { .tab = "ops",
		  .label = "forward and backward",
		  .names = "Forward",
		  .is_join = true },
	.run = run,
};
