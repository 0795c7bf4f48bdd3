/*
 * lull import - make a report of another tool's file.
 *
 * Several files become one report each: ranks of one job are compared, not mixed.
 */
#include "cmd/cmd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "cmd/sink.h"
#include "text/opt.h"
#include "base/str.h"
#include "text/term.h"
#include "import/import.h"

struct import {
	const char *output; /* file or folder, NULL: next to each file */
	bool is_overwriting;
	struct lull_import_options options;
};

static bool is_dir(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* Length of the name without suffixes that a report of it should not keep: a.json.gz is a.lull. */
static size_t stem_len(const char *name)
{
	static const char *const suffixes[] = { ".gz",	 ".zst",    ".pt.trace.json",
						".json", ".sqlite", ".db" };
	size_t len = strlen(name);

	for (size_t i = 0; i < LULL_COUNT_OF(suffixes); i++) {
		size_t cut = strlen(suffixes[i]);

		if (len > cut && !strncmp(name + len - cut, suffixes[i], cut))
			len -= cut;
	}
	return len;
}

/* Where the report of `path` goes; free() it. */
static char *output_of(const struct import *m, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;
	struct lull_str name = LULL_STR_INIT;

	if (m->output && !is_dir(m->output))
		return lull_strdup(m->output);
	if (m->output)
		lull_str_addf(&name, "%s/", m->output);
	else
		lull_str_add(&name, path, (size_t)(base - path));
	lull_str_add(&name, base, stem_len(base));
	lull_str_puts(&name, ".lull");
	return name.at;
}

/* What came of it, and what did not: on standard error, as it is about the answer. */
static void say(const char *out_path, const struct lull_import_result *result)
{
	fprintf(stderr, "lull: %s: %s rows, %s of %s (%s)\n", out_path,
		lull_format_grouped((i64)result->n_rows).text,
		lull_format_bytes(result->size_bytes).text,
		lull_format_bytes(result->in_bytes).text, result->format->name);
	if (result->is_cut)
		fprintf(stderr,
			"lull: the file is cut off; everything before the cut was imported\n");
	if (result->n_bad)
		fprintf(stderr, "lull: %s events could not be understood\n",
			lull_format_grouped((i64)result->n_bad).text);
	if (result->n_unmapped)
		fprintf(stderr,
			"lull: %s events have no place in a report; `lull info` names them\n",
			lull_format_grouped((i64)result->n_unmapped).text);
}

static int import_one(const struct import *m, const char *path, struct lull_err *err)
{
	char *out_path = output_of(m, path);
	struct lull_import_result result = { 0 };
	int rc = 0;

	if (lull_sink_spare_input(out_path, path, err))
		rc = err->code;
	else if (!m->is_overwriting && !access(out_path, F_OK))
		rc = lull_fail(err, LULL_E_IO,
			       "%s exists; remove it, or replace it with --force-overwrite",
			       out_path);
	else
		rc = lull_import_file(path, out_path, &m->options, &result, err);
	if (!rc && result.format && !m->options.is_quiet)
		say(out_path, &result);
	free(out_path);
	return rc;
}

static int import_all(const struct import *m, char **paths, int n, struct lull_err *err)
{
	if (n > 1 && m->output && !is_dir(m->output))
		return lull_fail(err, LULL_E_USAGE,
				 "%d files become %d reports: -o has to name an existing folder, "
				 "and %s is not one",
				 n, n, m->output);
	for (int i = 0; i < n; i++)
		if (import_one(m, paths[i], err))
			return err->code;
	return LULL_OK;
}

static void list_formats(void)
{
	for (const struct lull_import *const *i = lull_imports; *i; i++)
		printf("%-12s %s\n", (*i)->name, (*i)->summary);
}

int cmd_import(int argc, char **argv, struct lull_err *err)
{
	struct import m = { 0 };
	bool is_list = false;
	const struct lull_opt opts[] = {
		OPT_USAGE("lull import [OPTIONS] FILE...",
			  "Convert another tool's file into a report. The format is recognised by "
			  "content."),
		OPT_STR('o', "output", "FILE|FOLDER", &m.output,
			"where to write the report (default: next to the file)"),
		OPT_STR('t', "type", "FORMAT", &m.options.type,
			"read the file as this format; --list shows them"),
		OPT_BOOL('f', "force-overwrite", &m.is_overwriting, "replace reports that exist"),
		OPT_FLAG('q', "quiet", &m.options.is_quiet, "print only errors"),
		OPT_FLAG(0, "list", &is_list, "list the formats and exit"),
		OPT_END(),
	};
	int first = lull_opt_parse(argc, argv, opts, err);

	if (first < 0)
		return first;
	if (is_list) {
		list_formats();
		return LULL_OK;
	}
	if (m.options.type && !lull_import_find(m.options.type))
		return lull_fail(err, LULL_E_USAGE,
				 "there is no format %s; `lull import --list` shows them",
				 m.options.type);
	if (first == argc)
		return lull_fail(err, LULL_E_USAGE,
				 "give a file, such as lull import trace.json.gz");
	return import_all(&m, argv + first, argc - first, err);
}
