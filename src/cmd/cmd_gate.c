/*
 * lull gate - refuse a change that made the program slower.
 *
 * Exit status: 0 pass, 1 regressed, 2 no verdict (inconclusive, not comparable, or an error), so
 * that a comparison without a result never looks like a pass or a regression.
 */
#include "cmd/cmd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/opt.h"
#include "base/str.h"
#include "cmd/baseline.h"
#include "cmd/gate_sql.h"
#include "cmd/losses.h"
#include "cmd/schema_json.h"
#include "compare/gate_output.h"
#include "import/import.h"
#include "job/job.h"

#define DEFAULT_STORE ".lull-gate"

static const char *const default_metrics[] = { "step_time", "idle_share", "launches" };

struct options {
	struct lull_vec baselines; /* char * */
	struct lull_vec metrics;
	struct lull_vec queries; /* char *: NAME=SELECT ..., owned */
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
	bool is_silent;	       /* another process of those that mpirun started does it */
};

static int list_metrics(void)
{
	for (const struct lull_metric *const *m = lull_metrics; *m; m++) {
		char name[64];

		snprintf(name, sizeof(name), "%s%s%s", (*m)->name, (*m)->arg ? ":" : "",
			 (*m)->arg ? (*m)->arg : "");
		printf("%-14s %s\n", name, (*m)->summary);
	}
	return LULL_OK;
}

static const struct lull_property runs[] = {
	{ "report", "string", "its path", NULL },
	{ "steps", "integer", "steps compared", NULL },
	{ "warmup_steps", "integer", "steps left out at the start", NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct lull_property checks[] = {
	{ "metric", "string", "as given on the command line", NULL },
	{ "unit", "string", "ns, bytes, share, or none", NULL },
	{ "verdict", "string", "pass, regressed, inconclusive, not comparable", NULL },
	{ "before", "number", "median", NULL },
	{ "after", "number", "median", NULL },
	{ "change", "number", "of the mean, as a share of it before; of shares: difference", NULL },
	{ "change_low", "number", "of the 90 % interval", NULL },
	{ "change_high", "number", "of the 90 % interval", NULL },
	{ "p", "number", "probability of a change this bad if nothing changed", NULL },
	{ "n_before", "integer", "values compared", NULL },
	{ "n_after", "integer", "values compared", NULL },
	{ "compared", "string", "steps or runs", NULL },
	{ "n_needed", "integer", "values per side that would decide; 0 if these did", NULL },
	{ "why", "string|null", "why there is no decision", NULL },
	{ "values_before", "array", "all values", NULL },
	{ "values_after", "array", "all values", NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct lull_property document[] = {
	{ "verdict", "string", "pass, regressed, inconclusive, not comparable", NULL },
	{ "why", "string|null", "why the reports cannot be compared", NULL },
	{ "threshold", "number", "the smallest change that matters", NULL },
	{ "baseline", "array", "reports of the baseline", runs },
	{ "new", "array", "new reports", runs },
	{ "checks", "array", "one for each metric", checks },
	{ NULL, NULL, NULL, NULL },
};

void lull_schema_of_gate(struct lull_json *j)
{
	lull_schema_json_object(j, "lull gate --format json", document);
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
	lull_losses_warn(reader);
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

static int watch(struct options *o, struct lull_gate *gate, struct lull_err *err)
{
	char *const *specs = o->metrics.at;
	bool is_default;

	for (size_t i = 0; i < o->metrics.n; i++)
		if (lull_gate_watch(gate, specs[i], err))
			return err->code;
	gate->run_sql = lull_gate_query;
	for (size_t i = 0; i < o->queries.n; i++) {
		char *name = ((char **)o->queries.at)[i];
		char *equals = strchr(name, '=');

		*equals = '\0';
		lull_gate_watch_sql(gate, name, equals + 1);
	}
	is_default = !gate->checks.n;
	for (size_t i = 0; is_default && i < LULL_COUNT_OF(default_metrics); i++)
		if (lull_gate_watch(gate, default_metrics[i], err))
			return err->code;
	return LULL_OK;
}

static int write_file(const struct lull_gate *gate, const struct lull_gate_output *output,
		      const char *path, struct lull_err *err)
{
	FILE *to;
	bool is_bad;

	if (!path)
		return LULL_OK;
	to = fopen(path, "we");
	if (!to)
		return lull_fail_errno(err, "opening %s", path);
	output->write(gate, to);
	is_bad = ferror(to);
	if (fclose(to) || is_bad)
		return lull_fail_errno(err, "writing %s", path);
	return LULL_OK;
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
		if (all[i].decision.verdict != LULL_NOT_COMPARABLE)
			lull_str_addf(&there, "%s%s", there.len ? "," : "", all[i].spec);
	if (gate->verdict == LULL_NOT_COMPARABLE && !o->metrics.n && !o->queries.n && there.len)
		fprintf(stderr, "lull: these metrics can be compared: -m %s\n", there.at);
	lull_str_release(&there);
}

static int compare(struct options *o, struct lull_gate *gate, char **words, struct lull_err *err)
{
	static const int status[] = { [LULL_PASS] = 0,
				      [LULL_REGRESSED] = 1,
				      [LULL_INCONCLUSIVE] = 2,
				      [LULL_NOT_COMPARABLE] = 2 };

	gate->threshold = o->threshold_pct / 100;
	if (watch(o, gate, err) || open_sides(o, gate, words, err))
		return err->code;
	if (o->is_silent)
		return LULL_OK;
	if (lull_gate_run(gate, err) || write_outputs(o, gate, err))
		return err->code;
	say_what_is_comparable(o, gate);
	return status[gate->verdict];
}

static int run(struct options *o, struct lull_gate *gate, char **words, struct lull_err *err)
{
	if (o->is_list)
		return list_metrics();
	if (!*words)
		return lull_fail(err, LULL_E_USAGE,
				 "name the new reports, such as lull gate --baseline main "
				 "new.lull");
	if (o->save)
		return lull_baseline_save(o->store, o->save, words, err);
	if (!o->baselines.n)
		return lull_fail(err, LULL_E_USAGE,
				 "give a baseline: --baseline REPORT, or the name of one that "
				 "--save stored");
	if (!(o->threshold_pct > 0 && o->threshold_pct < 1000))
		return lull_fail(err, LULL_E_USAGE, "--threshold is a percentage above 0");
	return compare(o, gate, words, err);
}

int cmd_gate(int argc, char **argv, struct lull_err *err)
{
	static const char *const formats[] = { "text", "json", NULL };
	struct options o = { .store = DEFAULT_STORE, .threshold_pct = 5 };
	struct lull_gate gate;
	const struct lull_opt opts[] = {
		OPT_USAGE(
			"lull gate [OPTIONS] --baseline REPORT|FOLDER|NAME NEW...",
			"Refuse a change that made the program slower: compare new reports with a "
			"baseline. Exit 0: pass, 1: regressed, 2: no verdict."),
		OPT_LIST('b', "baseline", "REPORT|FOLDER|NAME", &o.baselines,
			 "what to compare with: reports, folders of rank reports, or a name in the "
			 "store"),
		OPT_LIST('m', "metric", "METRIC", &o.metrics,
			 "metrics to compare (default: step_time,idle_share,launches)"),
		OPT_CALL(0, "sql", "NAME=QUERY", add_query, &o.queries,
			 "also compare the numbers in the first column of a query"),
		OPT_F64(0, "threshold", "PERCENT", &o.threshold_pct,
			"the smallest change that matters (default: 5)"),
		OPT_FLAG(0, "list", &o.is_list, "list the metrics and exit"),
		OPT_GROUP("The store"),
		OPT_STR(0, "store", "FOLDER", &o.store,
			"where baselines are stored (default: " DEFAULT_STORE ")"),
		OPT_STR(0, "save", "NAME", &o.save, "store the reports as this baseline and exit"),
		OPT_GROUP("What may be compared"),
		OPT_FLAG(0, "allow-losses", &gate.allows_losses, "also reports that lost events"),
		OPT_FLAG(0, "any-program", &gate.allows_other_program,
			 "also reports of different programs"),
		OPT_FLAG(0, "any-device", &gate.allows_other_device,
			 "also reports of different devices"),
		OPT_GROUP("Output"),
		OPT_ENUM(0, "format", &o.format, formats, "format on standard output"),
		OPT_STR(0, "junit", "FILE", &o.junit, "write JUnit XML"),
		OPT_STR(0, "sarif", "FILE", &o.sarif, "write SARIF 2.1.0"),
		OPT_STR(0, "markdown", "FILE", &o.markdown, "write a Markdown table"),
		OPT_FLAG(0, "github", &o.is_github, "print annotations for GitHub Actions"),
		OPT_END(),
	};
	int first, rc;

	lull_gate_init(&gate);
	lull_vec_init(&o.baselines, sizeof(char *));
	lull_vec_init(&o.metrics, sizeof(char *));
	lull_vec_init(&o.queries, sizeof(char *));
	lull_vec_init(&o.paths, sizeof(char *));
	first = lull_opt_parse(argc, argv, opts, err);
	rc = first < 0 ? first : run(&o, &gate, argv + first, err);
	lull_gate_release(&gate);
	lull_opt_list_release(&o.baselines);
	lull_opt_list_release(&o.metrics);
	lull_opt_list_release(&o.queries);
	lull_opt_list_release(&o.paths);
	/* 1 would say "regressed". */
	return rc < 0 && rc != LULL_OPT_HELPED ? LULL_E_USAGE : rc;
}
