/*
 * tiles: what pictures are painted from.
 *
 *	tiles?l=21&t=3-6&r=0-15,40	level, tiles and lanes
 *
 *	 0  u32 magic 'LTL1'   u32 n   u8 level   u8 version   u16 0   u32 0
 *	16  n x { u32 lane   u32 tile   u32 count   u32 offset }
 *	    records of 16 bytes { u32 x0   u32 x1   u32 name   u16 count   u8 busy   u8 class }
 *	    behind the records of a lane with shares, count x u8 share[8]
 *
 * x counts 1/256 buckets of 2^level ns from the begin of the tile, 512 buckets wide; bit 31: it
 * goes on in the tile before (x0) or behind (x1). Times are
 * since the origin that `meta` tells. busy is 1 to 255; 255 and count 1 is one event with its exact
 * edges.
 */
#include "page/page.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/vec.h"
#include "timeline/detail.h"

#define TILE_BUCKETS 512u
#define GOES_ON	     (1u << 31)
#define MAX_TILES    8192u
#define MAX_BYTES    (8u << 20)
#define MAX_LEVEL    48u

struct tiles {
	struct lull_timeline *t;
	u32 level;
	u64 first_tile, last_tile;
	struct lull_vec lanes; /* u32 */
	struct lull_vec heads; /* u8 */
	struct lull_vec body;  /* u8 */
};

/* "3-6" or "3", at most `max`; the byte behind it, NULL if it is neither. */
static const char *parse_range(const char *text, u64 max, u64 *first, u64 *last)
{
	char *end;

	if (*text < '0' || *text > '9')
		return NULL;
	*first = *last = strtoull(text, &end, 10);
	if (*end == '-') {
		if (end[1] < '0' || end[1] > '9')
			return NULL;
		*last = strtoull(end + 1, &end, 10);
	}
	return *last > max || *first > *last ? NULL : end;
}

static int parse_lanes(struct tiles *x, const char *text, struct lull_err *err)
{
	u64 n_tiles = x->last_tile - x->first_tile + 1, first, last;

	while (text && *text) {
		text = parse_range(text, UINT32_MAX, &first, &last);
		if (!text || last >= x->t->lanes.n)
			return lull_fail(err, LULL_E_USAGE, "r names no lanes");
		if ((x->lanes.n + last - first + 1) * n_tiles > MAX_TILES)
			return lull_fail(err, LULL_E_UNSUPPORTED, "more than %u tiles", MAX_TILES);
		for (; first <= last; first++)
			*(u32 *)lull_vec_push(&x->lanes) = (u32)first;
		if (*text && *text++ != ',')
			return lull_fail(err, LULL_E_USAGE, "r names no lanes");
	}
	return LULL_OK;
}

static int parse(struct tiles *x, const struct lull_args *args, struct lull_err *err)
{
	const char *t = lull_args_get(args, "t"), *r = lull_args_get(args, "r"), *end;
	u64 level;

	if (lull_args_u64(args, "l", MAX_LEVEL, 20, &level, err))
		return err->code;
	x->level = (u32)level;
	end = t ? parse_range(t, UINT32_MAX, &x->first_tile, &x->last_tile) : NULL;
	if (!end || *end || !r)
		return lull_fail(err, LULL_E_USAGE, "t and r say which tiles of which lanes");
	if (x->last_tile - x->first_tile >= MAX_TILES)
		return lull_fail(err, LULL_E_UNSUPPORTED, "more than %u tiles", MAX_TILES);
	return parse_lanes(x, r, err);
}

static u8 class_of(const struct lull_rec *rec)
{
	u8 best = 0;

	for (u8 c = 1; c < LULL_N_CLASSES; c++)
		best = rec->share[c] > rec->share[best] ? c : best;
	return best;
}

static u8 busy_of(const struct lull_rec *rec)
{
	u64 len_ns = rec->end_ns - rec->start_ns;
	u64 busy = len_ns && rec->busy_ns < len_ns ? (u64)(255.0 * (f64)rec->busy_ns / (f64)len_ns)
						   : 255;

	/* Only a single event is entirely busy and certain of its edges. */
	if (rec->count > 1 && busy == 255)
		busy = 254;
	return (u8)(busy ? busy : 1);
}

/* A place in the tile that begins at `origin_ns`. */
static u32 place(const struct tiles *x, u64 at_ns, u64 origin_ns)
{
	f64 buckets = (f64)(at_ns - origin_ns) / (f64)(1ull << x->level);

	return (u32)(buckets * 256.0 + 0.5);
}

static void put_record(struct tiles *x, const struct lull_rec *rec, struct lull_span tile)
{
	u8 *at = lull_vec_extend(&x->body, 16);
	u64 from = rec->start_ns < tile.from_ns ? tile.from_ns : rec->start_ns;
	u64 to = rec->end_ns > tile.to_ns ? tile.to_ns : rec->end_ns;

	lull_put_u32(at,
		     place(x, from, tile.from_ns) | (rec->start_ns < tile.from_ns ? GOES_ON : 0));
	lull_put_u32(at + 4, place(x, to, tile.from_ns) | (rec->end_ns > tile.to_ns ? GOES_ON : 0));
	lull_put_u32(at + 8, rec->name);
	lull_put_u16(at + 12, (u16)(rec->count > 65535 ? 65535 : rec->count));
	at[14] = busy_of(rec);
	at[15] = class_of(rec);
}

static bool has_shares(const struct lull_tl_lane *lane)
{
	return lane->source == LULL_NO_ROW ||
	       lull_sources[lane->source].flags & LULL_SOURCE_HAS_SHARES;
}

static void put_tile(struct tiles *x, u32 lane, u64 tile)
{
	u64 origin_ns = x->t->origin_ns, width_ns = (u64)TILE_BUCKETS << x->level;
	struct lull_span span = { origin_ns + tile * width_ns, origin_ns + (tile + 1) * width_ns };
	struct lull_fold fold;
	const struct lull_rec *recs;
	u32 n = 0;
	u8 *head;

	lull_fold_init(&fold, x->level, false);
	lull_detail_fold(x->t, lane, span, &fold);
	recs = fold.recs.at;
	head = lull_vec_extend(&x->heads, 16);
	lull_put_u32(head, lane);
	lull_put_u32(head + 4, (u32)tile);
	lull_put_u32(head + 12, (u32)x->body.n);
	for (size_t i = 0; i < fold.recs.n; i++) {
		/* What ends with the begin of the tile is the one before's. */
		if (recs[i].start_ns >= span.to_ns ||
		    (recs[i].end_ns <= span.from_ns && recs[i].start_ns < span.from_ns))
			continue;
		put_record(x, &recs[i], span);
		n++;
	}
	lull_put_u32(head + 8, n);
	for (size_t i = 0; i < fold.recs.n && has_shares(lull_timeline_lane(x->t, lane)); i++) {
		if (recs[i].start_ns >= span.to_ns ||
		    (recs[i].end_ns <= span.from_ns && recs[i].start_ns < span.from_ns))
			continue;
		memcpy(lull_vec_extend(&x->body, LULL_N_CLASSES), recs[i].share, LULL_N_CLASSES);
	}
	while (x->body.n % 16)
		lull_vec_push(&x->body);
	lull_fold_release(&fold);
}

static void put_answer(struct tiles *x, FILE *to)
{
	u8 head[16] = { 'L', 'T', 'L', '1' };
	u8 *heads = x->heads.at;
	u32 n = (u32)(x->heads.n / 16);

	lull_put_u32(head + 4, n);
	head[8] = (u8)x->level;
	head[9] = 1;
	for (u32 i = 0; i < n; i++)
		lull_put_u32(heads + (size_t)16 * i + 12,
			     lull_get_u32(heads + (size_t)16 * i + 12) + 16 + 16 * n);
	fwrite(head, 1, sizeof(head), to);
	fwrite(heads, 1, x->heads.n, to);
	fwrite(x->body.at, 1, x->body.n, to);
}

static int run(struct lull_question *q, struct lull_err *err)
{
	struct tiles x = { .t = q->report->timeline };
	const u32 *lanes;
	int rc;

	lull_vec_init(&x.lanes, sizeof(u32));
	lull_vec_init(&x.heads, 1);
	lull_vec_init(&x.body, 1);
	rc = parse(&x, q->args, err);
	lanes = x.lanes.at;
	for (size_t i = 0; !rc && i < x.lanes.n; i++) {
		for (u64 tile = x.first_tile; tile <= x.last_tile; tile++)
			put_tile(&x, lanes[i], tile);
		if (x.body.n > MAX_BYTES)
			rc = lull_fail(err, LULL_E_UNSUPPORTED, "more than %u MB of tiles",
				       MAX_BYTES >> 20);
	}
	if (!rc && x.heads.n)
		put_answer(&x, q->to);
	else if (!rc)
		rc = lull_fail(err, LULL_E_USAGE, "r names no lanes");
	lull_vec_release(&x.lanes);
	lull_vec_release(&x.heads);
	lull_vec_release(&x.body);
	return rc;
}

const struct lull_answer lull_answer_tiles = {
	.name = "tiles",
	.type = "application/octet-stream",
	.run = run,
};
