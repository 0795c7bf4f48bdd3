/*
 * lull export - write a report in the format of another program.
 */
#include "cmd/cmd.h"
#include "cmd/losses.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/opt.h"
#include "base/str.h"
#include "export/export.h"
#include "trace/reader.h"

/* The report's name with the suffix of the format: a.lull becomes a.jsonl. */
static char *default_output(const char *path, const struct lull_export *format)
{
	static const char suffix[] = ".lull";
	size_t len = strlen(path), cut = sizeof(suffix) - 1;
	struct lull_str name = LULL_STR_INIT;

	if (len > cut && strcmp(path + len - cut, suffix) == 0)
		len -= cut;
	lull_str_add(&name, path, len);
	lull_str_puts(&name, format->suffix);
	return name.at;
}

static void list_formats(void)
{
	for (const struct lull_export *const *e = lull_exports; *e; e++)
		printf("%-12s %s\n", (*e)->name, (*e)->summary);
}

static int unknown_format(const char *name, struct lull_err *err)
{
	return lull_fail(err, LULL_E_USAGE,
			 "there is no format %s; `lull export --list` shows them", name);
}

static int export_report(const char *path, const struct lull_export_target *target,
			 const struct lull_export *format,
			 const struct lull_export_options *options, struct lull_err *err)
{
	struct lull_reader *r;
	char *name = target->path ? lull_strdup(target->path) : default_output(path, format);
	struct lull_export_target named = { name, target->is_overwriting };
	int rc = lull_reader_open(&r, path, err);

	if (!rc) {
		lull_losses_warn_simulated(r);
		rc = lull_export_check_tables(r, options, err);
		if (!rc)
			rc = lull_export_write(r, format, options, &named, err);
		if (!rc && strcmp(name, "-") != 0)
			fprintf(stderr, "lull: %s\n", name);
		lull_reader_close(r);
	}
	free(name);
	return rc;
}

int cmd_export(int argc, char **argv, struct lull_err *err)
{
	const char *type = NULL;
	struct lull_export_target target = { 0 };
	struct lull_export_options options = { .tables = { .elem_bytes = sizeof(char *) } };
	bool is_list = false;
	const struct lull_opt opts[] = {
		OPT_USAGE("lull export -t FORMAT [OPTIONS] REPORT",
			  "Write a report in the format of another program."),
		OPT_STR('t', "type", "FORMAT", &type, "the format; --list shows them"),
		OPT_STR('o', "output", "FILE", &target.path,
			"where to write, - for standard output (default: the report's name with "
			"the "
			"suffix of the format)"),
		OPT_BOOL('f', "force-overwrite", &target.is_overwriting,
			 "replace a file of that name"),
		OPT_LIST(0, "tables", "NAMES", &options.tables,
			 "only these tables, separated by commas"),
		OPT_FLAG(0, "list", &is_list, "list the formats and exit"),
		OPT_END(),
	};
	int first = lull_opt_parse(argc, argv, opts, err);
	int rc = first < 0 ? first : 0;

	if (!rc && is_list)
		list_formats();
	else if (!rc && (!type || argc - first != 1))
		rc = lull_fail(
			err, LULL_E_USAGE,
			"give a format and one report, such as lull export -t csv report1.lull");
	else if (!rc && !lull_export_find(type))
		rc = unknown_format(type, err);
	else if (!rc)
		rc = export_report(argv[first], &target, lull_export_find(type), &options, err);
	lull_opt_list_release(&options.tables);
	return rc;
}
