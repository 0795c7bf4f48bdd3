#include "query/table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/str.h"
#include "query/values.h"
#include "query/made.h"

/* ---- expressions ---- */

static size_t word_len(const char *text, size_t len)
{
	size_t n = 0;

	while (n < len && text[n] != '.' && text[n] != ':' && text[n] != '?' && text[n] != ' ' &&
	       text[n] != '&' && text[n] != '=' && text[n] != '+')
		n++;
	return n;
}

static int column_of(const struct lull_table_desc *table, const char *text, size_t len)
{
	for (unsigned c = 0; c < table->n_cols; c++)
		if (strlen(table->cols[c].name) == len && !memcmp(table->cols[c].name, text, len))
			return (int)c;
	return -1;
}

/* " when flags&12=4" */
static void compile_when(struct lull_cell *cell, const struct lull_table_desc *table,
			 const char *text)
{
	size_t n = word_len(text, strlen(text));
	char *at;

	cell->when_col = column_of(table, text, n);
	cell->when_mask = UINT32_MAX;
	assert(cell->when_col >= 0);
	if (text[n] == '&')
		cell->when_mask = (u32)strtoul(text + n + 1, &at, 10);
	else
		at = (char *)text + n;
	cell->when_value = (u32)strtoul(at + 1, NULL, 10);
}

/* Compile text[0..len). A column that this report's schema lacks is null. */
static void compile(struct lull_cell *cell, const struct lull_table_desc *table, const char *text,
		    size_t len)
{
	static const char when[] = " when ";
	const char *condition = memmem(text, len, when, sizeof(when) - 1);
	size_t n = word_len(text, len);
	int col;

	cell->when_col = cell->plus_col = -1;
	if (!len)
		return;
	if (*text == '=') {
		cell->kind = LULL_CELL_IS_CONSTANT;
		cell->constant = strtoll(text + 1, NULL, 10);
		return;
	}
	if (condition)
		compile_when(cell, table, condition + sizeof(when) - 1);
	if (n == 3 && !memcmp(text, "end", 3)) {
		cell->kind = LULL_CELL_IS_END;
		return;
	}
	col = column_of(table, text, n);
	if (col < 0)
		return;
	cell->kind = LULL_CELL_IS_COLUMN;
	cell->col = (u16)col;
	cell->is_ref = !strcmp(table->cols[col].type, "str");
	cell->path = text + n;
	while (n < len && text[n] == '.') {
		n++;
		n += word_len(text + n, len - n);
	}
	cell->path_len = (size_t)(text + n - cell->path);
	if (cell->path_len) {
		cell->path++;
		cell->path_len--;
		cell->is_ref = cell->type == LULL_CELL_TEXT || cell->type == LULL_CELL_BLOB;
	}
	if (n < len && text[n] == ':') {
		size_t fn_len = word_len(text + n + 1, len - n - 1);

		cell->fn = lull_values_fn(text + n + 1, fn_len);
		cell->names = lull_values_names(text + n + 1, fn_len);
		assert(cell->fn || cell->names);
		n += 1 + fn_len;
	}
	if (n < len && text[n] == '+')
		cell->plus_col =
			column_of(table, text + n + 1, word_len(text + n + 1, len - n - 1));
	cell->is_zero_null = n < len && text[n] == '?';
}

i64 lull_cell_value(const struct lull_vtab_part *part, const struct lull_cell *cell, i64 raw)
{
	if (cell->lut)
		return cell->lut[raw];
	if (cell->is_zero_null && !raw)
		return LULL_VALUE_NULL;
	return cell->fn ? cell->fn(part->values, raw) : raw;
}

struct lull_value lull_cell_get(const struct lull_vtab_part *part, const struct lull_cell *cell,
				i64 raw)
{
	i64 value = lull_cell_value(part, cell, raw);
	struct lull_value out = { .kind = LULL_IS_INT, .i = value };
	size_t len;

	if (value == LULL_VALUE_NULL && (cell->lut || cell->fn || cell->is_zero_null)) {
		out.kind = LULL_IS_NULL;
	} else if (cell->type == LULL_CELL_REAL) {
		out.kind = LULL_IS_REAL;
		memcpy(&out.f, &value, sizeof(out.f));
	} else if (cell->names) {
		out.text = cell->names((u32)value);
		out.kind = LULL_IS_TEXT;
		out.len = (u32)strlen(out.text);
	} else if (cell->is_ref && cell->type != LULL_CELL_INT) {
		out.text = lull_reader_string(part->reader, (u32)value, &len);
		out.len = (u32)len;
		out.kind = cell->type == LULL_CELL_TEXT ? LULL_IS_TEXT : LULL_IS_BLOB;
		if (!value)
			out.kind = LULL_IS_NULL;
	}
	return out;
}

void lull_value_give(sqlite3_context *to, const struct lull_value *value)
{
	switch (value->kind) {
	case LULL_IS_NULL:
		return;
	case LULL_IS_INT:
		sqlite3_result_int64(to, value->i);
		return;
	case LULL_IS_REAL:
		sqlite3_result_double(to, value->f);
		return;
	case LULL_IS_TEXT:
		sqlite3_result_text(to, value->text, (int)value->len, SQLITE_STATIC);
		return;
	default:
		sqlite3_result_blob(to, value->text, (int)value->len, SQLITE_STATIC);
	}
}

/* Mark the cells that need nothing but a look into an array. */
static void choose_way(struct lull_cell *cell, const struct lull_col_desc *col)
{
	bool is_number = cell->type == LULL_CELL_INT && !cell->names && cell->plus_col < 0 &&
			 cell->when_col < 0;

	cell->size_bytes = col->size_bytes;
	cell->is_plain = is_number && !cell->lut && !cell->fn && !cell->is_zero_null;
	cell->is_plain_lut = is_number && cell->lut;
}

static void prepare_cell(const struct lull_vtab_part *part, struct lull_cell *cell)
{
	const struct lull_table_desc *dim;

	if (cell->kind != LULL_CELL_IS_COLUMN || cell->lut)
		return;
	dim = lull_table_by_name(part->table->cols[cell->col].type);
	if (dim && (cell->path_len || cell->fn))
		cell->lut = lull_values_lut(part->values, dim, cell);
	choose_way(cell, &part->table->cols[cell->col]);
}

void lull_cells_prepare(const struct lull_vtab_part *part, u64 used)
{
	for (int c = 0; c < part->n_cols; c++)
		if (lull_filter_uses(used, c))
			prepare_cell(part, &part->cells[c]);
}

void lull_test_prepare(struct lull_vtab_part *part)
{
	struct lull_row_test *test = &part->test;
	const struct lull_table_desc *dim =
		lull_table_by_name(part->table->cols[test->cell.col].type);
	size_t n;

	if (test->holds != LULL_TEST_UNKNOWN)
		return;
	prepare_cell(part, &test->cell);
	test->holds = LULL_TEST_NEVER;
	lull_reader_dim(part->reader, dim->id, &n);
	for (size_t id = 0; id <= n; id++)
		if (lull_cell_value(part, &test->cell, (i64)id) == test->value)
			test->holds = LULL_TEST_SOMETIMES;
}

/* ---- tables ---- */

static enum lull_cell_type type_of(const char *decl)
{
	if (!strncmp(decl, "TEXT", 4))
		return LULL_CELL_TEXT;
	if (!strncmp(decl, "BLOB", 4))
		return LULL_CELL_BLOB;
	return strncmp(decl, "REAL", 4) ? LULL_CELL_INT : LULL_CELL_REAL;
}

static struct lull_vtab *add_table(struct lull_vtabs *t, const char *name, const char *doc,
				   enum lull_vtab_kind kind)
{
	struct lull_vtab *table = lull_alloc(1, sizeof(*table));

	table->name = lull_strdup(name);
	table->doc = doc;
	table->kind = kind;
	table->cols = lull_alloc(LULL_VTAB_MAX_COLS + 1, sizeof(*table->cols));
	lull_vec_add(&t->all, &table, 1);
	return table;
}

static struct lull_vtab_part *add_part(struct lull_vtab *table, const struct lull_part_ops *ops,
				       struct lull_reader *r, struct lull_values *values)
{
	struct lull_vtab_part *part;

	assert(table->n_parts < LULL_VTAB_MAX_PARTS);
	part = &table->parts[table->n_parts++];
	part->ops = ops;
	part->reader = r;
	part->values = values;
	part->start_col = part->end_col = -1;
	return part;
}

static void add_col(struct lull_vtab *table, const char *name, const char *decl, bool is_key)
{
	assert(table->n_cols < LULL_VTAB_MAX_COLS);
	table->cols[table->n_cols++] = (struct lull_vtab_col){ name, decl, is_key };
	for (int p = 0; p < table->n_parts; p++)
		table->parts[p].n_cols = table->n_cols;
}

/* The columns of time, for bounds. */
static void find_times(struct lull_vtab_part *part)
{
	for (int c = 0; c < part->n_cols; c++) {
		const struct lull_cell *cell = &part->cells[c];

		if (cell->kind == LULL_CELL_IS_END && cell->when_col < 0)
			part->end_col = c;
		else if (cell->kind == LULL_CELL_IS_COLUMN && cell->col == 0 && !cell->fn &&
			 cell->when_col < 0)
			part->start_col = c;
	}
}

/* ---- the tables of nsys.def and ours.def ---- */

struct line {
	enum lull_vtab_kind kind;
	const char *table; /* the first line of a table; NULL for a column */
	const char *source;
	const char *doc;
	const char *name;
	const char *decl;
	const char *cells;
	bool is_key;
};

#define I  "INTEGER"
#define IN "INTEGER NOT NULL"
#define T  "TEXT"
#define TN "TEXT NOT NULL"
#define R  "REAL"
#define RN "REAL NOT NULL"

#define COL(name, decl, cells) { 0, NULL, NULL, NULL, name, decl, cells, false },
#define KEY(name, decl, cells) { 0, NULL, NULL, NULL, name, decl, cells, true },

static const struct line lines[] = {
#define TABLE(name, source, doc) { LULL_VTAB_NSYS, #name, source, doc, NULL, NULL, NULL, false },
#include "query/nsys.def"
#undef TABLE
#define TABLE(name, source, doc) { LULL_VTAB_MORE, #name, source, doc, NULL, NULL, NULL, false },
#include "query/ours.def"
#undef TABLE
};

#undef COL
#undef KEY

/* The i-th piece between bars. */
static const char *piece(const char *text, int i, size_t *len)
{
	while (i-- > 0) {
		text += strcspn(text, "|");
		text += *text == '|';
	}
	*len = strcspn(text, "|");
	return text;
}

/* Take "only label.api=4" or "except label.api=4"; the text is one of the list. */
static void compile_test(struct lull_vtab_part *part, const char *text)
{
	static const char only[] = "only ", except[] = "except ";
	struct lull_row_test *test = &part->test;
	size_t len;

	test->kind = strncmp(text, only, sizeof(only) - 1) ? LULL_TEST_EXCEPT : LULL_TEST_ONLY;
	text += test->kind == LULL_TEST_ONLY ? sizeof(only) - 1 : sizeof(except) - 1;
	len = strcspn(text, "=");
	test->value = text[len + 1] - '0';
	compile(&test->cell, part->table, text, len);
	assert(test->cell.path_len);
}

/* "range", "range except label.api=4", "@devices" or "chains sample". */
static void add_source(struct lull_vtab *table, const char *source, size_t len,
		       struct lull_reader *r, struct lull_values *values)
{
	static const char chains[] = "chains ";
	static const char *const tests[] = { " only ", " except " };
	const char *test = NULL;
	char name[32] = "";
	struct lull_vtab_part *part;

	for (size_t i = 0; i < LULL_COUNT_OF(tests) && !test; i++)
		test = memmem(source, len, tests[i], strlen(tests[i]));
	len = test ? (size_t)(test - source) : len;
	assert(len < sizeof(name));
	memcpy(name, source, len);
	if (*name == '@') {
		part = add_part(table, &lull_part_made, r, values);
		part->make = lull_made_find(name + 1);
		part->is_costly = table->kind == LULL_VTAB_MORE;
		assert(part->make);
	} else if (!strncmp(name, chains, sizeof(chains) - 1)) {
		part = add_part(table, &lull_part_chains, r, values);
		part->users = lull_table_by_name(name + sizeof(chains) - 1);
		assert(part->users);
	} else if (!strcmp(name, "strings")) {
		add_part(table, &lull_part_strings, r, values);
	} else {
		part = add_part(table, &lull_part_fact, r, values);
		part->table = lull_table_by_name(name);
		assert(part->table);
		if (test)
			compile_test(part, test + 1);
	}
}

static void compile_part(struct lull_vtab_part *part, const struct line *first, int ix)
{
	if (part->ops != &lull_part_fact)
		return;
	part->cells = lull_alloc((size_t)part->n_cols, sizeof(*part->cells));
	for (int c = 0; c < part->n_cols; c++) {
		size_t len;
		const char *text = piece(first[c].cells, ix, &len);

		part->cells[c].type = (u8)type_of(first[c].decl);
		compile(&part->cells[c], part->table, text, len);
	}
	find_times(part);
}

static size_t add_listed_table(struct lull_vtabs *t, size_t i, struct lull_reader *r,
			       struct lull_values *values)
{
	const struct line *head = &lines[i];
	struct lull_vtab *table = add_table(t, head->table, head->doc, head->kind);
	const char *source = head->source;

	while (*source) {
		size_t len = strcspn(source, "|");

		add_source(table, source, len, r, values);
		source += len + (source[len] == '|');
	}
	for (i++; i < LULL_COUNT_OF(lines) && !lines[i].table; i++)
		add_col(table, lines[i].name, lines[i].decl, lines[i].is_key);
	for (int p = 0; p < table->n_parts; p++)
		compile_part(&table->parts[p], head + 1, p);
	return i;
}

/* ---- the tables of the report ---- */

static const char *own_decl(const struct lull_col_desc *col)
{
	if (!strcmp(col->type, "str"))
		return T;
	return col->is_float ? RN : IN;
}

static bool is_own_key(const struct lull_col_desc *col)
{
	return !strcmp(col->name, "correlation") || !strcmp(col->name, "graph_node_id") ||
	       !strcmp(col->name, "external_id");
}

static void add_own_table(struct lull_vtabs *t, const struct lull_table_desc *desc,
			  struct lull_reader *r, struct lull_values *values)
{
	struct lull_vtab *table = add_table(t, desc->name, desc->doc, LULL_VTAB_OWN);
	bool is_dim = desc->kind == LULL_KIND_DIM;
	struct lull_vtab_part *part =
		add_part(table, is_dim ? &lull_part_dim : &lull_part_fact, r, values);
	int shift = is_dim;

	part->table = desc;
	if (is_dim)
		add_col(table, "id", IN, true);
	for (unsigned c = 0; c < desc->n_cols && table->n_cols < LULL_VTAB_MAX_COLS; c++)
		add_col(table, desc->cols[c].name, own_decl(&desc->cols[c]),
			!is_dim && is_own_key(&desc->cols[c]));
	part->cells = lull_alloc((size_t)part->n_cols, sizeof(*part->cells));
	for (int c = shift; c < part->n_cols; c++)
		part->cells[c] = (struct lull_cell){
			.kind = LULL_CELL_IS_COLUMN,
			.type = (u8)type_of(table->cols[c].decl),
			.is_ref = !strcmp(desc->cols[c - shift].type, "str"),
			.col = (u16)(c - shift),
			.plus_col = -1,
			.when_col = -1,
		};
	if (!is_dim)
		find_times(part);
}

void lull_vtabs_init(struct lull_vtabs *t, struct lull_reader *r, struct lull_values *values)
{
	const struct lull_schema *schema = lull_reader_schema(r);

	lull_vec_init(&t->all, sizeof(struct lull_vtab *));
	for (size_t i = 0; i < LULL_COUNT_OF(lines);)
		i = add_listed_table(t, i, r, values);
	for (size_t i = 0; i < schema->n; i++)
		if (!lull_vtabs_find(t, schema->tables[i].name))
			add_own_table(t, &schema->tables[i], r, values);
}

static void free_table(struct lull_vtab *table)
{
	for (int p = 0; p < table->n_parts; p++) {
		free(table->parts[p].cells);
		lull_rows_free(table->parts[p].rows);
		lull_key_index_free(table->parts[p].index);
		free(table->parts[p].is_used);
	}
	free(table->cols);
	free(table->name);
	free(table);
}

void lull_vtabs_release(struct lull_vtabs *t)
{
	struct lull_vtab **all = t->all.at;

	for (size_t i = 0; i < t->all.n; i++)
		free_table(all[i]);
	lull_vec_release(&t->all);
}

struct lull_vtab *lull_vtabs_find(const struct lull_vtabs *t, const char *name)
{
	struct lull_vtab *const *all = t->all.at;

	for (size_t i = 0; i < t->all.n; i++)
		if (!strcasecmp(all[i]->name, name))
			return all[i];
	return NULL;
}

u64 lull_vtab_n_rows(const struct lull_vtab *t)
{
	u64 n = 0;

	for (int p = 0; p < t->n_parts; p++)
		n += t->parts[p].ops->n_rows(&t->parts[p]);
	return n;
}

void lull_vtab_declare(struct lull_str *to, const struct lull_vtab *t)
{
	lull_str_addf(to, "CREATE TABLE \"%s\" (", t->name);
	for (int c = 0; c < t->n_cols; c++)
		lull_str_addf(to, "%s\"%s\" %s", c ? ", " : "", t->cols[c].name, t->cols[c].decl);
	lull_str_puts(to, ")");
}
