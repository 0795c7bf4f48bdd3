#include "mcp/resource.h"

#include <stdlib.h>
#include <string.h>

#include "base/newest.h"
#include "base/mem.h"
#include "base/str.h"

/* Reports in one answer. */
#define PAGE_REPORTS 50u

const struct lull_mcp_resource lull_mcp_resources[] = {
#define RESOURCE(uri, name, type, help, ...) { uri, name, help, type, { __VA_ARGS__, NULL } },
#include "mcp/resources.def"
#undef RESOURCE
	{ .uri = NULL },
};

static bool takes_path(const struct lull_mcp_resource *r)
{
	return r->uri[strlen(r->uri) - 1] == '/';
}

/* ---- lists ---- */

/* A path as a part of a URI: what is no letter, digit or one of "-._~/" becomes %XX. */
static void add_encoded(struct lull_str *to, const char *path)
{
	for (; *path; path++) {
		char c = *path;
		bool is_plain = (c >= '0' && c <= '9') ||
				((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || strchr("-._~/", c);

		if (is_plain)
			lull_str_add(to, &c, 1);
		else
			lull_str_addf(to, "%%%02X", (u8)c);
	}
}

static void put_resource(struct lull_json *j, const struct lull_mcp_resource *r,
			 const struct lull_newest *report)
{
	struct lull_str uri = LULL_STR_INIT;

	lull_str_puts(&uri, r->uri);
	if (report)
		add_encoded(&uri, report->path);
	lull_json_object(j);
	lull_json_key_text(j, "uri", uri.at);
	lull_json_key_text(j, "name", report ? report->path : r->name);
	lull_json_key_text(j, "description", r->help);
	lull_json_key_text(j, "mimeType", r->type);
	lull_json_end(j);
	lull_str_release(&uri);
}

int lull_mcp_put_resources(struct lull_json *j, const char *folder, const char *cursor,
			   struct lull_err *err)
{
	const struct lull_mcp_resource *r = lull_mcp_resources;
	struct lull_newest *all;
	struct lull_vec reports;
	char *end = NULL;
	u64 from = cursor ? strtoull(cursor, &end, 10) : 0, i;

	if (cursor && (!*cursor || *end || from > LULL_NEWEST_MAX))
		return lull_fail(err, LULL_E_USAGE, "the cursor \"%s\" is none of this server",
				 cursor);
	lull_newest_list(folder, ".lull", &reports);
	all = reports.at;
	lull_json_key_array(j, "resources");
	for (i = from; i < reports.n && i < from + PAGE_REPORTS; i++)
		put_resource(j, r, &all[i]);
	for (; !from && r->uri; r++)
		if (!takes_path(r))
			put_resource(j, r, NULL);
	lull_json_end(j);
	if (i < reports.n) {
		char next[24];

		snprintf(next, sizeof(next), "%llu", (unsigned long long)i);
		lull_json_key_text(j, "nextCursor", next);
	}
	lull_newest_release(&reports);
	return LULL_OK;
}

void lull_mcp_put_templates(struct lull_json *j)
{
	char uri[64];

	lull_json_key_array(j, "resourceTemplates");
	for (const struct lull_mcp_resource *r = lull_mcp_resources; r->uri; r++) {
		if (!takes_path(r))
			continue;
		snprintf(uri, sizeof(uri), "%s{+path}", r->uri);
		lull_json_object(j);
		lull_json_key_text(j, "uriTemplate", uri);
		lull_json_key_text(j, "name", r->name);
		lull_json_key_text(j, "description", r->help);
		lull_json_key_text(j, "mimeType", r->type);
		lull_json_end(j);
	}
	lull_json_end(j);
}

/* ---- one ---- */

static int hex(char c)
{
	return c >= '0' && c <= '9'			? c - '0'
	       : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
							: -1;
}

static void add_decoded(struct lull_str *to, const char *text)
{
	for (; *text; text++) {
		char c = *text;

		if (c == '%' && hex(text[1]) >= 0 && hex(text[2]) >= 0) {
			c = (char)(hex(text[1]) * 16 + hex(text[2]));
			text += 2;
		}
		lull_str_add(to, &c, 1);
	}
}

/* The path of a report below the folder, as a real path. */
static int take_path(const char *text, const char *folder, struct lull_str *path,
		     struct lull_err *err)
{
	struct lull_str name = LULL_STR_INIT;
	char *real;
	size_t len = strlen(folder);
	int rc = LULL_OK;

	lull_str_addf(&name, "%s/", folder);
	add_decoded(&name, text);
	real = realpath(name.at, NULL);
	if (!real || strncmp(real, folder, len) != 0 || (len > 1 && real[len] != '/'))
		rc = lull_fail(err, LULL_E_NOT_FOUND, "there is no report %s in %s",
			       name.at + len + 1, folder);
	else
		lull_str_puts(path, real);
	free(real);
	lull_str_release(&name);
	return rc;
}

static void add_word(struct lull_vec *words, const char *word)
{
	*(char **)lull_vec_push(words) = lull_strdup(word);
}

int lull_mcp_resource_find(const char *uri, const char *folder,
			   const struct lull_mcp_resource **resource, struct lull_vec *words,
			   struct lull_err *err)
{
	const struct lull_mcp_resource *r = lull_mcp_resources;
	struct lull_str path = LULL_STR_INIT;
	int rc = LULL_OK;

	while (r->uri &&
	       (takes_path(r) ? strncmp(uri, r->uri, strlen(r->uri)) : strcmp(uri, r->uri)) != 0)
		r++;
	if (!r->uri)
		return lull_fail(err, LULL_E_NOT_FOUND,
				 "there is no resource %s; resources/list has all", uri);
	*resource = r;
	add_word(words, "lull");
	for (const char *const *w = r->command; *w; w++)
		add_word(words, *w);
	if (takes_path(r)) {
		rc = take_path(uri + strlen(r->uri), folder, &path, err);
		add_word(words, lull_str_text(&path));
	}
	lull_vec_push(words);
	lull_str_release(&path);
	return rc;
}
