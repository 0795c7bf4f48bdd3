/*
 * lull stats - summarise a report file in tables.
 *
 * Each report that is asked for becomes a job with its format and its output; short lists of
 * formats and outputs repeat their last element. Words are checked before the file is opened, so
 * that a wrong name costs nothing.
 */
#include "cmd/cmd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/opt.h"
#include "base/out.h"
#include "base/str.h"
#include "base/term.h"
#include "cmd/losses.h"
#include "cmd/sink.h"
#include "cmd/stats_help.h"
#include "import/import.h"
#include "report/filter.h"
#include "report/report.h"

/* Rows of each table when no report is named: a screen, not a scroll. */
#define DEFAULT_TOP 20
#define TOP_UNSET   UINT64_MAX

struct stats {
	const char *path;
	struct lull_vec reports, formats, outputs; /* char * */
	const char *time_unit, *filter_time, *filter_nvtx;
	const char *help_reports, *help_formats;
	u64 top;
	bool is_forced, is_quiet;
	struct lull_reader *reader;
	struct lull_vec jobs; /* struct job */
	size_t n_printed;     /* tables on standard output so far */
};

struct job {
	const struct lull_report *report;
	const char *spec; /* NAME[:ARGUMENT...] as written */
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

static int set_options(const struct stats *s, struct job *job, size_t ix, struct lull_err *err)
{
	const char *format = nth(&s->formats, ix, ".");

	job->out = (struct lull_out_options)LULL_OUT_OPTIONS_INIT;
	job->output = nth(&s->outputs, ix, "-");
	if (!strcmp(format, "."))
		format = is_console(job) ? "column" : "csv";
	if (lull_out_options_parse(&job->out, format, err))
		return err->code;
	if (!job->out.title)
		job->out.title = job->report->display;
	job->out.top = s->top != TOP_UNSET		     ? s->top
		       : !s->reports.n && is_for_people(job) ? DEFAULT_TOP
							     : 0;
	if (s->time_unit)
		return set_time_unit(&job->out, s->time_unit, err);
	job->out.is_human = is_console(job) && is_for_people(job) && lull_term_is_tty(stdout);
	return LULL_OK;
}

/* What stands behind the report's name, or NULL. */
static const char *args_of(const char *spec)
{
	const char *colon = strchr(spec, ':');

	return colon ? colon + 1 : NULL;
}

static int find_report(const char *spec, const struct lull_report **report, struct lull_err *err)
{
	char *name = lull_strndup(spec, strcspn(spec, ":"));
	const char *nearest;
	int rc = LULL_OK;

	*report = lull_report_find(name, &nearest);
	if (!*report)
		rc = lull_stats_no_report(name, nearest, err);
	else
		rc = lull_report_check_args(*report, args_of(spec), err);
	free(name);
	return rc;
}

static int add_job(struct stats *s, const struct lull_report *report, const char *spec,
		   struct lull_err *err)
{
	struct job *job = lull_vec_push(&s->jobs);

	job->report = report;
	job->spec = spec;
	return set_options(s, job, s->jobs.n - 1, err);
}

static int plan_named(struct stats *s, struct lull_err *err)
{
	const struct lull_report *report;

	for (size_t i = 0; i < s->reports.n; i++) {
		const char *spec = nth(&s->reports, i, NULL);

		if (find_report(spec, &report, err) || add_job(s, report, spec, err))
			return err->code;
	}
	return LULL_OK;
}

static int plan_default(struct stats *s, struct lull_err *err)
{
	for (size_t i = 0; lull_reports[i]; i++) {
		if (lull_reports[i]->is_default &&
		    add_job(s, lull_reports[i], lull_reports[i]->name, err))
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

	lull_str_add(to, path, dot && dot > name ? (size_t)(dot - path) : strlen(path));
}

/* <base>_<report and arguments>[_nvtx=<filter>].<format>; "-" and "@program" as they are. */
static void name_output(const struct stats *s, const struct job *job, struct lull_str *to)
{
	if (is_console(job) || *job->output == '@') {
		lull_str_puts(to, job->output);
		return;
	}
	if (!strcmp(job->output, "."))
		add_base(to, s->path);
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
	lull_str_addf(to, ".%s", lull_out_format_names[job->out.format]);
}

static void put_heading(struct stats *s, const struct job *job)
{
	if (!is_console(job))
		return;
	if (s->n_printed++)
		fputc('\n', stdout);
	if (is_for_people(job) && !s->is_quiet)
		printf(" ** %s (%s):\n\n", job->report->display, job->spec);
}

static int print(struct stats *s, const struct job *job, const struct lull_out *out,
		 struct lull_err *err)
{
	struct lull_str target = LULL_STR_INIT;
	struct lull_err close_err = { LULL_OK, "" };
	struct lull_sink sink;
	int rc, close_rc;

	name_output(s, job, &target);
	rc = lull_sink_open(&sink, lull_str_text(&target), s->is_forced, err);
	if (!rc) {
		put_heading(s, job);
		rc = lull_out_write(out, &job->out, sink.to, err);
		/* A program may have seen enough and ended; its status says whether all is well. */
		if (sink.pid)
			rc = LULL_OK;
		close_rc = lull_sink_close(&sink, &close_err);
		if (!rc && close_rc)
			rc = lull_fail(err, close_err.code, "%s", close_err.msg);
		if (!rc && !s->is_quiet && !is_console(job) && *job->output != '@')
			fprintf(stderr, "wrote %s\n", lull_str_text(&target));
	}
	lull_str_release(&target);
	return rc;
}

/* Only reports asked for by name are missed. `how` is "SKIPPED: ", or "" for an answer. */
static void say_why(const struct stats *s, const struct job *job, const char *how, const char *why)
{
	if (s->reports.n && !s->is_quiet)
		fprintf(stderr, "%s%s: %s: %s\n", how, job->report->name, s->path, why);
}

static void say_empty(const struct stats *s, const struct job *job)
{
	if (s->filter_time || s->filter_nvtx)
		say_why(s, job, "", "no rows in the filtered time");
	else
		say_why(s, job, "", job->report->empty ? job->report->empty : "no rows");
}

static int run_job(struct stats *s, const struct job *job, struct lull_report_options options,
		   struct lull_err *err)
{
	struct lull_str why = LULL_STR_INIT;
	struct lull_out out;
	int rc = LULL_OK;

	lull_out_init(&out, job->report->columns, job->report->n_columns);
	options.args = args_of(job->spec);
	if (!lull_report_has_data(job->report, s->reader, &why)) {
		say_why(s, job, "SKIPPED: ", lull_str_text(&why));
		goto done;
	}
	rc = job->report->run(s->reader, &out, &options, err);
	if (!rc && !lull_out_len(&out))
		say_empty(s, job);
	else if (!rc)
		rc = print(s, job, &out, err);
	if (rc)
		lull_err_wrap(err, "report %s", job->report->name);
done:
	lull_out_release(&out);
	lull_str_release(&why);
	return rc;
}

/* ---- the command ---- */

static int run(struct stats *s, struct lull_err *err)
{
	struct lull_report_options options = LULL_REPORT_OPTIONS_INIT;
	const struct job *jobs;

	if (s->reports.n ? plan_named(s, err) : plan_default(s, err))
		return err->code;
	if (s->filter_time && lull_filter_time(&options, s->filter_time, err))
		return lull_err_wrap(err, "option --filter-time");
	if (lull_import_open(s->path, &s->reader, err))
		return err->code;
	lull_losses_warn(s->reader);
	if (s->filter_nvtx && lull_filter_nvtx(&options, s->reader, s->filter_nvtx, err))
		return lull_err_wrap(err, "option --filter-nvtx");
	jobs = s->jobs.at;
	for (size_t i = 0; i < s->jobs.n; i++) {
		if (run_job(s, &jobs[i], options, err))
			return err->code;
	}
	if (!s->reports.n && !s->n_printed && !s->outputs.n && !s->is_quiet)
		fprintf(stderr,
			"%s has nothing that the default reports show; --help-reports lists all\n",
			s->path);
	return LULL_OK;
}

static int parse(struct stats *s, int argc, char **argv, struct lull_err *err)
{
	const struct lull_opt opts[] = {
		OPT_USAGE("lull stats [OPTIONS] FILE",
			  "Summarise a recording in tables: by default, all that it has data for."),
		OPT_LIST('r', "report", "NAME[:ARG]", &s->reports,
			 "reports to print, in this order"),
		OPT_LIST('f', "format", "NAME[:ARG]", &s->formats,
			 "format of each report (default: column on the console, else csv)"),
		OPT_LIST('o', "output", "WHERE", &s->outputs,
			 "where each report goes: - the console, @PROGRAM a pipe, . files named "
			 "after the "
			 "input, else files that begin so"),
		OPT_BOOL(0, "force-overwrite", &s->is_forced, "replace files that exist"),
		OPT_STR(0, "timeunit", "UNIT", &s->time_unit,
			"unit of times: nsec, usec, msec, seconds, auto (default: auto on a "
			"terminal, "
			"else nsec)"),
		OPT_STR(0, "filter-time", "[START]/[END]", &s->filter_time,
			"only what lies in this time, such as 1.5s/2s"),
		OPT_STR(0, "filter-nvtx", "RANGE[@DOMAIN][/N]", &s->filter_nvtx,
			"only what lies in this range, the N-th of its name from 0"),
		OPT_U64(0, "top", "N", &s->top,
			"rows of each table, 0 for all (default: 20 if no report is named)"),
		OPT_FLAG('q', "quiet", &s->is_quiet, "tables only, no headings and remarks"),
		OPT_WORD(0, "help-reports", "NAME|ALL", &s->help_reports,
			 "list or describe the reports"),
		OPT_WORD(0, "help-formats", "NAME|ALL", &s->help_formats, "list the formats"),
		OPT_END(),
	};
	int first = lull_opt_parse(argc, argv, opts, err);
	const char *word = first >= 0 && first < argc ? argv[first] : "";

	if (first < 0)
		return first;
	if (s->help_reports && !*s->help_reports)
		s->help_reports = word;
	if (s->help_formats && !*s->help_formats)
		s->help_formats = word;
	s->path = word;
	if (s->help_reports || s->help_formats || argc - first == 1)
		return LULL_OK;
	return lull_fail(err, LULL_E_USAGE, "expected one file, such as report1.lull, got %d",
			 argc - first);
}

int cmd_stats(int argc, char **argv, struct lull_err *err)
{
	struct stats s = { .top = TOP_UNSET };
	int rc;

	lull_vec_init(&s.reports, sizeof(char *));
	lull_vec_init(&s.formats, sizeof(char *));
	lull_vec_init(&s.outputs, sizeof(char *));
	lull_vec_init(&s.jobs, sizeof(struct job));
	rc = parse(&s, argc, argv, err);
	if (!rc && s.help_reports)
		rc = lull_stats_help_reports(stdout, s.help_reports, err);
	else if (!rc && s.help_formats)
		rc = lull_stats_help_formats(stdout, s.help_formats, err);
	else if (!rc)
		rc = run(&s, err);
	lull_reader_close(s.reader);
	lull_opt_list_release(&s.reports);
	lull_opt_list_release(&s.formats);
	lull_opt_list_release(&s.outputs);
	lull_vec_release(&s.jobs);
	return rc;
}
