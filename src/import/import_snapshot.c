/*
 * Memory snapshots of PyTorch: torch.cuda.memory._dump_snapshot("snapshot.pickle").
 *
 * A snapshot has the segments that the allocator holds, with their blocks, and for each device a
 * history, which has the last events only and none at all if nobody asked for it. Both together
 * say what was in use all the time: what lives now and is not in the history was there before it,
 * and so was what the history only releases.
 *
 * The whole file is held in memory, unlike those of other formats.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "import/import.h"
#include "import/pickle.h"

#define READ_BYTES   (1u << 20)
#define MAX_DEVICES  1024
#define MAX_FRAMES   128  /* of a stack; the outermost are left out */
#define FRAME_PYTHON 2	  /* frame.kind */
#define THREAD	     1	  /* lane.kind */
#define HOOK	     6	  /* label.api */
#define HISTORY_NS   1000 /* when the history starts; what was there before it is at 0 */

/* Of one device. */
struct pool {
	u32 lane;
	/* Sums of what may be no sizes at all: they wrap, and what seems negative is 0. */
	u64 allocated_bytes, reserved_bytes; /* at the end; later: now */
	u64 net_allocated, net_reserved;     /* what the history adds */
	u64 last_ns;
};

/* What was in use before the history. */
struct early {
	u32 device, frames;
	u64 address;
	i64 size_bytes;
};

struct snapshot {
	struct lull_pickle pickle;
	struct lull_writer *writer;
	u32 segments, traces; /* values */
	u32 process;
	i64 first_us;		/* of all histories; 0 if they have no times */
	u64 n_left;		/* values that may still be visited */
	struct lull_vec pools;	/* struct pool by device */
	struct lull_vec early;	/* struct early */
	struct lull_map known;	/* device and address that the history has */
	struct lull_map places; /* what tells a frame or a node apart to its row */
	u64 n_unmapped;
};

enum action { ALLOC, FREE, RESERVE, UNRESERVE, OOM, NO_MATTER, UNKNOWN };

static enum action action_of(const struct snapshot *s, u32 event)
{
	static const struct {
		const char *name;
		enum action action;
	} actions[] = {
		{ "alloc", ALLOC },
		{ "free_completed", FREE },
		{ "free", FREE },
		{ "segment_alloc", RESERVE },
		{ "segment_map", RESERVE },
		{ "segment_free", UNRESERVE },
		{ "segment_unmap", UNRESERVE },
		{ "oom", OOM },
		{ "free_requested", NO_MATTER }, /* free_completed follows */
		{ "snapshot", NO_MATTER },
	};
	u32 action = lull_pickle_get(&s->pickle, event, "action");

	for (size_t i = 0; i < LULL_COUNT_OF(actions); i++)
		if (lull_pickle_is(&s->pickle, action, actions[i].name))
			return actions[i].action;
	return UNKNOWN;
}

static i64 number(const struct snapshot *s, u32 dict, const char *key)
{
	return lull_pickle_int(&s->pickle, lull_pickle_get(&s->pickle, dict, key), 0);
}

/* A size in bytes; what is none is 0, so that sums stay small. */
static i64 size_of(const struct snapshot *s, u32 dict, const char *key)
{
	i64 size = number(s, dict, key);

	return size > 0 && size < 1LL << 48 ? size : 0;
}

/* The next item of a list; 0 at its end, or when more was visited than the file can have. */
static u32 next(struct snapshot *s, struct lull_pickle_walk *walk)
{
	if (!s->n_left)
		return 0;
	s->n_left--;
	return lull_pickle_next(&s->pickle, walk);
}

static struct pool *pool_of(struct snapshot *s, i64 device)
{
	if (device < 0 || device >= MAX_DEVICES)
		return NULL;
	if ((size_t)device >= s->pools.n)
		lull_vec_extend(&s->pools, (size_t)device + 1 - s->pools.n);
	return lull_vec_get(&s->pools, (size_t)device);
}

static u64 key_of(u64 a, u64 b)
{
	u64 key[2] = { a, b };

	return lull_hash(key, sizeof(key));
}

/* ---- what the file says ---- */

/* Sum up a history; what it releases without having allocated it was there before. */
static void scan_event(struct snapshot *s, struct pool *pool, u32 device, u32 event)
{
	u64 address = (u64)number(s, event, "addr");
	i64 size = size_of(s, event, "size"), at_us = number(s, event, "time_us");
	enum action action = action_of(s, event);
	bool is_new;

	if (at_us > 0 && (!s->first_us || at_us < s->first_us))
		s->first_us = at_us;
	s->n_unmapped += action == UNKNOWN;
	if (action == RESERVE || action == UNRESERVE)
		pool->net_reserved += (u64)(action == RESERVE ? size : -size);
	if (action != ALLOC && action != FREE)
		return;
	pool->net_allocated += (u64)(action == ALLOC ? size : -size);
	lull_map_add(&s->known, key_of(device, address), &is_new);
	if (is_new && action == FREE)
		*(struct early *)lull_vec_push(&s->early) =
			(struct early){ .device = device, .address = address, .size_bytes = size };
}

static void scan_histories(struct snapshot *s)
{
	struct lull_pickle_walk traces = lull_pickle_walk(&s->pickle, s->traces), events;
	u32 trace, event, device = 0;

	for (; (trace = next(s, &traces)) && device < MAX_DEVICES; device++) {
		events = lull_pickle_walk(&s->pickle, trace);
		while ((event = next(s, &events)))
			scan_event(s, pool_of(s, device), device, event);
	}
}

/* The stack of a block that is in use; before 2.1 it is in its history. */
static u32 frames_of(struct snapshot *s, u32 block)
{
	u32 frames = lull_pickle_get(&s->pickle, block, "frames");
	struct lull_pickle_walk history;

	if (frames)
		return frames;
	history = lull_pickle_walk(&s->pickle, lull_pickle_get(&s->pickle, block, "history"));
	return lull_pickle_get(&s->pickle, next(s, &history), "frames");
}

static void scan_block(struct snapshot *s, u32 device, u32 block, u64 at)
{
	static const char active[] = "active"; /* _allocated, or about to be released */
	u32 address = lull_pickle_get(&s->pickle, block, "address");
	size_t len;
	const char *state =
		lull_pickle_text(&s->pickle, lull_pickle_get(&s->pickle, block, "state"), &len);
	struct early early = {
		.device = device,
		.address = (u64)lull_pickle_int(&s->pickle, address, (i64)at),
		.size_bytes = size_of(s, block, "size"),
	};

	if (len < strlen(active) || memcmp(state, active, strlen(active)) != 0)
		return;
	pool_of(s, device)->allocated_bytes += (u64)early.size_bytes;
	if (lull_map_find(&s->known, key_of(device, early.address)))
		return;
	early.frames = frames_of(s, block);
	*(struct early *)lull_vec_push(&s->early) = early;
}

static void scan_segments(struct snapshot *s)
{
	struct lull_pickle_walk segments = lull_pickle_walk(&s->pickle, s->segments), blocks;
	u32 segment, block;

	while ((segment = next(s, &segments))) {
		i64 device = number(s, segment, "device");
		struct pool *pool = pool_of(s, device);
		u64 at = (u64)number(s, segment, "address");

		if (!pool) {
			s->n_unmapped++;
			continue;
		}
		pool->reserved_bytes += (u64)size_of(s, segment, "total_size");
		blocks = lull_pickle_walk(&s->pickle,
					  lull_pickle_get(&s->pickle, segment, "blocks"));
		while ((block = next(s, &blocks))) {
			scan_block(s, (u32)device, block, at);
			at += (u64)size_of(s, block, "size");
		}
	}
}

/* ---- rows ---- */

static u32 text_id(struct snapshot *s, u32 value)
{
	size_t len;
	const char *text = lull_pickle_text(&s->pickle, value, &len);

	return lull_writer_string(s->writer, text, len);
}

/* The row of a frame; 0 for one that is not Python's, whose names are long and say little. */
static u32 frame_row(struct snapshot *s, u32 frame)
{
	u32 file = lull_pickle_get(&s->pickle, frame, "filename");
	i64 line = number(s, frame, "line");
	size_t len;
	const char *path = lull_pickle_text(&s->pickle, file, &len);
	struct lull_frame_row row = { .kind = FRAME_PYTHON };
	bool is_new;
	u32 *id;

	if (len < 3 || (memcmp(path + len - 3, ".py", 3) != 0 && path[0] != '<'))
		return 0;
	row.function = text_id(s, lull_pickle_get(&s->pickle, frame, "name"));
	row.file = text_id(s, file);
	row.line = line > 0 && line < INT32_MAX ? (u32)line : 0;
	id = lull_map_add(&s->places, key_of((u64)row.file << 32 | row.function, row.line),
			  &is_new);
	if (is_new)
		*id = lull_writer_add_dim(s->writer, LULL_TABLE_frame, &row);
	return *id;
}

/* The innermost node of a stack, whose frames are listed from the inside. */
static u32 stack_row(struct snapshot *s, u32 list)
{
	struct lull_pickle_walk walk = lull_pickle_walk(&s->pickle, list);
	u32 frames[MAX_FRAMES], n = 0, node = 0, frame;

	while (n < MAX_FRAMES && (frame = next(s, &walk))) {
		frames[n] = frame_row(s, frame);
		n += frames[n] != 0;
	}
	while (n-- > 0) {
		struct lull_stack_row row = { .parent = node, .frame = frames[n] };
		bool is_new;
		u32 *id = lull_map_add(&s->places, ~key_of(1ULL << 63 | node, frames[n]), &is_new);

		if (is_new)
			*id = lull_writer_add_dim(s->writer, LULL_TABLE_stack, &row);
		node = *id;
	}
	return node;
}

static u64 not_negative(u64 bytes)
{
	return bytes <= INT64_MAX ? bytes : 0;
}

static void put_row(struct snapshot *s, const struct early *what, u64 at_ns)
{
	struct pool *pool = lull_vec_get(&s->pools, what->device);
	struct lull_alloc_row row = {
		.lane = pool->lane,
		.device_kind = 1,
		.device_id = what->device,
		.address = what->address,
		.size_bytes = what->size_bytes,
	};

	/* In the order of the file, also where the clock stands still. */
	pool->last_ns = at_ns > pool->last_ns ? at_ns : pool->last_ns + 1;
	pool->allocated_bytes += (u64)what->size_bytes;
	row.start_ns = pool->last_ns;
	row.allocated_bytes = not_negative(pool->allocated_bytes);
	row.reserved_bytes = not_negative(pool->reserved_bytes);
	row.stack = stack_row(s, what->frames);
	lull_writer_add(s->writer, LULL_TABLE_alloc, &row);
}

/* Out of memory: a mark. */
static void put_oom(struct snapshot *s, const struct pool *pool, u32 event)
{
	struct lull_str name = LULL_STR_INIT;
	struct lull_label_row label = { .api = HOOK };
	struct lull_mark_row row = { .start_ns = pool->last_ns, .lane = pool->lane };

	lull_str_addf(&name, "out of memory: %lld bytes wanted, %lld free",
		      (long long)size_of(s, event, "size"),
		      (long long)size_of(s, event, "device_free"));
	label.name = lull_writer_string(s->writer, lull_str_text(&name), name.len);
	row.label = lull_writer_add_dim(s->writer, LULL_TABLE_label, &label);
	lull_writer_add(s->writer, LULL_TABLE_mark, &row);
	lull_str_release(&name);
}

static u64 time_of(const struct snapshot *s, const struct pool *pool, u32 event)
{
	i64 at_us = number(s, event, "time_us") - s->first_us;

	if (!s->first_us || at_us < 0 || at_us > 1LL << 50)
		return pool->last_ns +
		       HISTORY_NS; /* before 2.2 events have no time, only an order */
	return HISTORY_NS + (u64)at_us * 1000;
}

static void put_event(struct snapshot *s, u32 device, u32 event)
{
	struct pool *pool = lull_vec_get(&s->pools, device);
	enum action action = action_of(s, event);
	i64 size = size_of(s, event, "size");
	struct early what = {
		.device = device,
		.address = (u64)number(s, event, "addr"),
		.size_bytes = action == ALLOC ? size : -size,
	};

	if (action == ALLOC)
		what.frames = lull_pickle_get(&s->pickle, event, "frames");
	if (action == ALLOC || action == FREE)
		put_row(s, &what, time_of(s, pool, event));
	else if (action == RESERVE || action == UNRESERVE)
		pool->reserved_bytes += (u64)(action == RESERVE ? size : -size);
	else if (action == OOM)
		put_oom(s, pool, event);
}

/* Totals go back to what they were before the history, and before what was in use then. */
static void rewind_pools(struct snapshot *s)
{
	const struct early *early = s->early.at;
	struct pool *pools = s->pools.at;

	for (size_t i = 0; i < s->pools.n; i++) {
		pools[i].allocated_bytes -= pools[i].net_allocated;
		pools[i].reserved_bytes -= pools[i].net_reserved;
	}
	for (size_t i = 0; i < s->early.n; i++)
		pools[early[i].device].allocated_bytes -= (u64)early[i].size_bytes;
}

static void put_devices(struct snapshot *s)
{
	struct lull_process_row process = { .name = lull_writer_string(s->writer, "snapshot", 8) };

	s->process = lull_writer_add_dim(s->writer, LULL_TABLE_process, &process);
	for (u32 i = 0; i < s->pools.n; i++) {
		struct lull_device_row device = { .process = s->process, .device_id = i };
		struct lull_lane_row lane = { .kind = THREAD, .process = s->process, .tid = i };
		struct pool *pool = lull_vec_get(&s->pools, i);

		lane.name = lull_writer_string(s->writer, "allocator", 9);
		lull_writer_add_dim(s->writer, LULL_TABLE_device, &device);
		pool->lane = lull_writer_add_dim(s->writer, LULL_TABLE_lane, &lane);
	}
}

static void put_all(struct snapshot *s)
{
	struct lull_pickle_walk traces = lull_pickle_walk(&s->pickle, s->traces), events;
	const struct early *early = s->early.at;
	u32 trace, event, device = 0;

	put_devices(s);
	rewind_pools(s);
	for (size_t i = 0; i < s->early.n; i++)
		put_row(s, &early[i], 0);
	for (; (trace = next(s, &traces)) && device < MAX_DEVICES; device++) {
		events = lull_pickle_walk(&s->pickle, trace);
		while ((event = next(s, &events)))
			put_event(s, device, event);
	}
}

/* ---- the format ---- */

static int read_all(struct lull_import_job *job, struct lull_vec *bytes, struct lull_err *err)
{
	i64 n = READ_BYTES;

	while (n == READ_BYTES) {
		void *to = lull_vec_extend(bytes, READ_BYTES);

		n = lull_stream_read(job->stream, to, READ_BYTES, err);
		if (n < 0)
			return (int)n;
		bytes->n -= READ_BYTES - (size_t)n;
		if (bytes->n > LULL_PICKLE_MAX_BYTES)
			return lull_fail(err, LULL_E_UNSUPPORTED,
					 "the snapshot is larger than 2 GiB");
	}
	return 0;
}

static int find_parts(struct snapshot *s, struct lull_err *err)
{
	struct lull_pickle_walk walk;

	s->segments = lull_pickle_get(&s->pickle, s->pickle.root, "segments");
	s->traces = lull_pickle_get(&s->pickle, s->pickle.root, "device_traces");
	/* torch.cuda.memory_snapshot() gives the segments alone. */
	walk = lull_pickle_walk(&s->pickle, s->pickle.root);
	if (lull_pickle_get(&s->pickle, lull_pickle_next(&s->pickle, &walk), "total_size"))
		s->segments = s->pickle.root;
	if (s->segments || s->traces)
		return 0;
	return lull_fail(err, LULL_E_FORMAT,
			 "the pickle is no memory snapshot: it has neither segments nor "
			 "device_traces");
}

static int import(struct snapshot *s, struct lull_import_job *job, struct lull_err *err)
{
	struct lull_file_info info = { 0 };

	if (find_parts(s, err))
		return err->code;
	scan_histories(s);
	scan_segments(s);
	info.epoch_utc_ns = s->first_us > 0 && s->first_us < 1LL << 53
				    ? (u64)s->first_us * 1000 - HISTORY_NS
				    : 0;
	if (lull_import_begin(job, &info, err))
		return err->code;
	s->writer = job->writer;
	put_all(s);
	job->result->n_unmapped = s->n_unmapped;
	if (!s->n_left)
		return lull_fail(err, LULL_E_FORMAT,
				 "the lists of the snapshot contain themselves");
	return 0;
}

static int run(struct lull_import_job *job, struct lull_err *err)
{
	struct snapshot s = { 0 };
	struct lull_vec bytes;
	int rc;

	lull_vec_init(&bytes, 1);
	lull_vec_init(&s.pools, sizeof(struct pool));
	lull_vec_init(&s.early, sizeof(struct early));
	lull_map_init(&s.known);
	lull_map_init(&s.places);
	rc = read_all(job, &bytes, err);
	/* Both walks see each value a few times; a list that is in itself would never end. */
	s.n_left = 16 * (u64)bytes.n;
	if (!rc)
		rc = lull_pickle_parse(&s.pickle, bytes.at, bytes.n, err);
	if (!rc)
		rc = import(&s, job, err);
	lull_pickle_release(&s.pickle);
	lull_vec_release(&s.pools);
	lull_vec_release(&s.early);
	lull_map_release(&s.known);
	lull_map_release(&s.places);
	lull_vec_release(&bytes);
	return rc;
}

static int sniff(const u8 *head, size_t len)
{
	if (len < 2 || head[0] != 0x80 || head[1] < 2 || head[1] > 5)
		return 0;
	return memmem(head, len, "segments", 8) || memmem(head, len, "total_size", 10) ? 90 : 10;
}

const struct lull_import lull_import_snapshot = {
	.name = "snapshot",
	.summary = "memory snapshots of PyTorch (torch.cuda.memory._dump_snapshot())",
	.sniff = sniff,
	.run = run,
};
