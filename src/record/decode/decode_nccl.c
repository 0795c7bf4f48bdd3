#include "record/decode/decode_nccl.h"

#include <stdlib.h>
#include <string.h>

/* A field of a payload; size 0: the layout has none. */
struct field {
	u32 off, size_bytes;
	u64 schema_id; /* of an enumeration */
};

enum { COMM, SIZE, OP, ROOT, PEER, N_RANKS, RANK, N_FIELDS };

/* What NCCL calls them; a name that ends with * goes on. */
static const char *const names[N_FIELDS] = {
	[COMM] = "NCCL communicator ID*",
	[SIZE] = "Message size*",
	[OP] = "Reduction operation*",
	[ROOT] = "Root*",
	[PEER] = "Peer*",
	[N_RANKS] = "No. of ranks*",
	[RANK] = "Rank",
};

/* A layout as one process registered it. */
struct lull_nccl_layout {
	const struct lull_process *process;
	u64 schema_id;
	struct field fields[N_FIELDS];
};

/* What a process said about a communicator. */
struct lull_nccl_comm {
	const struct lull_process *process;
	u64 comm;
	u32 n_ranks, rank;
};

void lull_nccl_init(struct lull_recording *r)
{
	lull_map_init(&r->nccl_labels);
	lull_vec_init(&r->nccl_layouts, sizeof(struct lull_nccl_layout));
	lull_vec_init(&r->nccl_comms, sizeof(struct lull_nccl_comm));
}

void lull_nccl_release(struct lull_recording *r)
{
	lull_map_release(&r->nccl_labels);
	lull_vec_release(&r->nccl_layouts);
	lull_vec_release(&r->nccl_comms);
}

static bool is_name(const char *text, size_t len, const char *pattern)
{
	size_t n = strlen(pattern);

	if (pattern[n - 1] == '*')
		return len >= n - 1 && memcmp(text, pattern, n - 1) == 0;
	return len == n && memcmp(text, pattern, n) == 0;
}

/* The value of a key of a flat JSON object [at, end), NULL if there is none. */
static const char *value_of(const char *at, const char *end, const char *key)
{
	size_t n = strlen(key);

	for (; at + n < end; at++)
		if (memcmp(at, key, n) == 0)
			return at + n;
	return NULL;
}

static u64 number_of(const char *at, const char *end, const char *key)
{
	const char *value = value_of(at, end, key);

	return value ? strtoull(value, NULL, 10) : 0;
}

/* The next object of a list that the agent wrote: {...},{...}; false at its end. */
static bool next_object(const char **at, const char **begin, const char **end)
{
	bool is_quoted = false;

	*begin = strchr(*at, '{');
	if (!*begin)
		return false;
	for (*end = *begin; **end && (is_quoted || **end != '}'); (*end)++) {
		if (**end == '\\' && (*end)[1])
			(*end)++;
		else if (**end == '"')
			is_quoted = !is_quoted;
	}
	*at = *end;
	return **end == '}';
}

static const char *name_of(const char *begin, const char *end, size_t *len)
{
	const char *name = value_of(begin, end, "\"name\":\"");
	const char *quote = name ? memchr(name, '"', (size_t)(end - name)) : NULL;

	*len = quote ? (size_t)(quote - name) : 0;
	return quote ? name : NULL;
}

static void read_layout(struct lull_nccl_layout *layout, const char *entries)
{
	const char *at = entries, *begin, *end, *name;
	size_t len;

	while (next_object(&at, &begin, &end)) {
		name = name_of(begin, end, &len);
		for (int i = 0; name && i < N_FIELDS; i++) {
			struct field *f = &layout->fields[i];

			if (f->size_bytes || !is_name(name, len, names[i]))
				continue;
			f->off = (u32)number_of(begin, end, "\"offset\":");
			f->size_bytes = (u32)number_of(begin, end, "\"size\":");
			f->schema_id = number_of(begin, end, "\"schema\":");
		}
	}
}

/* The entries of a schema or enumeration of the process, NULL if it did not register it. */
static const char *entries_of(const struct lull_recording *r, const struct lull_process *process,
			      u64 schema_id)
{
	const struct lull_schema_text *all = process->schemas.at;

	for (size_t i = process->schemas.n; i-- > 0;)
		if (all[i].schema_id == schema_id &&
		    strcmp(lull_intern_get(&r->schema_texts, all[i].domain), "NCCL") == 0)
			return lull_intern_get(&r->schema_texts, all[i].entries);
	return NULL;
}

static const struct lull_nccl_layout *layout_of(struct lull_recording *r,
						const struct lull_process *process, u64 schema_id)
{
	struct lull_nccl_layout *all = r->nccl_layouts.at, *layout;
	const char *entries;

	for (size_t i = 0; i < r->nccl_layouts.n; i++)
		if (all[i].schema_id == schema_id && all[i].process == process)
			return &all[i];
	entries = entries_of(r, process, schema_id);
	if (!entries)
		return NULL;
	layout = lull_vec_push(&r->nccl_layouts);
	layout->process = process;
	layout->schema_id = schema_id;
	read_layout(layout, entries);
	return layout;
}

/* The number in a field; false if the payload does not have it. */
static bool number(const struct lull_open_range *range, const struct field *f, u64 *value)
{
	i32 small;

	if (!f->size_bytes || (u64)f->off + f->size_bytes > range->n_head)
		return false;
	*value = 0;
	if (f->size_bytes == sizeof(small)) {
		memcpy(&small, range->head + f->off, sizeof(small));
		*value = (u64)(i64)small;
	} else if (f->size_bytes == sizeof(*value)) {
		memcpy(value, range->head + f->off, sizeof(*value));
	}
	return true;
}

/* String id of an enumerator's name. */
static u32 enumerator(struct lull_recording *r, const struct lull_process *process, u64 schema_id,
		      u64 value)
{
	const char *at = entries_of(r, process, schema_id), *begin, *end, *name;
	size_t len;

	while (at && next_object(&at, &begin, &end)) {
		if (!value_of(begin, end, "\"value\":") ||
		    number_of(begin, end, "\"value\":") != value)
			continue;
		name = name_of(begin, end, &len);
		return name ? lull_writer_string(r->writer, name, len) : 0;
	}
	return 0;
}

static struct lull_nccl_comm *comm_of(struct lull_recording *r, const struct lull_process *process,
				      u64 comm, bool is_adding)
{
	struct lull_nccl_comm *all = r->nccl_comms.at, *c;

	for (size_t i = r->nccl_comms.n; i-- > 0;)
		if (all[i].comm == comm && all[i].process == process)
			return &all[i];
	if (!is_adding)
		return NULL;
	c = lull_vec_push(&r->nccl_comms);
	c->process = process;
	c->comm = comm;
	return c;
}

struct lull_nccl_traffic lull_nccl_traffic(const char *name, u64 size_bytes, u32 n_ranks, u32 rank,
					   i64 root)
{
	u64 each = size_bytes * (n_ranks ? n_ranks : 1);
	bool is_root = root < 0 || root == (i64)rank || !n_ranks;

	if (strcmp(name, "AllGather") == 0)
		return (struct lull_nccl_traffic){ size_bytes, each };
	if (strcmp(name, "ReduceScatter") == 0)
		return (struct lull_nccl_traffic){ each, size_bytes };
	if (strcmp(name, "AlltoAll") == 0)
		return (struct lull_nccl_traffic){ each, each };
	if (strcmp(name, "Gather") == 0)
		return (struct lull_nccl_traffic){ size_bytes, is_root ? each : 0 };
	if (strcmp(name, "Scatter") == 0)
		return (struct lull_nccl_traffic){ is_root ? each : 0, size_bytes };
	if (strcmp(name, "Reduce") == 0)
		return (struct lull_nccl_traffic){ size_bytes, is_root ? size_bytes : 0 };
	if (strcmp(name, "Broadcast") == 0 || strcmp(name, "Bcast") == 0)
		return (struct lull_nccl_traffic){ is_root ? size_bytes : 0, size_bytes };
	if (strcmp(name, "Send") == 0)
		return (struct lull_nccl_traffic){ size_bytes, 0 };
	if (strcmp(name, "Recv") == 0)
		return (struct lull_nccl_traffic){ 0, size_bytes };
	return (struct lull_nccl_traffic){ size_bytes, size_bytes };
}

void lull_nccl_label(struct lull_recording *r, u32 label, const char *domain, u32 text_ix)
{
	bool is_new;

	if (text_ix && strcmp(domain, "NCCL") == 0)
		*lull_map_add(&r->nccl_labels, label, &is_new) = text_ix;
}

/* What the label calls the function, without "nccl"; NULL if it is none of NCCL. */
static const char *function_of(const struct lull_recording *r, u32 label)
{
	const u32 *ix = r->nccl_labels.n ? lull_map_find(&r->nccl_labels, label) : NULL;
	const char *name = ix ? ((char **)r->text_list.at)[*ix - 1] : NULL;

	return name && strncmp(name, "nccl", 4) == 0 ? name + 4 : name;
}

void lull_nccl_range(struct lull_recording *r, struct lull_task *task,
		     const struct lull_open_range *range, u64 end_ns)
{
	const struct lull_nccl_layout *layout;
	const struct field *f;
	struct lull_nccl_comm *comm;
	struct lull_collective_row row = { .start_ns = range->start_ns, .source = 1, .peer = -1 };
	struct lull_nccl_traffic traffic;
	u64 value, size_bytes;
	const char *name;

	if (range->payload_type != LULL_PAYLOAD_EXTENDED || !range->n_head ||
	    !(name = function_of(r, range->label)))
		return;
	layout = layout_of(r, task->process, range->payload);
	if (!layout)
		return;
	f = layout->fields;
	number(range, &f[COMM], &row.comm);
	if (number(range, &f[N_RANKS], &value) && row.comm) {
		comm = comm_of(r, task->process, row.comm, true);
		comm->n_ranks = (u32)value;
		if (number(range, &f[RANK], &value))
			comm->rank = (u32)value;
	}
	if (!number(range, &f[SIZE], &size_bytes))
		return;
	comm = comm_of(r, task->process, row.comm, false);
	row.n_ranks = comm ? comm->n_ranks : 0;
	row.rank = comm ? comm->rank : 0;
	if (number(range, &f[PEER], &value) || number(range, &f[ROOT], &value))
		row.peer = (i64)value;
	if (number(range, &f[OP], &value))
		row.op = enumerator(r, task->process, f[OP].schema_id, value);
	traffic = lull_nccl_traffic(name, size_bytes, row.n_ranks, row.rank, row.peer);
	row.in_bytes = traffic.in_bytes;
	row.out_bytes = traffic.out_bytes;
	row.dur_ns = end_ns > range->start_ns ? end_ns - range->start_ns : 0;
	row.lane = lull_recording_lane(r, task);
	row.name = lull_recording_text(r, name);
	lull_recording_add(r, LULL_TABLE_collective, &row);
}
