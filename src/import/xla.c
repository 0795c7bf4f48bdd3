#include "import/xla.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"

/* Kinds of lull_mapper_thing() besides those of mapper.c and chrome.c. */
enum { THING_LAUNCH = 48, THING_FRAME };

enum { API_DRIVER = 1, FRAME_PYTHON = 2 };

struct xla {
	struct lull_map devices; /* process to its device + 1 */
	struct lull_map streams; /* process and thread to the stream + 1 */
	u64 step;		 /* hash of the name of steps, 0 if none was met */
};

static u64 thread_key(const struct lull_jevent *e)
{
	return lull_hash_mix((u64)e->pid.number ^ 0xe7037ed1a0b428dbULL, (u64)e->tid.number + 1);
}

/* The number behind this word, or -1. */
static i64 number_after(const struct lull_jtext *text, const char *word)
{
	const char *at = memmem(text->at, text->len, word, strlen(word));
	struct lull_jtext rest;
	i64 value;

	if (!at)
		return -1;
	at += strlen(word);
	rest = (struct lull_jtext){ at, (size_t)(text->at + text->len - at), false };
	return lull_jtext_i64(&rest, &value) && value >= 0 && value < UINT32_MAX ? value : -1;
}

static bool has_prefix(const struct lull_jtext *text, const char *prefix)
{
	return text->len >= strlen(prefix) && !memcmp(text->at, prefix, strlen(prefix));
}

/* ---- names ---- */

static bool take_name(struct lull_chrome *c, const struct lull_jevent *e)
{
	struct lull_jtext name = lull_jevent_text(e, LULL_ARG_meta_name);
	struct xla *x = c->ctx;
	i64 number;

	if (e->pid.text.at || e->tid.text.at)
		return false;
	if (lull_jtext_is(&e->name, "process_name") && has_prefix(&name, "/device:GPU:")) {
		number = number_after(&name, "/device:GPU:");
		*lull_map_add(&x->devices, (u64)e->pid.number, NULL) =
			number < 0 ? 1 : (u32)number + 1;
		return true;
	}
	if (!lull_map_find(&x->devices, (u64)e->pid.number))
		return false;
	number = number_after(&name, "Stream #");
	if (lull_jtext_is(&e->name, "thread_name") && number >= 0)
		*lull_map_add(&x->streams, thread_key(e), NULL) = (u32)number + 1;
	return true;
}

/* ---- work ---- */

/* Up to three numbers after the word: "grid:80,1,1". */
static void take_three(const struct lull_jtext *text, const char *word, u32 *x, u32 *y, u32 *z)
{
	const char *at = memmem(text->at, text->len, word, strlen(word));
	const char *end = text->at + text->len;
	u32 *const to[] = { x, y, z };

	if (!at)
		return;
	at += strlen(word);
	for (int i = 0; i < 3; i++) {
		struct lull_jtext rest = { at, (size_t)(end - at), false };
		i64 value;

		if (!lull_jtext_i64(&rest, &value))
			return;
		*to[i] = (u32)value;
		while (at < end && *at >= '0' && *at <= '9')
			at++;
		if (at == end || *at != ',')
			return;
		at++;
	}
}

static u32 count_after(const struct lull_jtext *text, const char *word)
{
	i64 value = number_after(text, word);

	return value < 0 ? 0 : (u32)value;
}

static u32 launch_of(struct lull_chrome *c, const struct lull_jevent *e)
{
	struct lull_jtext details = lull_jevent_text(e, LULL_ARG_xla_kernel);
	u32 *id = lull_mapper_thing(
		&c->map, THING_LAUNCH,
		lull_hash_mix(lull_mapper_hash(&e->name), lull_mapper_hash(&details)));

	if (!*id) {
		struct lull_launch_row row = {
			.name = lull_mapper_text(&c->map, &e->name),
			.registers = count_after(&details, "regs:"),
			.static_shared_bytes = count_after(&details, "static_shared:"),
			.dynamic_shared_bytes = count_after(&details, "dynamic_shared:"),
		};

		take_three(&details, "grid:", &row.grid_x, &row.grid_y, &row.grid_z);
		take_three(&details, "block:", &row.block_x, &row.block_y, &row.block_z);
		*id = lull_writer_add_dim(c->map.writer, LULL_TABLE_launch, &row);
	}
	return *id;
}

/* Numbers of kinds of copies and of memory are CUPTI's, see memcpy in schema.def. */
static u8 copy_kind(const struct lull_jtext *name)
{
	static const struct {
		const char *name;
		u8 kind;
	} kinds[] = {
		{ "MemcpyH2D", 1 }, { "MemcpyD2H", 2 }, { "MemcpyD2D", 8 }, { "MemcpyP2P", 10 }
	};

	for (size_t i = 0; i < LULL_COUNT_OF(kinds); i++)
		if (has_prefix(name, kinds[i].name))
			return kinds[i].kind;
	return 0;
}

static u8 memory_kind(const struct lull_jtext *details, const char *word)
{
	static const char *const names[] = { "pageable", "pinned", "device", "array", "managed" };
	const char *at = memmem(details->at, details->len, word, strlen(word));
	struct lull_jtext rest;

	if (!at)
		return 0;
	at += strlen(word);
	rest = (struct lull_jtext){ at, (size_t)(details->at + details->len - at), false };
	for (size_t i = 0; i < LULL_COUNT_OF(names); i++)
		if (has_prefix(&rest, names[i]))
			return (u8)(i + 1);
	return 0;
}

static void add_copy(struct lull_chrome *c, const struct lull_jevent *e, u32 lane, u64 start_ns,
		     u64 dur_ns)
{
	struct lull_jtext details = lull_jevent_text(e, LULL_ARG_xla_copy);
	i64 size_bytes = number_after(&details, "size:");
	struct lull_memcpy_row row = {
		.start_ns = start_ns,
		.dur_ns = dur_ns,
		.lane = lane,
		.size_bytes = size_bytes > 0 ? (u64)size_bytes : 0,
		.correlation = (u32)lull_jevent_int(e, LULL_ARG_xla_correlation, 0),
		.copy_kind = copy_kind(&e->name),
		.src_kind = memory_kind(&details, "kind_src:"),
		.dst_kind = memory_kind(&details, "kind_dst:"),
		.process = c->map.main_process,
	};

	lull_writer_add(c->map.writer, LULL_TABLE_memcpy, &row);
}

static void add_memset(struct lull_chrome *c, const struct lull_jevent *e, u32 lane, u64 start_ns,
		       u64 dur_ns)
{
	struct lull_memset_row row = {
		.start_ns = start_ns,
		.dur_ns = dur_ns,
		.lane = lane,
		.correlation = (u32)lull_jevent_int(e, LULL_ARG_xla_correlation, 0),
		.process = c->map.main_process,
	};

	lull_writer_add(c->map.writer, LULL_TABLE_memset, &row);
}

static void add_kernel(struct lull_chrome *c, const struct lull_jevent *e, u32 lane, u64 start_ns,
		       u64 dur_ns)
{
	struct lull_kernel_row row = {
		.start_ns = start_ns,
		.dur_ns = dur_ns,
		.lane = lane,
		.launch = launch_of(c, e),
		.correlation = (u32)lull_jevent_int(e, LULL_ARG_xla_correlation, 0),
		.process = c->map.main_process,
	};

	lull_writer_add(c->map.writer, LULL_TABLE_kernel, &row);
}

static void take_work(struct lull_chrome *c, const struct lull_jevent *e, u32 device, u32 stream)
{
	u64 start_ns, dur_ns;
	u32 lane;

	if (!lull_chrome_span(c, e, &start_ns, &dur_ns))
		return;
	lane = lull_mapper_stream(&c->map, device, 1, stream);
	lull_mapper_saw(&c->map, lane, start_ns);
	if (has_prefix(&e->name, "Memcpy"))
		add_copy(c, e, lane, start_ns, dur_ns);
	else if (has_prefix(&e->name, "Memset"))
		add_memset(c, e, lane, start_ns, dur_ns);
	else
		add_kernel(c, e, lane, start_ns, dur_ns);
}

/* ---- the host ---- */

/* "cuLaunchKernel", "hipMemcpyAsync" */
static bool is_call(const struct lull_jevent *e)
{
	size_t len = has_prefix(&e->name, "hip") ? 3 : has_prefix(&e->name, "cu") ? 2 : 0;

	return len && lull_jevent_has(e, LULL_ARG_xla_correlation) && e->name.len > len &&
	       e->name.at[len] >= 'A' && e->name.at[len] <= 'Z';
}

static void add_call(struct lull_chrome *c, const struct lull_jevent *e)
{
	struct lull_cuda_call_row row = { .api = API_DRIVER };

	if (!lull_chrome_span(c, e, &row.start_ns, &row.dur_ns))
		return;
	row.lane = lull_mapper_thread(&c->map, &e->pid, &e->tid);
	row.name = lull_mapper_text(&c->map, &e->name);
	row.correlation = (u32)lull_jevent_int(e, LULL_ARG_xla_correlation, 0);
	lull_mapper_saw(&c->map, row.lane, row.start_ns);
	lull_writer_add(c->map.writer, LULL_TABLE_cuda_call, &row);
}

/* "$train.py:41 step" */
static bool add_python(struct lull_chrome *c, const struct lull_jevent *e)
{
	const char *end = e->name.at + e->name.len, *space = memchr(e->name.at, ' ', e->name.len);
	const char *colon = space ? memrchr(e->name.at, ':', (size_t)(space - e->name.at)) : NULL;
	struct lull_jtext line, part;
	struct lull_pycall_row row = { 0 };
	u32 *frame;
	i64 number;

	if (*e->name.at != '$' || !colon)
		return false;
	line = (struct lull_jtext){ colon + 1, (size_t)(space - colon - 1), false };
	if (!lull_jtext_i64(&line, &number))
		return false;
	if (!lull_chrome_span(c, e, &row.start_ns, &row.dur_ns))
		return true;
	row.lane = lull_mapper_thread(&c->map, &e->pid, &e->tid);
	frame = lull_mapper_thing(&c->map, THING_FRAME, lull_mapper_hash(&e->name));
	if (!*frame) {
		struct lull_frame_row place = { .kind = FRAME_PYTHON, .line = (u32)number };

		part = (struct lull_jtext){ e->name.at + 1, (size_t)(colon - e->name.at - 1),
					    e->name.has_escapes };
		place.file = lull_mapper_text(&c->map, &part);
		part = (struct lull_jtext){ space + 1, (size_t)(end - space - 1),
					    e->name.has_escapes };
		place.function = lull_mapper_text(&c->map, &part);
		*frame = lull_writer_add_dim(c->map.writer, LULL_TABLE_frame, &place);
	}
	row.frame = *frame;
	lull_mapper_nest(&c->map, LULL_NESTING_PYCALL, &row);
	return true;
}

/* The first annotation that numbers steps is that of the loop; others stay ranges. */
static bool add_step(struct lull_chrome *c, const struct lull_jevent *e)
{
	struct lull_step_row row = { 0 };
	i64 number = lull_jevent_int(e, LULL_ARG_xla_step, -1);
	struct xla *x = c->ctx;
	u64 name = lull_mapper_hash(&e->name);

	if (number < 0 || (x->step && x->step != name))
		return false;
	x->step = name;
	if (!lull_chrome_span(c, e, &row.start_ns, &row.dur_ns))
		return true;
	row.lane = lull_mapper_thread(&c->map, &e->pid, &e->tid);
	row.number = (u64)number;
	lull_mapper_saw(&c->map, row.lane, row.start_ns);
	lull_writer_add(c->map.writer, LULL_TABLE_step, &row);
	return true;
}

/* ---- the dialect ---- */

static bool take_event(struct lull_chrome *c, const struct lull_jevent *e)
{
	struct xla *x = c->ctx;
	const u32 *device, *stream;

	if (e->ph == 'M')
		return take_name(c, e);
	/* Other programs' traces have no such processes, and go their own way. */
	if (!x->devices.n || e->ph != 'X' || e->pid.text.at || e->tid.text.at || !e->name.len)
		return false;
	device = lull_map_find(&x->devices, (u64)e->pid.number);
	if (device) {
		stream = lull_map_find(&x->streams, thread_key(e));
		if (stream)
			take_work(c, e, *device - 1, *stream - 1);
		return true;
	}
	if (is_call(e)) {
		add_call(c, e);
		return true;
	}
	return add_python(c, e) || add_step(c, e);
}

static void begin(struct lull_chrome *c)
{
	struct xla *x = lull_alloc(1, sizeof(*x));

	lull_map_init(&x->devices);
	lull_map_init(&x->streams);
	c->ctx = x;
}

static void end(struct lull_chrome *c)
{
	struct xla *x = c->ctx;

	lull_map_release(&x->devices);
	lull_map_release(&x->streams);
	free(x);
}

const struct lull_chrome_dialect lull_xla_dialect = {
	.begin = begin,
	.event = take_event,
	.end = end,
};
