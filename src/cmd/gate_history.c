#include "cmd/gate_history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "cmd/schema_json.h"
#include "compare/history.h"
#include "compare/program.h"

static const struct lull_property points[] = {
	{ "commit", "string", "its id", NULL },
	{ "date", "string", "of its last run", NULL },
	{ "value", "number", "median of its runs", NULL },
	{ "runs", "integer", "runs of this commit", NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct lull_property changes[] = {
	{ "commit", "string", "the first one of the new level", NULL },
	{ "date", "string", "of its last run", NULL },
	{ "index", "integer", "its place among commits, from 0", NULL },
	{ "before", "number", "median of the level before", NULL },
	{ "after", "number", "median of the level after", NULL },
	{ "change", "number", "of the mean, as a share of it before; of shares: difference", NULL },
	{ "change_low", "number", "of the 90 % interval", NULL },
	{ "change_high", "number", "of the 90 % interval", NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct lull_property metrics[] = {
	{ "metric", "string", "its name", NULL },
	{ "noise", "number", "standard deviation from commit to commit, as a share", NULL },
	{ "changes", "array", "where it changed", changes },
	{ "commits", "array", "all of them, oldest first", points },
	{ NULL, NULL, NULL, NULL },
};

static const struct lull_property document[] = {
	{ "program", "string|null", "what ran", NULL },
	{ "device", "string|null", "on what", NULL },
	{ "runs", "integer", "runs in the history", NULL },
	{ "runs_left_out", "integer", "runs of other programs or devices", NULL },
	{ "bad_lines", "integer", "lines that cannot be read", NULL },
	{ "metrics", "array", "one for each metric", metrics },
	{ NULL, NULL, NULL, NULL },
};

void lull_schema_of_gate_history(struct lull_json *j)
{
	lull_schema_json_object(j, "lull gate --history --format json", document);
}

/* The name under which a metric is kept: step becomes step_time. */
static void name_of(const char *spec, struct lull_str *to)
{
	const struct lull_metric *metric;
	struct lull_err ignored;
	const char *arg;

	lull_str_clear(to);
	if (lull_metric_find(spec, &metric, &arg, &ignored))
		lull_str_puts(to, spec);
	else
		lull_str_addf(to, "%s%s%s", metric->name, arg ? ":" : "", arg ? arg : "");
}

/* ---- append ---- */

static int find_commit(const char *given, struct lull_str *commit, struct lull_err *err)
{
	if (given && *given)
		lull_str_puts(commit, given);
	else if (!lull_file_ask("git rev-parse HEAD 2>/dev/null", commit))
		lull_str_clear(commit);
	return commit->len ? LULL_OK
			   : lull_fail(err, LULL_E_USAGE,
				       "git knows no commit here; say which one it is: --commit "
				       "ID");
}

/* When the recording began; now, if it does not say. */
static char *date_of(struct lull_reader *r)
{
	u64 utc_ns = lull_reader_info(r)->epoch_utc_ns;
	time_t at = utc_ns ? (time_t)(utc_ns / 1000000000) : time(NULL);
	char text[32];
	struct tm tm;

	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&at, &tm));
	return lull_strdup(text);
}

static char *device_of(struct lull_reader *r)
{
	size_t n;
	const struct lull_device_row *rows = lull_reader_dim(r, LULL_TABLE_device, &n);

	return lull_strdup(n ? lull_reader_string(r, rows[0].name, NULL) : "");
}

static void describe(struct lull_history_run *run, const struct lull_gate *gate)
{
	const struct lull_gate_run *first = gate->after.at;
	struct lull_program program;

	lull_program_init(&program, first->reader, first->steps.process);
	run->program = lull_strdup(lull_str_text(&program.name));
	lull_program_release(&program);
	run->date = date_of(first->reader);
	run->device = device_of(first->reader);
	run->n_reports = gate->after.n;
	run->n_steps = lull_gate_n_steps(&gate->after);
}

static int measure(struct lull_history_run *run, const struct lull_gate *gate, const char *spec,
		   struct lull_err *err)
{
	const struct lull_metric *metric;
	struct lull_samples samples;
	struct lull_str name = LULL_STR_INIT;
	struct lull_err missing;
	int rc;

	lull_samples_init(&samples);
	name_of(spec, &name);
	rc = lull_gate_measure(gate, spec, &metric, &samples, &missing);
	if (!rc && samples.values.n)
		lull_history_summarise(lull_vec_push(&run->values), lull_str_text(&name), metric,
				       &samples);
	lull_str_release(&name);
	lull_samples_release(&samples);
	if (rc && rc != LULL_E_NOT_FOUND)
		return lull_fail(err, (enum lull_code)rc, "%s", missing.msg);
	return LULL_OK;
}

int lull_gate_history_add(const struct lull_gate *gate, const char *folder, const char *commit,
			  const struct lull_vec *specs, struct lull_err *err)
{
	struct lull_str id = LULL_STR_INIT;
	struct lull_history_run run;
	int rc = find_commit(commit, &id, err);

	lull_history_run_init(&run);
	run.commit = lull_strdup(lull_str_text(&id));
	if (!rc)
		describe(&run, gate);
	for (size_t i = 0; !rc && i < specs->n; i++)
		rc = measure(&run, gate, ((char **)specs->at)[i], err);
	if (!rc && !run.values.n)
		rc = lull_fail(err, LULL_E_NOT_FOUND,
			       "the reports have none of the metrics, so the history stays as it "
			       "is");
	if (!rc)
		rc = lull_history_append(folder, &run, err);
	if (!rc)
		fprintf(stderr, "lull: added a run of %s to the history in %s\n",
			lull_history_short(run.commit).text, folder);
	lull_history_run_release(&run);
	lull_str_release(&id);
	return rc;
}

/* ---- show ---- */

/* What to show if nobody said: step_time, or what the last run has. */
static void choose(const struct lull_history *h, struct lull_vec *names)
{
	const struct lull_history_run *last = lull_vec_get(&h->runs, h->runs.n - 1);
	const struct lull_history_value *values = last->values.at;
	const char *name = values[0].metric;

	for (size_t i = 0; i < last->values.n; i++)
		if (strcmp(values[i].metric, lull_metric_step_time.name) == 0)
			name = values[i].metric;
	*(char **)lull_vec_push(names) = lull_strdup(name);
}

static int write_page(const char *path, const struct lull_history *h,
		      const struct lull_history_series *all, size_t n, struct lull_err *err)
{
	FILE *to = fopen(path, "we");
	int rc;

	if (!to)
		return lull_fail_creating(err, path);
	lull_history_html(h, all, n, to);
	rc = lull_err_flush(err, to, path);
	fclose(to);
	return rc;
}

static int show(const struct lull_gate_history_view *view, const struct lull_history *h,
		const struct lull_vec *names, struct lull_err *err)
{
	struct lull_history_series *all = lull_alloc(names->n, sizeof(*all));
	int rc = LULL_OK;

	for (size_t i = 0; i < names->n; i++)
		lull_history_series_init(&all[i], h, ((char **)names->at)[i]);
	if (view->is_json)
		lull_history_json(h, all, names->n, stdout);
	else
		lull_history_text(h, all, names->n, stdout);
	if (view->html)
		rc = write_page(view->html, h, all, names->n, err);
	for (size_t i = 0; i < names->n; i++)
		lull_history_series_release(&all[i]);
	free(all);
	return rc;
}

int lull_gate_history_show(const struct lull_gate_history_view *view, struct lull_err *err)
{
	struct lull_history h;
	struct lull_vec names;
	int rc = lull_history_read(&h, view->folder, err);

	lull_vec_init(&names, sizeof(char *));
	for (size_t i = 0; !rc && i < view->specs->n; i++) {
		struct lull_str name = LULL_STR_INIT;

		name_of(((char **)view->specs->at)[i], &name);
		*(char **)lull_vec_push(&names) = name.at;
	}
	if (!rc && !names.n)
		choose(&h, &names);
	if (!rc)
		rc = show(view, &h, &names, err);
	for (size_t i = 0; i < names.n; i++)
		free(((char **)names.at)[i]);
	lull_vec_release(&names);
	lull_history_release(&h);
	return rc;
}
