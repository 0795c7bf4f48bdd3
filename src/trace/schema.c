#include "trace/schema.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "trace/block.h"

#define MAX_TABLES 1024u /* a file with more is not believed */
#define MAX_FIELDS 7u

static const char *const encoding_names[] = {
	[LULL_ENC_PLAIN] = "plain", [LULL_ENC_DELTA] = "delta", [LULL_ENC_GAP] = "gap",
	[LULL_ENC_DEPTH] = "depth", [LULL_ENC_LANE] = "lane",
};

const char *lull_schema_encoding_name(u8 encoding)
{
	return encoding < LULL_COUNT_OF(encoding_names) ? encoding_names[encoding] : "?";
}

const char *lull_schema_kind_name(u8 kind)
{
	return kind == LULL_KIND_FACT ? "fact" : kind == LULL_KIND_DIM ? "dim" : "?";
}

/* ---- writing ---- */

/* Note the length of the line that was just added after `from`. */
static void end_line(struct lull_str *bytes, size_t from, struct lull_vec *lens)
{
	u32 len = (u32)(bytes->len - from);

	lull_vec_add(lens, &len, 1);
}

void lull_schema_lines(struct lull_str *bytes, struct lull_vec *lens)
{
	for (const struct lull_table_desc *t = lull_tables; t->name; t++) {
		size_t from = bytes->len;

		lull_str_addf(bytes, "table\t%u\t%s\t%s\t%s", t->id, t->name,
			      lull_schema_kind_name(t->kind), t->doc);
		end_line(bytes, from, lens);
		for (unsigned c = 0; c < t->n_cols; c++) {
			const struct lull_col_desc *col = &t->cols[c];

			from = bytes->len;
			lull_str_addf(bytes, "column\t%u\t%u\t%s\t%s\t%s\t%s", t->id, col->id,
				      col->type, col->name,
				      lull_schema_encoding_name(col->encoding), col->doc);
			end_line(bytes, from, lens);
		}
	}
}

/* ---- parsing ---- */

void lull_schema_init(struct lull_schema *s)
{
	*s = (struct lull_schema){ 0 };
}

void lull_schema_release(struct lull_schema *s)
{
	for (size_t i = 0; i < s->n; i++)
		free((void *)s->tables[i].cols);
	free(s->tables);
	free(s->text);
	lull_schema_init(s);
}

/* One line of the text, cut at its tabs. */
struct fields {
	char *at[MAX_FIELDS];
	size_t n;
};

/* Cut a line, which ends in a NUL, in place. */
static void split(char *line, struct fields *f)
{
	f->n = 0;
	while (line && f->n < MAX_FIELDS) {
		f->at[f->n++] = line;
		line = strchr(line, '\t');
		if (line)
			*line++ = '\0';
	}
}

static bool parse_id(const char *text, u16 *id)
{
	char *end;
	unsigned long v = strtoul(text, &end, 10);

	*id = (u16)v;
	return end != text && !*end && v <= UINT16_MAX;
}

static struct lull_table_desc *find(struct lull_schema *s, u16 id)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->tables[i].id == id)
			return &s->tables[i];
	return NULL;
}

static void add_table(struct lull_schema *s, const struct fields *fields)
{
	char *const *f = fields->at;
	struct lull_table_desc t = { 0 };

	if (fields->n < 5 || !parse_id(f[1], &t.id) || find(s, t.id) || s->n >= MAX_TABLES)
		return;
	t.name = f[2];
	t.kind = strcmp(f[3], "fact") == 0  ? LULL_KIND_FACT
		 : strcmp(f[3], "dim") == 0 ? LULL_KIND_DIM
					    : 0;
	t.doc = f[4];
	if (!t.kind)
		return;
	s->tables = lull_realloc(s->tables, s->n + 1, sizeof(*s->tables));
	s->tables[s->n++] = t;
}

/* Size of a value by the name of its type; 0 if this version does not know it. */
static u8 size_of(const struct lull_schema *s, const char *type)
{
	static const struct {
		const char *name;
		u8 size_bytes;
	} numbers[] = {
		{ "u8", 1 },  { "u16", 2 }, { "u32", 4 }, { "u64", 8 },
		{ "i64", 8 }, { "f64", 8 }, { "str", 4 },
	};

	for (size_t i = 0; i < LULL_COUNT_OF(numbers); i++)
		if (strcmp(numbers[i].name, type) == 0)
			return numbers[i].size_bytes;
	for (size_t i = 0; i < s->n; i++)
		if (s->tables[i].kind == LULL_KIND_DIM && strcmp(s->tables[i].name, type) == 0)
			return sizeof(u32);
	return 0;
}

static u8 encoding_of(const char *name)
{
	for (size_t e = 0; e < LULL_COUNT_OF(encoding_names); e++)
		if (strcmp(encoding_names[e], name) == 0)
			return (u8)e;
	return LULL_ENC_PLAIN;
}

static void add_column(struct lull_schema *s, const struct fields *fields)
{
	char *const *f = fields->at;
	struct lull_col_desc col = { 0 }, *cols;
	struct lull_table_desc *t;
	u16 table_id;

	if (fields->n < 7 || !parse_id(f[1], &table_id) || !parse_id(f[2], &col.id))
		return;
	t = find(s, table_id);
	col.size_bytes = size_of(s, f[3]);
	if (!t || !col.size_bytes || t->n_cols + 2u > LULL_MAX_COLS)
		return;
	col.is_signed = strcmp(f[3], "i64") == 0;
	col.is_float = strcmp(f[3], "f64") == 0;
	col.type = f[3];
	col.name = f[4];
	col.encoding = encoding_of(f[5]);
	col.doc = f[6];
	/* The row struct that a compiler would make of these columns. */
	col.row_off = (u16)((t->row_bytes + col.size_bytes - 1) / col.size_bytes * col.size_bytes);
	cols = lull_realloc((void *)t->cols, t->n_cols + 1u, sizeof(col));
	cols[t->n_cols++] = col;
	t->cols = cols;
	t->row_bytes = col.row_off + (u32)col.size_bytes;
}

/* The lines with a NUL after each, cut into fields; the copy belongs to the schema. */
static struct fields *split_lines(struct lull_schema *s, const char *bytes, const u32 *lens,
				  size_t n)
{
	struct fields *lines = lull_alloc(n + 1, sizeof(*lines));
	size_t total = 0;
	char *copy;

	for (size_t i = 0; i < n; i++)
		total += lens[i] + 1;
	copy = lull_alloc(total + 1, 1);
	s->text = copy;
	for (size_t i = 0; i < n; i++) {
		memcpy(copy, bytes, lens[i]);
		split(copy, &lines[i]);
		bytes += lens[i];
		copy += lens[i] + 1;
	}
	return lines;
}

void lull_schema_parse(struct lull_schema *s, const char *bytes, const u32 *lens, size_t n_lines)
{
	struct fields *lines;

	lull_schema_release(s);
	lines = split_lines(s, bytes, lens, n_lines);
	/* Tables first: the type of a column may be the name of a later table. */
	for (size_t i = 0; i < n_lines; i++)
		if (strcmp(lines[i].at[0], "table") == 0)
			add_table(s, &lines[i]);
	for (size_t i = 0; i < n_lines; i++)
		if (strcmp(lines[i].at[0], "column") == 0)
			add_column(s, &lines[i]);
	for (size_t i = 0; i < s->n; i++)
		s->tables[i].row_bytes = (s->tables[i].row_bytes + 7) & ~7u;
	free(lines);
}

const struct lull_table_desc *lull_schema_find(const struct lull_schema *s, u16 id)
{
	return find((struct lull_schema *)s, id);
}
