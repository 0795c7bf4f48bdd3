#include "model/allocs.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/sort.h"

/* ---- events ---- */

struct event {
	u64 at_ns, address;
	i64 size_bytes;
	u64 allocated_bytes, reserved_bytes;
	u32 pool, lane;
	u32 order; /* as met: keeps events of the same moment in order */
	u32 stack;
};

static u32 pool_of(struct lull_allocs *a, struct lull_intern *keys, u32 process, u32 device_id)
{
	u32 key[2] = { process, device_id };
	u32 ix = lull_intern_add(keys, key, sizeof(key));

	if (ix == a->pools.n)
		*(struct lull_alloc_pool *)lull_vec_push(&a->pools) =
			(struct lull_alloc_pool){ .process = process, .device_id = device_id };
	return ix;
}

static int by_time(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	if (x->at_ns != y->at_ns)
		return x->at_ns < y->at_ns ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

static void collect(struct lull_allocs *a, struct lull_vec *events)
{
	size_t n, n_lanes;
	const struct lull_lane_row *lanes = lull_reader_dim(a->reader, LULL_TABLE_lane, &n_lanes);
	struct lull_intern keys;
	struct lull_alloc_cols cols;
	struct lull_cursor c;
	u32 order;

	lull_intern_init(&keys);
	lull_cursor_init(&c, a->reader, LULL_TABLE_alloc, 0, a->window.to_ns);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			u32 lane = cols.lane[i], process = lane ? lanes[lane - 1].process : 0;
			u32 device = cols.device_kind[i] ? cols.device_id[i] : LULL_ALLOC_HOST;

			if (cols.start_ns[i] > a->window.to_ns)
				continue;
			order = (u32)events->n;
			*(struct event *)lull_vec_push(events) = (struct event){
				.at_ns = cols.start_ns[i],
				.address = cols.address[i],
				.size_bytes = cols.size_bytes[i],
				.allocated_bytes = cols.allocated_bytes[i],
				.reserved_bytes = cols.reserved_bytes[i],
				.pool = pool_of(a, &keys, process, device),
				.lane = lane,
				.order = order,
				.stack = cols.stack[i],
			};
		}
	}
	lull_cursor_release(&c);
	lull_intern_release(&keys);
	if (events->n)
		lull_sort(events->at, events->n, sizeof(struct event), by_time);
}

/* ---- places ---- */

/* Operators that make room for what another one computes. */
static bool makes_room(const char *name)
{
	static const char *const names[] = {
		"aten::empty",	 "aten::empty_strided", "aten::empty_like",	  "aten::new_empty",
		"aten::resize_", "aten::resize_as_",	"aten::new_empty_strided"
	};

	for (size_t i = 0; i < LULL_COUNT_OF(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

static u32 place_of(struct lull_allocs *a, const struct lull_alloc_block *block, u32 stack)
{
	const struct lull_op_node *nodes = a->ops.nodes.at;
	struct lull_alloc_place place = { .pool = block->pool };
	u32 forward, backward, ix = block->node;

	for (u32 at = ix; at; at = nodes[at - 1].parent) {
		if (!place.function && nodes[at - 1].is_backward)
			place.function = nodes[at - 1].name;
		if (nodes[at - 1].kind == LULL_OP_OPERATOR && nodes[ix - 1].parent == at &&
		    makes_room(lull_reader_string(a->reader, nodes[ix - 1].name, NULL)))
			ix = at;
	}
	backward = lull_op_pairs_backward(&a->pairs, &a->ops, block->node);
	if (!place.function && backward)
		place.function = nodes[backward - 1].name;
	place.op = ix ? nodes[ix - 1].name : 0;
	if (place.op == place.function)
		place.op = 0;
	forward = place.function ? lull_op_pairs_forward(&a->pairs, &a->ops, block->node) : 0;
	place.frame = stack ? lull_op_stacks_own_frame_of(a->reader, stack)
			    : lull_op_stacks_own_frame(&a->stacks, block->lane, block->begin_ns);
	if (forward)
		place.frame = lull_op_stacks_own_frame(&a->stacks, nodes[forward - 1].lane,
						       nodes[forward - 1].start_ns);
	return lull_intern_add(&a->places, &place, sizeof(place));
}

/* ---- lives ---- */

struct lives {
	struct lull_map blocks; /* pool and address to number of the block that lives there */
	u64 *sums;		/* by pool: what was seen to be in use */
	bool *has_totals;	/* by pool: the framework says how much is in use */
	bool *is_begun;		/* by pool */
};

/* Allocate: what lived there was released unseen. */
static u32 begin_life(struct lull_allocs *a, struct lives *l, const struct event *e, u64 key)
{
	struct lull_alloc_block *block = lull_vec_push(&a->blocks);
	bool is_new;
	u32 *number = lull_map_add(&l->blocks, key, &is_new);

	*block = (struct lull_alloc_block){
		.begin_ns = e->at_ns,
		.end_ns = UINT64_MAX,
		.size_bytes = (u64)e->size_bytes,
		.pool = e->pool,
		.lane = e->lane,
		.node = lull_ops_at(&a->ops, e->lane, e->at_ns),
	};
	block->place = place_of(a, block, e->stack);
	if (*number) {
		struct lull_alloc_block *old = lull_vec_get(&a->blocks, *number - 1);

		old->end_ns = e->at_ns;
		l->sums[e->pool] -= old->size_bytes;
	}
	l->sums[e->pool] += (u64)e->size_bytes;
	*number = (u32)a->blocks.n;
	return *number;
}

static u32 end_life(struct lull_allocs *a, struct lives *l, const struct event *e, u64 key)
{
	u32 *found = lull_map_find(&l->blocks, key), number = found ? *found : 0;
	struct lull_alloc_block *block;

	if (!number)
		return 0;
	block = lull_vec_get(&a->blocks, number - 1);
	block->end_ns = e->at_ns;
	l->sums[e->pool] -= block->size_bytes;
	*found = 0;
	return number;
}

static void count(struct lull_alloc_pool *pool, const struct lull_alloc_moment *m)
{
	pool->n_allocations += m->size_bytes > 0;
	pool->n_releases += m->size_bytes < 0;
	if (m->allocated_bytes > pool->peak_bytes) {
		pool->peak_bytes = m->allocated_bytes;
		pool->peak_ns = m->at_ns;
		pool->peak_reserved_bytes = m->reserved_bytes;
	}
	if (m->reserved_bytes > pool->max_reserved_bytes)
		pool->max_reserved_bytes = m->reserved_bytes;
}

static void add_event(struct lull_allocs *a, struct lives *l, const struct event *e)
{
	struct lull_alloc_pool *pool = lull_vec_get(&a->pools, e->pool);
	u64 key = lull_hash_mix(e->address, e->pool + 1);
	struct lull_alloc_moment m = {
		.at_ns = e->at_ns,
		.size_bytes = e->size_bytes,
		.reserved_bytes = e->reserved_bytes,
		.pool = e->pool,
	};
	/* Before a release there was more. */
	u64 before_bytes = e->allocated_bytes - (u64)e->size_bytes;
	bool is_known = l->has_totals[e->pool] &&
			(e->size_bytes < 0 || (u64)e->size_bytes <= e->allocated_bytes);

	if (!l->is_begun[e->pool] && is_known)
		pool->before_bytes = before_bytes;
	l->is_begun[e->pool] = true;
	m.block = e->size_bytes > 0 ? begin_life(a, l, e, key) : end_life(a, l, e, key);
	m.allocated_bytes = l->has_totals[e->pool] ? e->allocated_bytes : l->sums[e->pool];
	pool->end_bytes = m.allocated_bytes;
	pool->end_reserved_bytes = m.reserved_bytes;
	lull_vec_add(&a->moments, &m, 1);
	if (lull_span_holds(a->window, m.at_ns, 0))
		count(pool, &m);
}

static void live(struct lull_allocs *a, const struct lull_vec *events)
{
	const struct event *e = events->at;
	struct lives l = {
		.sums = lull_alloc(a->pools.n + 1, sizeof(u64)),
		.has_totals = lull_alloc(a->pools.n + 1, sizeof(bool)),
		.is_begun = lull_alloc(a->pools.n + 1, sizeof(bool)),
	};

	lull_map_init(&l.blocks);
	for (size_t i = 0; i < events->n; i++)
		l.has_totals[e[i].pool] = l.has_totals[e[i].pool] || e[i].allocated_bytes;
	for (size_t i = 0; i < events->n; i++)
		add_event(a, &l, &e[i]);
	lull_map_release(&l.blocks);
	free(l.sums);
	free(l.has_totals);
	free(l.is_begun);
}

void lull_allocs_init(struct lull_allocs *a, struct lull_reader *r, struct lull_span window)
{
	struct lull_vec events;

	*a = (struct lull_allocs){ .reader = r, .window = window };
	lull_vec_init(&a->pools, sizeof(struct lull_alloc_pool));
	lull_vec_init(&a->blocks, sizeof(struct lull_alloc_block));
	lull_vec_init(&a->moments, sizeof(struct lull_alloc_moment));
	lull_vec_init(&events, sizeof(struct event));
	lull_intern_init(&a->places);
	lull_ops_init(&a->ops, r, LULL_SPAN_ALL, LULL_OPS_BARE);
	lull_op_pairs_init(&a->pairs, &a->ops, r);
	lull_op_stacks_init(&a->stacks, r, 1);
	collect(a, &events);
	live(a, &events);
	lull_vec_release(&events);
}

void lull_allocs_release(struct lull_allocs *a)
{
	lull_vec_release(&a->pools);
	lull_vec_release(&a->blocks);
	lull_vec_release(&a->moments);
	lull_intern_release(&a->places);
	lull_op_pairs_release(&a->pairs);
	lull_ops_release(&a->ops);
	lull_op_stacks_release(&a->stacks);
}

static int by_peak(const void *a, const void *b, void *ctx)
{
	const struct lull_alloc_pool *pools = ctx;
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	if (pools[x].peak_bytes != pools[y].peak_bytes)
		return pools[x].peak_bytes > pools[y].peak_bytes ? -1 : 1;
	return (x > y) - (x < y);
}

u32 *lull_allocs_by_peak(const struct lull_allocs *a)
{
	u32 *order = lull_alloc(a->pools.n + 1, sizeof(*order));

	for (u32 i = 0; i < a->pools.n; i++)
		order[i] = i;
	if (a->pools.n)
		lull_sort_r(order, a->pools.n, sizeof(*order), by_peak, a->pools.at);
	return order;
}

/* ---- names ---- */

void lull_alloc_name(struct lull_str *to, struct lull_reader *r,
		     const struct lull_alloc_place *place)
{
	if (place->function)
		lull_str_puts(to, lull_op_plain_name(lull_reader_string(r, place->function, NULL)));
	if (place->function && place->op)
		lull_str_puts(to, "/");
	if (place->op)
		lull_str_puts(to, lull_op_plain_name(lull_reader_string(r, place->op, NULL)));
}

u32 lull_alloc_device(struct lull_reader *r, const struct lull_alloc_pool *pool)
{
	size_t n;
	const struct lull_device_row *devices = lull_reader_dim(r, LULL_TABLE_device, &n);

	for (u32 id = 1; id <= n && pool->device_id != LULL_ALLOC_HOST; id++) {
		if (devices[id - 1].device_id == pool->device_id &&
		    devices[id - 1].process == pool->process)
			return id;
	}
	return 0;
}
