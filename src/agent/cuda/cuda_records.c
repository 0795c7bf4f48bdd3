/*
 * cuda_records - CUPTI's activity records into events, on the thread that hands us the buffer.
 */
#include <dlfcn.h>

#include "agent/cuda/cuda.h"
#include "agent/cuda/cupti.h"

/* The hash of a text, defined in the thread's stream; 0 if there was no room. */
static u64 name_of(struct lull_thread *t, const char *text)
{
	return text ? lull_name(t, text, strlen(text)) : 0;
}

/*
 * Names that were hashed in the buffer at hand, by their address. All records of a buffer are alive
 * at once, so that within it an address stands for one name; names of templates are long.
 */
#define N_NAMES 64u
struct names {
	struct {
		const char *text;
		u64 hash;
	} seen[N_NAMES];
};

static u64 hash_of(struct names *names, const char *text)
{
	u32 ix = (u32)((u64)text >> 4) % N_NAMES;

	if (!text)
		return 0;
	if (names->seen[ix].text != text) {
		names->seen[ix].text = text;
		names->seen[ix].hash = lull_hash(text, strlen(text));
	}
	return names->seen[ix].hash;
}

static u64 define_launch(struct lull_thread *t, const struct lull_wire_shape *shape,
			 const char *name)
{
	u64 hash = lull_hash(shape, sizeof(*shape));
	struct lull_wire_launch *e;

	if (lull_is_defined(t, hash))
		return hash;
	name_of(t, name);
	e = lull_reserve(t, LULL_EVENT_launch, sizeof(*e));
	if (!e)
		return 0;
	e->hash = hash;
	e->shape = *shape;
	lull_commit(t, sizeof(*e));
	lull_remember(t, hash);
	return hash;
}

u64 lull_cuda_launch(struct lull_thread *t, struct lull_wire_shape *shape, const char *name)
{
	shape->name = name ? lull_hash(name, strlen(name)) : 0;
	return define_launch(t, shape, name);
}

static u64 launch_of(struct lull_thread *t, const void *r, struct names *names)
{
	struct lull_wire_shape shape = {
		.grid = { lull_cupti_kernel_grid_x(r), lull_cupti_kernel_grid_y(r),
			  lull_cupti_kernel_grid_z(r) },
		.block = { lull_cupti_kernel_block_x(r), lull_cupti_kernel_block_y(r),
			   lull_cupti_kernel_block_z(r) },
		.cluster = { lull_cupti_kernel_cluster_x(r), lull_cupti_kernel_cluster_y(r),
			     lull_cupti_kernel_cluster_z(r) },
		.registers = lull_cupti_kernel_registers(r),
		.static_shared_bytes = lull_cupti_kernel_static_shared(r),
		.dynamic_shared_bytes = lull_cupti_kernel_dynamic_shared(r),
		.shared_executed_bytes = lull_cupti_kernel_shared_executed(r),
		.local_bytes = lull_cupti_kernel_local_bytes(r),
	};
	const char *name = lull_cupti_kernel_name(r);

	shape.name = hash_of(names, name);
	return define_launch(t, &shape, name);
}

#define PLACE(kind, r)                                            \
	(struct lull_wire_place)                                  \
	{                                                         \
		.device = lull_cupti_##kind##_device(r),          \
		.context = lull_cupti_##kind##_context(r),        \
		.stream = lull_cupti_##kind##_stream(r),          \
		.correlation = lull_cupti_##kind##_correlation(r) \
	}

/*
 * Whether the call of this number came before or after the end of the last recording; not known of
 * 0, and without calls.
 */
enum side { NO_SIDE, BEFORE_END, AFTER_END };

static enum side side_of(u32 correlation)
{
	u32 last = correlation ? lull_cuda_last_call() : 0;

	return !last ? NO_SIDE : (i32)(correlation - last) <= 0 ? BEFORE_END : AFTER_END;
}

/*
 * Windows (--duty) stand for the time between them: in each is the work that began in it, of
 * whatever call.
 */
static bool is_by_time(void)
{
	return atomic_load_explicit(&lull_agent.control->watch, memory_order_relaxed) &
	       LULL_WATCH_DUTY;
}

/*
 * Whether work of this call that began then belongs to the recording that is on, or to the one that
 * just ended. What waited in its stream at the end does, as its call does. `start` 0: not known, or
 * unfinished.
 */
static bool is_of_recording(u64 start, u32 correlation)
{
	struct lull_control *c = lull_agent.control;

	if (start && start < atomic_load_explicit(&c->start_counter, memory_order_relaxed))
		return false;
	if (lull_has_recording())
		return true;
	if (!start)
		return side_of(correlation) != AFTER_END;
	return start <= atomic_load_explicit(&c->stop_counter, memory_order_relaxed) ||
	       (!is_by_time() && side_of(correlation) == BEFORE_END);
}

/* What is not finished comes, too. */
static _Atomic u32 is_forced;

void lull_cuda_flush_forced(void)
{
	atomic_store(&is_forced, 1);
	lull_cupti.cuptiActivityFlushAll(LULL_CUPTI_FLUSH_FORCED);
	atomic_store(&is_forced, 0);
}

/*
 * An event of the device: NULL if it has no times (its buffer was full, or it is unfinished) or
 * there is no room.
 */
static void *reserve_work(struct lull_thread *t, u16 type, u32 size_bytes, u64 start, u64 end,
			  u32 correlation)
{
	if (!is_of_recording(start, correlation))
		return NULL;
	if (!start || end < start) {
		lull_issue(atomic_load(&is_forced) ? LULL_ISSUE_device_unfinished
						   : LULL_ISSUE_no_device_time,
			   1);
		return NULL;
	}
	return lull_reserve_at(t, type, size_bytes, start);
}

/* An event that is no work of a call. */
static void *reserve(struct lull_thread *t, u16 type, u32 size_bytes, u64 start, u64 end)
{
	return reserve_work(t, type, size_bytes, start, end, 0);
}

static void on_kernel(struct lull_thread *t, const void *r, struct names *names)
{
	u64 start = lull_cupti_kernel_start(r), end = lull_cupti_kernel_end(r);
	u32 correlation = lull_cupti_kernel_correlation(r);
	struct lull_wire_kernel *e;
	u64 launch;

	/* Nobody would see its definition, and it would count as defined. */
	if (!is_of_recording(start, correlation))
		return;
	launch = launch_of(t, r, names);
	e = reserve_work(t, LULL_EVENT_kernel, sizeof(*e), start, end, correlation);
	if (!e)
		return;
	e->dur_ticks = end - start;
	e->launch = launch;
	e->place = PLACE(kernel, r);
	e->graph_node = lull_cupti_kernel_graph_node(r);
	e->graph = lull_cupti_kernel_graph(r);
	if (__builtin_expect(e->graph != 0, 0))
		lull_cuda_graph_seen();
	lull_commit(t, sizeof(*e));
}

static void on_memcpy(struct lull_thread *t, const void *r)
{
	u64 start = lull_cupti_memcpy_start(r), end = lull_cupti_memcpy_end(r);
	struct lull_wire_memcpy *e = reserve_work(t, LULL_EVENT_memcpy, sizeof(*e), start, end,
						  lull_cupti_memcpy_correlation(r));

	if (!e)
		return;
	e->head.a = (u32)lull_cupti_memcpy_copy_kind(r) | (u32)lull_cupti_memcpy_src_kind(r) << 8 |
		    (u32)lull_cupti_memcpy_dst_kind(r) << 16 |
		    (u32)lull_cupti_memcpy_flags(r) << 24;
	e->dur_ticks = end - start;
	e->size_bytes = lull_cupti_memcpy_size_bytes(r);
	e->place = PLACE(memcpy, r);
	e->graph_node = lull_cupti_memcpy_graph_node(r);
	e->graph = lull_cupti_memcpy_graph(r);
	e->src_device = e->dst_device = lull_cupti_memcpy_device(r);
	e->pad = 0;
	lull_commit(t, sizeof(*e));
}

static void on_memcpy2(struct lull_thread *t, const void *r)
{
	u64 start = lull_cupti_memcpy2_start(r), end = lull_cupti_memcpy2_end(r);
	struct lull_wire_memcpy *e = reserve_work(t, LULL_EVENT_memcpy, sizeof(*e), start, end,
						  lull_cupti_memcpy2_correlation(r));

	if (!e)
		return;
	e->head.a =
		(u32)lull_cupti_memcpy2_copy_kind(r) | (u32)lull_cupti_memcpy2_src_kind(r) << 8 |
		(u32)lull_cupti_memcpy2_dst_kind(r) << 16 | (u32)lull_cupti_memcpy2_flags(r) << 24;
	e->dur_ticks = end - start;
	e->size_bytes = lull_cupti_memcpy2_size_bytes(r);
	e->place = PLACE(memcpy2, r);
	e->graph_node = lull_cupti_memcpy2_graph_node(r);
	e->graph = lull_cupti_memcpy2_graph(r);
	e->src_device = lull_cupti_memcpy2_src_device(r);
	e->dst_device = lull_cupti_memcpy2_dst_device(r);
	e->pad = 0;
	lull_commit(t, sizeof(*e));
}

static void on_memset(struct lull_thread *t, const void *r)
{
	u64 start = lull_cupti_memset_start(r), end = lull_cupti_memset_end(r);
	struct lull_wire_memset *e = reserve_work(t, LULL_EVENT_memset, sizeof(*e), start, end,
						  lull_cupti_memset_correlation(r));

	if (!e)
		return;
	e->head.a = lull_cupti_memset_value(r);
	e->dur_ticks = end - start;
	e->size_bytes = lull_cupti_memset_size_bytes(r);
	e->place = PLACE(memset, r);
	e->graph_node = lull_cupti_memset_graph_node(r);
	e->graph = lull_cupti_memset_graph(r);
	e->memory_kind = lull_cupti_memset_memory_kind(r);
	lull_commit(t, sizeof(*e));
}

static void on_graph(struct lull_thread *t, const void *r)
{
	u64 start = lull_cupti_graph_start(r), end = lull_cupti_graph_end(r);
	struct lull_wire_graph *e = reserve_work(t, LULL_EVENT_graph, sizeof(*e), start, end,
						 lull_cupti_graph_correlation(r));

	lull_cuda_graph_seen();
	if (!e)
		return;
	e->head.a = lull_cupti_graph_graph(r);
	e->dur_ticks = end - start;
	e->place = PLACE(graph, r);
	lull_commit(t, sizeof(*e));
}

static void on_memory(struct lull_thread *t, const void *r)
{
	u64 start = lull_cupti_memory_start(r);
	struct lull_wire_cuda_memory *e =
		reserve(t, LULL_EVENT_cuda_memory, sizeof(*e), start, start);

	if (!e)
		return;
	e->head.a = lull_cupti_memory_operation(r) | lull_cupti_memory_memory_kind(r) << 8;
	e->place = PLACE(memory, r);
	e->address = lull_cupti_memory_address(r);
	e->size_bytes = lull_cupti_memory_size_bytes(r);
	lull_commit(t, sizeof(*e));
}

/*
 * Details of a full queue are on the heap and ours to free, unless another tool gets the record.
 * Other overheads are not known to have details.
 */
static void free_details(const void *r)
{
	static void (*release)(void *);
	void *details = lull_cupti_overhead_details(r);

	if (lull_cupti_overhead_overhead_kind(r) != LULL_CUPTI_OVERHEAD_QUEUE_FULL || !details ||
	    lull_cuda_share_has(LULL_CUPTI_KIND_OVERHEAD))
		return;
	if (!release)
		*(void **)&release = dlsym(RTLD_DEFAULT, "free");
	if (release)
		release(details);
}

static void on_overhead(struct lull_thread *t, const void *r)
{
	u64 start = lull_cupti_overhead_start(r), end = lull_cupti_overhead_end(r);
	struct lull_wire_overhead *e = reserve(t, LULL_EVENT_overhead, sizeof(*e), start, end);

	if (!e)
		return;
	e->head.a = lull_cupti_overhead_overhead_kind(r);
	e->dur_ticks = end - start;
	e->tid = 0;
	lull_commit(t, sizeof(*e));
}

static void on_device(struct lull_thread *t, const void *r)
{
	const char *name = lull_cupti_device_name(r);
	u32 len = name ? (u32)strnlen(name, 256) : 0;
	u32 size_bytes = (u32)sizeof(struct lull_wire_device) + lull_round8(len);
	struct lull_wire_device *e = lull_reserve(t, LULL_EVENT_device, size_bytes);

	if (!e)
		return;
	e->head.a = len;
	e->device = lull_cupti_device_id(r);
	e->capability = lull_cupti_device_major(r) * 10 + lull_cupti_device_minor(r);
	e->n_sms = lull_cupti_device_n_sms(r);
	e->l2_bytes = lull_cupti_device_l2_bytes(r);
	e->memory_bytes = lull_cupti_device_memory_bytes(r);
	e->clock_khz = lull_cupti_device_clock_khz(r);
	e->bandwidth_kbytes = lull_cupti_device_bandwidth_kbytes(r);
	memcpy(e->uuid, (const u8 *)r + 120, sizeof(e->uuid));
	if (len)
		memcpy(e + 1, name, len);
	lull_commit(t, size_bytes);
}

static void on_context(struct lull_thread *t, const void *r)
{
	struct lull_wire_cuda_context *e = lull_reserve(t, LULL_EVENT_cuda_context, sizeof(*e));

	if (!e)
		return;
	e->head.a = lull_cupti_context_id(r);
	e->device = lull_cupti_context_device(r);
	e->null_stream = lull_cupti_context_null_stream(r);
	e->parent = lull_cupti_context_parent(r);
	e->api = lull_cupti_context_api(r);
	e->is_green = lull_cupti_context_is_green(r);
	e->n_sms = lull_cupti_context_n_sms(r);
	e->pad = 0;
	lull_commit(t, sizeof(*e));
}

static void on_stream(struct lull_thread *t, const void *r)
{
	struct lull_wire_cuda_stream *e = lull_reserve(t, LULL_EVENT_cuda_stream, sizeof(*e));

	if (!e)
		return;
	e->head.a = lull_cupti_stream_id(r);
	e->context = lull_cupti_stream_context(r);
	e->priority = (i32)lull_cupti_stream_priority(r);
	e->kind = lull_cupti_stream_flag(r) & 0xffff;
	e->pad = 0;
	lull_commit(t, sizeof(*e));
}

static void on_um(struct lull_thread *t, const void *r)
{
	u64 start = lull_cupti_um_start(r), end = lull_cupti_um_end(r);
	/* Moments, such as faults of a CPU, have no end. */
	struct lull_wire_um_event *e =
		reserve(t, LULL_EVENT_um_event, sizeof(*e), start, end ? end : start);

	if (!e)
		return;
	e->head.a = lull_cupti_um_counter_kind(r);
	e->dur_ticks = end ? end - start : 0;
	e->address = lull_cupti_um_address(r);
	e->value = lull_cupti_um_value(r);
	e->src_device = lull_cupti_um_src(r);
	e->dst_device = lull_cupti_um_dst(r);
	e->cause = lull_cupti_um_flags(r);
	e->pad = 0;
	lull_commit(t, sizeof(*e));
}

/* What the compiler did, as cuda_module.kind has it. */
static u32 jit_kind(u32 operation)
{
	return operation == LULL_CUPTI_JIT_CACHE_LOAD	 ? LULL_MODULE_CACHED
	       : operation == LULL_CUPTI_JIT_CACHE_STORE ? LULL_MODULE_STORED
							 : LULL_MODULE_COMPILED;
}

static void on_jit(struct lull_thread *t, const void *r)
{
	u64 start = lull_cupti_jit_start(r), end = lull_cupti_jit_end(r);
	u64 path = name_of(t, lull_cupti_jit_path(r));
	struct lull_wire_cuda_module *e =
		reserve(t, LULL_EVENT_cuda_module, sizeof(*e), start, end);

	if (!e)
		return;
	e->head.a = jit_kind(lull_cupti_jit_operation(r));
	e->dur_ticks = end - start;
	e->size_bytes = lull_cupti_jit_size_bytes(r);
	e->path = path;
	e->module_id = e->context = 0;
	e->correlation = lull_cupti_jit_correlation(r);
	e->tid = lull_cupti_jit_tid(r);
	lull_commit(t, sizeof(*e));
}

/* One function per kind of record, but for kernels. */
static void (*const handlers[])(struct lull_thread *t, const void *record) = {
	[LULL_CUPTI_KIND_MEMCPY] = on_memcpy, [LULL_CUPTI_KIND_MEMCPY2] = on_memcpy2,
	[LULL_CUPTI_KIND_MEMSET] = on_memset, [LULL_CUPTI_KIND_GRAPH] = on_graph,
	[LULL_CUPTI_KIND_MEMORY] = on_memory, [LULL_CUPTI_KIND_OVERHEAD] = on_overhead,
	[LULL_CUPTI_KIND_DEVICE] = on_device, [LULL_CUPTI_KIND_CONTEXT] = on_context,
	[LULL_CUPTI_KIND_STREAM] = on_stream, [LULL_CUPTI_KIND_UM] = on_um,
	[LULL_CUPTI_KIND_JIT] = on_jit,
};

static u32 kind_of(const void *r)
{
	/* Acquire: of work that is marked as finished in a buffer that CUPTI has all is there. */
	return __atomic_load_n((const u32 *)r, __ATOMIC_ACQUIRE);
}

static void on_record(struct lull_thread *t, const void *record, struct names *names)
{
	u32 kind = kind_of(record);

	if (kind == LULL_CUPTI_KIND_KERNEL)
		on_kernel(t, record, names);
	else if (kind < LULL_COUNT_OF(handlers) && handlers[kind])
		handlers[kind](t, record);
}

/*
 * In a buffer that CUPTI still has: whether its work is done. Until then CUPTI sets the highest bit
 * of its kind, and does not step onto it; and there are its times.
 */
static bool is_finished(const void *r)
{
	u32 kind = kind_of(r);

	switch (kind) {
#define TIMED(KIND, kind)            \
	case LULL_CUPTI_KIND_##KIND: \
		return lull_cupti_##kind##_start(r) && lull_cupti_##kind##_end(r);
		TIMED(KERNEL, kernel)
		TIMED(MEMCPY, memcpy)
		TIMED(MEMCPY2, memcpy2)
		TIMED(MEMSET, memset)
		TIMED(GRAPH, graph)
		TIMED(OVERHEAD, overhead)
		TIMED(JIT, jit)
#undef TIMED
	case LULL_CUPTI_KIND_MEMORY:
		return lull_cupti_memory_start(r);
	case LULL_CUPTI_KIND_UM:
		return lull_cupti_um_start(r);
	default:
		return kind && kind <= INT32_MAX;
	}
}

/* What was taken while CUPTI had the buffer and is to be freed: now no other tool wants it. */
static void free_taken(u8 *buffer, size_t valid_bytes, const void *last)
{
	void *record = NULL;

	while (last && record != last &&
	       lull_cupti.cuptiActivityGetNextRecord(buffer, valid_bytes, &record) == 0)
		if (kind_of(record) == LULL_CUPTI_KIND_OVERHEAD)
			free_details(record);
}

void lull_cuda_walk(u8 *buffer, size_t valid_bytes, void **last_record, bool is_held)
{
	struct lull_thread *t = lull_thread();
	struct names names = { 0 };
	void *record = *last_record;
	u32 last;

	if (!is_held)
		free_taken(buffer, valid_bytes, record);
	while (t && lull_cupti.cuptiActivityGetNextRecord(buffer, valid_bytes, &record) == 0) {
		if (is_held && !is_finished(record))
			return;
		/*
		 * Between recordings, too: devices are described, and records arrive late. What was
		 * defined for an earlier recording has to be defined again for the last one.
		 */
		last = atomic_load_explicit(&lull_agent.control->last_record, memory_order_relaxed);
		if (t->record != last)
			lull_thread_sync(t, last);
		on_record(t, record, &names);
		if (!is_held && kind_of(record) == LULL_CUPTI_KIND_OVERHEAD)
			free_details(record);
		*last_record = record;
	}
}
