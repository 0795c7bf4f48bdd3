#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "compare/history.h"

/* Of a query that an older run had: a number. */
static const struct lull_metric number_metric = { .name = "sql", .kind = LULL_OUT_FLOAT };

/* Letters of a hash that people quote. */
#define SHORT_HASH 9

static const struct lull_metric *metric_of(const char *spec)
{
	const struct lull_metric *metric;
	struct lull_err ignored;
	const char *arg;

	return lull_metric_find(spec, &metric, &arg, &ignored) ? &number_metric : metric;
}

static const struct lull_history_value *value_of(const struct lull_history_run *run,
						 const char *spec)
{
	const struct lull_history_value *values = run->values.at;

	for (size_t i = 0; i < run->values.n; i++)
		if (strcmp(values[i].metric, spec) == 0)
			return &values[i];
	return NULL;
}

/* Of at most the runs of one commit, which are few. */
static f64 median_of(struct lull_vec *values)
{
	struct lull_samples samples = { .values = *values };

	return lull_samples_median(&samples);
}

static void add_point(struct lull_history_series *s, const struct lull_history_run *run,
		      struct lull_vec *values)
{
	if (values->n)
		*(struct lull_history_point *)lull_vec_push(&s->points) =
			(struct lull_history_point){ run->commit, run->date, median_of(values),
						     values->n };
	values->n = 0;
}

static void collect_points(struct lull_history_series *s, const struct lull_history *h)
{
	const struct lull_history_run *runs = h->runs.at;
	struct lull_vec values;

	lull_vec_init(&values, sizeof(f64));
	for (size_t i = 0; i < h->runs.n; i++) {
		const struct lull_history_value *value = value_of(&runs[i], s->spec);

		if (value)
			*(f64 *)lull_vec_push(&values) = value->median;
		if (i + 1 == h->runs.n || strcmp(runs[i].commit, runs[i + 1].commit) != 0)
			add_point(s, &runs[i], &values);
	}
	lull_vec_release(&values);
}

void lull_history_series_init(struct lull_history_series *s, const struct lull_history *h,
			      const char *spec)
{
	const struct lull_history_point *points;
	f64 *values;

	*s = (struct lull_history_series){ .spec = spec, .metric = metric_of(spec) };
	lull_vec_init(&s->points, sizeof(struct lull_history_point));
	collect_points(s, h);
	points = s->points.at;
	values = lull_alloc(s->points.n + 1, sizeof(*values));
	for (size_t i = 0; i < s->points.n; i++)
		values[i] = points[i].value;
	lull_changepoints_find(&s->changes, values, s->points.n, s->metric->is_share);
	free(values);
}

void lull_history_series_release(struct lull_history_series *s)
{
	lull_vec_release(&s->points);
	lull_changepoints_release(&s->changes);
}

struct lull_history_short lull_history_short(const char *commit)
{
	struct lull_history_short s;
	size_t n_hex = 0;

	while (isxdigit((unsigned char)commit[n_hex]))
		n_hex++;
	snprintf(s.text, sizeof(s.text), "%.*s",
		 n_hex >= 40 && !commit[n_hex] ? SHORT_HASH : (int)sizeof(s.text) - 1, commit);
	return s;
}

void lull_history_say(const struct lull_history_series *s, const struct lull_changepoint *change,
		      struct lull_str *to)
{
	char before[48], after[48];

	lull_metric_value(s->metric, change->before, before, sizeof(before));
	lull_metric_value(s->metric, change->after, after, sizeof(after));
	lull_str_addf(to, "%s -> %s, %+.1f %s (%+.1f to %+.1f)", before, after,
		      100 * change->change, s->metric->is_share ? "points" : "%", 100 * change->low,
		      100 * change->high);
}
