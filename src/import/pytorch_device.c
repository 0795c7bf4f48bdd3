#include <string.h>

#include "base/hash.h"
#include "import/pytorch_int.h"
#include "model/names.h"

/* Numbers of copy kinds and memory kinds are CUPTI's, see memcpy in schema.def. */
#define N_COPY_KINDS   11
#define N_MEMORY_KINDS 8

/* The number of the kind whose name is these bytes, 0 if it is none. */
static u8 find_kind(const char *(*name_of)(u32 kind), u8 n, const char *at, size_t len)
{
	for (u8 i = 1; i < n; i++)
		if (strlen(name_of(i)) == len && !memcmp(name_of(i), at, len))
			return i;
	return 0;
}

static u8 memory_kind(const char *from, const char *to)
{
	return find_kind(lull_names_memory, N_MEMORY_KINDS, from, (size_t)(to - from));
}

/* "Memcpy HtoD (Pinned -> Device)": what kind of copy, from what, to what. */
static void take_copy_kinds(const struct lull_jtext *name, struct lull_memcpy_row *row)
{
	static const char prefix[] = "Memcpy ";
	const char *at = name->at, *end = at + name->len, *arrow, *open, *close;

	if (name->len >= sizeof(prefix) + 3 && !memcmp(at, prefix, sizeof(prefix) - 1))
		row->copy_kind = find_kind(lull_names_copy_letters, N_COPY_KINDS,
					   at + sizeof(prefix) - 1, 4);
	open = memchr(at, '(', name->len);
	close = memrchr(at, ')', name->len);
	arrow = memmem(at, name->len, " -> ", 4);
	if (open && arrow && close && open < arrow && arrow + 4 <= close && close < end) {
		row->src_kind = memory_kind(open + 1, arrow);
		row->dst_kind = memory_kind(arrow + 4, close);
	}
}

u32 lull_pytorch_stream(struct lull_chrome *c, const struct lull_jevent *e)
{
	/* Device and stream are also the process and the thread of the event. */
	i64 device = lull_jevent_int(e, LULL_ARG_device, e->pid.number);
	i64 stream = lull_jevent_int(e, LULL_ARG_stream, e->tid.number);

	return lull_mapper_stream(&c->map, (u32)device,
				  (u32)lull_jevent_int(e, LULL_ARG_context, 1), (u32)stream);
}

/* ---- kernels ---- */

/* Up to three whole numbers of "[16, 16, 1]". */
static void take_three(const struct lull_jtext *text, u32 *x, u32 *y, u32 *z)
{
	u32 *const to[] = { x, y, z };
	const char *p = text->at, *end = p + text->len;

	for (int i = 0; i < 3; i++) {
		struct lull_jtext number;
		i64 value;

		while (p < end && (*p < '0' || *p > '9'))
			p++;
		number = (struct lull_jtext){ p, (size_t)(end - p), false };
		while (p < end && *p >= '0' && *p <= '9')
			p++;
		number.len = (size_t)(p - number.at);
		*to[i] = lull_jtext_i64(&number, &value) ? (u32)value : 0;
	}
}

/* HIP's calls for kernels of modules count threads, where others count blocks. */
static void count_blocks(const struct lull_jevent *e, struct lull_pytorch_given *given)
{
	static const char word[] = "ExtModuleLaunchKernel";

	if (!memmem(e->name.at, e->name.len, word, sizeof(word) - 1))
		return;
	for (int i = 0; i < 3; i++)
		if (given->block[i])
			given->grid[i] = (given->grid[i] + given->block[i] - 1) / given->block[i];
}

void lull_pytorch_give(struct lull_chrome *c, const struct lull_jevent *e)
{
	struct lull_pytorch *pt = lull_pytorch(c);
	struct lull_jtext grid = lull_jevent_text(e, LULL_ARG_grid);
	struct lull_jtext block = lull_jevent_text(e, LULL_ARG_block);
	u64 correlation = (u64)lull_jevent_int(e, LULL_ARG_correlation, 0);
	struct lull_pytorch_given *given;

	if (!correlation || (!grid.len && !lull_jevent_has(e, LULL_ARG_size)))
		return;
	given = lull_vec_push(&pt->given);
	given->size_bytes = (u64)lull_jevent_int(e, LULL_ARG_size, 0);
	given->shared_bytes = (u32)lull_jevent_int(e, LULL_ARG_shared_bytes, 0);
	take_three(&grid, &given->grid[0], &given->grid[1], &given->grid[2]);
	take_three(&block, &given->block[0], &given->block[1], &given->block[2]);
	count_blocks(e, given);
	*lull_map_add(&pt->calls, correlation, NULL) = (u32)pt->given.n;
}

/* What the call of this work said; NULL if it said nothing, or stands later in the file. */
static const struct lull_pytorch_given *given_to(const struct lull_chrome *c,
						 const struct lull_jevent *e)
{
	const struct lull_pytorch *pt = lull_pytorch(c);
	const u32 *ix = lull_map_find(&pt->calls, (u64)lull_jevent_int(e, LULL_ARG_correlation, 0));

	return ix ? lull_vec_get(&pt->given, *ix - 1) : NULL;
}

static u64 hash_given(u64 hash, const struct lull_pytorch_given *given)
{
	for (int i = 0; given && i < 3; i++)
		hash = lull_hash_mix(hash, ((u64)given->grid[i] << 32 | given->block[i]) ^
						   0xe7037ed1a0b428dbULL);
	return given ? lull_hash_mix(hash, given->shared_bytes ^ 0xe7037ed1a0b428dbULL) : hash;
}

static void fill_given(struct lull_launch_row *row, const struct lull_pytorch_given *given)
{
	row->grid_x = given->grid[0];
	row->grid_y = given->grid[1];
	row->grid_z = given->grid[2];
	row->block_x = given->block[0];
	row->block_y = given->block[1];
	row->block_z = given->block[2];
	row->dynamic_shared_bytes = given->shared_bytes;
}

static u32 launch_of(struct lull_chrome *c, const struct lull_jevent *e)
{
	struct lull_jtext grid = lull_jevent_text(e, LULL_ARG_grid);
	struct lull_jtext block = lull_jevent_text(e, LULL_ARG_block);
	const struct lull_pytorch_given *given = grid.len ? NULL : given_to(c, e);
	u64 registers = (u64)lull_jevent_int(e, LULL_ARG_registers, 0);
	u64 shared_bytes = (u64)lull_jevent_int(e, LULL_ARG_shared_bytes, 0);
	/* A product with 0 forgets the other factor, so no factor may be 0. */
	u64 hash = lull_hash_mix(lull_mapper_hash(&e->name),
				 (registers << 32 | shared_bytes) ^ 0xe7037ed1a0b428dbULL);
	u32 *id;

	hash = lull_hash_mix(hash, lull_mapper_hash(&grid));
	hash = hash_given(lull_hash_mix(hash, lull_mapper_hash(&block)), given);
	id = lull_mapper_thing(&c->map, LULL_PYTORCH_LAUNCH, hash);
	if (!*id) {
		/* PyTorch adds up both kinds of shared memory. */
		struct lull_launch_row row = {
			.name = lull_mapper_text(&c->map, &e->name),
			.registers = (u32)registers,
			.dynamic_shared_bytes = (u32)shared_bytes,
		};

		take_three(&grid, &row.grid_x, &row.grid_y, &row.grid_z);
		take_three(&block, &row.block_x, &row.block_y, &row.block_z);
		if (given)
			fill_given(&row, given);
		*id = lull_writer_add_dim(c->map.writer, LULL_TABLE_launch, &row);
	}
	return *id;
}

bool lull_pytorch_kernel(struct lull_chrome *c, const struct lull_jevent *e)
{
	struct lull_kernel_row row = { 0 };

	if (!lull_chrome_span(c, e, &row.start_ns, &row.dur_ns))
		return true;
	row.lane = lull_pytorch_stream(c, e);
	row.launch = launch_of(c, e);
	row.correlation = (u32)lull_jevent_int(e, LULL_ARG_correlation, 0);
	row.graph_id = (u32)lull_jevent_int(e, LULL_ARG_graph_id, 0);
	row.graph_node_id = (u64)lull_jevent_int(e, LULL_ARG_graph_node_id, 0);
	row.process = c->map.main_process;
	lull_mapper_saw(&c->map, row.lane, row.start_ns);
	lull_writer_add(c->map.writer, LULL_TABLE_kernel, &row);
	lull_pytorch_collective(c, e, &row);
	return true;
}

/* ---- memory ---- */

static u64 size_of(const struct lull_chrome *c, const struct lull_jevent *e)
{
	const struct lull_pytorch_given *given = given_to(c, e);

	return (u64)lull_jevent_int(e, LULL_ARG_bytes, given ? (i64)given->size_bytes : 0);
}

bool lull_pytorch_memcpy(struct lull_chrome *c, const struct lull_jevent *e)
{
	struct lull_memcpy_row row = { 0 };

	if (!lull_chrome_span(c, e, &row.start_ns, &row.dur_ns))
		return true;
	row.lane = lull_pytorch_stream(c, e);
	row.size_bytes = size_of(c, e);
	row.correlation = (u32)lull_jevent_int(e, LULL_ARG_correlation, 0);
	row.graph_id = (u32)lull_jevent_int(e, LULL_ARG_graph_id, 0);
	row.graph_node_id = (u64)lull_jevent_int(e, LULL_ARG_graph_node_id, 0);
	row.src_device_id = (u32)lull_jevent_int(e, LULL_ARG_src_device, 0);
	row.dst_device_id = (u32)lull_jevent_int(e, LULL_ARG_dst_device, 0);
	row.process = c->map.main_process;
	take_copy_kinds(&e->name, &row);
	lull_mapper_saw(&c->map, row.lane, row.start_ns);
	lull_writer_add(c->map.writer, LULL_TABLE_memcpy, &row);
	return true;
}

bool lull_pytorch_memset(struct lull_chrome *c, const struct lull_jevent *e)
{
	struct lull_memset_row row = { 0 };
	const char *open = memchr(e->name.at, '(', e->name.len);
	const char *close = memrchr(e->name.at, ')', e->name.len);

	if (!lull_chrome_span(c, e, &row.start_ns, &row.dur_ns))
		return true;
	row.lane = lull_pytorch_stream(c, e);
	row.size_bytes = size_of(c, e);
	row.correlation = (u32)lull_jevent_int(e, LULL_ARG_correlation, 0);
	row.graph_id = (u32)lull_jevent_int(e, LULL_ARG_graph_id, 0);
	row.graph_node_id = (u64)lull_jevent_int(e, LULL_ARG_graph_node_id, 0);
	row.process = c->map.main_process;
	if (open && close && open < close)
		row.memory_kind = memory_kind(open + 1, close);
	lull_mapper_saw(&c->map, row.lane, row.start_ns);
	lull_writer_add(c->map.writer, LULL_TABLE_memset, &row);
	return true;
}

/* ---- waits and annotations ---- */

/* The number of this kind of wait, 0 if it is none. */
static u8 sync_kind(const struct lull_jtext *name)
{
	static const struct {
		const char *name;
		u8 number;
	} kinds[] = {
		{ "Event Sync", 1 },	     { "Stream Wait Event", 2 },
		{ "Stream Sync", 3 },	     { "Context Sync", 4 },
		{ "Stream Synchronize", 3 }, { "Context Synchronize", 4 },
		{ "Event Synchronize", 1 },
	};

	for (size_t i = 0; i < LULL_COUNT_OF(kinds); i++)
		if (strlen(kinds[i].name) == name->len &&
		    !memcmp(kinds[i].name, name->at, name->len))
			return kinds[i].number;
	return 0;
}

bool lull_pytorch_sync(struct lull_chrome *c, const struct lull_jevent *e)
{
	struct lull_jtext kind = lull_jevent_text(e, LULL_ARG_sync_kind);
	struct lull_cuda_sync_row row = { 0 };
	i64 stream = lull_jevent_int(e, LULL_ARG_stream, e->tid.number);

	if (!kind.len)
		kind = e->name;
	row.kind = sync_kind(&kind);
	if (!row.kind)
		return false;
	if (!lull_chrome_span(c, e, &row.start_ns, &row.dur_ns))
		return true;
	/* A wait for the whole context names no stream: -1, also as an unsigned number. */
	if (stream < 0 || stream == UINT32_MAX)
		row.lane = lull_mapper_stream(
			&c->map, (u32)lull_jevent_int(e, LULL_ARG_device, e->pid.number),
			(u32)lull_jevent_int(e, LULL_ARG_context, 1), 0);
	else
		row.lane = lull_pytorch_stream(c, e);
	row.correlation = (u32)lull_jevent_int(e, LULL_ARG_correlation, 0);
	row.event_id = (u32)lull_jevent_int(e, LULL_ARG_wait_event, 0);
	row.event_sync_id = (u64)lull_jevent_int(e, LULL_ARG_wait_record, 0);
	row.process = c->map.main_process;
	lull_mapper_saw(&c->map, row.lane, row.start_ns);
	lull_writer_add(c->map.writer, LULL_TABLE_cuda_sync, &row);
	return true;
}

bool lull_pytorch_device_annotation(struct lull_chrome *c, const struct lull_jevent *e)
{
	struct lull_jtext none = { "", 0, false };
	struct lull_range_row row = { 0 };

	if (!lull_chrome_span(c, e, &row.start_ns, &row.dur_ns))
		return true;
	row.lane = lull_pytorch_stream(c, e);
	row.label = lull_mapper_label(&c->map, &e->name, &none, LULL_LABEL_ON_DEVICE);
	lull_mapper_nest(&c->map, LULL_NESTING_RANGE, &row);
	return true;
}
