#include "text/markdown.h"

#include <ctype.h>
#include <string.h>

#include "base/str.h"
#include "text/term.h"
#include "base/vec.h"

/*
 * Marks in rendered text: bytes that no page has, and that take no column. Wrapping passes them on,
 * printing makes escape sequences of them, or nothing.
 */
enum { MARK_PLAIN = 1, MARK_BOLD = 2, MARK_UNDERLINE = 3 };

#define BODY_INDENT  4	/* of a paragraph */
#define INNER_INDENT 8	/* of the text of a definition */
#define MAX_COLUMNS  16 /* of a table; more are cut */
#define MIN_CELL     8	/* columns of a cell that is wrapped */

struct printer {
	FILE *to;
	int width;
	bool is_styled;
	struct lull_str block; /* source of the paragraph that is being gathered */
	int indent;	       /* of its lines after the first */
	int first;	       /* of its first line */
	bool is_inner;	       /* inside a definition */
	bool is_code;	       /* inside a fence */
	bool is_after_gap;     /* the last line was empty */
	struct lull_vec table; /* struct lull_str: source lines of the table being gathered */
};

/* ---- inside a paragraph ---- */

/*
 * The length of the text between `mark` at text[0] and the next one; 0 if there is no pair. A star
 * beside a blank is a star; code may begin with a blank.
 */
static size_t enclosed(const char *text, const char *mark)
{
	size_t n = strlen(mark);
	const char *end = strncmp(text, mark, n) ? NULL : strstr(text + n, mark);

	if (!end ||
	    (*mark == '*' && (isspace((unsigned char)text[n]) || isspace((unsigned char)end[-1]))))
		return 0;
	return (size_t)(end - text) - n;
}

static void add_marked(struct lull_str *to, char mark, const char *text, size_t len)
{
	const char off = MARK_PLAIN;

	lull_str_add(to, &mark, 1);
	lull_str_add(to, text, len);
	lull_str_add(to, &off, 1);
}

/* [text](address): the text, and the address if it is one of the web. Returns its length, or 0. */
static size_t add_link(struct lull_str *to, const char *text)
{
	const char *middle = strstr(text, "]("), *end = middle ? strchr(middle, ')') : NULL;

	if (*text != '[' || !end || memchr(text + 1, '[', (size_t)(middle - text - 1)))
		return 0;
	lull_str_add(to, text + 1, (size_t)(middle - text) - 1);
	if (!strncmp(middle + 2, "http", 4))
		lull_str_addf(to, " <%.*s>", (int)(end - middle - 2), middle + 2);
	return (size_t)(end - text) + 1;
}

/* Append the text with marks in place of Markdown's own. */
static void render(struct lull_str *to, const char *text)
{
	static const struct {
		const char *sign;
		char mark;
	} pairs[] = { { "`", MARK_BOLD }, { "**", MARK_BOLD }, { "*", MARK_UNDERLINE } };

	while (*text) {
		size_t len = 0;

		for (size_t i = 0; !len && i < LULL_COUNT_OF(pairs); i++) {
			size_t n = strlen(pairs[i].sign);

			len = enclosed(text, pairs[i].sign);
			if (!len)
				continue;
			add_marked(to, pairs[i].mark, text + n, len);
			len += 2 * n;
		}
		if (!len)
			len = add_link(to, text);
		if (!len) {
			text += *text == '\\' && ispunct((unsigned char)text[1]);
			lull_str_add(to, text, 1);
			len = 1;
		}
		text += len;
	}
}

/* ---- lines ---- */

static size_t columns_of(const char *at, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += (u8)at[i] > MARK_UNDERLINE && ((u8)at[i] & 0xc0) != 0x80;
	return n;
}

/* How much of a word that is too long for a line goes there: up to a sign, or else all of it. */
static size_t part_of_word(const char *text, size_t len, size_t width)
{
	size_t part = len;

	for (size_t i = 1; i < len && columns_of(text, i) <= width; i++)
		if (strchr("_-/,=", text[i - 1]))
			part = i;
	return part;
}

/* How much of the text goes on a line of `width` columns. */
static size_t line_length(const char *text, size_t width)
{
	size_t len = strcspn(text, " ");

	if (columns_of(text, len) > width)
		return part_of_word(text, len, width);
	while (text[len]) {
		size_t next = len + 1 + strcspn(text + len + 1, " ");

		if (columns_of(text, next) > width)
			break;
		len = next;
	}
	return len;
}

static void put_mark(const struct printer *p, char mark)
{
	static const char *const codes[] = {
		[MARK_PLAIN] = "\033[0m", [MARK_BOLD] = "\033[1m", [MARK_UNDERLINE] = "\033[4m"
	};

	if (p->is_styled && mark)
		fputs(codes[(int)mark], p->to);
}

/* Print a part of rendered text; *mark is the style that it begins with, and then ends with. */
static void put_line(const struct printer *p, const char *at, size_t len, char *mark)
{
	if (*mark != MARK_PLAIN)
		put_mark(p, *mark);
	for (size_t i = 0; i < len; i++) {
		if ((u8)at[i] > MARK_UNDERLINE) {
			putc(at[i], p->to);
		} else {
			*mark = at[i];
			put_mark(p, *mark);
		}
	}
	if (*mark != MARK_PLAIN)
		put_mark(p, MARK_PLAIN);
}

/* Print rendered text in lines; the cursor is at column 0. */
static void put_wrapped(const struct printer *p, const char *text, int first, int indent)
{
	char mark = MARK_PLAIN;

	for (int begin = first; *text; begin = indent) {
		size_t len = line_length(text, (size_t)(p->width - begin));

		fprintf(p->to, "%*s", begin, "");
		put_line(p, text, len, &mark);
		putc('\n', p->to);
		text += len + strspn(text + len, " ");
	}
}

static void put_gap(struct printer *p)
{
	if (p->is_after_gap)
		putc('\n', p->to);
	p->is_after_gap = false;
}

static void flush_paragraph(struct printer *p)
{
	struct lull_str text = LULL_STR_INIT;

	if (!p->block.len)
		return;
	put_gap(p);
	render(&text, p->block.at);
	put_wrapped(p, lull_str_text(&text), p->first, p->indent);
	lull_str_release(&text);
	lull_str_clear(&p->block);
}

/* ---- tables ---- */

struct row {
	struct lull_str cells[MAX_COLUMNS];
	size_t n;
};

/* Cut "| a | b |" into rendered cells; a bar inside `code` or after a backslash is text. */
static void split_row(struct row *row, const char *line)
{
	struct lull_str cell = LULL_STR_INIT;
	bool is_code = false;

	row->n = 0;
	for (line += *line == '|'; *line && row->n < MAX_COLUMNS; line++) {
		is_code ^= *line == '`';
		if (*line == '|' && !is_code) {
			const char *begin =
				lull_str_text(&cell) + strspn(lull_str_text(&cell), " ");

			while (cell.len && cell.at[cell.len - 1] == ' ')
				cell.at[--cell.len] = '\0';
			row->cells[row->n] = (struct lull_str)LULL_STR_INIT;
			render(&row->cells[row->n++], *begin ? begin : "");
			lull_str_clear(&cell);
			continue;
		}
		line += *line == '\\' && line[1] == '|';
		lull_str_add(&cell, line, 1);
	}
	lull_str_release(&cell);
}

static bool is_rule(const char *line)
{
	return line[strspn(line, "|-: ")] == '\0';
}

/* Widths as wide as the cells; the widest gives way until all of them fit. */
static void set_widths(const struct printer *p, const struct lull_vec *rows, size_t *widths)
{
	const struct row *row = rows->at;
	size_t room = (size_t)(p->width - p->indent), total = 0;

	for (size_t i = 0; i < rows->n; i++)
		for (size_t c = 0; c < row[i].n; c++) {
			const struct lull_str *cell = &row[i].cells[c];
			size_t n = columns_of(lull_str_text(cell), cell->len);

			widths[c] = n > widths[c] ? n : widths[c];
		}
	for (size_t c = 0; c < MAX_COLUMNS; c++)
		total += widths[c] ? widths[c] + 2 : 0;
	while (total > room + 2) {
		size_t widest = 0;

		for (size_t c = 1; c < MAX_COLUMNS; c++)
			widest = widths[c] > widths[widest] ? c : widest;
		if (widths[widest] <= MIN_CELL)
			break;
		widths[widest]--;
		total--;
	}
}

/* A row takes as many lines as its longest cell. */
static void put_row(const struct printer *p, const struct row *row, const size_t *widths)
{
	const char *rest[MAX_COLUMNS];
	char marks[MAX_COLUMNS];
	bool has_more = true;

	for (size_t c = 0; c < row->n; c++) {
		rest[c] = lull_str_text(&row->cells[c]);
		marks[c] = MARK_PLAIN;
	}
	while (has_more) {
		size_t n_spaces = (size_t)p->indent; /* before the next cell that has text */

		has_more = false;
		for (size_t c = 0; c < row->n; c++) {
			size_t len = line_length(rest[c], widths[c]), n = columns_of(rest[c], len);

			if (n) {
				fprintf(p->to, "%*s", (int)n_spaces, "");
				put_line(p, rest[c], len, &marks[c]);
				n_spaces = 0;
			}
			n_spaces += (widths[c] > n ? widths[c] - n : 0) + 2;
			rest[c] += len + strspn(rest[c] + len, " ");
			has_more |= *rest[c] != '\0';
		}
		putc('\n', p->to);
	}
}

static void put_rule(const struct printer *p, const size_t *widths, size_t n)
{
	fprintf(p->to, "%*s", p->indent, "");
	for (size_t c = 0; c < n; c++) {
		for (size_t i = 0; i < widths[c]; i++)
			putc('-', p->to);
		fputs(c + 1 < n ? "  " : "\n", p->to);
	}
}

static void flush_table(struct printer *p)
{
	struct lull_str *lines = p->table.at;
	size_t widths[MAX_COLUMNS] = { 0 };
	struct lull_vec rows;
	struct row *row;

	if (!p->table.n)
		return;
	put_gap(p);
	lull_vec_init(&rows, sizeof(struct row));
	for (size_t i = 0; i < p->table.n; i++) {
		if (!is_rule(lull_str_text(&lines[i])))
			split_row(lull_vec_push(&rows), lull_str_text(&lines[i]));
		lull_str_release(&lines[i]);
	}
	p->table.n = 0;
	set_widths(p, &rows, widths);
	row = rows.at;
	for (size_t i = 0; i < rows.n; i++) {
		put_row(p, &row[i], widths);
		if (!i)
			put_rule(p, widths, row[i].n);
		for (size_t c = 0; c < row[i].n; c++)
			lull_str_release(&row[i].cells[c]);
	}
	lull_vec_release(&rows);
}

static void flush(struct printer *p)
{
	flush_table(p);
	flush_paragraph(p);
}

/* ---- blocks ---- */

static void put_heading(struct printer *p, const char *line)
{
	size_t level = strspn(line, "#");
	struct lull_str text = LULL_STR_INIT;

	flush(p);
	p->is_inner = false;
	put_gap(p);
	add_marked(&text, MARK_BOLD, line + level + 1, strlen(line + level + 1));
	put_wrapped(p, lull_str_text(&text), level > 2 ? BODY_INDENT / 2 : 0, BODY_INDENT);
	lull_str_release(&text);
}

/* Each line before the colon is a term of its own. */
static void put_terms(struct printer *p)
{
	struct lull_str terms = p->block;
	char *rest = terms.at;
	const char *term;

	p->block = (struct lull_str)LULL_STR_INIT;
	while (rest && (term = strsep(&rest, "\n"))) {
		lull_str_puts(&p->block, term);
		p->first = BODY_INDENT;
		p->indent = INNER_INDENT;
		flush_paragraph(p);
	}
	lull_str_release(&terms);
}

/* Lines of a paragraph are joined by a blank, but kept apart until it is known not to be terms. */
static void gather(struct printer *p, const char *line)
{
	if (p->block.len)
		lull_str_puts(&p->block, "\n");
	lull_str_puts(&p->block, line + strspn(line, " "));
}

static void join(struct printer *p)
{
	for (size_t i = 0; i < p->block.len; i++)
		if (p->block.at[i] == '\n')
			p->block.at[i] = ' ';
}

/*
 * The columns of "- " or "1. " at the start of a line, 0 if there are none. A number in the middle
 * of a paragraph is the end of a sentence.
 */
static size_t bullet_of(const struct printer *p, const char *line)
{
	bool may_count = !p->block.len || p->first < p->indent;

	if (may_count && isdigit((unsigned char)*line) && !strncmp(line + 1, ". ", 2))
		return 3;
	return !strncmp(line, "- ", 2) ? 2 : 0;
}

static void begin(struct printer *p, int first, int indent)
{
	join(p);
	flush(p);
	p->first = first;
	p->indent = indent;
}

/* A line that is code as it stands. */
static void put_code(struct printer *p, const char *line)
{
	join(p);
	flush(p);
	put_gap(p);
	fprintf(p->to, "%*s%s\n", BODY_INDENT, "", line);
}

static void take_text(struct printer *p, const char *line)
{
	size_t blanks = strspn(line, " "), bullet = bullet_of(p, line + blanks);
	int indent = p->is_inner && blanks >= BODY_INDENT ? INNER_INDENT : BODY_INDENT;

	if (bullet || !p->block.len) {
		p->is_inner = indent == INNER_INDENT;
		begin(p, indent, indent + (int)bullet);
	}
	gather(p, line);
}

static void take(struct printer *p, const char *line)
{
	size_t blanks = strspn(line, " ");
	bool is_code = !p->block.len && line[blanks] &&
		       blanks >= (p->is_inner ? INNER_INDENT : BODY_INDENT);

	if (!strncmp(line, "```", 3)) {
		p->is_code = !p->is_code;
	} else if (p->is_code || is_code) {
		put_code(p, line);
	} else if (!line[blanks]) {
		join(p);
		flush(p);
		p->is_after_gap = true;
	} else if (*line == '#') {
		join(p);
		put_heading(p, line);
	} else if (!strncmp(line, ":   ", 4)) {
		put_terms(p);
		p->is_inner = true;
		begin(p, INNER_INDENT, INNER_INDENT);
		gather(p, line + 1);
	} else if (*line == '|') {
		join(p);
		flush_paragraph(p);
		p->indent = BODY_INDENT;
		lull_str_puts(lull_vec_push(&p->table), line);
	} else {
		take_text(p, line);
	}
}

void lull_markdown_print(FILE *to, const char *text, int width, bool is_styled)
{
	struct printer p = { .to = to, .width = width, .is_styled = is_styled };
	struct lull_str line = LULL_STR_INIT;

	lull_vec_init(&p.table, sizeof(struct lull_str));
	while (*text) {
		size_t len = strcspn(text, "\n");

		lull_str_clear(&line);
		lull_str_add(&line, text, len);
		take(&p, lull_str_text(&line));
		text += len + (text[len] == '\n');
	}
	join(&p);
	flush(&p);
	lull_vec_release(&p.table);
	lull_str_release(&p.block);
	lull_str_release(&line);
}
