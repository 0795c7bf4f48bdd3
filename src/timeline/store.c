#include "timeline/store.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/bytes.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/varint.h"
#include "timeline/curve.h"
#include "trace/crc.h"

#define MAGIC	      "LULLVIEW"
#define VERSION	      6u
#define HEAD_BYTES    48u
#define ZSTD_LEVEL    3
#define MAX_BYTES     (2ull << 30) /* of a payload; 100 million events take 60 MB */
#define MAX_GROWTH    16u	   /* of a payload over the report, beyond 16 MB */
#define BYTES_PER_REC 6u	   /* the least that a record takes */

/* ---- bytes out ---- */

static void put_text(struct lull_vec *to, const char *text)
{
	size_t len = strlen(text);

	lull_varint_add(to, len);
	lull_vec_add(to, text, len);
}

static void put_f64(struct lull_vec *to, f64 v)
{
	u8 bytes[8];
	u64 bits;

	memcpy(&bits, &v, sizeof(bits));
	lull_put_u64(bytes, bits);
	lull_vec_add(to, bytes, sizeof(bytes));
}

static void put_level(struct lull_vec *to, const struct lull_level *level)
{
	const struct lull_rec *r = level->recs;
	u64 last = 0;

	lull_varint_add(to, level->log2);
	lull_varint_add(to, level->n);
	for (size_t i = 0; i < level->n; i++) {
		lull_varint_add_i64(to, (i64)(r[i].start_ns - last));
		last = r[i].end_ns;
	}
	for (size_t i = 0; i < level->n; i++)
		lull_varint_add(to, r[i].end_ns - r[i].start_ns);
	/* Lines that several share may be more than busy. */
	for (size_t i = 0; i < level->n; i++)
		lull_varint_add_i64(to, (i64)(r[i].end_ns - r[i].start_ns - r[i].busy_ns));
	for (size_t i = 0; i < level->n; i++)
		lull_varint_add(to, r[i].name);
	for (size_t i = 0; i < level->n; i++)
		lull_varint_add(to, r[i].count);
	for (unsigned c = 0; c < LULL_N_CLASSES; c++)
		for (size_t i = 0; i < level->n; i++)
			lull_vec_add(to, &r[i].share[c], 1);
}

static void put_rows(struct lull_vec *to, const struct lull_timeline *t)
{
	lull_varint_add(to, t->rows.n);
	for (u32 i = 0; i < t->rows.n; i++) {
		const struct lull_row *row = lull_timeline_row(t, i);

		put_text(to, row->kind);
		put_text(to, row->key);
		put_text(to, row->title);
		lull_varint_add(to, row->parent == LULL_NO_ROW ? 0 : row->parent + 1);
		lull_varint_add(to, row->first_lane);
		lull_varint_add(to, row->n_lanes);
		lull_varint_add(to, row->curve);
		lull_varint_add(to, row->n_events);
		lull_varint_add(to, row->busy_ns);
		lull_varint_add(to, row->id);
		lull_varint_add(to, row->source);
	}
}

static void put_lanes(struct lull_vec *to, const struct lull_timeline *t)
{
	lull_varint_add(to, t->lanes.n);
	for (u32 i = 0; i < t->lanes.n; i++) {
		const struct lull_tl_lane *lane = lull_timeline_lane(t, i);

		lull_varint_add(to, lane->row);
		lull_varint_add(to, lane->line);
		lull_varint_add(to, lane->group);
		lull_varint_add(to, lane->source == LULL_NO_ROW ? 0 : lane->source + 1);
		lull_varint_add(to, lane->n_events);
		lull_varint_add(to, lane->busy_ns);
		lull_varint_add(to, lane->lod.n_levels ? 1 : 0);
		if (lane->lod.n_levels) /* the others follow from the first */
			put_level(to, &lane->lod.levels[0]);
	}
}

static void put_curves(struct lull_vec *to, const struct lull_timeline *t)
{
	const struct lull_curve *curves = t->curves.at;

	lull_varint_add(to, t->curves.n);
	for (size_t i = 0; i < t->curves.n; i++) {
		const struct lull_point *p = curves[i].points.at;

		lull_varint_add(to, curves[i].row);
		put_text(to, curves[i].name);
		put_text(to, curves[i].unit);
		lull_varint_add(to, curves[i].points.n);
		for (size_t k = 0; k < curves[i].points.n; k++) {
			lull_varint_add(to, p[k].at_ns);
			put_f64(to, p[k].min);
			put_f64(to, p[k].max);
			put_f64(to, p[k].last);
		}
	}
}

/* ---- bytes in ---- */

struct input {
	const u8 *at, *end;
	bool is_bad; /* something did not fit; all that is read afterwards is 0 */
};

static u64 get_u64(struct input *in)
{
	u64 v = 0;

	for (unsigned shift = 0; shift < 64 && in->at < in->end; shift += 7) {
		u8 byte = *in->at++;

		v |= (u64)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return v;
	}
	in->is_bad = true;
	in->at = in->end;
	return 0;
}

static i64 get_i64(struct input *in)
{
	u64 v = get_u64(in);

	return (i64)(v >> 1) ^ -(i64)(v & 1);
}

/* A count of things that take at least `least` bytes each. */
static size_t get_count(struct input *in, size_t least)
{
	u64 n = get_u64(in);

	if (n <= (u64)(in->end - in->at) / least)
		return (size_t)n;
	in->is_bad = true;
	return 0;
}

/* A number below `limit`. */
static u32 get_below(struct input *in, u64 limit)
{
	u64 v = get_u64(in);

	if (v < limit)
		return (u32)v;
	in->is_bad = true;
	return 0;
}

static char *get_text(struct input *in)
{
	size_t len = get_count(in, 1);
	char *text = lull_strndup((const char *)in->at, len);

	in->at += len;
	return text;
}

static f64 get_f64(struct input *in)
{
	u64 bits;
	f64 v;

	if (in->end - in->at < 8) {
		in->is_bad = true;
		in->at = in->end;
		return 0;
	}
	bits = lull_get_u64(in->at);
	in->at += 8;
	memcpy(&v, &bits, sizeof(v));
	return v;
}

static void get_level(struct input *in, struct lull_level *level)
{
	struct lull_rec *r;
	u64 last = 0;

	level->log2 = get_below(in, LULL_MAX_LOG2 + 1);
	level->n = get_count(in, BYTES_PER_REC);
	r = level->recs = lull_alloc(level->n + 1, sizeof(*r));
	for (size_t i = 0; i < level->n; i++)
		r[i].start_ns = (u64)get_i64(in);
	for (size_t i = 0; i < level->n; i++) {
		r[i].start_ns += last;
		r[i].end_ns = last = r[i].start_ns + get_u64(in);
		in->is_bad |= r[i].end_ns < r[i].start_ns;
	}
	for (size_t i = 0; i < level->n; i++)
		r[i].busy_ns = r[i].end_ns - r[i].start_ns - (u64)get_i64(in);
	for (size_t i = 0; i < level->n; i++)
		r[i].name = (u32)get_u64(in);
	for (size_t i = 0; i < level->n; i++)
		r[i].count = (u32)get_u64(in);
	for (unsigned c = 0; c < LULL_N_CLASSES; c++)
		for (size_t i = 0; i < level->n; i++) {
			if (in->at < in->end)
				r[i].share[c] = *in->at++;
			else
				in->is_bad = true;
		}
}

/* The first level, and the others made of it. */
static void get_levels(struct input *in, struct lull_lod *lod)
{
	struct lull_level level;
	struct lull_fold fold;

	get_level(in, &level);
	lull_fold_init(&fold, level.log2, false);
	fold.recs.at = level.recs;
	fold.recs.n = level.n;
	fold.recs.cap = level.n + 1;
	lull_fold_levels(&fold, lod);
}

/* The word that the program itself uses, as rows borrow it. */
static const char *known_kind(const char *text)
{
	static const char *const others[] = { LULL_ROW_DEVICE,	 LULL_ROW_PROCESS, LULL_ROW_THREAD,
					      LULL_ROW_IDLE,	 LULL_ROW_BUSY,	   LULL_ROW_CURVE,
					      LULL_ROW_PROJECTED };

	for (size_t i = 0; i < LULL_COUNT_OF(others); i++)
		if (!strcmp(text, others[i]))
			return others[i];
	for (size_t i = 0; lull_sources[i].kind; i++)
		if (!strcmp(text, lull_sources[i].kind))
			return lull_sources[i].kind;
	return NULL;
}

static u32 n_sources(void)
{
	u32 n = 0;

	while (lull_sources[n].kind)
		n++;
	return n;
}

static void get_rows(struct input *in, struct lull_timeline *t)
{
	size_t n = get_count(in, 8);

	for (size_t i = 0; i < n && !in->is_bad; i++) {
		struct lull_row *row = lull_vec_push(&t->rows);
		char *kind = get_text(in);

		row->kind = known_kind(kind);
		in->is_bad |= !row->kind;
		free(kind);
		row->key = get_text(in);
		row->title = get_text(in);
		row->parent = get_below(in, i + 1);
		row->parent = row->parent ? row->parent - 1 : LULL_NO_ROW;
		row->first_lane = (u32)get_u64(in);
		row->n_lanes = (u32)get_u64(in);
		row->curve = (u32)get_u64(in);
		row->n_events = get_u64(in);
		row->busy_ns = get_u64(in);
		row->id = (u32)get_u64(in);
		row->source = get_below(in, n_sources() + 1);
	}
}

static void get_lanes(struct input *in, struct lull_timeline *t)
{
	size_t n = get_count(in, 7);

	for (size_t i = 0; i < n && !in->is_bad; i++) {
		struct lull_tl_lane *lane = lull_vec_push(&t->lanes);

		lane->row = get_below(in, t->rows.n);
		lane->line = get_below(in, LULL_N_LINES);
		lane->group = (u32)get_u64(in);
		lane->source = get_below(in, n_sources() + 1);
		lane->source = lane->source ? lane->source - 1 : LULL_NO_ROW;
		lane->n_events = get_u64(in);
		lane->busy_ns = get_u64(in);
		if (get_below(in, 2))
			get_levels(in, &lane->lod);
	}
}

static void get_curves(struct input *in, struct lull_timeline *t)
{
	size_t n = get_count(in, 4);

	for (size_t i = 0; i < n && !in->is_bad; i++) {
		struct lull_curve *curve = lull_vec_push(&t->curves);
		size_t n_points;

		lull_vec_init(&curve->points, sizeof(struct lull_point));
		curve->row = get_below(in, t->rows.n);
		curve->name = get_text(in);
		curve->unit = get_text(in);
		n_points = get_count(in, 25);
		for (size_t k = 0; k < n_points; k++) {
			struct lull_point *p = lull_vec_push(&curve->points);

			p->at_ns = get_u64(in);
			p->min = get_f64(in);
			p->max = get_f64(in);
			p->last = get_f64(in);
		}
	}
}

/* Lanes and curves that rows name must be there, and lie beside each other. */
static bool is_consistent(const struct lull_timeline *t)
{
	size_t n_lanes;

	lull_reader_dim(t->reader, LULL_TABLE_lane, &n_lanes);
	for (u32 i = 0; i < t->rows.n; i++) {
		const struct lull_row *row = lull_timeline_row(t, i);

		if (row->curve > t->curves.n || row->n_lanes > t->lanes.n ||
		    row->first_lane > t->lanes.n - row->n_lanes)
			return false;
	}
	for (u32 i = 0; i < t->lanes.n; i++) {
		u32 group = lull_timeline_lane(t, i)->group;

		if (!(group & LULL_GROUP_DEVICE) && group > n_lanes)
			return false;
	}
	return true;
}

/* ---- files ---- */

static void path_beside(struct lull_str *to, const char *report)
{
	lull_str_clear(to);
	lull_str_addf(to, "%s-view", report);
}

static void path_in_cache(struct lull_str *to, const struct lull_timeline *t, const char *folder)
{
	const struct lull_file_info *info = lull_reader_info(t->reader);

	lull_str_clear(to);
	lull_str_addf(to, "%s/", folder);
	for (size_t i = 0; i < sizeof(info->id); i++)
		lull_str_addf(to, "%02x", info->id[i]);
	lull_str_puts(to, ".lull-view");
}

/* The unpacked payload of an index of this report, or NULL. */
static u8 *unpack(const struct lull_timeline *t, const u8 *file, size_t len, size_t *n)
{
	u64 size = len >= HEAD_BYTES ? lull_get_u64(file + 40) : 0;
	u8 *payload;

	if (len < HEAD_BYTES || memcmp(file, MAGIC, 8) || lull_get_u32(file + 8) != VERSION ||
	    memcmp(file + 16, lull_reader_info(t->reader)->id, 16) ||
	    lull_get_u64(file + 32) != lull_reader_size_bytes(t->reader) || size > MAX_BYTES ||
	    size > (16u << 20) + MAX_GROWTH * lull_reader_size_bytes(t->reader) ||
	    ZSTD_getFrameContentSize(file + HEAD_BYTES, len - HEAD_BYTES) != size ||
	    lull_crc32c(0, file + HEAD_BYTES, len - HEAD_BYTES) != lull_get_u32(file + 12))
		return NULL;
	payload = malloc(size + 1);
	if (payload &&
	    ZSTD_decompress(payload, size, file + HEAD_BYTES, len - HEAD_BYTES) == size) {
		*n = size;
		return payload;
	}
	free(payload);
	return NULL;
}

static u8 *read_file(const char *path, size_t *len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	u8 *bytes = NULL;

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && (u64)st.st_size < MAX_BYTES) {
		*len = (size_t)st.st_size;
		bytes = malloc(*len + 1);
		if (bytes && lull_io_read_at(fd, bytes, *len, 0) != (i64)*len) {
			free(bytes);
			bytes = NULL;
		}
	}
	close(fd);
	return bytes;
}

static void clear(struct lull_timeline *t)
{
	for (u32 i = 0; i < t->rows.n; i++) {
		free(lull_timeline_row(t, i)->key);
		free(lull_timeline_row(t, i)->title);
	}
	for (u32 i = 0; i < t->lanes.n; i++)
		lull_lod_release(&lull_timeline_lane(t, i)->lod);
	for (size_t i = 0; i < t->curves.n; i++)
		lull_curve_release(lull_vec_get(&t->curves, i));
	t->rows.n = t->lanes.n = t->curves.n = 0;
	t->n_events = 0;
}

static bool read_one(struct lull_timeline *t, const char *path)
{
	size_t len = 0, n = 0;
	u8 *file = read_file(path, &len), *payload = file ? unpack(t, file, len, &n) : NULL;
	struct input in = { payload, payload ? payload + n : NULL, payload == NULL };

	free(file);
	if (payload) {
		t->n_events = get_u64(&in);
		get_rows(&in, t);
		get_lanes(&in, t);
		get_curves(&in, t);
		in.is_bad |= !is_consistent(t);
	}
	free(payload);
	if (in.is_bad)
		clear(t);
	else
		t->index_bytes = len;
	return !in.is_bad;
}

bool lull_store_read(struct lull_timeline *t, const struct lull_timeline_options *options)
{
	struct lull_str path = LULL_STR_INIT;

	path_beside(&path, options->path);
	t->was_stored = read_one(t, lull_str_text(&path));
	if (!t->was_stored && options->cache_dir) {
		path_in_cache(&path, t, options->cache_dir);
		t->was_stored = read_one(t, lull_str_text(&path));
	}
	lull_str_release(&path);
	return t->was_stored;
}

/* Head and packed payload. */
static u8 *pack(const struct lull_timeline *t, size_t *len)
{
	struct lull_vec payload;
	size_t bound, packed;
	u8 *file;

	lull_vec_init(&payload, 1);
	lull_varint_add(&payload, t->n_events);
	put_rows(&payload, t);
	put_lanes(&payload, t);
	put_curves(&payload, t);
	bound = ZSTD_compressBound(payload.n);
	file = lull_alloc(HEAD_BYTES + bound, 1);
	packed = ZSTD_compress(file + HEAD_BYTES, bound, payload.at, payload.n, ZSTD_LEVEL);
	memcpy(file, MAGIC, 8);
	lull_put_u32(file + 8, VERSION);
	memcpy(file + 16, lull_reader_info(t->reader)->id, 16);
	lull_put_u64(file + 32, lull_reader_size_bytes(t->reader));
	lull_put_u64(file + 40, payload.n);
	lull_vec_release(&payload);
	if (ZSTD_isError(packed)) {
		free(file);
		return NULL;
	}
	lull_put_u32(file + 12, lull_crc32c(0, file + HEAD_BYTES, packed));
	*len = HEAD_BYTES + packed;
	return file;
}

/* Under another name first: another lull may be reading or writing it. */
static bool write_one(const char *path, const u8 *file, size_t len)
{
	struct lull_str part = LULL_STR_INIT;
	bool is_done = false;
	int fd;

	lull_str_addf(&part, "%s.%d", path, (int)getpid());
	fd = lull_io_create(lull_str_text(&part));
	if (fd >= 0) {
		is_done = !lull_io_write_at(fd, file, len, 0);
		close(fd);
		if (is_done)
			is_done = !rename(lull_str_text(&part), path);
		if (!is_done)
			unlink(lull_str_text(&part));
	}
	lull_str_release(&part);
	return is_done;
}

void lull_store_write(struct lull_timeline *t, const struct lull_timeline_options *options)
{
	struct lull_str path = LULL_STR_INIT;
	size_t len = 0;
	u8 *file = pack(t, &len);
	bool is_done = false;

	if (!file)
		return;
	path_beside(&path, options->path);
	is_done = write_one(lull_str_text(&path), file, len);
	if (!is_done && options->cache_dir) {
		path_in_cache(&path, t, options->cache_dir);
		is_done = write_one(lull_str_text(&path), file, len);
	}
	if (is_done)
		t->index_bytes = len;
	lull_str_release(&path);
	free(file);
}
