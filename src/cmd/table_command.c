#include "cmd/table_command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "text/opt.h"
#include "text/out.h"
#include "text/progress.h"
#include "base/str.h"
#include "text/term.h"
#include "cmd/job/job_print.h"
#include "cmd/losses.h"
#include "cmd/open.h"
#include "cmd/sink.h"
#include "cmd/sort_option.h"
#include "cmd/tables_help.h"
#include "report/filter.h"
#include "report/report.h"

#define TOP_UNSET UINT64_MAX

struct run {
	const struct lull_tables *tables;
	const struct lull_report *const *list;	   /* what there is: for a file, or for a folder */
	const char *path;			   /* as given */
	struct lull_str opened;			   /* what was opened */
	struct lull_vec reports, formats, outputs; /* char * */
	const char *time_unit, *filter_time, *filter_nvtx, *sort;
	struct lull_step_option steps;
	const char *help_reports, *help_formats, *sqlite;
	u64 top;
	bool is_forced, is_exporting, is_quiet;
	struct lull_reader *reader;
	struct lull_vec jobs;  /* struct job */
	struct lull_vec specs; /* char *: those of jobs that are not borrowed */
	size_t n_printed;      /* tables on standard output so far */
	struct lull_progress progress;
};

struct job {
	const struct lull_report *report; /* NULL if nothing records what it shows */
	const char *spec;		  /* NAME[:ARGUMENT...] as written */
	struct lull_out_options out;
	const char *output; /* "-", "@program", a file name's base, or "." for the default one */
};

/* Element `ix` of a list that repeats its last element, or `otherwise` if it is empty. */
static const char *nth(const struct lull_vec *list, size_t ix, const char *otherwise)
{
	const char *const *items = list->at;

	return list->n ? items[ix < list->n ? ix : list->n - 1] : otherwise;
}

static bool is_console(const struct job *job)
{
	return !strcmp(job->output, "-");
}

/* Whether the format is one for eyes, which get headings and a limited number of rows. */
static bool is_for_people(const struct job *job)
{
	return job->out.format == LULL_OUT_FORMAT_column ||
	       job->out.format == LULL_OUT_FORMAT_table;
}

/* ---- words of the command line ---- */

/* Any beginning of a unit's name will do, as long as it is the beginning of one. */
static int set_time_unit(struct lull_out_options *out, const char *text, struct lull_err *err)
{
	static const struct {
		const char *name;
		enum lull_out_time time;
	} units[] = {
		{ "nsec", LULL_OUT_TIME_NS },	{ "nanoseconds", LULL_OUT_TIME_NS },
		{ "usec", LULL_OUT_TIME_US },	{ "microseconds", LULL_OUT_TIME_US },
		{ "msec", LULL_OUT_TIME_MS },	{ "milliseconds", LULL_OUT_TIME_MS },
		{ "seconds", LULL_OUT_TIME_S },
	};
	size_t len = strlen(text);

	if (!strcmp(text, "auto")) {
		out->is_human = true;
		return LULL_OK;
	}
	for (size_t i = 0; len && i < LULL_COUNT_OF(units); i++) {
		if (!strncmp(units[i].name, text, len)) {
			out->time = units[i].time;
			return LULL_OK;
		}
	}
	return lull_fail(err, LULL_E_USAGE,
			 "no time unit %s; there are nsec, usec, msec, seconds and auto", text);
}

static int set_options(const struct run *s, struct job *job, size_t ix, struct lull_err *err)
{
	const char *format = nth(&s->formats, ix, ".");

	job->out = (struct lull_out_options)LULL_OUT_OPTIONS_INIT;
	job->output = nth(&s->outputs, ix, "-");
	if (!strcmp(format, "."))
		format = is_console(job) ? "column" : "csv";
	if (lull_out_options_parse(&job->out, format, err))
		return err->code;
	if (!job->out.title && job->report)
		job->out.title = job->report->display;
	if (job->report)
		job->out.kept_ix = job->report->sorted_by;
	job->out.top = s->top != TOP_UNSET		     ? s->top
		       : !s->reports.n && is_for_people(job) ? s->tables->default_top
							     : 0;
	if (s->time_unit)
		return set_time_unit(&job->out, s->time_unit, err);
	job->out.is_human = is_console(job) && is_for_people(job) && lull_term_is_tty(stdout);
	return LULL_OK;
}

/* What stands after the report's name, or NULL. */
static const char *args_of(const char *spec)
{
	const char *colon = strchr(spec, ':');

	return colon ? colon + 1 : NULL;
}

/* *report is NULL for one that other tools have and nothing here can fill. */
static int find_report(const struct run *s, const char *spec, const struct lull_report **report,
		       struct lull_err *err)
{
	char *name = lull_strndup(spec, strcspn(spec, ":"));
	const char *nearest;
	int rc = LULL_OK;

	*report = lull_report_find(s->list, name, &nearest);
	if (*report)
		rc = lull_report_check_args(*report, args_of(spec), err);
	else if (!lull_report_missing(name))
		rc = lull_tables_unknown(s->tables, name, nearest, err);
	free(name);
	return rc;
}

/* --sort: a column, or the report's own argument. Of all tables, those without it stay as they are.
 */
static int set_sort(struct run *s, struct job *job, struct lull_err *err)
{
	struct lull_err ignored = { LULL_OK, "" };
	struct lull_str spec = LULL_STR_INIT;
	const char *key;

	if (!s->sort || !job->report)
		return LULL_OK;
	if (!s->reports.n) {
		lull_sort_option_set(&job->out, job->report, s->sort, &key, &ignored);
		return LULL_OK;
	}
	if (lull_sort_option_set(&job->out, job->report, s->sort, &key, err))
		return lull_err_wrap(err, "option --sort");
	if (key) {
		lull_str_addf(&spec, "%s:sort=%s", job->spec, key);
		job->spec = lull_strdup(lull_str_text(&spec));
		*(const char **)lull_vec_push(&s->specs) = job->spec;
		lull_str_release(&spec);
	}
	return LULL_OK;
}

static int add_job(struct run *s, const struct lull_report *report, const char *spec,
		   struct lull_err *err)
{
	struct job *job = lull_vec_push(&s->jobs);

	job->report = report;
	job->spec = spec;
	return set_options(s, job, s->jobs.n - 1, err) || set_sort(s, job, err) ? err->code
										: LULL_OK;
}

static int plan_named(struct run *s, struct lull_err *err)
{
	const struct lull_report *report;

	for (size_t i = 0; i < s->reports.n; i++) {
		const char *spec = nth(&s->reports, i, NULL);

		if (find_report(s, spec, &report, err) || add_job(s, report, spec, err))
			return err->code;
	}
	return LULL_OK;
}

static int plan_default(struct run *s, struct lull_err *err)
{
	for (size_t i = 0; s->list[i]; i++) {
		if (s->list[i]->is_default && add_job(s, s->list[i], s->list[i]->name, err))
			return err->code;
	}
	return LULL_OK;
}

/* ---- output ---- */

/* Append `text` with the characters that a file name should not have turned into "-". */
static void add_safe(struct lull_str *to, const char *text)
{
	for (; *text; text++) {
		char c = *text == '/' || *text == ':' ? '-' : *text;

		lull_str_add(to, &c, 1);
	}
}

/* The input's path without its extension. */
static void add_base(struct lull_str *to, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const char *dot = strstr(name, ".lull");

	if (!dot || dot == name)
		dot = strstr(name, ".json");
	if (!dot || dot == name)
		dot = strrchr(name, '.');
	lull_str_add(to, path, dot && dot > name ? (size_t)(dot - path) : strlen(path));
}

/* <base>_<report and arguments>[_<filter>].<format>; "-" and "@program" as they are. */
static void name_output(const struct run *s, const struct job *job, struct lull_str *to)
{
	if (is_console(job) || *job->output == '@') {
		lull_str_puts(to, job->output);
		return;
	}
	if (!strcmp(job->output, "."))
		add_base(to, lull_str_text(&s->opened));
	else
		lull_str_puts(to, job->output);
	lull_str_puts(to, "_");
	add_safe(to, job->spec);
	if (s->filter_time) {
		lull_str_puts(to, "_time=");
		add_safe(to, s->filter_time);
	}
	if (s->filter_nvtx) {
		lull_str_puts(to, "_nvtx=");
		add_safe(to, s->filter_nvtx);
	}
	if (s->steps.steps)
		lull_str_addf(to, "_steps=%s", s->steps.steps);
	if (s->steps.is_steady)
		lull_str_puts(to, "_steady");
	lull_str_addf(to, ".%s", lull_out_format_names[job->out.format]);
}

static void put_heading(struct run *s, const struct job *job)
{
	bool has_colour = lull_term_has_colour(stdout);

	lull_progress_clear(&s->progress);
	if (!is_console(job))
		return;
	/* What follows goes to the same screen. */
	if (lull_term_is_tty(stdout))
		s->progress.is_on = false;
	if (s->n_printed++)
		fputc('\n', stdout);
	if (is_for_people(job) && !s->is_quiet)
		printf("%s ** %s (%s):%s\n\n", lull_term_colour(LULL_COLOUR_BOLD, has_colour),
		       job->report->display, job->spec,
		       lull_term_colour(LULL_COLOUR_NONE, has_colour));
}

/* What the rows of a rule mean, above them. */
static void put_finding(const struct run *s, const struct job *job)
{
	int width = lull_term_width(stdout);

	if (!job->report->finding || !is_console(job) || !is_for_people(job) || s->is_quiet)
		return;
	lull_term_wrap(stdout, job->report->finding, 0, width);
	fputc('\n', stdout);
	lull_term_wrap(stdout, job->report->advice, 0, width);
	fputc('\n', stdout);
}

/* Where a table goes; opened when it has a row. */
struct target {
	struct run *run;
	const struct job *job;
	struct lull_str name;
	struct lull_sink sink;
};

static int open_target(void *ctx, FILE **to, struct lull_err *err)
{
	struct target *t = ctx;

	name_output(t->run, t->job, &t->name);
	if (lull_sink_spare_input(lull_str_text(&t->name), lull_str_text(&t->run->opened), err) ||
	    lull_sink_open(&t->sink, lull_str_text(&t->name), t->run->is_forced, err))
		return err->code;
	put_heading(t->run, t->job);
	put_finding(t->run, t->job);
	*to = t->sink.to;
	return LULL_OK;
}

/* Close it; `rc` is what came of writing to it. */
static int close_target(struct target *t, int rc, struct lull_err *err)
{
	struct lull_err close_err = { LULL_OK, "" };
	bool is_file = !is_console(t->job) && *t->job->output != '@';

	if (!t->sink.to) {
		lull_str_release(&t->name);
		return rc;
	}
	/* A program may have seen enough and ended; its status says whether all is well. */
	if (t->sink.pid)
		rc = LULL_OK;
	if (lull_sink_close(&t->sink, &close_err) && !rc)
		rc = lull_fail(err, close_err.code, "%s", close_err.msg);
	if (!rc && !t->run->is_quiet && is_file)
		fprintf(stderr, "wrote %s\n", lull_str_text(&t->name));
	lull_str_release(&t->name);
	return rc;
}

/* Only reports asked for by name are missed, but every rule. */
static bool is_missed(const struct run *s)
{
	return (s->reports.n || s->tables->is_complete) && !s->is_quiet;
}

static void say_skipped(struct run *s, const char *why)
{
	lull_progress_clear(&s->progress);
	if (is_missed(s))
		fprintf(stderr, "SKIPPED: %s does not contain %s\n", lull_str_text(&s->opened),
			why);
}

static bool is_filtered(const struct run *s)
{
	return s->filter_time || s->filter_nvtx || lull_step_option_given(&s->steps);
}

/* Of a rule this is the answer, of a report a remark. */
static void say_empty(struct run *s, const struct job *job)
{
	const struct lull_report *report = job->report;
	const char *why = is_filtered(s)  ? "no rows in the filtered time"
			  : report->empty ? report->empty
					  : "no rows";

	if (report->finding && is_console(job) && is_for_people(job) && !s->is_quiet) {
		put_heading(s, job);
		lull_term_wrap(stdout, report->empty, 0, lull_term_width(stdout));
		return;
	}
	lull_progress_clear(&s->progress);
	if (is_missed(s))
		fprintf(stderr, "%s: %s: %s\n", report->name, lull_str_text(&s->opened), why);
}

/* What the rows mean together, below them. */
static void put_note(const struct run *s, const struct job *job, const struct lull_out *out)
{
	if (out->note.len && is_console(job) && is_for_people(job) && !s->is_quiet)
		lull_term_wrap(stdout, lull_str_text(&out->note), 0, lull_term_width(stdout));
}

/* The rows of a long report are printed while it runs, those of others when they are in order. */
static int run_report(struct run *s, const struct job *job,
		      const struct lull_report_options *options, struct lull_err *err)
{
	struct target target = { .run = s, .job = job, .name = LULL_STR_INIT };
	bool is_stream = job->report->is_long && job->out.sort_ix == LULL_OUT_UNSORTED;
	struct lull_out out;
	FILE *to = NULL;
	int rc;

	lull_out_init(&out, job->report->columns, job->report->n_columns);
	if (is_stream)
		lull_out_stream(&out, &job->out, open_target, &target);
	rc = lull_report_run(job->report, s->reader, &out, options, err);
	if (!rc && is_stream)
		rc = lull_out_finish(&out, err);
	else if (!rc && lull_out_len(&out))
		rc = open_target(&target, &to, err) || lull_out_write(&out, &job->out, to, err)
			     ? err->code
			     : LULL_OK;
	if (!rc && lull_out_len(&out))
		put_note(s, job, &out);
	rc = close_target(&target, rc, err);
	if (!rc && !lull_out_len(&out))
		say_empty(s, job);
	lull_out_release(&out);
	return rc;
}

/* Progress: how far the cursor of a report is. */
static void watch(void *ctx, const struct lull_table_desc *table, u64 n_passed, u64 n_rows)
{
	struct run *s = ctx;

	(void)table;
	if (!n_passed)
		lull_progress_begin(&s->progress, s->progress.what, "rows", n_rows);
	lull_progress_at(&s->progress, n_passed);
}

/* A report that takes long runs only if it was given by name. */
static bool may_run(const struct run *s, const struct lull_report *report, struct lull_str *why)
{
	return lull_report_has_data(report, s->reader, why) &&
	       (s->reports.n || lull_report_is_quick(report, s->reader));
}

static int run_job(struct run *s, const struct job *job, struct lull_report_options options,
		   struct lull_err *err)
{
	struct lull_str why = LULL_STR_INIT;
	int rc = LULL_OK;

	options.args = args_of(job->spec);
	if (!job->report)
		lull_str_addf(&why, "%s, which lull does not record",
			      lull_report_missing(job->spec));
	s->progress.what = job->spec;
	if (!job->report || (s->reader && !may_run(s, job->report, &why)))
		say_skipped(s, lull_str_text(&why));
	else
		rc = run_report(s, job, &options, err);
	lull_progress_clear(&s->progress);
	lull_str_release(&why);
	return rc ? lull_err_wrap(err, "%s %s", s->tables->noun, job->report->name) : LULL_OK;
}

/* ---- the command ---- */

static int run_jobs(struct run *s, const struct lull_report_options *options, struct lull_err *err)
{
	const struct job *jobs = s->jobs.at;

	for (size_t i = 0; i < s->jobs.n; i++) {
		if (run_job(s, &jobs[i], *options, err))
			return err->code;
	}
	return LULL_OK;
}

/* A folder of rank reports. */
static int run_folder(struct run *s, struct lull_err *err)
{
	struct lull_report_options options = LULL_REPORT_OPTIONS_INIT;
	struct lull_job job;
	int rc;

	if (is_filtered(s))
		return lull_fail(err, LULL_E_USAGE,
				 "--filter-time, --filter-nvtx, --steps and --steady are for one "
				 "report; give one of those in %s",
				 s->path);
	lull_str_puts(&s->opened, s->path);
	rc = lull_job_open(&job, s->path, NULL, err);
	if (!rc)
		rc = lull_job_run(&job, err);
	options.job = &job;
	if (!rc && lull_team_speaks(&job.team)) {
		if (!s->is_quiet)
			lull_job_print_notes(stderr, &job, lull_term_width(stderr));
		rc = run_jobs(s, &options, err);
	}
	rc = lull_job_status(&job, rc);
	lull_job_release(&job);
	return rc;
}

static void say_nothing_printed(const struct run *s)
{
	const char *path = lull_str_text(&s->opened);

	if (lull_reader_stats(s->reader, LULL_TABLE_profiled).n_rows)
		fprintf(stderr,
			"%s has counters of kernels and no timeline; lull kernel --import %s shows "
			"them\n",
			path, path);
	else
		fprintf(stderr, "%s has no data for the default %ss; --%s lists all\n", path,
			s->tables->noun, s->tables->help_option);
}

static int run_all(struct run *s, struct lull_err *err)
{
	struct lull_report_options options = LULL_REPORT_OPTIONS_INIT;
	bool is_folder = s->tables->job_list && lull_job_is_folder(s->path);

	s->list = is_folder ? s->tables->job_list : s->tables->list;
	if (s->reports.n ? plan_named(s, err) : plan_default(s, err))
		return err->code;
	if (is_folder)
		return run_folder(s, err);
	if (s->filter_time && lull_filter_time(&options, s->filter_time, err))
		return lull_err_wrap(err, "option --filter-time");
	if (lull_step_option_check(&s->steps, err) ||
	    lull_open(s->path, &s->reader, &s->opened, err))
		return err->code;
	lull_reader_watch(s->reader, watch, s);
	lull_losses_warn(s->reader, lull_str_text(&s->opened));
	if (s->filter_nvtx && lull_filter_nvtx(&options, s->reader, s->filter_nvtx, err))
		return lull_err_wrap(err, "option --filter-nvtx");
	if (lull_filter_steps(&options, s->reader, &s->steps, s->is_quiet, err))
		return err->code;
	if (run_jobs(s, &options, err))
		return err->code;
	if (!s->reports.n && !s->n_printed && !s->outputs.n && !s->is_quiet)
		say_nothing_printed(s);
	return LULL_OK;
}

static int parse(struct run *s, int argc, char **argv, struct lull_err *err)
{
	const struct lull_opt opts[] = {
		OPT_USAGE(s->tables->usage, s->tables->summary),
		OPT_LIST('r', s->tables->noun, "NAME[:ARG]", &s->reports,
			 "what to print, in this order (default: everything with data)"),
		OPT_LIST('f', "format", "NAME[:ARG]", &s->formats,
			 "format of each table (default: column on the console, else csv)"),
		OPT_LIST('o', "output", "WHERE", &s->outputs,
			 "where each table goes: - the console, @PROGRAM a pipe, . files named "
			 "after the input, else the start of file names"),
		OPT_BOOL(0, "force-overwrite", &s->is_forced, "replace existing files"),
		OPT_STR(0, "timeunit", "UNIT", &s->time_unit,
			"unit of times: nsec, usec, msec, seconds, auto (default: auto on a "
			"terminal, else nsec)"),
		OPT_STR(0, "filter-time", "[START]/[END]", &s->filter_time,
			"only events in this time, such as 1.5s/2s"),
		OPT_STR(0, "filter-nvtx", "RANGE[@DOMAIN][/N]", &s->filter_nvtx,
			"only events in this range, the N-th of its name from 0"),
		LULL_STEP_OPTIONS(&s->steps),
		OPT_STR(0, "sort", "COLUMN[:asc]", &s->sort,
			"rows by this column, largest first, or smallest first with :asc"),
		OPT_U64(0, "top", "N", &s->top,
			"rows of each table, 0 for all (default: 20 if no report is named)"),
		OPT_FLAG('q', "quiet", &s->is_quiet, "tables only, no headings and messages"),
		OPT_BOOL(0, "force-export", &s->is_exporting,
			 "accepted and ignored; nothing has to be exported first"),
		OPT_STR(0, "sqlite", "FILE", &s->sqlite, "accepted likewise"),
		OPT_WORD(0, s->tables->help_option, "NAME|ALL", &s->help_reports,
			 "list or describe what can be printed"),
		OPT_WORD(0, "help-formats", "NAME|ALL", &s->help_formats, "list the formats"),
		OPT_END(),
	};
	const char *word = "";
	int n_words = 0, first;

	/*
	 * Options may follow the file: parsing starts again after each word that is not an option.
	 */
	while ((first = lull_opt_parse(argc, argv, opts, err)) >= 0 && first < argc) {
		word = argv[first];
		n_words++;
		argc -= first;
		argv += first;
	}
	if (first < 0)
		return first;
	if (s->help_reports && !*s->help_reports)
		s->help_reports = word;
	if (s->help_formats && !*s->help_formats)
		s->help_formats = word;
	s->path = word;
	if (s->help_reports || s->help_formats || n_words == 1)
		return LULL_OK;
	return lull_fail(err, LULL_E_USAGE, "give one file, such as report1.lull; got %d", n_words);
}

int lull_tables_main(const struct lull_tables *tables, int argc, char **argv, struct lull_err *err)
{
	struct run s = { .tables = tables, .top = TOP_UNSET, .opened = LULL_STR_INIT };
	int rc;

	lull_vec_init(&s.reports, sizeof(char *));
	lull_vec_init(&s.formats, sizeof(char *));
	lull_vec_init(&s.outputs, sizeof(char *));
	lull_vec_init(&s.jobs, sizeof(struct job));
	lull_vec_init(&s.specs, sizeof(char *));
	rc = parse(&s, argc, argv, err);
	lull_progress_init(&s.progress, s.is_quiet);
	if (!rc && s.help_reports)
		rc = lull_tables_help(tables, stdout, s.help_reports, err);
	else if (!rc && s.help_formats)
		rc = lull_tables_help_formats(stdout, s.help_formats, err);
	else if (!rc)
		rc = run_all(&s, err);
	lull_losses_close(s.reader, lull_str_text(&s.opened));
	lull_str_release(&s.opened);
	lull_opt_list_release(&s.reports);
	lull_opt_list_release(&s.formats);
	lull_opt_list_release(&s.outputs);
	for (size_t i = 0; i < s.specs.n; i++)
		free(*(char **)lull_vec_get(&s.specs, i));
	lull_vec_release(&s.specs);
	lull_vec_release(&s.jobs);
	return rc;
}
