/*
 * Deflate (RFC 1951) inside gzip (RFC 1952). Each block has codes of its own by the format, but the
 * same ones are used for many blocks, so most blocks are packed in one go:
 *
 *	walk the text; where four bytes or more were seen at the place that the table knows,
 *	write the bytes before as literals and the rest as (length, distance); go on after it
 *
 * Every RECODE blocks the same walk first counts symbols instead of writing them, and the codes are
 * made from that. Every symbol has a code, whether it was counted or not.
 */
#include "export/gzip.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/bytes.h"
#include "base/crc_aarch64.h"

#define RECODE	  16u /* blocks; counting one of them costs 3 % */
#define MAX_BITS  15u
#define MIN_MATCH 4u
#define MAX_MATCH 258u
#define FAR_AWAY  4096u /* a match of MIN_MATCH that is further away is no gain */
#define END	  256u

/* ---- what the format lists ---- */

static const u16 length_base[] = { 3,  4,  5,  6,  7,  8,  9,  10, 11,	13,  15,  17,  19,  23, 27,
				   31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258 };
static const u8 length_extra[] = { 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
				   2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0 };
static const u16 dist_base[] = { 1,    2,    3,	   4,	 5,    7,    9,	   13,	  17,	 25,
				 33,   49,   65,   97,	 129,  193,  257,  385,	  513,	 769,
				 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577 };
static const u8 dist_extra[] = { 0, 0, 0, 0, 1, 1, 2, 2,  3,  3,  4,  4,  5,  5,  6,
				 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13 };

static unsigned length_symbol(unsigned len)
{
	unsigned s = LULL_COUNT_OF(length_base) - 1;

	while (length_base[s] > len)
		s--;
	return s;
}

/* By the two highest bits of the distance, as the bases are spaced. */
static inline unsigned dist_symbol(u32 dist)
{
	u32 d = dist - 1;
	unsigned top;

	if (d < 4)
		return d;
	top = 31 - (unsigned)__builtin_clz(d);
	return 2 * top + (d >> (top - 1) & 1);
}

/* ---- codes ---- */

struct node {
	u64 count;
	int parent;
};

/* Length of the code of each of n symbols by Huffman's way; none is longer than 32 at first. */
static void huffman_lengths(const u32 *counts, size_t n, u8 *lengths)
{
	struct node nodes[2 * LULL_GZIP_N_SYMBOLS];
	size_t n_nodes = n, n_left = n;

	for (size_t i = 0; i < n; i++)
		nodes[i] = (struct node){ (u64)counts[i] + 1, -1 };
	while (n_left > 1) {
		size_t least = SIZE_MAX, second = SIZE_MAX;

		for (size_t i = 0; i < n_nodes; i++) {
			if (nodes[i].parent >= 0)
				continue;
			if (least == SIZE_MAX || nodes[i].count < nodes[least].count) {
				second = least;
				least = i;
			} else if (second == SIZE_MAX || nodes[i].count < nodes[second].count) {
				second = i;
			}
		}
		nodes[n_nodes] = (struct node){ nodes[least].count + nodes[second].count, -1 };
		nodes[least].parent = nodes[second].parent = (int)n_nodes++;
		n_left--;
	}
	for (size_t i = 0; i < n; i++) {
		lengths[i] = 0;
		for (int at = (int)i; nodes[at].parent >= 0; at = nodes[at].parent)
			lengths[i]++;
	}
}

/* Cut codes that are too long, and lengthen others until all fit again (Kraft's sum). */
static void limit_lengths(u8 *lengths, size_t n)
{
	const u32 all = 1u << MAX_BITS;
	u32 sum = 0;

	for (size_t i = 0; i < n; i++) {
		lengths[i] = lengths[i] > MAX_BITS ? MAX_BITS : lengths[i];
		sum += all >> lengths[i];
	}
	/* The longest that can still grow costs least. */
	for (unsigned bits = MAX_BITS - 1; bits && sum > all; bits--)
		for (size_t i = 0; i < n && sum > all; i++)
			if (lengths[i] == bits) {
				lengths[i]++;
				sum -= all >> (bits + 1);
			}
	for (size_t i = 0; i < n && sum < all; i++)
		while (lengths[i] > 1 && sum + (all >> lengths[i]) <= all) {
			sum += all >> lengths[i];
			lengths[i]--;
		}
}

static u32 reversed(u32 bits, unsigned n)
{
	u32 r = 0;

	for (unsigned i = 0; i < n; i++)
		r |= (bits >> i & 1) << (n - 1 - i);
	return r;
}

/* Codes of these lengths in the order that the format prescribes. */
static void assign_codes(const u8 *lengths, size_t n, struct lull_gzip_code *codes)
{
	u32 next = 0;

	for (unsigned bits = 1; bits <= MAX_BITS; bits++, next <<= 1)
		for (size_t i = 0; i < n; i++)
			if (lengths[i] == bits)
				codes[i] = (struct lull_gzip_code){ reversed(next++, bits), bits };
}

static void make_codes(struct lull_gzip *g)
{
	u8 lengths[LULL_GZIP_N_SYMBOLS];

	huffman_lengths(g->symbol_counts, LULL_GZIP_N_SYMBOLS, lengths);
	limit_lengths(lengths, LULL_GZIP_N_SYMBOLS);
	assign_codes(lengths, LULL_GZIP_N_SYMBOLS, g->symbols);
	huffman_lengths(g->dist_counts, LULL_GZIP_N_DISTS, lengths);
	limit_lengths(lengths, LULL_GZIP_N_DISTS);
	assign_codes(lengths, LULL_GZIP_N_DISTS, g->dists);
	for (unsigned len = 3; len <= MAX_MATCH; len++) {
		unsigned s = length_symbol(len);
		const struct lull_gzip_code *code = &g->symbols[END + 1 + s];

		g->lengths[len - 3].bits = code->bits | (u32)(len - length_base[s]) << code->n_bits;
		g->lengths[len - 3].n_bits = code->n_bits + length_extra[s];
	}
	memset(g->symbol_counts, 0, sizeof(g->symbol_counts));
	memset(g->dist_counts, 0, sizeof(g->dist_counts));
}

/* ---- bits ---- */

/* Where bits go; kept in registers while a block is walked. */
struct bits {
	u64 acc;
	unsigned n;
	u8 *to;
};

static inline void add_bits(struct bits *b, u64 bits, unsigned n)
{
	b->acc |= bits << b->n;
	b->n += n;
}

/* Store whole bytes; at most 7 bits stay. At most 56 may have been added since. */
static inline void store(struct bits *b)
{
	lull_put_u64(b->to, b->acc);
	b->to += b->n / 8;
	b->acc >>= b->n & ~7u;
	b->n &= 7;
}

static void put_bits(struct bits *b, u64 bits, unsigned n)
{
	add_bits(b, bits, n);
	store(b);
}

/* The head of a block: that it has codes of its own, and their lengths, four bits each. */
static void put_head(const struct lull_gzip *g, struct bits *b)
{
	put_bits(b, 0, 1);
	put_bits(b, 2, 2);
	put_bits(b, LULL_GZIP_N_SYMBOLS - 257, 5);
	put_bits(b, LULL_GZIP_N_DISTS - 1, 5);
	put_bits(b, 19 - 4, 4);
	/*
	 * Lengths of the codes of lengths: none for the three that mean runs, four bits for others.
	 */
	for (unsigned i = 0; i < 19; i++)
		put_bits(b, i < 3 ? 0 : 4, 3);
	for (unsigned i = 0; i < LULL_GZIP_N_SYMBOLS; i++)
		put_bits(b, reversed(g->symbols[i].n_bits, 4), 4);
	for (unsigned i = 0; i < LULL_GZIP_N_DISTS; i++)
		put_bits(b, reversed(g->dists[i].n_bits, 4), 4);
}

static inline void put_literals(const struct lull_gzip *g, struct bits *b, const u8 *from,
				const u8 *end)
{
	for (; end - from >= 3; from += 3) {
		add_bits(b, g->symbols[from[0]].bits, g->symbols[from[0]].n_bits);
		add_bits(b, g->symbols[from[1]].bits, g->symbols[from[1]].n_bits);
		add_bits(b, g->symbols[from[2]].bits, g->symbols[from[2]].n_bits);
		store(b);
	}
	for (; from < end; from++) {
		add_bits(b, g->symbols[*from].bits, g->symbols[*from].n_bits);
		store(b);
	}
}

static inline void put_match(const struct lull_gzip *g, struct bits *b, u32 len, u32 dist)
{
	const struct lull_gzip_code *length = &g->lengths[len - 3];
	unsigned s = dist_symbol(dist);
	const struct lull_gzip_code *code = &g->dists[s];

	add_bits(b, length->bits, length->n_bits);
	add_bits(b, code->bits | (u64)(dist - dist_base[s]) << code->n_bits,
		 code->n_bits + dist_extra[s]);
	store(b);
}

static void count_literals(struct lull_gzip *g, const u8 *from, const u8 *end)
{
	for (; from < end; from++)
		g->symbol_counts[*from]++;
}

/* ---- the walk ---- */

static inline u64 load(const u8 *at)
{
	u64 v;

	memcpy(&v, at, sizeof(v));
	return v;
}

/* Place in the table of the five bytes at `at`. */
static inline u32 hash(const u8 *at)
{
	return (u32)((load(at) << 24) * 0x9e3779b185ebca87ULL >> (64 - LULL_GZIP_HASH_BITS));
}

/* How many bytes, up to `max`, are the same at both places. */
static inline u32 match_len(const u8 *a, const u8 *b, u32 max)
{
	u32 len = 0;

	while (len + 8 <= max) {
		u64 diff = load(a + len) ^ load(b + len);

		/* The lowest byte is the first on the machines that lull runs on. */
		if (diff)
			return len + (u32)__builtin_ctzll(diff) / 8;
		len += 8;
	}
	while (len < max && a[len] == b[len])
		len++;
	return len;
}

static inline bool is_digit(u8 c)
{
	return (u8)(c - '0') < 10;
}

/* The length of a match at `at`, 0 if there is none worth it; *dist receives the distance. */
static inline u32 find_match(struct lull_gzip *g, const u8 *text, const u8 *at, const u8 *end,
			     u32 *dist)
{
	u32 here = g->off + (u32)(at - text), *slot;
	u32 reach = g->history + (u32)(at - text), max = MAX_MATCH, len;

	/* Digits rarely repeat, unless a match that started before them covers them, too. */
	if (is_digit(at[0]) && is_digit(at[1]))
		return 0;
	slot = &g->table[hash(at)];
	*dist = here - *slot;
	*slot = here;
	if (*dist - 1 >= LULL_GZIP_WINDOW || *dist > reach ||
	    (u32)load(at) != (u32)load(at - *dist))
		return 0;
	max = (size_t)(end - at) < max ? (u32)(end - at) : max;
	len = match_len(at, at - *dist, max);
	return len < MIN_MATCH || (len == MIN_MATCH && *dist > FAR_AWAY) ? 0 : len;
}

/* A later match may start where this one ended: remember the place. */
static inline void note_end(struct lull_gzip *g, const u8 *text, const u8 *at)
{
	g->table[hash(at - 2)] = g->off + (u32)(at - 2 - text);
}

static void count(struct lull_gzip *g, const u8 *text, size_t text_len)
{
	const u8 *at = text, *end = text + text_len, *first = text;

	while (at < end) {
		u32 dist, len = find_match(g, text, at, end, &dist);

		if (!len) {
			at++;
			continue;
		}
		count_literals(g, first, at);
		g->symbol_counts[END + 1 + length_symbol(len)]++;
		g->dist_counts[dist_symbol(dist)]++;
		first = at += len;
		note_end(g, text, at);
	}
	count_literals(g, first, end);
}

static void walk(struct lull_gzip *g, const u8 *text, size_t text_len, struct bits *out)
{
	const u8 *at = text, *end = text + text_len, *first = text;
	struct bits b = *out;

	while (at < end) {
		u32 dist, len = find_match(g, text, at, end, &dist);

		if (!len) {
			at++;
			continue;
		}
		put_literals(g, &b, first, at);
		put_match(g, &b, len, dist);
		first = at += len;
		note_end(g, text, at);
	}
	put_literals(g, &b, first, end);
	*out = b;
}

/* ---- the checksum ---- */

#if defined(__aarch64__)
static u32 crc_by_instruction(u32 crc, const u8 *at, size_t len)
{
	crc = ~crc;
	for (; len >= 8; at += 8, len -= 8)
		crc = lull_crc32_u64(crc, load(at));
	for (; len; at++, len--)
		crc = lull_crc32_u8(crc, *at);
	return ~crc;
}
#endif

/* x86_64 has an instruction for another polynomial only; zlib knows what to do there. */
static u32 add_crc(u32 crc, const u8 *text, size_t len)
{
#if defined(__aarch64__)
	if (lull_crc_has_instructions())
		return crc_by_instruction(crc, text, len);
#endif
	return (u32)crc32(crc, text, (uInt)len);
}

/* ---- the file ---- */

void lull_gzip_init(struct lull_gzip *g)
{
	memset(g, 0, sizeof(*g));
	g->crc = (u32)crc32(0, NULL, 0);
}

static u8 *put_file_head(u8 *to)
{
	/* Deflate, no name, no time, made for speed, by a Unix. */
	static const u8 head[] = { 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 3 };

	memcpy(to, head, sizeof(head));
	return to + sizeof(head);
}

size_t lull_gzip_pack(struct lull_gzip *g, const u8 *text, size_t len, u8 *to)
{
	struct bits b = { g->acc, g->n_bits, g->n_blocks ? to : put_file_head(to) };

	if (g->n_blocks++ % RECODE == 0) {
		count(g, text, len);
		make_codes(g);
	}
	put_head(g, &b);
	walk(g, text, len, &b);
	put_bits(&b, g->symbols[END].bits, g->symbols[END].n_bits);
	g->acc = b.acc;
	g->n_bits = b.n;
	g->crc = add_crc(g->crc, text, len);
	g->n_bytes += len;
	g->off += (u32)len;
	g->history =
		(u32)(g->history + len < LULL_GZIP_WINDOW ? g->history + len : LULL_GZIP_WINDOW);
	return (size_t)(b.to - to);
}

size_t lull_gzip_finish(struct lull_gzip *g, u8 *to)
{
	struct bits b = { g->acc, g->n_bits, g->n_blocks ? to : put_file_head(to) };

	/* An empty block that is the last one, with the codes that the format has ready. */
	put_bits(&b, 1 | 1 << 1, 10);
	if (b.n)
		put_bits(&b, 0, 8 - b.n);
	lull_put_u32(b.to, g->crc);
	lull_put_u32(b.to + 4, (u32)g->n_bytes);
	return (size_t)(b.to + 8 - to);
}
