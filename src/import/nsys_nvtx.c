/*
 * Ranges and marks. Names are in StringIds or inline; names of domains and categories are events
 * themselves and are read first.
 *
 * nsys does not store how deep a range is nested. Its push/pop ranges are read by their start, and
 * each thread keeps the ends of those that are open.
 */
#include "import/nsys.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"
#include "text/op_name.h"

/* eventType; 70 and 71 are those of imported NVTXT files. */
enum {
	TYPE_CATEGORY = 33,
	TYPE_MARK = 34,
	TYPE_THREAD = 39,
	TYPE_PUSH_POP = 59,
	TYPE_START_END = 60,
	TYPE_TEXT_PUSH_POP = 70,
	TYPE_TEXT_START_END = 71,
	TYPE_DOMAIN = 75,
	TYPE_DOMAIN_END = 76,
	TYPE_ON_DEVICE = 900, /* of our own exports: a range as a device saw it */
};

/* range.flags */
#define OPEN_AT_END  1u
#define START_END    4u
#define OTHER_THREAD 8u

#define MAX_DEPTH    255u
#define PAYLOAD_JSON 10

enum {
	START,
	END,
	TYPE,
	CATEGORY,
	COLOR,
	TEXT,
	TID,
	END_TID,
	TEXT_ID,
	DOMAIN,
	U64,
	I64,
	F64,
	U32,
	I32,
	F32,
	FLAGS,
	DEPTH,
	API,
	SCHEMA,
	PAYLOAD
};

static const char *const cols[] = {
	"start",       "end",	       "eventType",   "category",   "color",	   "text",
	"globalTid",   "endGlobalTid", "textId",      "domainId",   "uint64Value", "int64Value",
	"doubleValue", "uint32Value",  "int32Value",  "floatValue", "lullFlags",   "lullDepth",
	"lullApi",     "lullSchemaId", "lullPayload", NULL,
};

/* The name of a range, and what of its text is true of that range only (text/op_name.h). */
struct name {
	u32 text;
	u32 data;
};

struct nvtx {
	struct lull_vec open;	 /* struct lull_vec of u64, the ends of open ranges, by lane */
	struct lull_vec names;	 /* struct name, of texts that are in StringIds */
	struct lull_map name_of; /* their id there, to 1 + the index in names */
	u64 n_unknown;
};

/* ---- names ---- */

static u32 name_of(struct lull_nsys *n, sqlite3_stmt *row)
{
	return lull_nsys_is_null(row, TEXT) ? lull_nsys_string(n, row, TEXT_ID)
					    : lull_nsys_text(n, row, TEXT);
}

/* The text in this column, taken apart. */
static struct name split(struct lull_nsys *n, sqlite3_stmt *row, int col)
{
	const char *text = (const char *)sqlite3_column_text(row, col);
	size_t len = (size_t)sqlite3_column_bytes(row, col);
	struct lull_str json = LULL_STR_INIT;
	struct name name = { 0 };

	if (text && lull_op_name_split(text, len, &len, &json))
		name.data = lull_writer_string(n->writer, json.at, json.len);
	if (text)
		name.text = lull_writer_string(n->writer, text, len);
	lull_str_release(&json);
	return name;
}

/* The name of a range or mark. */
static struct name event_name(struct lull_nsys *n, sqlite3_stmt *row)
{
	struct nvtx *nvtx = n->ctx;
	u32 *ix;

	if (!lull_nsys_is_null(row, TEXT))
		return split(n, row, TEXT);
	if (lull_nsys_is_null(row, TEXT_ID) || !n->string_stmt)
		return (struct name){ 0 };
	ix = lull_map_add(&nvtx->name_of, lull_nsys_u64(row, TEXT_ID), NULL);
	if (!*ix) {
		struct name *name = lull_vec_push(&nvtx->names);

		*ix = (u32)nvtx->names.n;
		sqlite3_bind_int64(n->string_stmt, 1, sqlite3_column_int64(row, TEXT_ID));
		if (sqlite3_step(n->string_stmt) == SQLITE_ROW)
			*name = split(n, n->string_stmt, 0);
		sqlite3_reset(n->string_stmt);
	}
	return *(struct name *)lull_vec_get(&nvtx->names, *ix - 1);
}

static u64 domain_key(sqlite3_stmt *row)
{
	u64 words[2] = { lull_nsys_u64(row, TID) >> 24, lull_nsys_u64(row, DOMAIN) };

	return lull_hash(words, sizeof(words));
}

static u64 category_key(sqlite3_stmt *row)
{
	u64 words[3] = { lull_nsys_u64(row, TID) >> 24, lull_nsys_u64(row, DOMAIN),
			 lull_nsys_u64(row, CATEGORY) };

	return lull_hash(words, sizeof(words));
}

static void take_name(struct lull_nsys *n, sqlite3_stmt *row)
{
	switch (lull_nsys_u32(row, TYPE)) {
	case TYPE_DOMAIN:
		*lull_map_add(&n->domains, domain_key(row), NULL) = name_of(n, row);
		return;
	case TYPE_CATEGORY:
		*lull_map_add(&n->categories, category_key(row), NULL) = name_of(n, row);
		return;
	default:
		return;
	}
}

/* The name of the row's domain; one without a name gets its number. */
static u32 domain_of(struct lull_nsys *n, sqlite3_stmt *row)
{
	const u32 *known;
	char text[40];

	if (!lull_nsys_u64(row, DOMAIN))
		return 0;
	known = lull_map_find(&n->domains, domain_key(row));
	if (known)
		return *known;
	snprintf(text, sizeof(text), "domain %llu", (unsigned long long)lull_nsys_u64(row, DOMAIN));
	return lull_writer_string(n->writer, text, strlen(text));
}

static u32 label_of(struct lull_nsys *n, sqlite3_stmt *row, u32 name)
{
	struct lull_label_row label = {
		.name = name,
		.domain = domain_of(n, row),
		.category = lull_nsys_u32(row, CATEGORY),
		.color = lull_nsys_u32(row, COLOR),
		.api = lull_nsys_is_null(row, API) ? 1 : (u8)lull_nsys_u32(row, API),
	};
	const u32 *category =
		label.category ? lull_map_find(&n->categories, category_key(row)) : NULL;

	label.category_name = category ? *category : 0;
	return lull_nsys_label(n, &label);
}

/* ---- payloads ---- */

struct payload {
	u8 type;
	u64 bits;
	u32 data;
};

static struct payload payload_of(struct lull_nsys *n, sqlite3_stmt *row, const struct name *name)
{
	struct payload p = { 0 };
	size_t n_bytes;
	f64 wide;
	float narrow;
	u32 bits;

	for (int col = U64; col <= F32 && !p.type; col++)
		if (!lull_nsys_is_null(row, col))
			p.type = (u8)(col - U64 + 1);
	if (!lull_nsys_is_null(row, SCHEMA)) {
		p.type = 9;
		p.bits = (u64)sqlite3_column_int64(row, SCHEMA);
		/* First the size: asking for it may move the bytes, if they are text. */
		n_bytes = (size_t)sqlite3_column_bytes(row, PAYLOAD);
		p.data = lull_writer_string(n->writer, sqlite3_column_blob(row, PAYLOAD), n_bytes);
	} else if (p.type == 3) {
		wide = sqlite3_column_double(row, F64);
		memcpy(&p.bits, &wide, sizeof(p.bits));
	} else if (p.type == 6) {
		narrow = (float)sqlite3_column_double(row, F32);
		memcpy(&bits, &narrow, sizeof(bits));
		p.bits = bits;
	} else if (p.type == 5) {
		p.bits = (u32)sqlite3_column_int64(row, I32);
	} else if (p.type) {
		p.bits = (u64)sqlite3_column_int64(row, U64 + p.type - 1);
	} else if (name->data) {
		p.type = PAYLOAD_JSON;
		p.data = name->data;
	}
	return p;
}

/* ---- events ---- */

/* How many push/pop ranges of the thread are open where this one begins. */
static u8 depth_of(struct nvtx *nvtx, u32 lane, u64 start_ns, u64 end_ns)
{
	struct lull_vec *open;
	u64 *ends;
	size_t depth;

	while (nvtx->open.n <= lane)
		lull_vec_init(lull_vec_push(&nvtx->open), sizeof(u64));
	open = lull_vec_get(&nvtx->open, lane);
	ends = open->at;
	while (open->n && ends[open->n - 1] <= start_ns && ends[open->n - 1] < end_ns)
		open->n--;
	depth = open->n;
	*(u64 *)lull_vec_push(open) = end_ns;
	return depth < MAX_DEPTH ? (u8)depth : MAX_DEPTH;
}

static u8 flags_of(sqlite3_stmt *row, bool is_start_end)
{
	u64 end_tid = lull_nsys_u64(row, END_TID);
	u8 flags = is_start_end ? START_END : 0;

	if (!lull_nsys_is_null(row, FLAGS))
		return (u8)lull_nsys_u32(row, FLAGS);
	if (lull_nsys_is_null(row, END))
		flags |= OPEN_AT_END;
	if (end_tid && end_tid != lull_nsys_u64(row, TID))
		flags |= OTHER_THREAD;
	return flags;
}

static void take_range(struct lull_nsys *n, sqlite3_stmt *row, bool is_start_end)
{
	u64 start = lull_nsys_u64(row, START);
	u64 end = lull_nsys_is_null(row, END) ? n->end_ns : lull_nsys_u64(row, END);
	struct name name = event_name(n, row);
	struct payload payload = payload_of(n, row, &name);
	struct lull_range_row range = {
		.start_ns = start,
		.dur_ns = end > start ? end - start : 0,
		.lane = lull_nsys_thread(n, lull_nsys_u64(row, TID), start),
		.label = label_of(n, row, name.text),
		.flags = flags_of(row, is_start_end),
		.payload_type = payload.type,
		.payload = payload.bits,
		.data = payload.data,
	};

	if (!lull_nsys_is_null(row, DEPTH))
		range.depth = (u8)lull_nsys_u32(row, DEPTH);
	else if (!is_start_end)
		range.depth = depth_of(n->ctx, range.lane, start, start + range.dur_ns);
	lull_writer_add(n->writer, LULL_TABLE_range, &range);
}

static void take_mark(struct lull_nsys *n, sqlite3_stmt *row)
{
	u64 start = lull_nsys_u64(row, START);
	struct name name = event_name(n, row);
	struct payload payload = payload_of(n, row, &name);
	struct lull_mark_row mark = {
		.start_ns = start,
		.lane = lull_nsys_thread(n, lull_nsys_u64(row, TID), start),
		.label = label_of(n, row, name.text),
		.payload_type = payload.type,
		.payload = payload.bits,
		.data = payload.data,
	};

	lull_writer_add(n->writer, LULL_TABLE_mark, &mark);
}

static void take_event(struct lull_nsys *n, sqlite3_stmt *row)
{
	struct nvtx *nvtx = n->ctx;

	switch (lull_nsys_u32(row, TYPE)) {
	case TYPE_PUSH_POP:
	case TYPE_TEXT_PUSH_POP:
	case TYPE_ON_DEVICE:
		take_range(n, row, false);
		return;
	case TYPE_START_END:
	case TYPE_TEXT_START_END:
		take_range(n, row, true);
		return;
	case TYPE_MARK:
		take_mark(n, row);
		return;
	case TYPE_DOMAIN:
	case TYPE_DOMAIN_END:
	case TYPE_CATEGORY:
	case TYPE_THREAD:
		return;
	default:
		nvtx->n_unknown++;
	}
}

void lull_nsys_read_nvtx(struct lull_nsys *n)
{
	struct nvtx nvtx = { 0 };
	struct lull_vec *open;

	lull_vec_init(&nvtx.open, sizeof(struct lull_vec));
	lull_vec_init(&nvtx.names, sizeof(struct name));
	lull_map_init(&nvtx.name_of);
	n->ctx = &nvtx;
	lull_nsys_each(n, "NVTX_EVENTS", cols, "WHERE eventType IN (33, 75)", take_name);
	lull_nsys_each(n, "NVTX_EVENTS", cols, n->is_ours ? "" : "ORDER BY start, end DESC",
		       take_event);
	n->ctx = NULL;
	open = nvtx.open.at;
	for (size_t i = 0; i < nvtx.open.n; i++)
		lull_vec_release(&open[i]);
	lull_vec_release(&nvtx.open);
	lull_vec_release(&nvtx.names);
	lull_map_release(&nvtx.name_of);
	if (!nvtx.n_unknown)
		return;
	n->job->result->n_unmapped += nvtx.n_unknown;
	lull_issue_write(n->writer, LULL_ISSUE_import_unmapped, 0, nvtx.n_unknown,
			 "NVTX_EVENTS of other types");
}
