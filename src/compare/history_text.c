/*
 * A history for people, in a terminal: a plot of each metric, and its changes.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "compare/history.h"
#include "text/term.h"

#define N_LINES	    11
#define LABEL_WIDTH 11

/* Changes with a number of their own under the plot. */
#define MAX_MARKS 9

/* The columns of a plot: each stands for one commit, or for some that follow each other. */
struct plot {
	size_t n_columns;
	size_t n_points;
	f64 low;
	f64 high;
	char *cells; /* N_LINES lines of n_columns */
};

static size_t column_of(const struct plot *plot, size_t point)
{
	return point * plot->n_columns / plot->n_points;
}

static size_t line_of(const struct plot *plot, f64 value)
{
	f64 part = plot->high > plot->low ? (value - plot->low) / (plot->high - plot->low) : 0.5;

	part = fmin(fmax(part, 0), 1);
	return (size_t)lround((1 - part) * (N_LINES - 1));
}

static void put(struct plot *plot, size_t column, f64 value, char mark)
{
	plot->cells[line_of(plot, value) * plot->n_columns + column] = mark;
}

/* One wild run must not press the others into one line. */
static void find_range(struct plot *plot, const struct lull_history_series *s)
{
	const struct lull_changepoint *changes = s->changes.all.at;
	const struct lull_history_point *points = s->points.at;
	struct lull_samples samples;
	f64 middle, reach = 0;

	lull_samples_init(&samples);
	for (size_t i = 0; i < s->points.n; i++)
		lull_samples_add(&samples, points[i].value);
	middle = lull_samples_median(&samples);
	for (size_t i = 0; i < s->points.n; i++)
		((f64 *)samples.values.at)[i] = fabs(points[i].value - middle);
	reach = 6 * lull_samples_median(&samples);
	lull_samples_release(&samples);
	plot->low = plot->high = middle;
	for (size_t i = 0; i < s->changes.all.n; i++) {
		plot->low = fmin(plot->low, fmin(changes[i].before, changes[i].after));
		plot->high = fmax(plot->high, fmax(changes[i].before, changes[i].after));
	}
	reach = fmax(reach, plot->high - plot->low);
	for (size_t i = 0; i < s->points.n; i++)
		if (fabs(points[i].value - middle) <= reach) {
			plot->low = fmin(plot->low, points[i].value);
			plot->high = fmax(plot->high, points[i].value);
		}
}

/* The levels as lines, and the commits as dots on them. */
static void fill(struct plot *plot, const struct lull_history_series *s)
{
	const struct lull_changepoint *changes = s->changes.all.at;
	const struct lull_history_point *points = s->points.at;
	size_t k = 0;

	memset(plot->cells, ' ', N_LINES * plot->n_columns);
	for (size_t i = 0; s->changes.all.n && i < s->points.n; i++) {
		while (k < s->changes.all.n && changes[k].ix <= i)
			k++;
		put(plot, column_of(plot, i), k ? changes[k - 1].after : changes[0].before, '-');
	}
	for (size_t i = 0; i < s->points.n; i++)
		put(plot, column_of(plot, i), points[i].value, 'o');
}

static void print_plot(const struct plot *plot, const struct lull_history_series *s, FILE *to)
{
	for (size_t line = 0; line < N_LINES; line++) {
		f64 part = 1 - (f64)line / (N_LINES - 1);
		const char *cells = plot->cells + line * plot->n_columns;
		size_t len = plot->n_columns;
		char label[48] = "";

		if (line % 5 == 0)
			lull_metric_value(s->metric, plot->low + part * (plot->high - plot->low),
					  label, sizeof(label));
		while (len && cells[len - 1] == ' ')
			len--;
		fprintf(to, "%*s |%.*s\n", LABEL_WIDTH, label, (int)len, cells);
	}
	fprintf(to, "%*s +", LABEL_WIDTH, "");
	for (size_t i = 0; i < plot->n_columns; i++)
		fputc('-', to);
	fputc('\n', to);
}

/* The numbers of the changes, each under its first commit. */
static void print_marks(const struct plot *plot, const struct lull_history_series *s, FILE *to)
{
	const struct lull_changepoint *changes = s->changes.all.at;
	char *line = lull_alloc(plot->n_columns + 1, 1);
	size_t len = 0;

	memset(line, ' ', plot->n_columns);
	for (size_t i = 0; i < s->changes.all.n && i < MAX_MARKS; i++) {
		size_t column = column_of(plot, changes[i].ix);

		line[column] = (char)('1' + i);
		len = column + 1;
	}
	if (len)
		fprintf(to, "%*s  %.*s\n", LABEL_WIDTH, "", (int)len, line);
	free(line);
}

static void print_changes(const struct lull_history_series *s, FILE *to)
{
	const struct lull_changepoint *changes = s->changes.all.at;
	const struct lull_history_point *points = s->points.at;

	if (s->points.n < LULL_CHANGEPOINT_MIN_VALUES) {
		fprintf(to, "%zu commit%s: too few to look for changes, which takes %d\n",
			s->points.n, s->points.n == 1 ? "" : "s", LULL_CHANGEPOINT_MIN_VALUES);
		return;
	}
	if (!s->changes.all.n)
		fprintf(to, "no change found; noise %.1f %s from commit to commit\n",
			100 * s->changes.noise, s->metric->is_share ? "points" : "%");
	for (size_t i = 0; i < s->changes.all.n; i++) {
		const struct lull_history_point *at = &points[changes[i].ix];
		struct lull_str text = LULL_STR_INIT;

		lull_history_say(s, &changes[i], &text);
		fprintf(to, "%zu  changed at %s (%.10s): %s\n", i + 1,
			lull_history_short(at->commit).text, at->date, lull_str_text(&text));
		lull_str_release(&text);
	}
}

static void print_series(const struct lull_history_series *s, FILE *to)
{
	const struct lull_history_point *points = s->points.at;
	struct plot plot = { .n_points = s->points.n };
	size_t width = (size_t)lull_term_width(to) - LABEL_WIDTH - 3;

	if (!s->points.n) {
		fprintf(to, "%s: no run has measured it\n", s->spec);
		return;
	}
	fprintf(to, "%s, %zu commit%s, %s to %s\n", s->spec, s->points.n,
		s->points.n == 1 ? "" : "s", lull_history_short(points[0].commit).text,
		lull_history_short(points[s->points.n - 1].commit).text);
	plot.n_columns = plot.n_points < width ? plot.n_points : width;
	plot.cells = lull_alloc(N_LINES, plot.n_columns);
	find_range(&plot, s);
	fill(&plot, s);
	print_plot(&plot, s, to);
	print_marks(&plot, s, to);
	print_changes(s, to);
	free(plot.cells);
}

void lull_history_text(const struct lull_history *h, const struct lull_history_series *all,
		       size_t n, FILE *to)
{
	for (size_t i = 0; i < n; i++) {
		if (i)
			fputc('\n', to);
		print_series(&all[i], to);
	}
	if (h->n_others)
		fprintf(to, "left out: %zu run%s of other programs or devices\n", h->n_others,
			h->n_others == 1 ? "" : "s");
	if (h->n_bad)
		fprintf(to, "left out: %zu line%s that cannot be read\n", h->n_bad,
			h->n_bad == 1 ? "" : "s");
}
