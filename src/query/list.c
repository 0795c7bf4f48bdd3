/* What .tables and .schema print. */
#include <string.h>

#include "base/str.h"
#include "query/made.h"
#include "query/query_int.h"

static bool matches(const char *pattern, const char *name)
{
	return !pattern || !sqlite3_strlike(pattern, name, 0);
}

/* A table that SQL sees: those of nsys only if they have rows. */
static bool is_there(const struct lull_vtab *t)
{
	return t->kind != LULL_VTAB_NSYS || lull_vtab_n_rows(t);
}

static void list_kind(const struct lull_query *q, enum lull_vtab_kind kind, const char *title,
		      const char *pattern, FILE *to)
{
	struct lull_vtab *const *all = q->tables.all.at;

	for (size_t i = 0; i < q->tables.all.n; i++) {
		if (all[i]->kind != kind || !is_there(all[i]) || !matches(pattern, all[i]->name))
			continue;
		if (title)
			fprintf(to, "%s:\n", title);
		title = NULL;
		fprintf(to, "  %-36s %s\n", all[i]->name, all[i]->doc);
	}
}

void lull_query_list_tables(struct lull_query *q, const char *pattern, FILE *to)
{
	size_t n;
	const struct lull_enum_line *enums = lull_enums(&n);

	list_kind(q, LULL_VTAB_MORE, "Readable tables", pattern, to);
	list_kind(q, LULL_VTAB_OWN, "Tables of the report", pattern, to);
	list_kind(q, LULL_VTAB_NSYS, "Tables of an nsys export", pattern, to);
	for (size_t i = 0; i < n; i++)
		if (enums[i].table && matches(pattern, enums[i].table))
			fprintf(to, "  %-36s %s\n", enums[i].table, enums[i].doc);
}

bool lull_query_list_columns(struct lull_query *q, const char *pattern, FILE *to)
{
	struct lull_vtab *const *all = q->tables.all.at;
	size_t n;
	const struct lull_enum_line *enums = lull_enums(&n);
	bool has_any = false;

	for (size_t i = 0; i < q->tables.all.n; i++) {
		if (!is_there(all[i]) || !matches(pattern, all[i]->name))
			continue;
		has_any = true;
		fprintf(to, "CREATE TABLE %s ( -- %s\n", all[i]->name, all[i]->doc);
		for (int c = 0; c < all[i]->n_cols; c++)
			fprintf(to, "  %-24s %s%s\n", all[i]->cols[c].name, all[i]->cols[c].decl,
				c + 1 < all[i]->n_cols ? "," : "");
		fputs(");\n", to);
	}
	for (size_t i = 0; i < n; i++) {
		if (!enums[i].table || !matches(pattern, enums[i].table))
			continue;
		has_any = true;
		fprintf(to,
			"CREATE TABLE %s ( -- %s\n  id INTEGER NOT NULL,\n  name TEXT,\n  label "
			"TEXT\n);\n",
			enums[i].table, enums[i].doc);
	}
	return has_any;
}
