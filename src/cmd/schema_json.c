#include "cmd/schema_json.h"

#include <string.h>

#include "text/out.h"
#include "base/str.h"

/* ---- tables ---- */

static void put(struct lull_json *j, const char *key, const char *text)
{
	lull_json_key(j, key);
	lull_json_text(j, text);
}

static const char *type_of(const struct lull_out_column *column)
{
	bool is_scaled = column->kind == LULL_OUT_NS || column->kind == LULL_OUT_BYTES;

	if (column->kind == LULL_OUT_TEXT)
		return "string";
	if (column->kind == LULL_OUT_FLOAT || column->kind == LULL_OUT_PERCENT ||
	    (is_scaled && column->decimals))
		return "number";
	return "integer";
}

/* Numbers that are not there are "". */
static void put_column(struct lull_json *j, const struct lull_out_column *column)
{
	struct lull_str header = LULL_STR_INIT;
	const char *type = type_of(column);

	lull_out_header(&header, column);
	lull_json_key(j, lull_str_text(&header));
	lull_json_object(j);
	if (strcmp(type, "string") != 0) {
		lull_json_key(j, "anyOf");
		lull_json_array(j);
		lull_json_object(j);
		put(j, "type", type);
		lull_json_end(j);
		lull_json_object(j);
		put(j, "const", "");
		lull_json_end(j);
		lull_json_end(j);
	} else {
		put(j, "type", type);
	}
	put(j, "description", column->doc);
	lull_json_end(j);
	lull_str_release(&header);
}

static void put_required(struct lull_json *j, const struct lull_report *report)
{
	struct lull_str header = LULL_STR_INIT;

	lull_json_key(j, "required");
	lull_json_array(j);
	for (size_t c = 0; c + report->n_optional < report->n_columns; c++) {
		lull_str_clear(&header);
		lull_out_header(&header, &report->columns[c]);
		lull_json_text(j, lull_str_text(&header));
	}
	lull_json_end(j);
	lull_str_release(&header);
}

static void put_report(struct lull_json *j, const struct lull_report *report)
{
	lull_json_key(j, report->name);
	lull_json_object(j);
	put(j, "title", report->display);
	put(j, "description", report->summary);
	put(j, "type", "array");
	lull_json_key(j, "items");
	lull_json_object(j);
	put(j, "type", "object");
	lull_json_key(j, "properties");
	lull_json_object(j);
	for (size_t c = 0; c < report->n_columns; c++)
		put_column(j, &report->columns[c]);
	lull_json_end(j);
	put_required(j, report);
	lull_json_key(j, "additionalProperties");
	lull_json_bool(j, false);
	lull_json_end(j);
	lull_json_end(j);
}

void lull_schema_json_tables(struct lull_json *j, const char *title,
			     const struct lull_report *const *list)
{
	struct lull_str ref = LULL_STR_INIT;

	lull_json_object(j);
	put(j, "$schema", "https://json-schema.org/draft/2020-12/schema");
	put(j, "title", title);
	put(j, "description",
	    "Each table is a separate document. Times are in ns unless --timeunit says otherwise, "
	    "which changes the names of their keys and makes them numbers.");
	lull_json_key(j, "anyOf");
	lull_json_array(j);
	for (size_t i = 0; list[i]; i++) {
		lull_str_clear(&ref);
		lull_str_addf(&ref, "#/$defs/%s", list[i]->name);
		lull_json_object(j);
		put(j, "$ref", lull_str_text(&ref));
		lull_json_end(j);
	}
	lull_json_end(j);
	lull_json_key(j, "$defs");
	lull_json_object(j);
	for (size_t i = 0; list[i]; i++)
		put_report(j, list[i]);
	lull_json_end(j);
	lull_json_end(j);
	lull_str_release(&ref);
}

static void key_text(struct lull_json *j, const char *key, const char *value)
{
	lull_json_key(j, key);
	lull_json_text(j, value);
}

static void put_type(struct lull_json *j, const char *type)
{
	const char *bar;

	lull_json_key(j, "type");
	lull_json_array(j);
	while ((bar = strchr(type, '|'))) {
		lull_json_bytes(j, type, (size_t)(bar - type));
		type = bar + 1;
	}
	lull_json_text(j, type);
	lull_json_end(j);
}

/* NOLINTNEXTLINE(misc-no-recursion): the lists of properties are a few levels deep. */
static void put_properties(struct lull_json *j, const struct lull_property *p)
{
	lull_json_key(j, "properties");
	lull_json_object(j);
	for (; p->name; p++) {
		lull_json_key(j, p->name);
		lull_json_object(j);
		key_text(j, "description", p->meaning);
		put_type(j, p->type);
		if (p->inside && *p->type == 'a') {
			lull_json_key(j, "items");
			lull_json_object(j);
			key_text(j, "type", "object");
			put_properties(j, p->inside);
			lull_json_end(j);
		} else if (p->inside) {
			put_properties(j, p->inside);
		}
		lull_json_end(j);
	}
	lull_json_end(j);
}

void lull_schema_json_object(struct lull_json *j, const char *title,
			     const struct lull_property *properties)
{
	lull_json_object(j);
	key_text(j, "$schema", "https://json-schema.org/draft/2020-12/schema");
	key_text(j, "title", title);
	key_text(j, "type", "object");
	put_properties(j, properties);
	lull_json_end(j);
}
