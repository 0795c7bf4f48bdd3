#include "trace/codec.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/mem.h"

#define MODE_CONST  0u
#define MODE_RAW    1u
#define MODE_ZSTD   2u
#define MODE_SHIFT  30
#define LENGTH_MASK ((1u << MODE_SHIFT) - 1)

/* Levels above 1 gain 0-1.3 % on columns for up to 7 times the time; text is little, and gains
 * more. */
#define COLUMN_LEVEL 1
#define TEXT_LEVEL   3

/*
 * Planes repeat either at length or by chance: short matches cost more than they save, and a table
 * of 2,048 places stays in the L1 cache. Sealing 4 % faster, files of the same size (bench_format).
 */
#define COLUMN_MATCH_BYTES 7
#define COLUMN_HASH_LOG	   11

/* Values are split this many at a time, so that they stay in the L1 cache for all planes. */
#define SPLIT_VALUES 2048u

/* A frame must save one part in 32, else the plane stays raw and decodes for nothing. */
#define RAW_SHARE 32
/* Below this the frame's own head eats what it saves. */
#define MIN_FRAME_BYTES 24

/* Quanta that clocks are known to have: 1000 old imports, 32 devices, 10 and 40 some arm64
 * counters. */
#define QUANTUM_SAMPLES 64
#define QUANTUM_LIMIT	(1ULL << 62) /* larger values are not split: rounding must not wrap */

struct lull_codec {
	ZSTD_CCtx *compress; /* made at first use: most codecs only encode or only decode */
	ZSTD_DCtx *decompress;
	size_t cap; /* values the scratch has room for: small reports take little of it */
	u64 *work;  /* cap values */
	u8 *planes; /* LULL_MAX_PLANES planes of cap bytes, and the remainders after them */
};

/* Planes of one column, ready to be joined: those that are constant are in `base`. */
struct plane_set {
	u64 base;
	unsigned n;
	const u8 *at[LULL_MAX_PLANES];
	u8 shift[LULL_MAX_PLANES];
	const u8 *remainder; /* NULL if there is no quantum */
};

struct lull_codec *lull_codec_new(void)
{
	return lull_alloc(1, sizeof(struct lull_codec));
}

/* Make room for n values. */
static void reserve(struct lull_codec *c, size_t n)
{
	if (n <= c->cap)
		return;
	c->cap = n < LULL_MAX_ROWS / 16 ? LULL_MAX_ROWS / 16 : LULL_MAX_ROWS;
	free(c->work);
	free(c->planes);
	c->work = lull_alloc(c->cap, sizeof(*c->work));
	c->planes = lull_alloc(LULL_MAX_PLANES + 1, c->cap);
}

void lull_codec_free(struct lull_codec *c)
{
	if (!c)
		return;
	ZSTD_freeCCtx(c->compress);
	ZSTD_freeDCtx(c->decompress);
	free(c->work);
	free(c->planes);
	free(c);
}

size_t lull_codec_bound(size_t n)
{
	return (LULL_MAX_PLANES + 1) * (n + 4);
}

/* ---- one plane ---- */

/* A context whose own settings are those of columns; text asks for its level each time. */
static ZSTD_CCtx *new_compress(void)
{
	ZSTD_CCtx *cctx = ZSTD_createCCtx();

	ZSTD_CCtx_setParameter(cctx, ZSTD_c_compressionLevel, COLUMN_LEVEL);
	ZSTD_CCtx_setParameter(cctx, ZSTD_c_minMatch, COLUMN_MATCH_BYTES);
	ZSTD_CCtx_setParameter(cctx, ZSTD_c_hashLog, COLUMN_HASH_LOG);
	return cctx;
}

/* Store a plane that is not constant; returns its bytes at `out` and fills its u32 at `entry`. */
static size_t put_plane(struct lull_codec *c, const u8 *plane, size_t n, bool is_text, u8 *entry,
			u8 *out)
{
	size_t room = n - (n / RAW_SHARE ? n / RAW_SHARE : 1);
	size_t got;

	if (!c->compress)
		c->compress = new_compress();
	if (n >= MIN_FRAME_BYTES) {
		got = is_text ? ZSTD_compressCCtx(c->compress, out, room, plane, n, TEXT_LEVEL)
			      : ZSTD_compress2(c->compress, out, room, plane, n);
		if (!ZSTD_isError(got)) {
			lull_put_u32(entry, MODE_ZSTD << MODE_SHIFT | (u32)got);
			return got;
		}
	}
	memcpy(out, plane, n);
	lull_put_u32(entry, MODE_RAW << MODE_SHIFT | (u32)n);
	return n;
}

/* A plane as it lies in the file. */
struct stored_plane {
	u32 mode;
	u8 value;	 /* CONST */
	const u8 *bytes; /* RAW, ZSTD */
	size_t len;
};

/* Read plane entry `ix` of `n_entries`; *off is where its bytes begin and is moved past them. */
static int get_plane(const u8 *bytes, size_t len, unsigned ix, size_t *off, struct stored_plane *p)
{
	u32 entry = lull_get_u32(bytes + ix * 4);

	p->mode = entry >> MODE_SHIFT;
	if (p->mode > MODE_ZSTD)
		return LULL_E_UNSUPPORTED;
	if (p->mode == MODE_CONST) {
		p->value = (u8)entry;
		return (entry & LENGTH_MASK) > 0xff ? LULL_E_FORMAT : 0;
	}
	p->len = entry & LENGTH_MASK;
	p->bytes = bytes + *off;
	if (p->len > len - *off)
		return LULL_E_FORMAT;
	*off += p->len;
	return 0;
}

/* The n bytes of a RAW or ZSTD plane: in place, or decompressed into `room`. */
static int open_plane(struct lull_codec *c, const struct stored_plane *p, size_t n, u8 *room,
		      const u8 **plane)
{
	if (p->mode == MODE_RAW) {
		*plane = p->bytes;
		return p->len == n ? 0 : LULL_E_FORMAT;
	}
	*plane = room;
	if (!c->decompress)
		c->decompress = ZSTD_createDCtx();
	return ZSTD_decompressDCtx(c->decompress, room, n, p->bytes, p->len) == n ? 0
										  : LULL_E_FORMAT;
}

/* ---- encoding ---- */

static bool is_predicted(u8 predictor)
{
	return predictor != LULL_ENC_PLAIN && predictor != LULL_ENC_LANE;
}

static u64 zigzag(u64 v)
{
	return v << 1 ^ (u64) - (i64)(v >> 63);
}

static u64 unzigzag(u64 v)
{
	return v >> 1 ^ (u64) - (i64)(v & 1);
}

static u8 bytes_needed(u64 v)
{
	u8 n = 0;

	for (; v; v >>= 8)
		n++;
	return n;
}

/* Per width: the smallest and largest value, the values as u64, and byte b of all values. */
#define DEFINE_LOAD(T)                                                              \
	static void bounds_##T(const T *v, size_t n, u64 *min, u64 *max)            \
	{                                                                           \
		T lo = v[0], hi = v[0];                                             \
                                                                                    \
		for (size_t i = 1; i < n; i++) {                                    \
			lo = v[i] < lo ? v[i] : lo;                                 \
			hi = v[i] > hi ? v[i] : hi;                                 \
		}                                                                   \
		*min = lo;                                                          \
		*max = hi;                                                          \
	}                                                                           \
                                                                                    \
	static void widen_##T(const T *v, size_t n, u64 *restrict out)              \
	{                                                                           \
		for (size_t i = 0; i < n; i++)                                      \
			out[i] = v[i];                                              \
	}                                                                           \
                                                                                    \
	static void split_##T(const T *v, size_t n, unsigned b, u8 *restrict plane) \
	{                                                                           \
		for (size_t i = 0; i < n; i++)                                      \
			plane[i] = (u8)(v[i] >> 8 * b);                             \
	}
DEFINE_LOAD(u8)
DEFINE_LOAD(u16)
DEFINE_LOAD(u32)
DEFINE_LOAD(u64)

/* Call the function of the width that values at `at` have. */
#define BY_WIDTH(name, size_bytes, at, ...)                \
	((size_bytes) == 1   ? name##_u8(at, __VA_ARGS__)  \
	 : (size_bytes) == 2 ? name##_u16(at, __VA_ARGS__) \
	 : (size_bytes) == 4 ? name##_u32(at, __VA_ARGS__) \
			     : name##_u64(at, __VA_ARGS__))

/* True if 9 of 10 samples that are large enough to tell lie within 1 of a multiple of q. */
static bool sits_on(const u64 *samples, u64 q)
{
	unsigned n_large = 0, n_hits = 0;

	for (size_t i = 0; i < QUANTUM_SAMPLES; i++) {
		u64 rest = samples[i] % q;

		n_large += samples[i] >= q - 1;
		n_hits += samples[i] >= q - 1 && (rest <= 1 || rest == q - 1);
	}
	return n_large * 2 >= QUANTUM_SAMPLES && n_hits * 10 >= n_large * 9;
}

/* v = q * quantum + r with q rounded to nearest. */
static i64 round_to(i64 v, i64 quantum)
{
	return (v >= 0 ? v + quantum / 2 : v - quantum / 2) / quantum;
}

/* True if every value may be split: no rounding can wrap, and every remainder fits its byte. */
static bool can_split(const u64 *v, size_t n, i64 quantum)
{
	for (size_t i = 0; i < n; i++) {
		i64 rest;

		if (v[i] + QUANTUM_LIMIT >= 2 * QUANTUM_LIMIT)
			return false;
		rest = (i64)v[i] - round_to((i64)v[i], quantum) * quantum;
		if (rest != (int8_t)rest)
			return false;
	}
	return true;
}

/* The quantum of these times, 1 if they have none that all of them fit. */
static u16 pick_quantum(const u64 *v, size_t n, bool is_signed)
{
	static const u16 quanta[] = { 1000, 40, 32, 10 };
	u64 samples[QUANTUM_SAMPLES];

	if (n < QUANTUM_SAMPLES)
		return 1;
	for (size_t i = 0; i < QUANTUM_SAMPLES; i++) {
		u64 value = v[i * n / QUANTUM_SAMPLES];

		samples[i] = is_signed && value >> 63 ? -value : value;
	}
	for (size_t k = 0; k < LULL_COUNT_OF(quanta); k++)
		if (sits_on(samples, quanta[k]) && can_split(v, n, quanta[k]))
			return quanta[k];
	return 1;
}

static void split_quantum(u64 *v, size_t n, i64 quantum, u8 *remainder)
{
	for (size_t i = 0; i < n; i++) {
		i64 q = round_to((i64)v[i], quantum);

		remainder[i] = (u8)((i64)v[i] - q * quantum);
		v[i] = (u64)q;
	}
}

static void put_const(u8 *entry, u8 value)
{
	lull_put_u32(entry, MODE_CONST << MODE_SHIFT | value);
}

/* A column whose values are all `value`. */
static size_t put_constant_column(u64 value, struct lull_form *f, u8 *out)
{
	f->n_planes = bytes_needed(value);
	for (unsigned b = 0; b < f->n_planes; b++)
		put_const(out + b * 4, (u8)(value >> 8 * b));
	return f->n_planes * 4;
}

/* Zigzag in place; returns the OR of the results. */
static u64 zigzag_all(u64 *restrict v, size_t n)
{
	u64 any = 0;

	for (size_t i = 0; i < n; i++) {
		v[i] = zigzag(v[i]);
		any |= v[i];
	}
	return any;
}

/*
 * Store a plane of any kind. Different bytes are found at once, so asking whether it is constant
 * costs nothing.
 */
static size_t put_any_plane(struct lull_codec *c, const u8 *plane, size_t n, u8 *entry, u8 *out)
{
	if (memcmp(plane, plane + 1, n - 1) == 0) {
		put_const(entry, plane[0]);
		return 0;
	}
	return put_plane(c, plane, n, false, entry, out);
}

/* Byte b of all values to plane b; some values at a time, so that they stay in the L1 cache. */
static void split_all(struct lull_codec *c, const struct lull_col_values *v, unsigned n_planes)
{
	for (size_t first = 0; first < v->n; first += SPLIT_VALUES) {
		const u8 *at = (const u8 *)v->at + first * v->size_bytes;
		size_t n = v->n - first < SPLIT_VALUES ? v->n - first : SPLIT_VALUES;

		for (unsigned b = 0; b < n_planes; b++)
			BY_WIDTH(split, v->size_bytes, (const void *)at, n, b,
				 c->planes + b * c->cap + first);
	}
}

/* Split values into planes and store them, the remainder plane first if there is one. */
static size_t put_planes(struct lull_codec *c, const struct lull_col_values *v,
			 const struct lull_form *f, u8 *out)
{
	unsigned has_rest = f->quantum > 1;
	u8 *entry = out, *at = out + (f->n_planes + has_rest) * 4;

	if (has_rest) {
		at += put_any_plane(c, c->planes + LULL_MAX_PLANES * c->cap, v->n, entry, at);
		entry += 4;
	}
	split_all(c, v, f->n_planes);
	for (unsigned b = 0; b < f->n_planes; b++, entry += 4)
		at += put_any_plane(c, c->planes + b * c->cap, v->n, entry, at);
	return (size_t)(at - out);
}

/*
 * Predict, split off the quantum and zigzag into c->work; returns a value that needs as many bytes
 * as the largest.
 */
static u64 transform(struct lull_codec *c, const struct lull_col_values *v, struct lull_form *f)
{
	BY_WIDTH(widen, v->size_bytes, v->at, v->n, c->work);
	f->first = is_predicted(f->predictor) ? c->work[0] : 0;
	lull_predict(f->predictor, &v->by, f->first, c->work, v->n);
	if (v->is_time)
		f->quantum = pick_quantum(c->work, v->n, f->is_zigzag);
	if (f->quantum > 1)
		split_quantum(c->work, v->n, f->quantum, c->planes + LULL_MAX_PLANES * c->cap);
	if (f->is_zigzag)
		return zigzag_all(c->work, v->n);
	return f->quantum > 1 ? (u64)round_to((i64)f->max, f->quantum) : f->max;
}

size_t lull_codec_encode(struct lull_codec *c, const struct lull_col_values *v, struct lull_form *f,
			 u8 *out)
{
	struct lull_col_values work = { .n = v->n, .size_bytes = sizeof(*c->work) };
	u64 largest;

	assert(v->n >= 1 && v->n <= LULL_MAX_ROWS);
	reserve(c, v->n);
	*f = (struct lull_form){ .predictor = v->predictor, .quantum = 1 };
	f->is_zigzag = v->is_signed || is_predicted(v->predictor);
	BY_WIDTH(bounds, v->size_bytes, v->at, v->n, &f->min, &f->max);
	if (!is_predicted(v->predictor) && f->min == f->max)
		return put_constant_column(f->is_zigzag ? zigzag(f->min) : f->min, f, out);
	/* Most columns are plain numbers: their planes are cut from where they lie. */
	if (!f->is_zigzag && !(v->is_time && pick_quantum(v->at, v->n, false) > 1)) {
		f->n_planes = bytes_needed(f->max);
		return put_planes(c, v, f, out);
	}
	largest = transform(c, v, f);
	work.at = c->work;
	f->n_planes = bytes_needed(largest);
	return put_planes(c, &work, f, out);
}

/* ---- decoding ---- */

/* Join planes into values of one width; the common counts are written out so that they vectorise.
 */
#define PLANE(k, T) ((T)p->at[k][i] << p->shift[k])
#define DEFINE_JOIN(T)                                                                        \
	static void join_##T(const struct plane_set *p, size_t n, T *restrict out)            \
	{                                                                                     \
		const T base = (T)p->base;                                                    \
                                                                                              \
		switch (p->n) {                                                               \
		case 0:                                                                       \
			for (size_t i = 0; i < n; i++)                                        \
				out[i] = base;                                                \
			break;                                                                \
		case 1:                                                                       \
			for (size_t i = 0; i < n; i++)                                        \
				out[i] = (T)(base | PLANE(0, T));                             \
			break;                                                                \
		case 2:                                                                       \
			for (size_t i = 0; i < n; i++)                                        \
				out[i] = (T)(base | PLANE(0, T) | PLANE(1, T));               \
			break;                                                                \
		case 3:                                                                       \
			for (size_t i = 0; i < n; i++)                                        \
				out[i] = (T)(base | PLANE(0, T) | PLANE(1, T) | PLANE(2, T)); \
			break;                                                                \
		default:                                                                      \
			for (size_t i = 0; i < n; i++)                                        \
				out[i] = (T)(base | PLANE(0, T) | PLANE(1, T) | PLANE(2, T) | \
					     PLANE(3, T));                                    \
			for (unsigned k = 4; k < p->n; k++)                                   \
				for (size_t i = 0; i < n; i++)                                \
					out[i] = (T)(out[i] | PLANE(k, T));                   \
		}                                                                             \
	}
DEFINE_JOIN(u8)
DEFINE_JOIN(u16)
DEFINE_JOIN(u32)
DEFINE_JOIN(u64)

static void join(const struct plane_set *p, const struct lull_col_target *to)
{
	switch (to->size_bytes) {
	case 1:
		join_u8(p, to->n, to->at);
		return;
	case 2:
		join_u16(p, to->n, to->at);
		return;
	case 4:
		join_u32(p, to->n, to->at);
		return;
	default:
		join_u64(p, to->n, to->at);
	}
}

/* Store u64 values in a narrower array; false if one does not fit. */
static bool narrow(const u64 *v, const struct lull_col_target *to)
{
	u64 any = 0;

	for (size_t i = 0; i < to->n; i++)
		any |= v[i];
	if (any >> 8 * to->size_bytes)
		return false;
	if (to->size_bytes == 1)
		for (size_t i = 0; i < to->n; i++)
			((u8 *)to->at)[i] = (u8)v[i];
	else if (to->size_bytes == 2)
		for (size_t i = 0; i < to->n; i++)
			((u16 *)to->at)[i] = (u16)v[i];
	else
		for (size_t i = 0; i < to->n; i++)
			((u32 *)to->at)[i] = (u32)v[i];
	return true;
}

static void unzigzag_all(u64 *restrict v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		v[i] = unzigzag(v[i]);
}

/* Undo zigzag, quantum and prediction in place. */
static void rebuild(const struct lull_form *f, const struct plane_set *p,
		    const struct lull_col_target *to, u64 *v)
{
	if (f->is_zigzag)
		unzigzag_all(v, to->n);
	if (p->remainder)
		for (size_t i = 0; i < to->n; i++)
			v[i] = v[i] * f->quantum + (u64)(i64)(int8_t)p->remainder[i];
	lull_restore(f->predictor, &to->by, f->first, v, to->n);
}

/* Find and decompress all planes of a column. */
static int open_planes(struct lull_codec *c, const struct lull_form *f, const u8 *bytes, size_t len,
		       size_t n, struct plane_set *p)
{
	unsigned has_rest = f->quantum > 1;
	size_t off = (f->n_planes + has_rest) * 4;
	u8 *room = c->planes;

	*p = (struct plane_set){ 0 };
	if (off > len)
		return LULL_E_FORMAT;
	for (unsigned k = 0; k < f->n_planes + has_rest; k++, room += c->cap) {
		bool is_rest = has_rest && k == 0;
		unsigned shift = 8 * (k - has_rest);
		struct stored_plane stored;
		int rc = get_plane(bytes, len, k, &off, &stored);

		if (rc)
			return rc;
		if (stored.mode == MODE_CONST && is_rest) {
			p->remainder = memset(room, stored.value, n);
		} else if (stored.mode == MODE_CONST) {
			p->base |= (u64)stored.value << shift;
		} else if (is_rest) {
			rc = open_plane(c, &stored, n, room, &p->remainder);
		} else {
			p->shift[p->n] = (u8)shift;
			rc = open_plane(c, &stored, n, room, &p->at[p->n++]);
		}
		if (rc)
			return rc;
	}
	return off == len ? 0 : LULL_E_FORMAT;
}

/* Can this version, with what the block has, undo the prediction? */
static int check_form(const struct lull_form *f, const struct lull_col_target *to)
{
	if (f->predictor > LULL_ENC_LANE)
		return LULL_E_UNSUPPORTED;
	if (f->n_planes > LULL_MAX_PLANES || f->quantum == 0 || to->n > LULL_MAX_ROWS)
		return LULL_E_FORMAT;
	if (f->predictor == LULL_ENC_GAP && !to->by.dur_ns)
		return LULL_E_FORMAT;
	if (f->predictor == LULL_ENC_DEPTH && !(to->by.dur_ns && to->by.depth))
		return LULL_E_FORMAT;
	return 0;
}

int lull_codec_decode(struct lull_codec *c, const struct lull_form *f, const u8 *bytes, size_t len,
		      const struct lull_col_target *to)
{
	bool is_plain = !is_predicted(f->predictor) && f->quantum == 1 && !f->is_zigzag;
	struct lull_col_target wide = { .n = to->n, .size_bytes = 8 };
	struct plane_set planes;
	int rc = check_form(f, to);

	if (!rc) {
		reserve(c, to->n);
		rc = open_planes(c, f, bytes, len, to->n, &planes);
	}
	if (rc)
		return rc;
	if (is_plain) {
		if (f->n_planes > to->size_bytes)
			return LULL_E_FORMAT;
		join(&planes, to);
		return 0;
	}
	wide.at = to->size_bytes == 8 ? to->at : c->work;
	join(&planes, &wide);
	rebuild(f, &planes, to, wide.at);
	if (to->size_bytes < 8 && !narrow(wide.at, to))
		return LULL_E_FORMAT;
	return 0;
}

size_t lull_codec_pack(struct lull_codec *c, const u8 *text, size_t n, u8 *out)
{
	if (!n) {
		put_const(out, 0);
		return 4;
	}
	return 4 + put_plane(c, text, n, true, out, out + 4);
}

int lull_codec_unpack(struct lull_codec *c, const u8 *bytes, size_t len, u8 *text, size_t n)
{
	struct stored_plane stored;
	const u8 *plane;
	size_t off = 4;
	int rc;

	if (len < 4)
		return LULL_E_FORMAT;
	rc = get_plane(bytes, len, 0, &off, &stored);
	if (rc)
		return rc;
	if (off != len)
		return LULL_E_FORMAT;
	if (stored.mode == MODE_CONST) {
		memset(text, stored.value, n);
		return 0;
	}
	rc = open_plane(c, &stored, n, text, &plane);
	if (!rc && plane != text)
		memcpy(text, plane, n);
	return rc;
}
