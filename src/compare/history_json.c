/*
 * A history for scripts.
 */
#include "compare/history.h"
#include "text/json.h"

static void write_point(struct lull_json *j, const struct lull_history_point *point)
{
	lull_json_object(j);
	lull_json_key_text(j, "commit", point->commit);
	lull_json_key_text(j, "date", point->date);
	lull_json_key_f64(j, "value", point->value);
	lull_json_key_u64(j, "runs", point->n_runs);
	lull_json_end(j);
}

static void write_change(struct lull_json *j, const struct lull_history_series *s,
			 const struct lull_changepoint *change)
{
	const struct lull_history_point *points = s->points.at;

	lull_json_object(j);
	lull_json_key_text(j, "commit", points[change->ix].commit);
	lull_json_key_text(j, "date", points[change->ix].date);
	lull_json_key_u64(j, "index", change->ix);
	lull_json_key_f64(j, "before", change->before);
	lull_json_key_f64(j, "after", change->after);
	lull_json_key_f64(j, "change", change->change);
	lull_json_key_f64(j, "change_low", change->low);
	lull_json_key_f64(j, "change_high", change->high);
	lull_json_end(j);
}

static void write_series(struct lull_json *j, const struct lull_history_series *s)
{
	const struct lull_history_point *points = s->points.at;
	const struct lull_changepoint *changes = s->changes.all.at;

	lull_json_object(j);
	lull_json_key_text(j, "metric", s->spec);
	lull_json_key_f64(j, "noise", s->changes.noise);
	lull_json_key_array(j, "changes");
	for (size_t i = 0; i < s->changes.all.n; i++)
		write_change(j, s, &changes[i]);
	lull_json_end(j);
	lull_json_key_array(j, "commits");
	for (size_t i = 0; i < s->points.n; i++)
		write_point(j, &points[i]);
	lull_json_end(j);
	lull_json_end(j);
}

void lull_history_json(const struct lull_history *h, const struct lull_history_series *all,
		       size_t n, FILE *to)
{
	const struct lull_history_run *runs = h->runs.at;
	struct lull_json j;

	lull_json_init(&j, to);
	j.is_pretty = true;
	lull_json_object(&j);
	lull_json_key_text(&j, "program", h->runs.n ? runs[0].program : NULL);
	lull_json_key_text(&j, "device", h->runs.n ? runs[0].device : NULL);
	lull_json_key_u64(&j, "runs", h->runs.n);
	lull_json_key_u64(&j, "runs_left_out", h->n_others);
	lull_json_key_u64(&j, "bad_lines", h->n_bad);
	lull_json_key_array(&j, "metrics");
	for (size_t i = 0; i < n; i++)
		write_series(&j, &all[i]);
	lull_json_end(&j);
	lull_json_end(&j);
	fputc('\n', to);
}
