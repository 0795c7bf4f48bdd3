#include "import/nsys.h"

#include <string.h>

#include "base/hash.h"

/* lane.kind */
#define LANE_THREAD 1
#define LANE_STREAM 2

#define TID_BITS 24
#define TID_MASK 0xffffffu

void lull_nsys_keys_add(struct lull_nsys_keys *k, u64 key, u32 row, u64 start_ns)
{
	u32 *head = lull_map_add(&k->heads, key, NULL);
	struct lull_nsys_candidate *c = lull_vec_push(&k->all);

	*c = (struct lull_nsys_candidate){ row, start_ns, *head };
	*head = (u32)k->all.n;
}

/* The row that was there at this time: the last that began before, else the first. */
static u32 find_at(const struct lull_nsys_keys *k, u64 key, u64 at_ns)
{
	const u32 *head = lull_map_find(&k->heads, key);
	const struct lull_nsys_candidate *all = k->all.at, *best = NULL;

	for (u32 ix = head ? *head : 0; ix; ix = all[ix - 1].next) {
		const struct lull_nsys_candidate *c = &all[ix - 1];
		bool is_before = c->start_ns <= at_ns;

		if (!best ||
		    (is_before && (best->start_ns > at_ns || c->start_ns > best->start_ns)) ||
		    (!is_before && best->start_ns > at_ns && c->start_ns < best->start_ns))
			best = c;
	}
	return best ? best->row : 0;
}

u32 lull_nsys_process(struct lull_nsys *n, u64 global_id, u64 start_ns)
{
	u64 key = global_id >> TID_BITS;
	struct lull_process_row row = { .pid = (u32)(key & TID_MASK) };
	u32 found = find_at(&n->processes, key, start_ns);

	if (found)
		return found;
	found = lull_writer_add_dim(n->writer, LULL_TABLE_process, &row);
	lull_nsys_keys_add(&n->processes, key, found, 0);
	return found;
}

u32 lull_nsys_thread(struct lull_nsys *n, u64 global_id, u64 start_ns)
{
	u32 process, tid = (u32)(global_id & TID_MASK), found;
	struct lull_lane_row row = { .kind = LANE_THREAD, .tid = tid };
	u64 key;

	if (!global_id)
		return 0;
	process = lull_nsys_process(n, global_id, start_ns);
	key = (u64)process << 32 | tid;
	found = find_at(&n->threads, key, start_ns);
	if (found)
		return found;
	row.process = process;
	found = lull_writer_add_dim(n->writer, LULL_TABLE_lane, &row);
	lull_nsys_keys_add(&n->threads, key, found, 0);
	return found;
}

u32 lull_nsys_device(struct lull_nsys *n, u32 process, u32 device_id)
{
	struct lull_device_row row = { .process = process, .device_id = device_id };
	bool is_new;
	u32 *found = lull_map_add(&n->devices, (u64)process << 32 | device_id, &is_new);

	if (is_new)
		*found = lull_writer_add_dim(n->writer, LULL_TABLE_device, &row);
	return *found;
}

u32 lull_nsys_stream_lane(struct lull_nsys *n, const struct lull_nsys_stream *s)
{
	u32 words[4] = { s->process, s->device_id, s->context_id, s->stream_id };
	u64 context = (u64)s->process << 32 | s->context_id;
	struct lull_lane_row row = {
		.kind = LANE_STREAM,
		.process = s->process,
		.context_id = s->context_id,
		.stream_id = s->stream_id,
	};
	const u32 *known = lull_map_find(&n->streams, lull_hash(words, sizeof(words)));
	u32 *found;
	bool is_new;

	if (known)
		return *known;
	known = s->is_device_known ? NULL : lull_map_find(&n->contexts, context);
	words[1] = known ? *known : s->device_id;
	found = lull_map_add(&n->streams, lull_hash(words, sizeof(words)), &is_new);
	if (!is_new)
		return *found;
	row.device = lull_nsys_device(n, s->process, words[1]);
	*found = lull_writer_add_dim(n->writer, LULL_TABLE_lane, &row);
	if (s->is_device_known)
		*lull_map_add(&n->contexts, context, NULL) = s->device_id;
	return *found;
}

/* Rows of a dimension are interned by their bytes; their numbers are dense, as row ids are. */
static u32 intern(struct lull_nsys *n, struct lull_intern *in, enum lull_table table,
		  const void *row, size_t len)
{
	size_t known = in->offsets.n;
	u32 number = lull_intern_add(in, row, len);

	if (in->offsets.n > known)
		lull_writer_add_dim(n->writer, table, row);
	return number + 1;
}

u32 lull_nsys_label(struct lull_nsys *n, const struct lull_label_row *label)
{
	struct lull_label_row row;

	/* Its padding is part of the key. */
	memset(&row, 0, sizeof(row));
	row.name = label->name;
	row.domain = label->domain;
	row.category = label->category;
	row.category_name = label->category_name;
	row.color = label->color;
	row.api = label->api;
	return intern(n, &n->labels, LULL_TABLE_label, &row, sizeof(row));
}

u32 lull_nsys_launch(struct lull_nsys *n, const struct lull_launch_row *launch)
{
	return intern(n, &n->launches, LULL_TABLE_launch, launch, sizeof(*launch));
}
