#include "text/text_png.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/mem.h"
#include "text/term.h"
#include "text/utf8.h"

/*
 * A pixel of a glyph is a square of pixels of the picture, so that it can be read when it is
 * shrunk.
 */
#define SCALE	    2u
#define CELL_WIDTH  (6u * SCALE)
#define CELL_HEIGHT (10u * SCALE)
#define MARGIN	    (4u * SCALE)

/* Indices of the palette: colours of text as enum lull_colour has them, then these. */
#define N_COLOURS  (LULL_COLOUR_CYAN + 1)
#define BACKGROUND N_COLOURS
#define N_PALETTE  (N_COLOURS + 1)

static const u8 palette[N_PALETTE][3] = {
	[LULL_COLOUR_NONE] = { 0x1f, 0x23, 0x28 },   [LULL_COLOUR_BOLD] = { 0x00, 0x00, 0x00 },
	[LULL_COLOUR_DIM] = { 0x80, 0x88, 0x90 },    [LULL_COLOUR_GREEN] = { 0x1a, 0x7f, 0x37 },
	[LULL_COLOUR_YELLOW] = { 0x9a, 0x67, 0x00 }, [LULL_COLOUR_RED] = { 0xcf, 0x22, 0x2e },
	[LULL_COLOUR_BLUE] = { 0x09, 0x69, 0xda },   [LULL_COLOUR_MAGENTA] = { 0x82, 0x50, 0xdf },
	[LULL_COLOUR_CYAN] = { 0x1b, 0x7c, 0x83 },   [BACKGROUND] = { 0xff, 0xff, 0xff },
};

static const u8 glyphs[128][5] = {
#define GLYPH(c, a, b, d, e, f) [c] = { a, b, d, e, f },
#include "text/glyphs.def"
#undef GLYPH
};

/* A character and its colour. Blocks are 0x81 to 0x88, by their eighths. */
struct cell {
	u8 what, colour;
};

struct grid {
	struct cell *cells; /* LULL_TEXT_PNG_COLUMNS of each line */
	u32 n_columns, n_lines;
};

/* ---- reading ---- */

/* The colour of an escape sequence at `p`; *len is its length. */
static u8 colour_at(const char *p, size_t left, u8 old, size_t *len)
{
	for (int i = 0; i < N_COLOURS; i++) {
		const char *code = lull_term_colour((enum lull_colour)i, true);

		*len = strlen(code);
		if (*len <= left && !memcmp(p, code, *len))
			return (u8)i;
	}
	*len = 1;
	return old;
}

/* What a character of `n` bytes is in a cell. */
static u8 what_of(const char *p, size_t n)
{
	if (n == 1 && *p >= ' ' && *p < 0x7f)
		return (u8)*p;
	if (n == 3 && !memcmp(p, "\xe2\x96", 2) && (u8)p[2] >= 0x81 && (u8)p[2] <= 0x88)
		return (u8)p[2];
	return '?';
}

static void read_text(struct grid *g, const char *text, size_t len)
{
	u8 colour = LULL_COLOUR_NONE;
	u32 x = 0;

	for (size_t i = 0, n; i < len && g->n_lines < LULL_TEXT_PNG_LINES; i += n) {
		n = lull_utf8_len((const u8 *)text + i, len - i);
		n = n ? n : 1;
		if (text[i] == '\n') {
			g->n_lines++;
			x = 0;
		} else if (text[i] == '\033') {
			colour = colour_at(text + i, len - i, colour, &n);
		} else if (x < LULL_TEXT_PNG_COLUMNS) {
			g->cells[g->n_lines * LULL_TEXT_PNG_COLUMNS + x++] =
				(struct cell){ what_of(text + i, n), colour };
			g->n_columns = x > g->n_columns ? x : g->n_columns;
		}
	}
}

/* ---- drawing ---- */

struct pixels {
	u8 *at;
	size_t width, height;
};

static void fill(struct pixels *p, size_t x, size_t y, size_t width, size_t height, u8 colour)
{
	for (size_t i = 0; i < height; i++)
		memset(p->at + (y + i) * p->width + x, colour, width);
}

static void draw_glyph(struct pixels *p, size_t x, size_t y, u8 what, u8 colour)
{
	for (u32 column = 0; column < 5; column++)
		for (u32 row = 0; row < 8; row++)
			if (glyphs[what][column] >> row & 1)
				fill(p, x + column * SCALE, y + (row + 1) * SCALE, SCALE, SCALE,
				     colour);
}

static void draw_cell(struct pixels *p, size_t x, size_t y, const struct cell *cell)
{
	bool is_plain = cell->colour <= LULL_COLOUR_DIM;

	if (cell->what >= 0x81) {
		size_t height = CELL_HEIGHT * (cell->what - 0x80u) / 8;

		fill(p, x, y + CELL_HEIGHT - height, CELL_WIDTH, height, cell->colour);
	} else if (cell->what > ' ') {
		if (!is_plain)
			fill(p, x, y, CELL_WIDTH, CELL_HEIGHT, cell->colour);
		draw_glyph(p, x, y, cell->what, is_plain ? cell->colour : BACKGROUND);
	}
}

static void draw(struct pixels *p, const struct grid *g)
{
	for (u32 y = 0; y < g->n_lines; y++)
		for (u32 x = 0; x < g->n_columns; x++)
			draw_cell(p, MARGIN + x * CELL_WIDTH, MARGIN + y * CELL_HEIGHT,
				  &g->cells[y * LULL_TEXT_PNG_COLUMNS + x]);
}

/* ---- PNG ---- */

static void put_u32(u8 *to, u32 v)
{
	for (int i = 0; i < 4; i++)
		to[i] = (u8)(v >> (24 - 8 * i));
}

/* A chunk: length, four letters, bytes, and the CRC of the last two. */
static void put_chunk(FILE *to, const char *type, const u8 *bytes, size_t len)
{
	u8 head[8], tail[4];
	uLong crc = crc32(0, (const Bytef *)type, 4);

	put_u32(head, (u32)len);
	memcpy(head + 4, type, 4);
	put_u32(tail, (u32)(len ? crc32(crc, bytes, (uInt)len) : crc));
	fwrite(head, 1, sizeof(head), to);
	fwrite(bytes, 1, len, to);
	fwrite(tail, 1, sizeof(tail), to);
}

static void put_png(FILE *to, const struct pixels *p)
{
	static const u8 magic[] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n' };
	/* Width and height; 8 bits an index of the palette; the usual methods. */
	u8 head[13] = { [8] = 8, [9] = 3 };
	size_t line = p->width + 1;
	u8 *lines = lull_alloc(p->height, line);
	uLongf len = compressBound((uLong)(p->height * line));
	u8 *packed = lull_alloc(len, 1);

	put_u32(head, (u32)p->width);
	put_u32(head + 4, (u32)p->height);
	/* Each line starts with the number of its filter, 0: none. */
	for (size_t y = 0; y < p->height; y++)
		memcpy(lines + y * line + 1, p->at + y * p->width, p->width);
	compress2(packed, &len, lines, (uLong)(p->height * line), 9);
	fwrite(magic, 1, sizeof(magic), to);
	put_chunk(to, "IHDR", head, sizeof(head));
	put_chunk(to, "PLTE", palette[0], sizeof(palette));
	put_chunk(to, "IDAT", packed, len);
	put_chunk(to, "IEND", (const u8 *)"", 0);
	free(lines);
	free(packed);
}

void lull_text_png(FILE *to, const char *text, size_t len)
{
	struct grid g = { .n_lines = 0 };
	struct pixels p;

	g.cells = lull_alloc((size_t)LULL_TEXT_PNG_COLUMNS * (LULL_TEXT_PNG_LINES + 1),
			     sizeof(*g.cells));
	read_text(&g, text, len);
	if (len && text[len - 1] != '\n' && g.n_lines < LULL_TEXT_PNG_LINES)
		g.n_lines++;
	p.width = (size_t)2 * MARGIN + (g.n_columns ? g.n_columns : 1) * (size_t)CELL_WIDTH;
	p.height = (size_t)2 * MARGIN + (g.n_lines ? g.n_lines : 1) * (size_t)CELL_HEIGHT;
	p.at = lull_alloc(p.width, p.height);
	memset(p.at, BACKGROUND, p.width * p.height);
	draw(&p, &g);
	put_png(to, &p);
	free(p.at);
	free(g.cells);
}
