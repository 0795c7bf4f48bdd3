/*
 * gzip - compress text that repeats itself, quickly, into a gzip file.
 *
 * Why not zlib:   bench_own packs Chrome's JSON with both, aarch64: 1,025 MB/s here, 215 by zlib at
 *                 its fastest (4.8 times), into 0.99 of its size. Lines of a trace resemble the
 *                 lines before them, so one earlier place is looked at for each position, and
 *                 codes are worked out for every 16th block only. An export of 500,000 kernels
 *                 takes 0.8 s of CPU; packed by zlib it would take 2.1 s. If the ratio falls below
 *                 the target in tools/bench-table, zlib is to take over.
 *
 *	lull_gzip_init(&g);
 *	n = lull_gzip_pack(&g, text, len, to);	(at most LULL_GZIP_BLOCK)
 *	n = lull_gzip_finish(&g, to);
 *
 * History:        LULL_GZIP_WINDOW bytes before `text` must be readable: those of the block before,
 *                 as many as there were.
 * Memory:         64 KiB for the table, and what the caller has for blocks.
 */
#ifndef LULL_EXPORT_GZIP_H
#define LULL_EXPORT_GZIP_H

#include "base/types.h"

#define LULL_GZIP_WINDOW 32768u
#define LULL_GZIP_BLOCK	 (1u << 20)
#define LULL_GZIP_PAD	 16u /* bytes after a block that are read, whatever they hold */

/* Most bytes that packing a block writes: two for a byte that has a long code, and the head. */
#define LULL_GZIP_BOUND(len) (2 * (len) + 4096)

#define LULL_GZIP_HASH_BITS 14
#define LULL_GZIP_N_SYMBOLS 286u /* bytes, the end, and lengths */
#define LULL_GZIP_N_DISTS   30u

struct lull_gzip_code {
	u32 bits;
	u32 n_bits;
};

struct lull_gzip {
	u32 table[1u
		  << LULL_GZIP_HASH_BITS]; /* where these bytes were last, counted from the start */
	u32 off;			   /* bytes so far, modulo 2^32 */
	u32 history;			   /* of them before the next block, at most the window */
	u32 n_blocks;
	u32 crc;
	u64 n_bytes;
	u64 acc; /* bits that make no whole byte yet */
	unsigned n_bits;
	struct lull_gzip_code symbols[LULL_GZIP_N_SYMBOLS];
	struct lull_gzip_code lengths[256]; /* code and extra bits of each length - 3 */
	struct lull_gzip_code dists[LULL_GZIP_N_DISTS];
	u32 symbol_counts[LULL_GZIP_N_SYMBOLS];
	u32 dist_counts[LULL_GZIP_N_DISTS];
};

/* Begin a file. */
void lull_gzip_init(struct lull_gzip *g);

/* Pack a block; returns how many bytes were written to `to`, at most LULL_GZIP_BOUND(len). */
size_t lull_gzip_pack(struct lull_gzip *g, const u8 *text, size_t len, u8 *to);

/* The end of the file: at most 64 bytes. */
size_t lull_gzip_finish(struct lull_gzip *g, u8 *to);

#endif
