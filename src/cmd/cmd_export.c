/*
 * lull export - write a report in the format of another program.
 */
#include "cmd/cmd.h"
#include "cmd/job/job_export.h"
#include "cmd/losses.h"
#include "cmd/open.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cmd/sink.h"
#include "text/opt.h"
#include "text/progress.h"
#include "base/str.h"
#include "export/export.h"
#include "job/job.h"
#include "report/filter.h"
#include "text/term.h"
#include "trace/reader.h"

/* What nsys writes if nothing is said. */
#define DEFAULT_FORMAT "sqlite"

struct job {
	const struct lull_export *format;
	struct lull_export_target target;
	struct lull_export_options options;
	const char *type, *filter_time, *filter_nvtx;
	struct lull_step_option steps;
	bool is_list;
	u64 max_mb;
};

/*
 * The report's name with the suffix of the format: a.lull becomes a.jsonl, or the folder a-parquet.
 */
static char *default_output(const char *path, const struct job *e)
{
	static const char suffix[] = ".lull";
	size_t len = strlen(path), cut = sizeof(suffix) - 1;
	struct lull_str name = LULL_STR_INIT;

	if (len > cut && strcmp(path + len - cut, suffix) == 0)
		len -= cut;
	lull_str_add(&name, path, len);
	if (lull_export_makes_folder(e->format, &e->options))
		lull_str_addf(&name, "-%s", e->format->name);
	else
		lull_str_puts(&name, e->format->suffix);
	return name.at;
}

static void list_formats(void)
{
	for (const struct lull_export *const *e = lull_exports; *e; e++)
		printf("%-12s %s\n", (*e)->name, (*e)->summary);
}

/* What is shown of the work: one table, the largest of those that are read at the same time. */
struct shown {
	struct lull_progress progress;
	const struct lull_table_desc *table; /* NULL: none yet */
	u64 n_rows;
	bool is_done;
};

/* A lull_reader_watcher: each table that is read is a phase. */
static void on_read(void *ctx, const struct lull_table_desc *table, u64 n_passed, u64 n_rows)
{
	struct shown *s = ctx;

	if (!n_passed && (!s->table || s->is_done || n_rows > s->n_rows)) {
		s->table = table;
		s->n_rows = n_rows;
		s->is_done = false;
		lull_progress_begin(&s->progress, "exporting", "rows", n_rows);
	}
	if (table != s->table)
		return;
	s->is_done = n_passed >= n_rows;
	lull_progress_at(&s->progress, n_passed);
}

/* A time without any event would give an empty file, which helps nobody. */
static int check_time(const struct job *e, struct lull_reader *r,
		      const struct lull_report_options *window, struct lull_err *err)
{
	struct lull_span all = lull_span_recording(r);

	if (!e->filter_time || all.to_ns <= all.from_ns ||
	    (window->from_ns <= all.to_ns && window->to_ns >= all.from_ns))
		return LULL_OK;
	return lull_fail(err, LULL_E_NOT_FOUND,
			 "option --filter-time: nothing was recorded in %s; the events are between "
			 "%s and %s",
			 e->filter_time, lull_format_ns(all.from_ns).text,
			 lull_format_ns(all.to_ns).text);
}

/* Filters are those of the reports, so that both see the same rows. */
static int set_window(struct job *e, struct lull_reader *r, struct lull_err *err)
{
	struct lull_report_options window = LULL_REPORT_OPTIONS_INIT;

	if (e->filter_time && lull_filter_time(&window, e->filter_time, err))
		return lull_err_wrap(err, "option --filter-time");
	if (check_time(e, r, &window, err))
		return err->code;
	if (e->filter_nvtx && lull_filter_nvtx(&window, r, e->filter_nvtx, err))
		return lull_err_wrap(err, "option --filter-nvtx");
	if (lull_filter_steps(&window, r, &e->steps, false, err))
		return err->code;
	e->options.from_ns = window.from_ns;
	e->options.to_ns = window.to_ns;
	return LULL_OK;
}

static int export_report(struct job *e, const char *path, struct lull_err *err)
{
	struct lull_str used = LULL_STR_INIT;
	struct lull_reader *r;
	struct shown shown = { .table = NULL };
	int rc = lull_open(path, &r, &used, err);
	const char *opened = lull_str_text(&used), *slash = strrchr(opened, '/');
	char *name = e->target.path ? lull_strdup(e->target.path) : default_output(opened, e);
	struct lull_export_target named = { name, e->target.is_overwriting };

	e->options.name = slash ? slash + 1 : opened;
	e->options.max_bytes = e->max_mb << 20;

	if (!rc) {
		lull_losses_warn_simulated(r);
		lull_losses_warn_cut(r, opened);
		rc = lull_sink_spare_input(name, opened, err);
		if (!rc)
			rc = lull_export_check_tables(r, &e->options, err);
		if (!rc)
			rc = set_window(e, r, err);
		lull_progress_init(&shown.progress, false);
		lull_reader_watch(r, on_read, &shown);
		if (!rc)
			rc = lull_export_write(r, e->format, &e->options, &named, err);
		lull_progress_clear(&shown.progress);
		if (!rc && strcmp(name, "-") != 0)
			fprintf(stderr, "lull: %s\n", name);
		lull_losses_close(r, opened);
	}
	free(name);
	lull_str_release(&used);
	return rc;
}

static int run(struct job *e, int n_reports, const char *path, struct lull_err *err)
{
	if (e->is_list) {
		list_formats();
		return LULL_OK;
	}
	if (n_reports != 1)
		return lull_fail(err, LULL_E_USAGE,
				 "give one report, such as lull export -t csv report1.lull");
	if (lull_export_choose(e->type ? e->type : DEFAULT_FORMAT, &e->format, err))
		return err->code;
	if (lull_step_option_check(&e->steps, err))
		return err->code;
	if (lull_job_is_folder(path) && lull_step_option_given(&e->steps))
		return lull_fail(err, LULL_E_USAGE,
				 "--steps and --steady are for one report; give one of those in %s",
				 path);
	if (lull_job_is_folder(path))
		return lull_job_export(path, e->format, &e->options, &e->target, err);
	return export_report(e, path, err);
}

int cmd_export(int argc, char **argv, struct lull_err *err)
{
	struct job e = { .options = { .tables = { .elem_bytes = sizeof(char *) } } };
	const struct lull_opt opts[] = {
		OPT_USAGE("lull export [-t FORMAT] [OPTIONS] REPORT|FOLDER",
			  "Write a report, or a folder of rank reports, in the format of "
			  "another program."),
		OPT_STR('t', "type", "FORMAT", &e.type,
			"the format (default: " DEFAULT_FORMAT "); --list shows them"),
		OPT_STR('o', "output", "FILE", &e.target.path,
			"where to write, - for standard output (default: named after the report)"),
		OPT_BOOL('f', "force-overwrite", &e.target.is_overwriting,
			 "replace a file or folder of that name"),
		OPT_LIST(0, "tables", "NAMES", &e.options.tables,
			 "only these tables, separated by commas"),
		OPT_STR(0, "filter-time", "[START]/[END]", &e.filter_time,
			"only events in this time, such as 1.5s/2s"),
		OPT_STR(0, "filter-nvtx", "RANGE[@DOMAIN][/N]", &e.filter_nvtx,
			"only events in this range, the N-th of its name from 0"),
		LULL_STEP_OPTIONS(&e.steps),
		OPT_U64(0, "max-size", "MB", &e.max_mb,
			"html: leave out detail until the file fits (default: 5)"),
		OPT_STR(0, "with-source", "FOLDER", &e.options.source_dir,
			"html: embed the lines of the program around those with samples, from this "
			"folder"),
		OPT_U64(0, "thin", "N", &e.options.thin, "lull: keep every N-th sample alone"),
		OPT_FLAG(0, "discard-environment", &e.options.is_env_discarded,
			 "lull: leave environment variables out"),
		OPT_FLAG(0, "list", &e.is_list, "list the formats and exit"),
		OPT_END(),
	};
	int first = lull_opt_parse(argc, argv, opts, err);
	int rc = first < 0 ? first : run(&e, argc - first, argv[first], err);

	lull_opt_list_release(&e.options.tables);
	return rc;
}
