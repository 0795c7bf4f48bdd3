/*
 * alloc_backward: memory that the backward pass allocates, and the unexpected part of it.
 *
 * Gradients and intermediate results are expected. Unexpected are copies: to make a tensor
 * contiguous, to change its type, to put a small gradient into a large tensor of zeros; and
 * activations that are computed again.
 */
#include <string.h>

#include "report/alloc.h"

static const struct lull_out_column columns[] = {
	{ .name = "Allocated", .kind = LULL_OUT_BYTES, .doc = "sum of all allocations" },
	{ .name = "Allocations", .kind = LULL_OUT_INT, .doc = "how many" },
	{ .name = "Largest", .kind = LULL_OUT_BYTES, .doc = "of them", .is_spare = true },
	{ .name = "Kept",
	  .kind = LULL_OUT_BYTES,
	  .doc = "part still in use after the backward function: gradients" },
	{ .name = "At Peak",
	  .kind = LULL_OUT_BYTES,
	  .doc = "part that was in use at the peak of this memory",
	  .is_spare = true },
	{ .name = "Unexpected",
	  .kind = LULL_OUT_TEXT,
	  .doc = "purpose, if it is neither a gradient nor an intermediate result" },
	LULL_ALLOC_POOL_COLUMNS,
	LULL_ALLOC_PLACE_COLUMNS,
};

static const char zeros[] = "zero padding";

/* Operators that compute nothing. Names are compared without aten:: and a final underscore. */
static const struct {
	const char *op;
	const char *what;
} unexpected[] = {
	{ "contiguous", "copy, to make it contiguous" },
	{ "clone", "copy" },
	{ "_to_copy", "copy, to change type or device" },
	{ "to", "copy, to change type or device" },
	{ "copy", "copy" },
	{ "cat", "copy, to join tensors" },
	{ "stack", "copy, to join tensors" },
	{ "repeat", "copy, to repeat a tensor" },
	{ "slice_backward", zeros },
	{ "select_backward", zeros },
	{ "constant_pad_nd", zeros },
};

/* Operators that fill a tensor, and functions in which that is the gradient of a part. */
static const char *const fills[] = { "zeros", "zeros_like", "new_zeros", NULL };
static const char *const parts[] = { "Slice", "Select", "Index",  "Gather",    "Narrow", "Unbind",
				     "Split", "Unfold", "Masked", "AsStrided", "Take",	 NULL };

/* Whether a function of the backward pass is that of a part, by how its name begins. */
static bool is_of_part(const char *function)
{
	for (size_t i = 0; parts[i]; i++)
		if (!strncmp(function, parts[i], strlen(parts[i])))
			return true;
	return false;
}

static const char *expectation(const struct lull_allocs *a, const struct lull_alloc_place *place)
{
	const char *op = lull_reader_string(a->reader, place->op, NULL);
	const char *function =
		lull_op_plain_name(lull_reader_string(a->reader, place->function, NULL));
	size_t len;

	if (strstr(function, "Checkpoint"))
		return "computed again";
	if (strncmp(op, "aten::", 6))
		return NULL;
	op += 6;
	len = strlen(op);
	if (len > 1 && op[len - 1] == '_')
		len--;
	for (size_t i = 0; i < LULL_COUNT_OF(unexpected); i++)
		if (strlen(unexpected[i].op) == len && !memcmp(unexpected[i].op, op, len))
			return unexpected[i].what;
	for (size_t i = 0; fills[i]; i++)
		if (strlen(fills[i]) == len && !memcmp(fills[i], op, len) && is_of_part(function))
			return zeros;
	return NULL;
}

/* When the outermost backward function around a block was over. */
static u64 end_of_function(const struct lull_allocs *a, const struct lull_alloc_block *block)
{
	const struct lull_op_node *nodes = a->ops.nodes.at;
	u64 end_ns = 0;

	for (u32 at = block->node; at; at = nodes[at - 1].parent)
		if (nodes[at - 1].is_backward)
			end_ns = nodes[at - 1].end_ns;
	return end_ns;
}

static void collect(struct lull_alloc_groups *groups, const struct lull_allocs *a,
		    const struct lull_report_options *options)
{
	bool is_all = !lull_report_has_arg(options, "unexpected");
	const struct lull_alloc_block *block = a->blocks.at;

	for (size_t i = 0; i < a->blocks.n; i++, block++) {
		const struct lull_alloc_place *place = lull_alloc_place(a, block);
		struct lull_alloc_group *group;

		if (!place->function || !lull_report_covers(options, block->begin_ns, 0) ||
		    (!is_all && !expectation(a, place)))
			continue;
		group = lull_alloc_group_of(groups, place);
		lull_alloc_group_add(group, a, block);
		if (block->end_ns > end_of_function(a, block))
			group->kept_bytes += block->size_bytes;
	}
}

static void put(struct lull_out *out, const struct lull_allocs *a, const struct lull_alloc_group *g)
{
	lull_out_row(out);
	lull_out_i64(out, (i64)g->size_bytes);
	lull_out_i64(out, (i64)g->n_blocks);
	lull_out_i64(out, (i64)g->largest_bytes);
	lull_out_i64(out, (i64)g->kept_bytes);
	lull_out_i64(out, (i64)g->peak_bytes);
	lull_out_text(out, expectation(a, &g->place));
	lull_alloc_put_pool(out, a, g->place.pool);
	lull_alloc_put_place(out, a, &g->place);
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	return lull_alloc_report(r, out, options, collect, put, err);
}

const struct lull_report lull_report_alloc_backward = {
	.name = "alloc_backward",
	.display = "Allocations of the Backward Pass",
	.summary = "what the backward pass allocates, and why",
	.help = "Memory that functions of the backward pass allocated, by function, operator and "
		"line of the forward operator; most bytes first. Copies, zero padding and "
		"recomputed activations are marked as unexpected: layouts, types, views and "
		"checkpoints cause them in addition to the gradient. unexpected shows only "
		"these; rows=N shows N rows.",
	.args = "unexpected rows=",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(alloc) | LULL_NEED(op),
	.empty = "the backward pass allocated nothing of this kind",
	.sorted_by = 1,
	.page = { .tab = "memory", .label = "backward", .is_join = true },
	.run = run,
};
