#include "model/callpath.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/sort.h"

/*
 * Stacks are a tree whose parents have smaller ids than their children, so one walk from the last
 * node to the first adds each node's weight to its parent: `below` is then the weight of all
 * samples in or under a node. A function's total is the sum of `below` over the nodes where it is
 * outermost, that is, where no ancestor is the same function.
 */
struct finish {
	struct lull_callpath *c;
	const struct lull_frame_row *frames;
	size_t n_frames;
	u32 *function_of; /* by frame: index in c->functions; 0 is no stack */
	u64 *below;	  /* by stack node */
	u64 *frame_self;  /* by frame */
	u64 *frame_below; /* by frame */
};

/* Second half of the keys that are not name and module. */
#define KEY_PYTHON 0x80000000ULL
#define KEY_ADDR   0xffffffffULL

void lull_callpath_init(struct lull_callpath *c, struct lull_reader *r)
{
	*c = (struct lull_callpath){ .reader = r };
	c->stacks = lull_reader_dim(r, LULL_TABLE_stack, &c->n_stacks);
	c->weights = lull_alloc(c->n_stacks + 1, sizeof(*c->weights));
	c->counts = lull_alloc(c->n_stacks + 1, sizeof(*c->counts));
	lull_vec_init(&c->functions, sizeof(struct lull_function));
}

void lull_callpath_release(struct lull_callpath *c)
{
	free(c->weights);
	free(c->counts);
	lull_vec_release(&c->functions);
}

void lull_callpath_add(struct lull_callpath *c, u32 stack, u64 weight)
{
	c->weights[stack] += weight;
	c->counts[stack]++;
	c->all += weight;
}

static u64 key_of(const struct finish *f, u32 frame)
{
	const struct lull_frame_row *row = &f->frames[frame - 1];

	/* String ids are below 2^31, so that no name is taken for the rest of a module. */
	if (!row->function && row->module)
		return (u64)row->module << 32 | UINT32_MAX;
	if (!row->function)
		return KEY_ADDR << 32 | frame;
	if (row->kind == LULL_FRAME_PYTHON)
		return (KEY_PYTHON | row->file) << 32 | row->function;
	return (u64)row->module << 32 | row->function;
}

static void name_functions(struct finish *f)
{
	struct lull_map by_key;

	lull_map_init(&by_key);
	lull_vec_push(&f->c->functions); /* samples without a stack, and nodes without a frame */
	for (u32 frame = 1; frame <= f->n_frames; frame++) {
		bool is_new;
		u32 *ix = lull_map_add(&by_key, key_of(f, frame), &is_new);

		if (is_new) {
			*ix = (u32)f->c->functions.n;
			lull_vec_push(&f->c->functions);
		}
		f->function_of[frame] = *ix;
	}
	lull_map_release(&by_key);
}

static void sum_below(struct finish *f)
{
	const struct lull_callpath *c = f->c;

	for (size_t node = c->n_stacks; node > 0; node--) {
		f->below[node] += c->weights[node];
		f->below[c->stacks[node - 1].parent] += f->below[node];
	}
	f->below[0] = c->weights[0];
}

/* Whether no node above this one is in the same function. */
static bool is_outermost(const struct finish *f, size_t node)
{
	const struct lull_stack_row *stacks = f->c->stacks;
	u32 function = f->function_of[stacks[node - 1].frame];

	for (u32 up = stacks[node - 1].parent; up; up = stacks[up - 1].parent) {
		if (f->function_of[stacks[up - 1].frame] == function)
			return false;
	}
	return true;
}

static void sum_functions(struct finish *f)
{
	struct lull_function *functions = f->c->functions.at;

	functions[0].self = functions[0].total = f->c->weights[0];
	functions[0].n_self = f->c->counts[0];
	for (size_t node = 1; node <= f->c->n_stacks; node++) {
		u32 frame = f->c->stacks[node - 1].frame;
		struct lull_function *function = &functions[f->function_of[frame]];

		if (!f->below[node])
			continue;
		function->self += f->c->weights[node];
		function->n_self += f->c->counts[node];
		if (is_outermost(f, node))
			function->total += f->below[node];
		f->frame_self[frame] += f->c->weights[node];
		f->frame_below[frame] += f->below[node];
	}
}

/*
 * The place of each function where it spends most itself, or if nothing, from where it calls most.
 */
static void choose_places(struct finish *f)
{
	struct lull_function *functions = f->c->functions.at;

	for (u32 frame = 1; frame <= f->n_frames; frame++) {
		u32 *best = &functions[f->function_of[frame]].frame;

		if (!*best || f->frame_self[frame] > f->frame_self[*best] ||
		    (f->frame_self[frame] == f->frame_self[*best] &&
		     f->frame_below[frame] > f->frame_below[*best]))
			*best = frame;
	}
}

static int by_self(const void *a, const void *b)
{
	const struct lull_function *x = a, *y = b;

	if (x->self != y->self)
		return x->self < y->self ? 1 : -1;
	if (x->total != y->total)
		return x->total < y->total ? 1 : -1;
	return (x->frame > y->frame) - (x->frame < y->frame);
}

/* Functions that no sample met are sorted to the end and cut off. */
static void sort_functions(struct lull_vec *functions)
{
	lull_sort(functions->at, functions->n, sizeof(struct lull_function), by_self);
	while (functions->n &&
	       !((struct lull_function *)lull_vec_get(functions, functions->n - 1))->total)
		functions->n--;
}

void lull_callpath_finish(struct lull_callpath *c)
{
	struct finish f = { .c = c };

	f.frames = lull_reader_dim(c->reader, LULL_TABLE_frame, &f.n_frames);
	f.function_of = lull_alloc(f.n_frames + 1, sizeof(*f.function_of));
	f.frame_self = lull_alloc(f.n_frames + 1, sizeof(*f.frame_self));
	f.frame_below = lull_alloc(f.n_frames + 1, sizeof(*f.frame_below));
	f.below = lull_alloc(c->n_stacks + 1, sizeof(*f.below));
	name_functions(&f);
	sum_below(&f);
	sum_functions(&f);
	choose_places(&f);
	sort_functions(&c->functions);
	free(f.function_of);
	free(f.frame_self);
	free(f.frame_below);
	free(f.below);
}
