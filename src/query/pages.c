/*
 * A page of a table's tree, 4096 bytes, numbers big-endian:
 *
 *	leaf		0x0d, 0 0, cells u16, first byte of content u16, 0
 *			then an u16 per cell: where it is; cells lie from the page's end downwards
 *	  cell		payload length, row number (varints), payload
 *	interior	0x05, 0 0, cells u16, first byte of content u16, 0, last child u32
 *	  cell		child u32, its last row number (varint)
 *	overflow	next u32 or 0, then payload
 *
 * Payload: length of the head (varint), a type (varint) for each column, then the values. A page
 * that would lie at byte 2^30 of the file is never used: SQLite locks there.
 */
#include "query/pages.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/mem.h"

#define PAGE_BYTES  4096u
#define LOCK_PAGE   (0x40000000u / PAGE_BYTES + 1)
#define MAX_LEVELS  20
#define MAX_LOCAL   (PAGE_BYTES - 35)
#define MIN_LOCAL   ((PAGE_BYTES - 12) * 32 / 255 - 23)
#define BUFFER_SIZE 256u /* pages */

#define LEAF	 0x0d
#define INTERIOR 0x05

/* Where the head of the file says how many pages there are. */
#define N_PAGES_OFF 28

/* A page that is being filled. */
struct page {
	u8 bytes[PAGE_BYTES];
	u32 n_cells;
	u32 content; /* first byte of the cells */
};

/* One level above the leaves: the page that is open, and the child that came last. */
struct level {
	struct page page;
	u32 child;
	u64 last_row;
	bool has_child;
};

struct lull_pages {
	int fd;
	int error; /* errno of the first failing write */
	u32 n_pages;
	u32 root;
	u64 row;
	struct page leaf;
	struct level *levels[MAX_LEVELS];
	int n_levels;
	u8 *buffer; /* pages that follow each other and are not written yet */
	u32 first;  /* page number of the first */
	u32 n_buffered;
	u8 *payload;
	size_t payload_cap;
};

static void put_u16(u8 *at, u32 v)
{
	at[0] = (u8)(v >> 8);
	at[1] = (u8)v;
}

static void put_u32(u8 *at, u32 v)
{
	put_u16(at, v >> 16);
	put_u16(at + 2, v & 0xffff);
}

/* SQLite's varint: seven bits a byte, high ones first, nine bytes at most; returns its length. */
static size_t put_varint(u8 *at, u64 v)
{
	u8 bytes[10];
	size_t n = 0;

	if (v < 0x80) {
		*at = (u8)v;
		return 1;
	}
	if (v >> 56) {
		at[8] = (u8)v;
		v >>= 8;
		for (int i = 7; i >= 0; i--, v >>= 7)
			at[i] = (u8)(v & 0x7f) | 0x80;
		return 9;
	}
	for (; v; v >>= 7)
		bytes[n++] = (u8)(v & 0x7f) | 0x80;
	bytes[0] &= 0x7f;
	for (size_t i = 0; i < n; i++)
		at[i] = bytes[n - 1 - i];
	return n;
}

/* ---- the file ---- */

static void write_at(struct lull_pages *p, const void *bytes, size_t len, u64 off)
{
	if (!p->error && lull_io_write_at(p->fd, bytes, len, off))
		p->error = errno;
}

static void flush(struct lull_pages *p)
{
	if (p->n_buffered)
		write_at(p, p->buffer, (size_t)p->n_buffered * PAGE_BYTES,
			 (u64)(p->first - 1) * PAGE_BYTES);
	p->n_buffered = 0;
}

/* The number of a new page at the end. */
static u32 new_page(struct lull_pages *p)
{
	p->n_pages++;
	if (p->n_pages == LOCK_PAGE)
		p->n_pages++;
	return p->n_pages;
}

static void write_page(struct lull_pages *p, u32 number, const u8 *bytes)
{
	if (p->n_buffered && (p->n_buffered == BUFFER_SIZE || number != p->first + p->n_buffered))
		flush(p);
	if (!p->n_buffered)
		p->first = number;
	memcpy(p->buffer + (size_t)p->n_buffered++ * PAGE_BYTES, bytes, PAGE_BYTES);
}

int lull_pages_open(struct lull_pages **out, const char *path, struct lull_err *err)
{
	struct lull_pages *p = lull_alloc(1, sizeof(*p));
	u8 head[100] = { 0 };
	off_t size;

	p->fd = open(path, O_RDWR | O_CLOEXEC);
	size = p->fd < 0 ? -1 : lseek(p->fd, 0, SEEK_END);
	if (size < 0 || lull_io_read_at(p->fd, head, sizeof(head), 0) != (i64)sizeof(head)) {
		lull_fail_errno(err, "opening the file that SQLite wrote");
	} else if (head[16] << 8 != PAGE_BYTES || head[17] || head[20] || size % PAGE_BYTES) {
		lull_fail(err, LULL_E_FORMAT,
			  "SQLite writes pages of another size than 4096 bytes");
	} else {
		p->n_pages = (u32)(size / PAGE_BYTES);
		p->buffer = lull_alloc(BUFFER_SIZE, PAGE_BYTES);
		*out = p;
		return LULL_OK;
	}
	if (p->fd >= 0)
		close(p->fd);
	free(p);
	return err->code;
}

int lull_pages_close(struct lull_pages *p, struct lull_err *err)
{
	u8 number[4];
	int rc = LULL_OK;

	flush(p);
	put_u32(number, p->n_pages);
	write_at(p, number, sizeof(number), N_PAGES_OFF);
	if (close(p->fd) && !p->error)
		p->error = errno;
	errno = p->error;
	if (p->error)
		rc = lull_fail_errno(err, "writing SQLite");
	for (int i = 0; i < p->n_levels; i++)
		free(p->levels[i]);
	free(p->buffer);
	free(p->payload);
	free(p);
	return rc;
}

/* ---- pages ---- */

static void clear(struct page *page)
{
	memset(page->bytes, 0, PAGE_BYTES);
	page->n_cells = 0;
	page->content = PAGE_BYTES;
}

static bool has_room(const struct page *page, u32 head, size_t cell)
{
	return head + 2 * (page->n_cells + 1) + cell <= page->content;
}

/* Room for a cell of this length in the page. */
static u8 *add_cell(struct page *page, u32 head, size_t len)
{
	page->content -= (u32)len;
	put_u16(page->bytes + head + 2 * (size_t)page->n_cells++, page->content);
	return page->bytes + page->content;
}

static void put_head(struct page *page, u8 kind)
{
	page->bytes[0] = kind;
	put_u16(page->bytes + 3, page->n_cells);
	put_u16(page->bytes + 5, page->content);
}

#define LEAF_HEAD     8u
#define INTERIOR_HEAD 12u

static void close_level(struct lull_pages *p, int ix, u32 number);

/* A page below level `ix` is done; its rows end with `last_row`. */
static void add_child(struct lull_pages *p, int ix, u32 child, u64 last_row)
{
	struct level *level;
	u8 cell[16];
	size_t len;

	if (ix == p->n_levels) {
		level = p->levels[p->n_levels++] = lull_alloc(1, sizeof(*level));
		clear(&level->page);
	}
	level = p->levels[ix];
	if (level->has_child) {
		put_u32(cell, level->child);
		len = 4 + put_varint(cell + 4, level->last_row);
		if (has_room(&level->page, INTERIOR_HEAD, len)) {
			memcpy(add_cell(&level->page, INTERIOR_HEAD, len), cell, len);
		} else {
			u32 number = new_page(p);
			u64 row = level->last_row;

			close_level(p, ix, number);
			add_child(p, ix + 1, number, row);
		}
	}
	level->child = child;
	level->last_row = last_row;
	level->has_child = true;
}

/* Write the open page of a level, with its last child at the end. */
static void close_level(struct lull_pages *p, int ix, u32 number)
{
	struct level *level = p->levels[ix];

	put_head(&level->page, INTERIOR);
	put_u32(level->page.bytes + 8, level->child);
	write_page(p, number, level->page.bytes);
	clear(&level->page);
	level->has_child = false;
}

static void close_leaf(struct lull_pages *p, u32 number)
{
	put_head(&p->leaf, LEAF);
	write_page(p, number, p->leaf.bytes);
	clear(&p->leaf);
}

void lull_pages_begin(struct lull_pages *p, u32 root)
{
	p->root = root;
	p->row = 0;
	clear(&p->leaf);
}

void lull_pages_end(struct lull_pages *p)
{
	bool has_levels = p->n_levels && p->levels[0]->has_child;
	int ix = 0;

	if (!has_levels) {
		close_leaf(p, p->root);
		return;
	}
	if (p->leaf.n_cells) {
		u32 number = new_page(p);

		close_leaf(p, number);
		add_child(p, 0, number, p->row);
	}
	/* Each level gives its last page to the one above; the uppermost is the root. */
	while (ix + 1 < p->n_levels && p->levels[ix + 1]->has_child) {
		u32 number = new_page(p);
		u64 row = p->levels[ix]->last_row;

		close_level(p, ix, number);
		add_child(p, ++ix, number, row);
	}
	close_level(p, ix, p->root);
}

/* ---- rows ---- */

/* Type and length of a whole number. */
static u8 int_type(i64 v, size_t *len)
{
	static const u8 types[] = { 0, 1, 2, 3, 4, 5, 5, 6, 6 };
	static const u8 lens[] = { 0, 1, 2, 3, 4, 6, 6, 8, 8 };
	u64 magnitude = v < 0 ? ~(u64)v : (u64)v;
	unsigned n_bytes;

	*len = 0;
	if (v == 0 || v == 1)
		return (u8)(8 + v);
	n_bytes = magnitude ? (unsigned)(64 - __builtin_clzll(magnitude)) / 8 + 1 : 1;
	*len = lens[n_bytes];
	return types[n_bytes];
}

static void put_int(u8 *at, i64 v, size_t len)
{
	for (size_t i = len; i > 0; i--, v >>= 8)
		at[i - 1] = (u8)v;
}

static size_t longest(const struct lull_value *values, int n)
{
	size_t len = 16;

	for (int i = 0; i < n; i++)
		len += 18 + values[i].len;
	return len;
}

/* The head after which the values follow; returns its length. */
static size_t put_types(u8 *at, const struct lull_value *values, int n)
{
	u8 types[10 * LULL_VTAB_MAX_COLS] = { 0 };
	size_t len = 0, own = 1;

	for (int i = 0; i < n; i++) {
		size_t ignored;

		switch (values[i].kind) {
		case LULL_IS_NULL:
			types[len++] = 0;
			break;
		case LULL_IS_INT:
			types[len++] = int_type(values[i].i, &ignored);
			break;
		case LULL_IS_REAL:
			types[len++] = 7;
			break;
		default:
			len += put_varint(types + len,
					  2 * (u64)values[i].len +
						  (values[i].kind == LULL_IS_TEXT ? 13 : 12));
		}
	}
	if (len + own > 127)
		own = 2;
	put_varint(at, len + own);
	memcpy(at + own, types, len);
	return len + own;
}

static size_t put_values(u8 *at, const struct lull_value *values, int n)
{
	u8 *begin = at;

	for (int i = 0; i < n; i++) {
		size_t len = values[i].len;
		i64 bits;

		switch (values[i].kind) {
		case LULL_IS_NULL:
			break;
		case LULL_IS_INT:
			int_type(values[i].i, &len);
			put_int(at, values[i].i, len);
			at += len;
			break;
		case LULL_IS_REAL:
			memcpy(&bits, &values[i].f, sizeof(bits));
			put_int(at, bits, 8);
			at += 8;
			break;
		default:
			memcpy(at, values[i].text, len);
			at += len;
		}
	}
	return (size_t)(at - begin);
}

/* How much of a payload is in its cell; the rest is in overflow pages. */
static size_t local_bytes(size_t len)
{
	size_t local = MIN_LOCAL + (len - MIN_LOCAL) % (PAGE_BYTES - 4);

	if (len <= MAX_LOCAL)
		return len;
	return local <= MAX_LOCAL ? local : MIN_LOCAL;
}

/* Write the rest of a long payload; returns the number of its first page. */
static u32 write_overflow(struct lull_pages *p, const u8 *rest, size_t len)
{
	u32 first = new_page(p), number = first;
	u8 page[PAGE_BYTES];

	while (len) {
		size_t n = len < PAGE_BYTES - 4 ? len : PAGE_BYTES - 4;
		u32 next = len > n ? new_page(p) : 0;

		memset(page, 0, sizeof(page));
		put_u32(page, next);
		memcpy(page + 4, rest, n);
		write_page(p, number, page);
		number = next;
		rest += n;
		len -= n;
	}
	return first;
}

void lull_pages_add(struct lull_pages *p, const struct lull_value *values, int n)
{
	size_t most = longest(values, n), len, local, head_len, cell_len;
	u8 head[18];
	u8 *cell;

	if (most > p->payload_cap) {
		p->payload_cap = most * 2;
		p->payload = lull_realloc(p->payload, p->payload_cap, 1);
	}
	len = put_types(p->payload, values, n);
	len += put_values(p->payload + len, values, n);
	local = local_bytes(len);
	head_len = put_varint(head, len);
	head_len += put_varint(head + head_len, p->row + 1);
	cell_len = head_len + local + (local < len ? 4 : 0);
	if (!has_room(&p->leaf, LEAF_HEAD, cell_len)) {
		u32 number = new_page(p);

		close_leaf(p, number);
		add_child(p, 0, number, p->row);
	}
	cell = add_cell(&p->leaf, LEAF_HEAD, cell_len);
	memcpy(cell, head, head_len);
	memcpy(cell + head_len, p->payload, local);
	if (local < len)
		put_u32(cell + head_len + local,
			write_overflow(p, p->payload + local, len - local));
	p->row++;
}
