#include "import/mapper.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/sort.h"
#include "trace/block.h"

/* Kinds of lull_mapper_thing() that are used here; those of others begin at 16. */
enum { THING_PROCESS = 1, THING_THREAD, THING_STREAM, THING_DEVICE, THING_LABEL };

enum { LANE_THREAD = 1, LANE_STREAM = 2 };

/* Rows that wait for their depth: a block of the report. */
#define MAX_WAITING 65536u

/*
 * Different texts, and different things, that are remembered. With the rows and the names that the
 * writer holds for them, hostile files stay below 100 MB.
 */
#define MAX_TEXTS  (256u << 10)
#define MAX_THINGS (256u << 10)

/* Kinds of events that are counted separately; the others are counted together. */
#define MAX_GAPS 256u

struct lane {
	u64 first_ns;
	struct lull_vec open[LULL_N_NESTINGS]; /* u64: ends of what is open, outermost first */
	u64 last_ns[LULL_N_NESTINGS];	       /* begin of the last one */
	u64 last_end_ns[LULL_N_NESTINGS];
};

struct gap {
	enum lull_issue issue;
	u64 count;
	char *detail;
};

/* Where in a row of a table that nests its columns are. */
struct nesting_desc {
	enum lull_table table;
	size_t row_bytes, start_off, dur_off, lane_off, depth_off;
	u32 max_depth;
};

#define NESTING(name, max)                                             \
	{                                                              \
		LULL_TABLE_##name, sizeof(struct lull_##name##_row),   \
			offsetof(struct lull_##name##_row, start_ns),  \
			offsetof(struct lull_##name##_row, dur_ns),    \
			offsetof(struct lull_##name##_row, lane),      \
			offsetof(struct lull_##name##_row, depth), max \
	}

static const struct nesting_desc nestings[LULL_N_NESTINGS] = {
	[LULL_NESTING_RANGE] = NESTING(range, UINT8_MAX),
	[LULL_NESTING_OP] = NESTING(op, UINT16_MAX),
	[LULL_NESTING_PYCALL] = NESTING(pycall, UINT16_MAX),
};

void lull_mapper_init(struct lull_mapper *m, struct lull_import_job *job, i64 origin_ns)
{
	*m = (struct lull_mapper){ .job = job, .writer = job->writer, .origin_ns = origin_ns };
	lull_map_init(&m->texts);
	lull_map_init(&m->things);
	lull_map_init(&m->gap_ixs);
	lull_vec_init(&m->lanes, sizeof(struct lane));
	lull_vec_init(&m->gaps, sizeof(struct gap));
	for (int i = 0; i < LULL_N_NESTINGS; i++)
		lull_vec_init(&m->nesting[i], nestings[i].row_bytes);
}

void lull_mapper_release(struct lull_mapper *m)
{
	struct lane *lanes = m->lanes.at;
	struct gap *gaps = m->gaps.at;

	for (size_t i = 0; i < m->lanes.n; i++)
		for (int k = 0; k < LULL_N_NESTINGS; k++)
			lull_vec_release(&lanes[i].open[k]);
	for (size_t i = 0; i < m->gaps.n; i++)
		free(gaps[i].detail);
	for (int i = 0; i < LULL_N_NESTINGS; i++)
		lull_vec_release(&m->nesting[i]);
	lull_vec_release(&m->lanes);
	lull_vec_release(&m->gaps);
	lull_map_release(&m->texts);
	lull_map_release(&m->things);
	lull_map_release(&m->gap_ixs);
	lull_str_release(&m->scratch);
}

u64 lull_mapper_time(const struct lull_mapper *m, i64 ts_ns)
{
	return ts_ns > m->origin_ns ? (u64)ts_ns - (u64)m->origin_ns : 0;
}

/* ---- texts and things ---- */

u64 lull_mapper_hash(const struct lull_jtext *text)
{
	return lull_hash(text->at, text->len);
}

u32 lull_mapper_text(struct lull_mapper *m, const struct lull_jtext *text)
{
	u64 hash = lull_mapper_hash(text);
	u32 *known, id;

	if (!text->len)
		return 0;
	if (m->is_other)
		return lull_mapper_word(m, "(other)");
	known = lull_map_find(&m->texts, hash);
	if (known)
		return *known;
	lull_str_clear(&m->scratch);
	m->n_repaired += lull_jtext_add(&m->scratch, text) > 0;
	id = lull_writer_string(m->writer, m->scratch.at, m->scratch.len);
	if (m->texts.n < MAX_TEXTS)
		*lull_map_add(&m->texts, hash, NULL) = id;
	return id;
}

u32 lull_mapper_word(struct lull_mapper *m, const char *word)
{
	return lull_writer_string(m->writer, word, strlen(word));
}

static u64 thing_key(u32 kind, u64 hash)
{
	return lull_hash_mix(hash, 0x9e3779b97f4a7c15ULL + kind);
}

u32 *lull_mapper_thing(struct lull_mapper *m, u32 kind, u64 hash)
{
	u64 key = thing_key(kind, hash);

	m->is_other = m->things.n >= MAX_THINGS && !lull_map_find(&m->things, key);
	m->n_other += m->is_other;
	return lull_map_add(&m->things, m->is_other ? kind : key, NULL);
}

/* ---- processes, threads, streams ---- */

static u64 ref_hash(const struct lull_jevent_ref *ref)
{
	return ref->text.at ? lull_mapper_hash(&ref->text)
			    : lull_hash_mix((u64)ref->number ^ 0x5851f42d4c957f2dULL,
					    0x14057b7ef767814fULL);
}

/* A key for a thread, stream or similar, from its parts. */
static u64 mix(u64 a, u64 b)
{
	return lull_hash_mix(a ^ 0xa0761d6478bd642fULL, b ^ 0xe7037ed1a0b428dbULL);
}

static u32 main_process(struct lull_mapper *m)
{
	struct lull_process_row row = { 0 };

	if (!m->main_process)
		m->main_process = lull_writer_add_dim(m->writer, LULL_TABLE_process, &row);
	return m->main_process;
}

static u32 add_process(struct lull_mapper *m, const struct lull_jevent_ref *pid)
{
	struct lull_process_row row = { .pid = (u32)pid->number };
	u32 id;

	if (pid->text.at)
		row.name = lull_mapper_text(m, &pid->text);
	if (m->has_main_pid)
		return lull_writer_add_dim(m->writer, LULL_TABLE_process, &row);
	id = main_process(m);
	lull_writer_set_dim(m->writer, LULL_TABLE_process, id, &row);
	m->has_main_pid = true;
	return id;
}

u32 lull_mapper_process(struct lull_mapper *m, const struct lull_jevent_ref *pid)
{
	u32 *id = lull_mapper_thing(m, THING_PROCESS, ref_hash(pid));

	if (!*id)
		*id = add_process(m, pid);
	return *id;
}

bool lull_mapper_knows_process(const struct lull_mapper *m, const struct lull_jevent_ref *pid)
{
	return lull_map_find(&m->things, thing_key(THING_PROCESS, ref_hash(pid))) != NULL;
}

/* A new lane, and what is remembered of it. */
static u32 add_lane(struct lull_mapper *m, const struct lull_lane_row *row)
{
	u32 id = lull_writer_add_dim(m->writer, LULL_TABLE_lane, row);

	while (m->lanes.n < id) {
		struct lane *lane = lull_vec_push(&m->lanes);

		lane->first_ns = UINT64_MAX;
		for (int k = 0; k < LULL_N_NESTINGS; k++)
			lull_vec_init(&lane->open[k], sizeof(u64));
	}
	return id;
}

u32 lull_mapper_thread(struct lull_mapper *m, const struct lull_jevent_ref *pid,
		       const struct lull_jevent_ref *tid)
{
	u64 hash = mix(ref_hash(pid), ref_hash(tid));
	u32 *id = lull_mapper_thing(m, THING_THREAD, hash);

	if (!*id) {
		struct lull_lane_row row = { .kind = LANE_THREAD, .tid = (u32)tid->number };

		if (tid->text.at)
			row.name = lull_mapper_text(m, &tid->text);
		row.process = lull_mapper_process(m, pid);
		/* The process may be new, too, and then the place of the thread has moved. */
		id = lull_mapper_thing(m, THING_THREAD, hash);
		*id = add_lane(m, &row);
	}
	return *id;
}

u32 lull_mapper_device(struct lull_mapper *m, u32 device_id)
{
	u32 *id = lull_mapper_thing(m, THING_DEVICE, mix(device_id, 1));

	if (!*id) {
		struct lull_device_row row = { .process = main_process(m), .device_id = device_id };

		*id = lull_writer_add_dim(m->writer, LULL_TABLE_device, &row);
	}
	return *id;
}

u32 lull_mapper_stream(struct lull_mapper *m, u32 device_id, u32 context_id, u32 stream_id)
{
	u64 hash = mix((u64)device_id << 32 | context_id, stream_id);
	u32 *id = lull_mapper_thing(m, THING_STREAM, hash);

	if (!*id) {
		struct lull_lane_row row = {
			.kind = LANE_STREAM,
			.process = main_process(m),
			.device = lull_mapper_device(m, device_id),
			.context_id = context_id,
			.stream_id = stream_id,
		};

		/* As above. */
		id = lull_mapper_thing(m, THING_STREAM, hash);
		*id = add_lane(m, &row);
	}
	return *id;
}

void lull_mapper_saw(struct lull_mapper *m, u32 lane, u64 start_ns)
{
	struct lane *lanes = m->lanes.at;

	if (lane && start_ns < lanes[lane - 1].first_ns)
		lanes[lane - 1].first_ns = start_ns;
}

void lull_mapper_name_process(struct lull_mapper *m, const struct lull_jevent_ref *pid,
			      const struct lull_jtext *name)
{
	u32 id = lull_mapper_process(m, pid);
	struct lull_process_row row = *(const struct lull_process_row *)lull_writer_dim(
		m->writer, LULL_TABLE_process, id);

	row.name = lull_mapper_text(m, name);
	lull_writer_set_dim(m->writer, LULL_TABLE_process, id, &row);
}

void lull_mapper_name_thread(struct lull_mapper *m, const struct lull_jevent_ref *pid,
			     const struct lull_jevent_ref *tid, const struct lull_jtext *name)
{
	u32 id = lull_mapper_thread(m, pid, tid);
	struct lull_lane_row row =
		*(const struct lull_lane_row *)lull_writer_dim(m->writer, LULL_TABLE_lane, id);

	row.name = lull_mapper_text(m, name);
	lull_writer_set_dim(m->writer, LULL_TABLE_lane, id, &row);
}

/* ---- labels ---- */

u32 lull_mapper_label(struct lull_mapper *m, const struct lull_jtext *name,
		      const struct lull_jtext *domain, enum lull_label_api api)
{
	u64 hash = mix(lull_mapper_hash(name), domain->len ? lull_mapper_hash(domain) : 0) + api;
	u32 *id = lull_mapper_thing(m, THING_LABEL, hash);

	if (!*id) {
		struct lull_label_row row = {
			.name = lull_mapper_text(m, name),
			.domain = lull_mapper_text(m, domain),
			.api = (u8)api,
		};

		*id = lull_writer_add_dim(m->writer, LULL_TABLE_label, &row);
	}
	return *id;
}

/* ---- nesting ---- */

static u64 u64_at(const u8 *row, size_t off)
{
	u64 v;

	memcpy(&v, row + off, sizeof(v));
	return v;
}

static u32 lane_at(const u8 *row, size_t off)
{
	u32 v;

	memcpy(&v, row + off, sizeof(v));
	return v;
}

/* By lane, then start; where two begin together, the longer is outside. */
static int compare(const void *a, const void *b, void *ctx)
{
	const struct nesting_desc *d = ctx;
	u32 lane_a = lane_at(a, d->lane_off), lane_b = lane_at(b, d->lane_off);
	u64 x = u64_at(a, d->start_off), y = u64_at(b, d->start_off);

	if (lane_a != lane_b)
		return lane_a < lane_b ? -1 : 1;
	if (x != y)
		return x < y ? -1 : 1;
	x = u64_at(a, d->dur_off);
	y = u64_at(b, d->dur_off);
	return (x < y) - (x > y);
}

/* Whether the rows of each lane are in order; most programs write them so. */
static bool is_ordered(struct lull_mapper *m, enum lull_nesting kind)
{
	const struct nesting_desc *d = &nestings[kind];
	const u8 *row = m->nesting[kind].at;
	struct lane *lanes = m->lanes.at;

	for (size_t i = 0; i < m->nesting[kind].n; i++, row += d->row_bytes) {
		u64 start_ns = u64_at(row, d->start_off);
		u64 end_ns = start_ns + u64_at(row, d->dur_off);
		struct lane *lane = &lanes[lane_at(row, d->lane_off) - 1];

		if (start_ns < lane->last_ns[kind] ||
		    (start_ns == lane->last_ns[kind] && end_ns > lane->last_end_ns[kind] &&
		     lane->last_end_ns[kind]))
			return false;
		lane->last_ns[kind] = start_ns;
		lane->last_end_ns[kind] = end_ns;
	}
	return true;
}

/* How many are open around the row on its lane; it is open itself afterwards. */
static size_t depth_of(struct lane *lane, enum lull_nesting kind, u64 start_ns, u64 end_ns)
{
	struct lull_vec *open = &lane->open[kind];
	size_t depth;

	/* One that ends after its neighbour is not inside it. */
	while (open->n && (((u64 *)open->at)[open->n - 1] <= start_ns ||
			   ((u64 *)open->at)[open->n - 1] < end_ns))
		open->n--;
	depth = open->n;
	*(u64 *)lull_vec_push(open) = end_ns;
	return depth;
}

static void write_nesting(struct lull_mapper *m, enum lull_nesting kind)
{
	const struct nesting_desc *d = &nestings[kind];
	struct lull_vec *rows = &m->nesting[kind];
	struct lane *lanes = m->lanes.at;
	u8 *row = rows->at;

	if (rows->n && !is_ordered(m, kind))
		lull_sort_r(rows->at, rows->n, d->row_bytes, compare, (void *)d);
	for (size_t i = 0; i < rows->n; i++, row += d->row_bytes) {
		u64 start_ns = u64_at(row, d->start_off);
		size_t depth = depth_of(&lanes[lane_at(row, d->lane_off) - 1], kind, start_ns,
					start_ns + u64_at(row, d->dur_off));
		u16 depth16 = (u16)(depth < d->max_depth ? depth : d->max_depth);

		if (d->max_depth == UINT8_MAX)
			row[d->depth_off] = (u8)depth16;
		else
			memcpy(row + d->depth_off, &depth16, sizeof(depth16));
		lull_writer_add(m->writer, d->table, row);
	}
	rows->n = 0;
}

void lull_mapper_nest(struct lull_mapper *m, enum lull_nesting kind, const void *row)
{
	const struct nesting_desc *d = &nestings[kind];

	lull_mapper_saw(m, lane_at(row, d->lane_off), u64_at(row, d->start_off));
	lull_vec_add(&m->nesting[kind], row, 1);
	if (m->nesting[kind].n >= MAX_WAITING)
		write_nesting(m, kind);
}

/* ---- what has no place ---- */

void lull_mapper_gap(struct lull_mapper *m, enum lull_issue issue, const char *what,
		     const struct lull_jtext *which)
{
	u64 hash = mix(lull_hash(what, strlen(what)), lull_mapper_hash(which)) + issue;
	bool is_full = m->gaps.n >= MAX_GAPS, is_new;
	struct gap *gap;
	u32 *ix;

	if (issue == LULL_ISSUE_import_unmapped)
		m->job->result->n_unmapped++;
	if (is_full && !lull_map_find(&m->gap_ixs, hash))
		hash = issue;
	ix = lull_map_add(&m->gap_ixs, hash, &is_new);
	if (is_new) {
		lull_str_clear(&m->scratch);
		lull_str_puts(&m->scratch, is_full ? "others" : what);
		if (!is_full && which->len) {
			lull_str_puts(&m->scratch, " ");
			lull_jtext_add(&m->scratch, which);
		}
		*ix = (u32)m->gaps.n;
		gap = lull_vec_push(&m->gaps);
		gap->issue = issue;
		gap->detail = lull_strdup(lull_str_text(&m->scratch));
	}
	gap = lull_vec_get(&m->gaps, *ix);
	gap->count++;
}

/* ---- the end ---- */

/* When lanes were first seen is known only now. */
static void set_begins(struct lull_mapper *m)
{
	const struct lane *lanes = m->lanes.at;

	for (u32 id = 1; id <= m->lanes.n; id++) {
		struct lull_lane_row row = *(const struct lull_lane_row *)lull_writer_dim(
			m->writer, LULL_TABLE_lane, id);

		row.start_ns = lanes[id - 1].first_ns == UINT64_MAX ? 0 : lanes[id - 1].first_ns;
		if (row.start_ns)
			lull_writer_set_dim(m->writer, LULL_TABLE_lane, id, &row);
	}
}

void lull_mapper_finish(struct lull_mapper *m)
{
	const struct gap *gaps = m->gaps.at;

	for (int i = 0; i < LULL_N_NESTINGS; i++)
		write_nesting(m, (enum lull_nesting)i);
	set_begins(m);
	for (size_t i = 0; i < m->gaps.n; i++)
		lull_issue_write(m->writer, gaps[i].issue, 0, gaps[i].count, gaps[i].detail);
	if (m->n_other)
		lull_issue_write(m->writer, LULL_ISSUE_strings_full, 0, m->n_other, NULL);
	if (m->n_repaired)
		lull_issue_write(m->writer, LULL_ISSUE_import_text, 0, m->n_repaired, NULL);
}
