/*
 * tiles: what pictures are painted from.
 *
 *	tiles?l=21&t=3-6&r=0-15,40	level, tiles and lanes
 *
 *	 0  u32 magic 'LTL1'   u32 n   u8 level   u8 version   u16 0   u32 0
 *	16  n x { u32 lane   u32 tile   u32 count   u32 offset }
 *	    records of 16 bytes { u32 x0   u32 x1   u32 name   u16 count   u8 busy   u8 class }
 *	    after the records of a lane with shares, count x u8 share[8]
 *
 * x counts 1/256 buckets of 2^level ns from the start of the tile, 512 buckets wide; bit 31: it
 * goes on in the tile before (x0) or after (x1). Times are
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
	struct lull_vec lanes;	/* u32 */
	struct lull_vec heads;	/* u8 */
	struct lull_vec body;	/* u8 */
	struct lull_vec shares; /* u8: of the tile that is written */
	struct lull_fold fold;
};

/* "3-6" or "3", at most `max`; the byte after it, NULL if it is neither. */
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
			return lull_fail(err, LULL_E_USAGE, "r is not a list of lanes");
		if ((x->lanes.n + last - first + 1) * n_tiles > MAX_TILES)
			return lull_fail(err, LULL_E_UNSUPPORTED, "more than %u tiles", MAX_TILES);
		for (; first <= last; first++)
			*(u32 *)lull_vec_push(&x->lanes) = (u32)first;
		if (*text && *text++ != ',')
			return lull_fail(err, LULL_E_USAGE, "r is not a list of lanes");
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
		return lull_fail(err, LULL_E_USAGE, "t and r must name tiles and lanes");
	if (x->last_tile - x->first_tile >= MAX_TILES)
		return lull_fail(err, LULL_E_UNSUPPORTED, "more than %u tiles", MAX_TILES);
	if (x->last_tile >= (UINT64_MAX / 4 / TILE_BUCKETS) >> x->level)
		return lull_fail(err, LULL_E_USAGE, "t is beyond the end of the recording");
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

/* Nanoseconds from the start of a tile as 1/256 buckets. */
static u32 place(u32 level, u64 ns)
{
	return (u32)(level > 8 ? ((ns >> (level - 9)) + 1) >> 1 : ns << (8 - level));
}

static void put_record(u8 *at, u32 level, const struct lull_rec *rec, struct lull_span tile)
{
	u64 from = rec->start_ns < tile.from_ns ? tile.from_ns : rec->start_ns;
	u64 to = rec->end_ns > tile.to_ns ? tile.to_ns : rec->end_ns;

	lull_put_u32(at, place(level, from - tile.from_ns) |
				 (rec->start_ns < tile.from_ns ? GOES_ON : 0));
	lull_put_u32(at + 4,
		     place(level, to - tile.from_ns) | (rec->end_ns > tile.to_ns ? GOES_ON : 0));
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

/* What ends with the start of a tile is the one before's. */
static bool ends_before(const struct lull_rec *rec, struct lull_span tile)
{
	return rec->end_ns <= tile.from_ns && rec->start_ns < tile.from_ns;
}

/* The records, from the first that may touch it, of one tile; they are as many as `n` at most. */
static void put_tile(struct tiles *x, u32 lane, struct lull_span tile, const struct lull_rec *recs,
		     size_t n)
{
	u64 width_ns = (u64)TILE_BUCKETS << x->level;
	u8 *head = lull_vec_extend(&x->heads, 16), *at, *shares;
	size_t n_put = 0;

	lull_put_u32(head, lane);
	lull_put_u32(head + 4, (u32)((tile.from_ns - x->t->origin_ns) / width_ns));
	lull_put_u32(head + 12, (u32)x->body.n);
	at = lull_vec_room(&x->body, 16 * n + 16);
	x->shares.n = 0;
	shares = lull_vec_room(&x->shares, LULL_N_CLASSES * n);
	for (size_t i = 0; i < n && recs[i].start_ns < tile.to_ns; i++) {
		if (ends_before(&recs[i], tile))
			continue;
		put_record(at + 16 * n_put, x->level, &recs[i], tile);
		memcpy(shares + LULL_N_CLASSES * n_put, recs[i].share, LULL_N_CLASSES);
		n_put++;
	}
	lull_put_u32(head + 8, (u32)n_put);
	x->body.n += 16 * n_put;
	if (has_shares(lull_timeline_lane(x->t, lane)))
		lull_vec_add(&x->body, shares, LULL_N_CLASSES * n_put);
	while (x->body.n % 16)
		lull_vec_push(&x->body);
}

/* All tiles of a lane are folded at once: buckets of one tile begin in no other. */
static void put_lane(struct tiles *x, u32 lane)
{
	u64 width_ns = (u64)TILE_BUCKETS << x->level;
	u64 from_ns = x->t->origin_ns + x->first_tile * width_ns;
	struct lull_span all = { from_ns, from_ns + (x->last_tile - x->first_tile + 1) * width_ns };
	struct lull_span tile = { from_ns, from_ns + width_ns };
	const struct lull_rec *recs;
	size_t first = 0, end = 0;

	lull_fold_again(&x->fold, x->level);
	lull_detail_fold(x->t, lane, all, &x->fold);
	recs = x->fold.recs.at;
	for (; tile.to_ns <= all.to_ns; tile.from_ns = tile.to_ns, tile.to_ns += width_ns) {
		while (first < x->fold.recs.n && ends_before(&recs[first], tile))
			first++;
		for (end = end > first ? end : first;
		     end < x->fold.recs.n && recs[end].start_ns < tile.to_ns;)
			end++;
		put_tile(x, lane, tile, recs + first, end - first);
	}
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
	lull_vec_init(&x.shares, 1);
	lull_fold_init(&x.fold, 0, false);
	rc = parse(&x, q->args, err);
	lanes = x.lanes.at;
	for (size_t i = 0; !rc && i < x.lanes.n; i++) {
		put_lane(&x, lanes[i]);
		if (x.body.n > MAX_BYTES)
			rc = lull_fail(err, LULL_E_UNSUPPORTED, "more than %u MB of tiles",
				       MAX_BYTES >> 20);
	}
	if (!rc && x.heads.n)
		put_answer(&x, q->to);
	else if (!rc)
		rc = lull_fail(err, LULL_E_USAGE, "r is not a list of lanes");
	lull_vec_release(&x.lanes);
	lull_vec_release(&x.heads);
	lull_vec_release(&x.body);
	lull_vec_release(&x.shares);
	lull_fold_release(&x.fold);
	return rc;
}

const struct lull_answer lull_answer_tiles = {
	.name = "tiles",
	.type = "application/octet-stream",
	.run = run,
};
