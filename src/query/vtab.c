/*
 * SQLite's side. xBestIndex tells xFilter by idxStr what it decided:
 *
 *	"<columns in use, hex>;<op><column>;<op><column>..."	one op for each argument
 *
 * with the ops > and < for bounds (edges included, whatever was asked: SQLite tests again) and =
 * for a key.
 */
#include "query/vtab.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "query/values.h"

#define MAX_ARGS 16

/* Rows of a table that are looked up by key: 8 to 12 bytes each are held. */
#define MAX_INDEXED (256u << 20)

struct vtab {
	sqlite3_vtab base;
	struct lull_vtab *table;
};

struct bound {
	char op;
	int col;
};

struct cursor {
	sqlite3_vtab_cursor base;
	struct lull_walk *walks[LULL_VTAB_MAX_PARTS];
	int part;
	bool is_eof;
	struct bound bounds[MAX_ARGS];
	sqlite3_int64 values[MAX_ARGS];
	int n_bounds;
	u64 used;
	bool is_empty;
};

static struct lull_vtab *table_of(const sqlite3_vtab *base)
{
	return ((const struct vtab *)base)->table;
}

static int connect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out,
		   char **message)
{
	const struct lull_vtabs *tables = aux;
	struct lull_vtab *table = argc > 2 ? lull_vtabs_find(tables, argv[2]) : NULL;
	struct lull_str sql = LULL_STR_INIT;
	struct vtab *v;
	int rc;

	if (!table) {
		*message = sqlite3_mprintf("the report has no such table");
		return SQLITE_ERROR;
	}
	lull_vtab_declare(&sql, table);
	rc = sqlite3_declare_vtab(db, lull_str_text(&sql));
	lull_str_release(&sql);
	if (rc)
		return rc;
	sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS);
	v = lull_alloc(1, sizeof(*v));
	v->table = table;
	*out = &v->base;
	return SQLITE_OK;
}

static int disconnect(sqlite3_vtab *base)
{
	free(base);
	return SQLITE_OK;
}

/* ---- planning ---- */

static bool is_time(const struct lull_vtab *t, int col)
{
	for (int p = 0; p < t->n_parts; p++)
		if (t->parts[p].start_col == col || t->parts[p].end_col == col)
			return true;
	return false;
}

/* What a constraint is good for: a bound, a key, or nothing (0). */
static char op_of(const struct lull_vtab *t, const struct sqlite3_index_constraint *c)
{
	if (!c->usable || c->iColumn < 0)
		return 0;
	switch (c->op) {
	case SQLITE_INDEX_CONSTRAINT_EQ:
		if (t->cols[c->iColumn].is_key)
			return '=';
		return is_time(t, c->iColumn) ? '~' : 0;
	case SQLITE_INDEX_CONSTRAINT_GT:
	case SQLITE_INDEX_CONSTRAINT_GE:
		return is_time(t, c->iColumn) ? '>' : 0;
	case SQLITE_INDEX_CONSTRAINT_LT:
	case SQLITE_INDEX_CONSTRAINT_LE:
		return is_time(t, c->iColumn) ? '<' : 0;
	default:
		return 0;
	}
}

static int best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
	const struct lull_vtab *t = table_of(base);
	f64 n_rows = (f64)lull_vtab_n_rows(t);
	f64 share = 1;
	struct lull_str plan = LULL_STR_INIT;
	bool has_key = false;
	int n_args = 0;

	lull_str_addf(&plan, "%llx", (unsigned long long)info->colUsed);
	for (int i = 0; i < info->nConstraint && n_args < MAX_ARGS; i++) {
		char op = op_of(t, &info->aConstraint[i]);

		if (!op || (op == '=' && has_key))
			continue;
		lull_str_addf(&plan, ";%c%d", op, info->aConstraint[i].iColumn);
		info->aConstraintUsage[i].argvIndex = ++n_args;
		has_key |= op == '=';
		share *= op == '~' ? 0.001 : 0.2;
	}
	info->estimatedRows = has_key ? 2 : (sqlite3_int64)(n_rows * share) + 1;
	info->estimatedCost = has_key ? 20 : n_rows * share + 100;
	info->idxStr = sqlite3_mprintf("%s", lull_str_text(&plan));
	info->needToFreeIdxStr = 1;
	lull_str_release(&plan);
	return info->idxStr ? SQLITE_OK : SQLITE_NOMEM;
}

/* ---- cursors ---- */

static int open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
	const struct lull_vtab *t = table_of(base);
	struct cursor *c = lull_alloc(1, sizeof(*c));

	for (int p = 0; p < t->n_parts; p++)
		c->walks[p] = t->parts[p].ops->begin(&t->parts[p]);
	*out = &c->base;
	return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
	struct cursor *c = (struct cursor *)base;

	for (int p = 0; p < LULL_VTAB_MAX_PARTS; p++)
		if (c->walks[p])
			c->walks[p]->part->ops->end(c->walks[p]);
	free(c);
	return SQLITE_OK;
}

/* The nearest whole number that keeps all rows a bound allows; false if it rules out nothing. */
static bool take_value(struct cursor *c, char op, sqlite3_value *value, sqlite3_int64 *whole)
{
	f64 real;

	switch (sqlite3_value_type(value)) {
	case SQLITE_INTEGER:
		*whole = sqlite3_value_int64(value);
		return true;
	case SQLITE_NULL:
		c->is_empty = true;
		return false;
	case SQLITE_FLOAT:
		real = sqlite3_value_double(value);
		if (!(fabs(real) < 9e18))
			return false;
		*whole = (sqlite3_int64)(op == '<' ? ceil(real) : floor(real));
		return op != '~' && op != '=';
	default:
		return false;
	}
}

static void take_plan(struct cursor *c, const char *plan, int argc, sqlite3_value **argv)
{
	char *at;

	c->n_bounds = 0;
	c->is_empty = false;
	c->used = strtoull(plan, &at, 16);
	for (int i = 0; i < argc && *at == ';'; i++) {
		struct bound *bound = &c->bounds[c->n_bounds];

		bound->op = at[1];
		bound->col = (int)strtol(at + 2, &at, 10);
		if (take_value(c, bound->op, argv[i], &c->values[c->n_bounds]))
			c->n_bounds++;
	}
}

static void narrow(u64 *lo, u64 *hi, const struct bound *b, sqlite3_int64 value)
{
	u64 whole = value < 0 ? 0 : (u64)value;

	if (b->op != '<' && whole > *lo)
		*lo = whole;
	if (b->op != '>' && whole < *hi)
		*hi = whole;
}

/* What the bounds mean to a part: its columns of time may differ from those of the others. The
 * window of the query bounds them all. */
static void make_filter(const struct cursor *c, const struct lull_vtab_part *part,
			struct lull_filter *f)
{
	*f = (struct lull_filter){
		.used = c->used,
		.start_lo = part->values->window.from_ns,
		.start_hi = UINT64_MAX,
		.end_hi = part->values->window.to_ns,
		.key_col = -1,
		.is_empty = c->is_empty,
	};
	for (int i = 0; i < c->n_bounds; i++) {
		const struct bound *b = &c->bounds[i];

		if (b->op == '=') {
			f->key_col = b->col;
			f->key = c->values[i];
		} else if (c->values[i] < 0 && b->op != '>') {
			f->is_empty = true; /* times are not negative */
		} else if (b->col == part->start_col) {
			narrow(&f->start_lo, &f->start_hi, b, c->values[i]);
		} else if (b->col == part->end_col) {
			narrow(&f->end_lo, &f->end_hi, b, c->values[i]);
		}
	}
}

/* A key is a column as it is in the report, or nothing can be looked up. */
static bool can_look_up(const struct lull_vtab_part *part, int col)
{
	const struct lull_cell *cell;

	if (part->ops != &lull_part_fact)
		return true;
	cell = &part->cells[col];
	return part->ops->n_rows(part) <= MAX_INDEXED && cell->kind == LULL_CELL_IS_COLUMN &&
	       !cell->path_len && !cell->fn;
}

static void begin_part(struct cursor *c)
{
	struct lull_walk *walk = c->walks[c->part];
	struct lull_filter f;

	make_filter(c, walk->part, &f);
	if (f.key_col >= 0 && !can_look_up(walk->part, f.key_col))
		f.key_col = -1;
	walk->part->ops->filter(walk, &f);
}

static int next_row(sqlite3_vtab_cursor *base)
{
	struct cursor *c = (struct cursor *)base;
	int n_parts = table_of(base->pVtab)->n_parts;

	while (!c->walks[c->part]->part->ops->next(c->walks[c->part])) {
		if (++c->part == n_parts) {
			c->is_eof = true;
			break;
		}
		begin_part(c);
	}
	return SQLITE_OK;
}

static int filter(sqlite3_vtab_cursor *base, int number, const char *plan, int argc,
		  sqlite3_value **argv)
{
	struct cursor *c = (struct cursor *)base;

	(void)number;
	take_plan(c, plan, argc, argv);
	c->part = 0;
	c->is_eof = false;
	begin_part(c);
	return next_row(base);
}

static int is_eof(sqlite3_vtab_cursor *base)
{
	return ((struct cursor *)base)->is_eof;
}

static int column(sqlite3_vtab_cursor *base, sqlite3_context *to, int col)
{
	struct cursor *c = (struct cursor *)base;
	struct lull_walk *walk = c->walks[c->part];

	walk->part->ops->column(walk, to, col);
	return SQLITE_OK;
}

static int rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *id)
{
	const struct cursor *c = (const struct cursor *)base;
	const struct lull_walk *walk = c->walks[c->part];

	*id = (sqlite3_int64)c->part << 56 | walk->part->ops->rowid(walk);
	return SQLITE_OK;
}

int lull_vtab_register(sqlite3 *db, struct lull_vtabs *tables)
{
	static const sqlite3_module module = {
		.xCreate = connect,
		.xConnect = connect,
		.xBestIndex = best_index,
		.xDisconnect = disconnect,
		.xDestroy = disconnect,
		.xOpen = open_cursor,
		.xClose = close_cursor,
		.xFilter = filter,
		.xNext = next_row,
		.xEof = is_eof,
		.xColumn = column,
		.xRowid = rowid,
	};

	return sqlite3_create_module(db, "lull", &module, tables);
}
