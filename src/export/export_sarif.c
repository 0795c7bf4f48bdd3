/*
 * sarif: SARIF 2.1.0, the causes of idle time as results with file and line, for editors and code
 * scanning.
 *
 * One result for each cause of lull-why(1). The first is a warning, the others are notes. Files
 * below the folder in which the program ran are relative to it (%SRCROOT%), as code scanning wants
 * them; others are file: addresses. A cause without a file and line has the range or the call as
 * its logical location.
 */
#include <string.h>

#include "cause/remark.h"
#include "export/export.h"
#include "text/json.h"

static void put_message(struct lull_json *j, const char *key, const char *text)
{
	lull_json_key(j, key);
	lull_json_object(j);
	lull_json_key_text(j, "text", text);
	lull_json_end(j);
}

static void put_rules(struct lull_json *j)
{
	lull_json_key_array(j, "rules");
	for (int i = 0; i < LULL_N_CAUSES; i++) {
		lull_json_object(j);
		lull_json_key_text(j, "id", lull_causes[i]->id);
		put_message(j, "shortDescription", lull_causes[i]->title);
		put_message(j, "fullDescription", lull_causes[i]->why);
		put_message(j, "help", lull_causes[i]->fix);
		lull_json_end(j);
	}
	lull_json_end(j);
}

static void put_tool(struct lull_json *j)
{
	lull_json_key(j, "tool");
	lull_json_object(j);
	lull_json_key(j, "driver");
	lull_json_object(j);
	lull_json_key_text(j, "name", "lull");
	lull_json_key_text(j, "version", LULL_VERSION);
	put_rules(j);
	lull_json_end(j);
	lull_json_end(j);
}

/* What has another meaning in an address, or is no ASCII, becomes %XX. */
static void add_encoded(struct lull_str *to, const char *path)
{
	for (; *path; path++) {
		char c = *path;

		if ((u8)c <= ' ' || (u8)c >= 0x7f || strchr("%?#[]\"<>\\^`{|}", c))
			lull_str_addf(to, "%%%02X", (u8)c);
		else
			lull_str_add(to, &c, 1);
	}
}

static void put_artifact(struct lull_json *j, const char *file, const char *folder)
{
	struct lull_str uri = LULL_STR_INIT;
	size_t len = strlen(folder);
	bool is_below = len > 1 && !strncmp(file, folder, len) && file[len] == '/';

	if (is_below)
		file += len + 1;
	if (*file == '/')
		lull_str_puts(&uri, "file://");
	add_encoded(&uri, file);
	lull_json_key(j, "artifactLocation");
	lull_json_object(j);
	lull_json_key_text(j, "uri", lull_str_text(&uri));
	if (*file != '/')
		lull_json_key_text(j, "uriBaseId", "%SRCROOT%");
	lull_json_end(j);
	lull_str_release(&uri);
}

static void put_physical(struct lull_json *j, const struct lull_location *at, const char *folder)
{
	lull_json_key(j, "physicalLocation");
	lull_json_object(j);
	put_artifact(j, at->file, folder);
	if (at->line) {
		lull_json_key(j, "region");
		lull_json_object(j);
		lull_json_key_u64(j, "startLine", at->line);
		lull_json_end(j);
	}
	lull_json_end(j);
}

static void put_logical(struct lull_json *j, const char *name, const char *kind)
{
	if (!name)
		return;
	lull_json_object(j);
	lull_json_key_text(j, "name", name);
	lull_json_key_text(j, "kind", kind);
	lull_json_end(j);
}

static void put_locations(struct lull_json *j, const struct lull_location *at, const char *folder)
{
	lull_json_key_array(j, "locations");
	if (at->file || at->function || at->range || at->what) {
		lull_json_object(j);
		if (at->file)
			put_physical(j, at, folder);
		if (at->function || at->range || at->what) {
			lull_json_key_array(j, "logicalLocations");
			put_logical(j, at->function, "function");
			put_logical(j, at->range, "range");
			put_logical(j, at->what, "call");
			lull_json_end(j);
		}
		lull_json_end(j);
	}
	lull_json_end(j);
}

static void put_result(struct lull_json *j, const struct lull_why *why,
		       const struct lull_remark *remark)
{
	const struct lull_finding *f = remark->finding;
	struct lull_str text = LULL_STR_INIT;

	lull_remark_text(why, remark, &text);
	lull_json_object(j);
	lull_json_key_text(j, "ruleId", lull_causes[f->cause]->id);
	lull_json_key_u64(j, "ruleIndex", f->cause);
	lull_json_key_text(j, "level", remark->is_first ? "warning" : "note");
	put_message(j, "message", lull_str_text(&text));
	put_locations(j, &f->at, lull_reader_fact(why->reader, "environment.PWD"));
	lull_json_key(j, "properties");
	lull_json_object(j);
	lull_json_key_fixed(j, "cost_ns", f->cost_ns, 0);
	lull_json_key_fixed(j, "share", f->share, 6);
	lull_json_key_fixed(j, "gain_ns", f->gain_ns, 0);
	lull_json_key_fixed(j, "confidence", f->confidence, 6);
	lull_json_end(j);
	lull_json_end(j);
	lull_str_release(&text);
}

static void put_log(struct lull_json *j, const struct lull_why *why)
{
	const struct lull_remark *all;
	struct lull_vec remarks;

	lull_remarks(why, &remarks);
	all = remarks.at;
	lull_json_object(j);
	lull_json_key_text(j, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
	lull_json_key_text(j, "version", "2.1.0");
	lull_json_key_array(j, "runs");
	lull_json_object(j);
	put_tool(j);
	lull_json_key_array(j, "results");
	for (size_t i = 0; i < remarks.n; i++)
		put_result(j, why, &all[i]);
	lull_json_end(j);
	lull_json_end(j);
	lull_json_end(j);
	lull_json_end(j);
	lull_vec_release(&remarks);
}

static int write(struct lull_reader *r, const struct lull_export_options *options, FILE *to,
		 struct lull_err *err)
{
	struct lull_why why;
	struct lull_json j;
	int rc;

	if (options->tables.n || options->from_ns ||
	    (options->to_ns && options->to_ns != UINT64_MAX))
		return lull_fail(err, LULL_E_USAGE,
				 "sarif has the causes of the whole report; it does not go with "
				 "--tables, --filter-time, --filter-nvtx and --steps");
	rc = lull_why_run(&why, r, NULL, err);
	if (!rc) {
		lull_json_init(&j, to);
		j.is_pretty = true;
		put_log(&j, &why);
		rc = lull_export_finish(to, err);
	}
	lull_why_release(&why);
	return rc;
}

const struct lull_export lull_export_sarif = {
	.name = "sarif",
	.suffix = ".sarif",
	.summary = "causes of idle time with file and line, for editors and code scanning",
	.write = write,
};
