/*
 * lull gate - refuse a change that made the program slower.
 *
 * Exit status: 0 pass, 1 regressed or failed, 2 no verdict (inconclusive, not comparable, or an
 * error), so that a comparison without a result never looks like a pass or a regression.
 */
#include "cmd/cmd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/opt.h"
#include "base/mem.h"
#include "base/str.h"
#include "cmd/baseline.h"
#include "cmd/gate_history.h"
#include "cmd/gate_sql.h"
#include "cmd/losses.h"
#include "cmd/sink.h"
#include "compare/bound.h"
#include "compare/gate_output.h"
#include "import/import.h"
#include "job/job.h"
#include "text/term.h"

#define DEFAULT_STORE ".lull-gate"

static const char *const default_metrics[] = { "step_time", "idle_share", "launches" };

struct options {
	struct lull_vec baselines; /* char * */
	struct lull_vec metrics;
	struct lull_vec queries; /* char *: NAME=SELECT ..., owned */
	struct lull_vec bounds;	 /* char *, owned */
	struct lull_vec warned;	 /* char *: metrics, owned */
	struct lull_vec warning_bounds;
	f64 min_speedup; /* 0: none is asked for */
	char speedup_name[48];
	const char *history;
	const char *commit;
	const char *html;
	const char *store;
	const char *save;
	const char *junit;
	const char *sarif;
	const char *markdown;
	f64 threshold_pct;
	int format;
	bool is_github;
	bool is_list;
	struct lull_vec paths; /* char *: reports that were opened, owned */
	u32 n_jobs;	       /* folders among them */
	bool is_default;       /* the user named no metrics */
	bool is_silent;	       /* another process of those that mpirun started does it */
};

static int list_metrics(void)
{
	for (const struct lull_metric *const *m = lull_metrics; *m; m++) {
		char name[64];

		snprintf(name, sizeof(name), "%s%s%s", (*m)->name, (*m)->arg ? ":" : "",
			 (*m)->arg ? (*m)->arg : "");
		printf("%-14s ", name);
		lull_term_line(stdout, (*m)->summary, 15);
	}
	return LULL_OK;
}

/* --sql is no list: its value has commas. */
static int add_query(void *ctx, const char *value, struct lull_err *err)
{
	const char *equals = strchr(value, '=');

	if (!equals || equals == value)
		return lull_fail(err, LULL_E_USAGE,
				 "--sql takes NAME=QUERY, such as --sql 'gemm=SELECT duration "
				 "FROM kernels'");
	*(char **)lull_vec_push(ctx) = strdup(value);
	return LULL_OK;
}

/* So have bounds, in the names of kernels. */
static int add_bound(void *ctx, const char *value, struct lull_err *err)
{
	struct lull_bound_text parts;

	if (lull_bound_split(value, &parts, err))
		return err->code;
	*(char **)lull_vec_push(ctx) = lull_strdup(value);
	return LULL_OK;
}

/* A number after the last < makes it a bound; names of kernels may have others. */
static bool is_bound(const char *text)
{
	struct lull_bound_text parts;
	struct lull_err ignored;

	return !lull_bound_split(text, &parts, &ignored) &&
	       strchr("0123456789.", text[parts.limit_off]);
}

static int add_warning(void *ctx, const char *value, struct lull_err *err)
{
	struct options *o = ctx;

	(void)err;
	if (is_bound(value))
		*(char **)lull_vec_push(&o->warning_bounds) = lull_strdup(value);
	else
		lull_opt_list_add(&o->warned, value);
	return LULL_OK;
}

/* "3", "3%" or "3 %". */
static int set_threshold(void *ctx, const char *value, struct lull_err *err)
{
	f64 *percent = ctx;
	char *end;

	*percent = strtod(value, &end);
	if (end != value) {
		end += strspn(end, " ");
		end += *end == '%';
	}
	if (end == value || *end || !(*percent > 0 && *percent < 1000))
		return lull_fail(err, LULL_E_USAGE,
				 "it is a percentage above 0, such as 3%%, not '%s'", value);
	return LULL_OK;
}

/* Open a report into a side; its path lives as long as the options. */
static int open_report(struct options *o, struct lull_vec *side, const char *path,
		       struct lull_err *err)
{
	struct lull_reader *reader;
	char *copy;

	if (lull_import_open(path, &reader, err))
		return err->code;
	copy = strdup(path);
	*(char **)lull_vec_push(&o->paths) = copy;
	lull_losses_warn(reader, path);
	lull_gate_add(side, copy, reader);
	return LULL_OK;
}

/* Open the ranks of a job into a side, as one run. */
static int open_job(struct options *o, struct lull_vec *side, const char *folder,
		    struct lull_err *err)
{
	struct lull_job job;
	int rc = lull_job_open(&job, folder, NULL, err);

	o->n_jobs++;
	o->is_silent = !lull_team_speaks(&job.team);
	for (size_t i = 0; !rc && !o->is_silent && i < job.ranks.n; i++) {
		struct lull_str path = LULL_STR_INIT;
		struct lull_reader *reader;
		char *copy;

		lull_job_path(&job, lull_vec_get(&job.ranks, i), &path);
		copy = strdup(lull_str_text(&path));
		lull_str_release(&path);
		*(char **)lull_vec_push(&o->paths) = copy;
		rc = lull_import_open(copy, &reader, err);
		if (!rc)
			lull_gate_add_rank(side, copy, reader, o->n_jobs);
	}
	for (size_t i = 0; !rc && !o->is_silent && i < job.notes.n; i++)
		fprintf(stderr, "lull: %s: %s\n", folder, ((char **)job.notes.at)[i]);
	lull_job_release(&job);
	return rc;
}

static int open_all(struct options *o, struct lull_vec *side, const struct lull_vec *paths,
		    struct lull_err *err)
{
	char *const *at = paths->at;

	for (size_t i = 0; i < paths->n; i++)
		if (open_report(o, side, at[i], err))
			return err->code;
	return LULL_OK;
}

static int open_sides(struct options *o, struct lull_gate *gate, char **words, struct lull_err *err)
{
	struct lull_vec paths;
	char *const *names = o->baselines.at;
	int rc = LULL_OK;

	lull_vec_init(&paths, sizeof(char *));
	for (size_t i = 0; !rc && i < o->baselines.n; i++)
		rc = lull_job_is_folder(names[i])
			     ? open_job(o, &gate->before, names[i], err)
			     : lull_baseline_find(o->store, names[i], &paths, err);
	if (!rc)
		rc = open_all(o, &gate->before, &paths, err);
	for (; !rc && *words; words++)
		rc = lull_job_is_folder(*words) ? open_job(o, &gate->after, *words, err)
						: open_report(o, &gate->after, *words, err);
	lull_opt_list_release(&paths);
	return rc;
}

/* The metrics to compare, or to keep in the history: those that were asked for, or the usual. */
static void choose_metrics(struct options *o)
{
	for (size_t i = 0; i < o->queries.n; i++) {
		char *name = ((char **)o->queries.at)[i];

		*(char **)lull_vec_push(&o->metrics) =
			lull_strndup(name, (size_t)(strchr(name, '=') - name));
	}
	for (size_t i = 0; o->is_default && i < LULL_COUNT_OF(default_metrics); i++)
		*(char **)lull_vec_push(&o->metrics) = lull_strdup(default_metrics[i]);
}

static int watch_bounds(const struct options *o, struct lull_gate *gate, struct lull_err *err)
{
	char *const *bounds = o->bounds.at, *const *warnings = o->warning_bounds.at;

	for (size_t i = 0; i < o->bounds.n; i++)
		if (lull_gate_bound(gate, bounds[i], LULL_GATE_DECIDES, err))
			return lull_err_wrap(err, "--max");
	for (size_t i = 0; i < o->warning_bounds.n; i++)
		if (lull_gate_bound(gate, warnings[i], LULL_GATE_WARNS, err))
			return lull_err_wrap(err, "--warn");
	return LULL_OK;
}

static int watch(struct options *o, struct lull_gate *gate, struct lull_err *err)
{
	char *const *specs, *const *warned = o->warned.at;

	gate->run_sql = lull_gate_query;
	choose_metrics(o);
	for (size_t i = 0; i < o->queries.n; i++) {
		char *name = ((char **)o->queries.at)[i];
		char *equals = strchr(name, '=');

		*equals = '\0';
		lull_gate_name_query(gate, name, equals + 1);
	}
	specs = o->metrics.at;
	for (size_t i = 0; o->baselines.n && i < o->metrics.n; i++)
		if (lull_gate_watch(gate, specs[i], err))
			return err->code;
	for (size_t i = 0; i < o->warned.n; i++)
		if (lull_gate_warn(gate, warned[i], err))
			return lull_err_wrap(err, "--warn");
	if (o->min_speedup > 0) {
		snprintf(o->speedup_name, sizeof(o->speedup_name), "speedup >= %.6g",
			 o->min_speedup);
		lull_gate_speedup(gate, o->speedup_name, o->min_speedup);
	}
	return watch_bounds(o, gate, err);
}

static int write_file(const struct lull_gate *gate, const struct lull_gate_output *output,
		      const char *path, struct lull_err *err)
{
	FILE *to;
	int rc;

	if (!path)
		return LULL_OK;
	to = fopen(path, "we");
	if (!to)
		return lull_fail_creating(err, path);
	output->write(gate, to);
	rc = lull_err_flush(err, to, path);
	fclose(to);
	return rc;
}

static int write_outputs(const struct options *o, const struct lull_gate *gate,
			 struct lull_err *err)
{
	if (o->format)
		lull_gate_output_json.write(gate, stdout);
	else
		lull_gate_output_text.write(gate, stdout);
	if (o->is_github)
		lull_gate_output_github.write(gate, stdout);
	if (write_file(gate, &lull_gate_output_junit, o->junit, err) ||
	    write_file(gate, &lull_gate_output_sarif, o->sarif, err) ||
	    write_file(gate, &lull_gate_output_markdown, o->markdown, err))
		return err->code;
	return LULL_OK;
}

/* Default metrics may be missing; then say which ones both sides have. */
static void say_what_is_comparable(const struct options *o, const struct lull_gate *gate)
{
	const struct lull_gate_check *all = gate->checks.at;
	struct lull_str there = LULL_STR_INIT;

	for (size_t i = 0; i < gate->checks.n; i++)
		if (all[i].decision.verdict != LULL_NOT_COMPARABLE &&
		    all[i].kind == LULL_GATE_CHANGE)
			lull_str_addf(&there, "%s%s", there.len ? "," : "", all[i].spec);
	if (gate->verdict == LULL_NOT_COMPARABLE && o->is_default && there.len)
		fprintf(stderr, "lull: these metrics can be compared: -m %s\n", there.at);
	lull_str_release(&there);
}

/* Append the new side, unless it is no run that can be compared with others. */
static int keep(const struct options *o, const struct lull_gate *gate, struct lull_err *err)
{
	if (!o->history)
		return LULL_OK;
	if (!gate->why.len)
		return lull_gate_history_add(gate, o->history, o->commit, &o->metrics, err);
	if (!gate->checks.n)
		return lull_fail(err, LULL_E_FORMAT, "%s", lull_str_text(&gate->why));
	fprintf(stderr, "lull: the run is not added to the history\n");
	return LULL_OK;
}

static int compare(struct options *o, struct lull_gate *gate, char **words, struct lull_err *err)
{
	static const int status[] = { [LULL_PASS] = 0,
				      [LULL_REGRESSED] = 1,
				      [LULL_INCONCLUSIVE] = 2,
				      [LULL_NOT_COMPARABLE] = 2,
				      [LULL_FAILED] = 1 };

	gate->threshold = o->threshold_pct / 100;
	if (watch(o, gate, err) || open_sides(o, gate, words, err))
		return err->code;
	if (o->is_silent)
		return LULL_OK;
	if (lull_gate_run(gate, err) || (gate->checks.n && write_outputs(o, gate, err)) ||
	    keep(o, gate, err))
		return err->code;
	say_what_is_comparable(o, gate);
	return status[gate->verdict];
}

/* What cannot be done without something else that was not given. */
static int check_options(const struct options *o, struct lull_err *err)
{
	bool has_bound = o->bounds.n || o->warning_bounds.n;

	if (!o->baselines.n && (o->min_speedup > 0 || o->warned.n))
		return lull_fail(err, LULL_E_USAGE, "%s compares with a baseline: give --baseline",
				 o->warned.n ? "--warn METRIC" : "--min-speedup");
	if (!o->baselines.n && !has_bound && !o->history)
		return lull_fail(err, LULL_E_USAGE,
				 "give a baseline: --baseline REPORT, or the name of one that "
				 "--save stored; or a bound: --max 'step < 40 ms'");
	if (o->min_speedup < 0 || (o->min_speedup > 0 && o->min_speedup < 1))
		return lull_fail(err, LULL_E_USAGE,
				 "--min-speedup is how many times as fast a step has to be, such "
				 "as 1.1");
	if (o->commit && !o->history)
		return lull_fail(err, LULL_E_USAGE,
				 "--commit says which commit --history appends; give --history");
	if (o->html)
		return lull_fail(err, LULL_E_USAGE,
				 "--html draws a history: give --history and no report");
	return LULL_OK;
}

/* Files of an earlier run are replaced, as CI wants it; what is read, or is a report, is not. */
static int check_outputs(const struct options *o, char **words, struct lull_err *err)
{
	const char *outputs[] = { o->junit, o->sarif, o->markdown, o->html };
	char *const *baselines = o->baselines.at;

	for (size_t i = 0; i < LULL_COUNT_OF(outputs); i++) {
		if (lull_sink_spare_report(outputs[i], err))
			return err->code;
		for (char **w = words; *w; w++)
			if (lull_sink_spare_input(outputs[i], *w, err))
				return err->code;
		for (size_t k = 0; k < o->baselines.n; k++)
			if (lull_sink_spare_input(outputs[i], baselines[k], err))
				return err->code;
	}
	return LULL_OK;
}

static int run(struct options *o, struct lull_gate *gate, char **words, struct lull_err *err)
{
	if (o->is_list)
		return list_metrics();
	if (check_outputs(o, words, err))
		return err->code;
	if (!*words && o->history)
		return lull_gate_history_show(
			&(struct lull_gate_history_view){ .folder = o->history,
							  .specs = &o->metrics,
							  .html = o->html,
							  .is_json = o->format },
			err);
	if (!*words)
		return lull_fail(err, LULL_E_USAGE,
				 "name the new reports, such as lull gate --baseline main "
				 "new.lull");
	o->is_default = !o->metrics.n && !o->queries.n;
	if (o->save) {
		int rc = lull_baseline_save(o->store, o->save, words, err);

		if (rc || !o->history)
			return rc;
		lull_opt_list_release(&o->baselines);
	}
	if (check_options(o, err))
		return err->code;
	return compare(o, gate, words, err);
}

int cmd_gate(int argc, char **argv, struct lull_err *err)
{
	static const char *const formats[] = { "text", "json", NULL };
	struct options o = { .store = DEFAULT_STORE, .threshold_pct = 5 };
	struct lull_vec *const lists[] = { &o.baselines, &o.metrics,	    &o.queries, &o.bounds,
					   &o.warned,	 &o.warning_bounds, &o.paths };
	struct lull_gate gate;
	const struct lull_opt opts[] = {
		OPT_USAGE(
			"lull gate [OPTIONS] --baseline REPORT|FOLDER|NAME NEW...",
			"Refuse a change that made the program slower: compare new reports with a "
			"baseline, or with bounds (--max). Exit 0: pass, 1: regressed or failed, "
			"2: no verdict."),
		OPT_LIST('b', "baseline", "REPORT|FOLDER|NAME", &o.baselines,
			 "what to compare with: reports, folders of rank reports, or a name in the "
			 "store"),
		OPT_LIST('m', "metric", "METRIC", &o.metrics,
			 "metrics to compare (default: step_time,idle_share,launches)"),
		OPT_CALL(0, "sql", "NAME=QUERY", add_query, &o.queries,
			 "also compare the numbers in the first column of a query"),
		OPT_CALL(0, "threshold", "PERCENT", set_threshold, &o.threshold_pct,
			 "the smallest change that matters, such as 3% (default: 5%)"),
		OPT_CALL(0, "max", "METRIC<VALUE", add_bound, &o.bounds,
			 "fail if the median is not below, such as 'step < 40 ms'; needs no "
			 "baseline"),
		OPT_F64(0, "min-speedup", "FACTOR", &o.min_speedup,
			"fail unless a step is this many times as fast as in the baseline"),
		OPT_CALL(0, "warn", "METRIC", add_warning, &o,
			 "only warn about these metrics or bounds"),
		OPT_FLAG(0, "list", &o.is_list, "list the metrics and exit"),
		OPT_GROUP("The store"),
		OPT_STR(0, "store", "FOLDER", &o.store,
			"where baselines are stored (default: " DEFAULT_STORE ")"),
		OPT_STR(0, "save", "NAME", &o.save, "store the reports as this baseline and exit"),
		OPT_GROUP("History"),
		OPT_STR(0, "history", "FOLDER", &o.history,
			"append the new reports to a history; without reports: show it and where "
			"it changed"),
		OPT_STR(0, "commit", "ID", &o.commit,
			"commit of the new reports (default: git rev-parse HEAD)"),
		OPT_STR(0, "html", "FILE", &o.html, "draw the history as an HTML page"),
		OPT_GROUP("What may be compared"),
		OPT_FLAG(0, "allow-losses", &gate.allows_losses, "also reports that lost events"),
		OPT_FLAG(0, "any-program", &gate.allows_other_program,
			 "also reports of different programs"),
		OPT_FLAG(0, "any-device", &gate.allows_other_device,
			 "also reports of different devices"),
		OPT_GROUP("Output"),
		OPT_ENUM('f', "format", &o.format, formats, "format on standard output"),
		OPT_STR(0, "junit", "FILE", &o.junit, "write JUnit XML"),
		OPT_STR(0, "sarif", "FILE", &o.sarif, "write SARIF 2.1.0"),
		OPT_STR(0, "markdown", "FILE", &o.markdown, "write a Markdown table"),
		OPT_FLAG(0, "github", &o.is_github, "print annotations for GitHub Actions"),
		OPT_END(),
	};
	int first, rc;

	lull_gate_init(&gate);
	for (size_t i = 0; i < LULL_COUNT_OF(lists); i++)
		lull_vec_init(lists[i], sizeof(char *));
	first = lull_opt_parse(argc, argv, opts, err);
	rc = first < 0 ? first : run(&o, &gate, argv + first, err);
	lull_gate_release(&gate);
	for (size_t i = 0; i < LULL_COUNT_OF(lists); i++)
		lull_opt_list_release(lists[i]);
	if (rc >= 0 && lull_err_flush(err, stdout, "standard output"))
		rc = err->code;
	/* 1 would say "regressed". */
	return rc < 0 && rc != LULL_OPT_HELPED ? LULL_E_USAGE : rc;
}
