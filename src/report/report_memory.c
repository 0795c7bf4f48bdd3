/*
 * memory: peak of the memory in use, when it was reached, and what had allocated it.
 *
 * A pool is memory that is counted together: one kind of memory that CUDA gave a process on one
 * device, or the allocations of a framework there. There are two passes over the allocations, by
 * time: the first finds the peak of each pool, the second what was allocated at that time.
 */
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "base/map.h"
#include "base/sort.h"
#include "base/vec.h"
#include "model/link.h"
#include "model/nest.h"
#include "model/names.h"
#include "model/ops.h"
#include "model/runsort.h"
#include "report/gpu.h"
#include "report/nvtx.h"

static const struct lull_out_column columns[] = {
	{ .name = "Peak",
	  .kind = LULL_OUT_BYTES,
	  .doc = "peak of the memory in use, as far as it was recorded" },
	{ .name = "Peak At",
	  .kind = LULL_OUT_NS,
	  .is_moment = true,
	  .doc = "when that was first reached" },
	{ .name = "At End",
	  .kind = LULL_OUT_BYTES,
	  .doc = "in use at the end of the selected time",
	  .is_spare = true },
	{ .name = "Reserved",
	  .kind = LULL_OUT_BYTES,
	  .doc = "framework: reserved by its allocator at the peak",
	  .is_spare = true },
	{ .name = "Allocations", .kind = LULL_OUT_INT, .doc = "how many", .is_spare = true },
	{ .name = "Allocator", .kind = LULL_OUT_TEXT, .doc = "CUDA, or framework" },
	{ .name = "Memory", .kind = LULL_OUT_TEXT, .doc = "kind of memory" },
	{ .name = "PID", .kind = LULL_OUT_ID, .doc = "process id", .is_spare = true },
	{ .name = "Device", .kind = LULL_OUT_TEXT, .doc = "name and number", .is_spare = true },
	{ .name = "Held",
	  .kind = LULL_OUT_BYTES,
	  .doc = "part of the peak that this place had allocated" },
	{ .name = "Share", .kind = LULL_OUT_PERCENT, .doc = "the same in percent of the peak" },
	{ .name = "Held By",
	  .kind = LULL_OUT_TEXT,
	  .doc = "the place: the innermost range around the allocation, else the operator or the "
		 "call",
	  .is_wanted = true },
};

enum allocator { CUDA, FRAMEWORK };

/* Which pool something belongs to; a key, so nothing may be left unset. */
struct pool_key {
	u32 allocator;
	u32 process;
	u32 device_id; /* as the process numbers them; UINT32_MAX is the host */
	u32 memory;    /* CUDA: kind of memory */
};

struct pool {
	u64 now_bytes, peak_bytes, peak_ns, reserved_bytes;
	u64 n_allocations;
	bool has_peak;
};

struct event {
	u64 start_ns;
	u64 address;
	u64 size_bytes;	     /* 0 for a release */
	u64 allocated_bytes; /* framework: in use after it */
	u64 reserved_bytes;
	u32 pool;
	u32 lane;  /* thread, 0 if not known */
	u32 call;  /* string id, 0 if not known */
	u32 place; /* its number among pools and addresses, once it was walked over */
};

/* What is in use now. */
struct live {
	u64 size_bytes;
	u32 holder; /* text number in holders */
	bool is_used;
};

struct holding {
	u32 pool;
	u32 holder;
	u64 held_bytes;
};

struct memory {
	struct lull_reader *reader;
	const struct lull_report_options *options;
	struct lull_intern keys;    /* struct pool_key; its number is the pool's */
	struct lull_vec pools;	    /* struct pool */
	struct lull_vec events;	    /* struct event */
	struct lull_intern places;  /* pool and address */
	struct lull_vec lives;	    /* struct live by number of the place */
	struct lull_intern holders; /* texts */
	struct lull_vec holdings;   /* struct holding */
	struct lull_link link;
	struct lull_nest nest;
	struct lull_ops ops; /* empty if no framework allocated */
};

#define HOST UINT32_MAX

/* ---- collecting ---- */

static u32 pool_of(struct memory *m, const struct pool_key *key)
{
	u32 number = lull_intern_add(&m->keys, key, sizeof(*key));

	if (number >= m->pools.n)
		lull_vec_extend(&m->pools, number + 1 - m->pools.n);
	return number;
}

static bool is_wanted(const struct memory *m, u64 start_ns)
{
	return lull_report_covers(m->options, start_ns, 0);
}

static struct event *push(struct memory *m, u64 start_ns, const struct pool_key *key)
{
	struct event *event = lull_vec_push(&m->events);

	event->start_ns = start_ns;
	event->pool = pool_of(m, key);
	return event;
}

#define ALLOCATED 1 /* cuda_memory.operation */

static void collect_cuda(struct memory *m)
{
	size_t n, n_devices;
	const struct lull_device_row *devices =
		lull_reader_dim(m->reader, LULL_TABLE_device, &n_devices);
	struct lull_cuda_memory_cols cols;
	struct lull_cursor c;

	lull_cursor_init(&c, m->reader, LULL_TABLE_cuda_memory, 0, m->options->to_ns);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			u32 device = cols.device[i];
			struct pool_key key = { CUDA, cols.process[i],
						device ? devices[device - 1].device_id : HOST,
						cols.memory_kind[i] };
			const struct lull_call *call = lull_link_find_key(
				&m->link, lull_link_key(cols.process[i], cols.correlation[i]));
			struct event *event;

			if (cols.start_ns[i] > m->options->to_ns)
				continue;
			event = push(m, cols.start_ns[i], &key);
			event->address = cols.address[i];
			if (cols.operation[i] == ALLOCATED)
				event->size_bytes = cols.size_bytes[i];
			event->lane = call ? call->lane : 0;
			event->call = call ? call->name : 0;
		}
	}
	lull_cursor_release(&c);
}

static void collect_framework(struct memory *m)
{
	size_t n, n_lanes;
	const struct lull_lane_row *lanes = lull_reader_dim(m->reader, LULL_TABLE_lane, &n_lanes);
	struct lull_alloc_cols cols;
	struct lull_cursor c;

	lull_cursor_init(&c, m->reader, LULL_TABLE_alloc, 0, m->options->to_ns);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			u32 lane = cols.lane[i];
			struct pool_key key = { FRAMEWORK, lane ? lanes[lane - 1].process : 0,
						cols.device_kind[i] ? cols.device_id[i] : HOST, 0 };
			struct event *event;

			if (cols.start_ns[i] > m->options->to_ns)
				continue;
			event = push(m, cols.start_ns[i], &key);
			event->address = cols.address[i];
			if (cols.size_bytes[i] > 0)
				event->size_bytes = (u64)cols.size_bytes[i];
			event->allocated_bytes = cols.allocated_bytes[i];
			event->reserved_bytes = cols.reserved_bytes[i];
			event->lane = lane;
		}
	}
	lull_cursor_release(&c);
}

/* ---- walking ---- */

static void find_place(struct memory *m, struct event *event)
{
	u64 place[2] = { event->pool, event->address };

	event->place = lull_intern_add(&m->places, place, sizeof(place));
	if (event->place >= m->lives.n)
		lull_vec_extend(&m->lives, event->place + 1 - m->lives.n);
}

static const char *operator_at(const struct memory *m, const struct event *event)
{
	u32 number = lull_ops_at(&m->ops, event->lane, event->start_ns);
	const struct lull_op_node *nodes = m->ops.nodes.at;

	return lull_reader_string(m->reader, nodes[number - 1].name, NULL);
}

/* Who allocates: the innermost range of the thread, else the call. */
static u32 holder_of(struct memory *m, const struct event *event)
{
	struct lull_span moment = { event->start_ns, event->start_ns };
	u32 range = event->lane ? lull_nest_find(&m->nest, event->lane, moment) : 0, number;
	struct lull_str name = LULL_STR_INIT;

	if (range)
		lull_nvtx_label_name(&name, m->reader, lull_nest_get(&m->nest, range)->label);
	else if (event->lane && lull_ops_at(&m->ops, event->lane, event->start_ns))
		lull_str_puts(&name, operator_at(m, event));
	else if (event->call)
		lull_gpu_call_name(&name, m->reader, event->call);
	number = lull_intern_add(&m->holders, lull_str_text(&name), name.len);
	lull_str_release(&name);
	return number;
}

static bool is_framework(const struct memory *m, u32 pool)
{
	const struct pool_key *key = lull_intern_get(&m->keys, pool);

	return key->allocator == FRAMEWORK;
}

/* Change what is in use. A release of what was never seen changes nothing. */
static void apply(struct memory *m, const struct event *event, bool has_holders)
{
	struct pool *pool = lull_vec_get(&m->pools, event->pool);
	struct live *live = lull_vec_get(&m->lives, event->place);

	if (live->is_used)
		pool->now_bytes -= live->size_bytes;
	live->is_used = event->size_bytes > 0;
	live->size_bytes = event->size_bytes;
	live->holder = has_holders && live->is_used ? holder_of(m, event) : 0;
	if (live->is_used)
		pool->now_bytes += live->size_bytes;
	if (is_framework(m, event->pool))
		pool->now_bytes = event->allocated_bytes;
}

static void find_peaks(struct memory *m)
{
	struct event *event = m->events.at;

	for (size_t i = 0; i < m->events.n; i++, event++) {
		struct pool *pool;

		find_place(m, event);
		apply(m, event, false);
		pool = lull_vec_get(&m->pools, event->pool);
		if (!is_wanted(m, event->start_ns))
			continue;
		pool->n_allocations += event->size_bytes > 0;
		if (!pool->has_peak || pool->now_bytes > pool->peak_bytes) {
			pool->has_peak = true;
			pool->peak_bytes = pool->now_bytes;
			pool->peak_ns = event->start_ns;
			pool->reserved_bytes = event->reserved_bytes;
		}
	}
}

/* What was in use before the recording began, as far as the framework says so. */
static void add_unseen(struct memory *m, u32 pool, size_t first)
{
	static const char text[] = "[before the recording]";
	u64 seen_bytes = 0, now_bytes = ((struct pool *)lull_vec_get(&m->pools, pool))->now_bytes;
	struct holding *holding;

	for (size_t i = first; i < m->holdings.n; i++)
		seen_bytes += ((struct holding *)lull_vec_get(&m->holdings, i))->held_bytes;
	if (seen_bytes >= now_bytes)
		return;
	holding = lull_vec_push(&m->holdings);
	holding->pool = pool;
	holding->holder = lull_intern_add(&m->holders, text, strlen(text));
	holding->held_bytes = now_bytes - seen_bytes;
}

/* What everybody holds of a pool now. */
static void add_holdings(struct memory *m, u32 pool)
{
	size_t first = m->holdings.n;
	struct lull_map by_holder;

	lull_map_init(&by_holder);
	for (size_t i = 0; i < m->lives.n; i++) {
		const struct live *live = lull_vec_get(&m->lives, i);
		const u64 *place = lull_intern_get(&m->places, (u32)i);
		bool is_new;
		u32 *ix;

		if (!live->is_used || place[0] != pool)
			continue;
		ix = lull_map_add(&by_holder, live->holder, &is_new);
		if (is_new) {
			struct holding *holding = lull_vec_push(&m->holdings);

			*ix = (u32)(m->holdings.n - 1 - first);
			holding->pool = pool;
			holding->holder = live->holder;
		}
		((struct holding *)lull_vec_get(&m->holdings, first + *ix))->held_bytes +=
			live->size_bytes;
	}
	lull_map_release(&by_holder);
	add_unseen(m, pool, first);
}

static void find_holders(struct memory *m)
{
	const struct event *event = m->events.at;
	struct pool *pools = m->pools.at;

	if (m->lives.n)
		memset(m->lives.at, 0, m->lives.n * sizeof(struct live));
	for (size_t i = 0; i < m->pools.n; i++)
		pools[i].now_bytes = 0;
	for (size_t i = 0; i < m->events.n; i++, event++) {
		struct pool *pool = &pools[event->pool];

		apply(m, event, true);
		if (pool->has_peak && event->start_ns == pool->peak_ns &&
		    pool->now_bytes == pool->peak_bytes) {
			add_holdings(m, event->pool);
			pool->has_peak = false;
		}
	}
}

/* ---- rows ---- */

static int by_size(const void *a, const void *b, void *ctx)
{
	const struct holding *x = a, *y = b;
	const struct memory *m = ctx;
	const struct pool *x_pool = lull_vec_get(&m->pools, x->pool);
	const struct pool *y_pool = lull_vec_get(&m->pools, y->pool);

	if (x_pool->peak_bytes != y_pool->peak_bytes)
		return x_pool->peak_bytes < y_pool->peak_bytes ? 1 : -1;
	if (x->pool != y->pool)
		return x->pool < y->pool ? -1 : 1;
	return (x->held_bytes < y->held_bytes) - (x->held_bytes > y->held_bytes);
}

/* The device of a process by its number there, 0 if it is not known. */
static u32 device_of(struct lull_reader *r, const struct pool_key *key)
{
	size_t n;
	const struct lull_device_row *devices = lull_reader_dim(r, LULL_TABLE_device, &n);

	for (u32 id = 1; id <= n; id++) {
		if (devices[id - 1].device_id == key->device_id &&
		    devices[id - 1].process == key->process)
			return id;
	}
	return 0;
}

static void put_pool(struct lull_out *out, struct lull_reader *r, const struct pool_key *key,
		     const struct pool *pool)
{
	size_t n;
	const struct lull_process_row *processes = lull_reader_dim(r, LULL_TABLE_process, &n);
	struct lull_str device = LULL_STR_INIT;

	lull_out_i64(out, (i64)pool->peak_bytes);
	lull_out_i64(out, (i64)pool->peak_ns);
	lull_out_i64(out, (i64)pool->now_bytes);
	if (key->allocator == FRAMEWORK)
		lull_out_i64(out, (i64)pool->reserved_bytes);
	else
		lull_out_skip(out);
	lull_out_i64(out, (i64)pool->n_allocations);
	lull_out_text(out, key->allocator == FRAMEWORK ? "framework" : "CUDA");
	lull_out_text(out, key->allocator == CUDA   ? lull_names_memory((u8)key->memory)
			   : key->device_id == HOST ? "Host"
						    : "Device");
	lull_out_i64(out, key->process ? processes[key->process - 1].pid : 0);
	lull_gpu_device_name(&device, r, key->device_id == HOST ? 0 : device_of(r, key));
	lull_out_text(out, device.len ? lull_str_text(&device) : NULL);
	lull_str_release(&device);
}

static void put_rows(struct lull_out *out, struct memory *m)
{
	const struct holding *holding = m->holdings.at;

	if (m->holdings.n)
		lull_sort_r(m->holdings.at, m->holdings.n, sizeof(*holding), by_size, m);
	for (size_t i = 0; i < m->holdings.n; i++, holding++) {
		const struct pool *pool = lull_vec_get(&m->pools, holding->pool);
		const char *holder = lull_intern_get(&m->holders, holding->holder);

		lull_out_row(out);
		put_pool(out, m->reader, lull_intern_get(&m->keys, holding->pool), pool);
		lull_out_i64(out, (i64)holding->held_bytes);
		lull_out_f64(out, 100 * (f64)holding->held_bytes / (f64)pool->peak_bytes);
		lull_out_text(out, *holder ? holder : NULL);
	}
}

static void init(struct memory *m)
{
	lull_intern_init(&m->keys);
	lull_vec_init(&m->pools, sizeof(struct pool));
	lull_vec_init(&m->events, sizeof(struct event));
	lull_intern_init(&m->places);
	lull_vec_init(&m->lives, sizeof(struct live));
	lull_intern_init(&m->holders);
	lull_intern_add(&m->holders, "", 0);
	lull_vec_init(&m->holdings, sizeof(struct holding));
	lull_link_init(&m->link, m->reader);
	lull_nest_init(&m->nest, m->reader, LULL_SPAN_ALL, LULL_NEST_ONE_THREAD);
	lull_vec_init(&m->ops.nodes, sizeof(struct lull_op_node));
	if (lull_reader_stats(m->reader, LULL_TABLE_alloc).n_rows)
		lull_ops_init(&m->ops, m->reader, LULL_SPAN_ALL, LULL_OPS_BARE);
}

static void release(struct memory *m)
{
	lull_intern_release(&m->keys);
	lull_vec_release(&m->pools);
	lull_vec_release(&m->events);
	lull_intern_release(&m->places);
	lull_vec_release(&m->lives);
	lull_intern_release(&m->holders);
	lull_vec_release(&m->holdings);
	lull_link_release(&m->link);
	lull_nest_release(&m->nest);
	lull_ops_release(&m->ops);
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	struct memory m = { .reader = r, .options = options };

	(void)err;
	init(&m);
	collect_cuda(&m);
	collect_framework(&m);
	/* Events of the same moment stay in the order in which they were met. */
	lull_runsort(m.events.at, m.events.n, sizeof(struct event));
	find_peaks(&m);
	find_holders(&m);
	put_rows(out, &m);
	release(&m);
	return LULL_OK;
}

const struct lull_report lull_report_memory = {
	.name = "memory",
	.display = "Memory Peaks",
	.summary = "peak memory in use, when, and what allocated it",
	.help = "For each process, device and kind of memory: the peak of the memory in use, "
		"when it was reached, and what had allocated it, one row for each place; largest "
		"peak first. Memory allocated before the recording started is not counted, "
		"except that of frameworks, which report how much they have in use.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs_any = LULL_NEED(cuda_memory) | LULL_NEED(alloc),
	.empty = "nothing was in use",
	.run = run,
};
