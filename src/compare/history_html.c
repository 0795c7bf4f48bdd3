/*
 * A history as one HTML page that loads nothing: drawings in SVG, no script.
 */
#include <math.h>

#include "compare/history.h"

#define WIDTH  1000.0
#define HEIGHT 260.0
#define LEFT   90.0
#define RIGHT  10.0
#define TOP    14.0
#define BOTTOM 24.0
#define N_GRID 4

static const char head[] =
	"<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
	"<meta name=\"viewport\" content=\"width=device-width\">\n<style>\n"
	":root { color-scheme: light dark; --dot: #2a6fb0; --level: #c2410c; --line: #8884; }\n"
	"@media (prefers-color-scheme: dark) { :root { --dot: #7db4e8; --level: #ff9a5c; } }\n"
	"body { font: 14px/1.5 system-ui, sans-serif; max-width: 1040px; margin: 24px auto; "
	"padding: 0 16px; }\n"
	"svg { width: 100%; height: auto; } svg text { font-size: 12px; fill: currentColor; }\n"
	"circle { fill: var(--dot); }\n"
	".level { stroke: var(--level); stroke-width: 2; } .grid { stroke: var(--line); }\n"
	".change { stroke: var(--level); stroke-dasharray: 3 3; }\n"
	"table { border-collapse: collapse; } td, th { padding: 2px 12px 2px 0; "
	"text-align: left; }\n</style>\n";

static void put_escaped(const char *text, FILE *to)
{
	for (; *text; text++) {
		if (*text == '&')
			fputs("&amp;", to);
		else if (*text == '<')
			fputs("&lt;", to);
		else if (*text == '>')
			fputs("&gt;", to);
		else if (*text == '"')
			fputs("&quot;", to);
		else
			fputc(*text, to);
	}
}

/* The day of a date. */
static void put_day(const char *date, FILE *to)
{
	char day[11];

	snprintf(day, sizeof(day), "%s", date);
	put_escaped(day, to);
}

/* What the values of a series are drawn between. */
struct frame {
	f64 low;
	f64 high;
	size_t n;
};

static f64 x_of(const struct frame *frame, size_t ix)
{
	return LEFT + (WIDTH - LEFT - RIGHT) * ((f64)ix + 0.5) / (f64)frame->n;
}

static f64 y_of(const struct frame *frame, f64 value)
{
	return TOP + (HEIGHT - TOP - BOTTOM) * (frame->high - value) / (frame->high - frame->low);
}

static struct frame frame_of(const struct lull_history_series *s)
{
	const struct lull_history_point *points = s->points.at;
	struct frame frame = { points[0].value, points[0].value, s->points.n };
	f64 margin;

	for (size_t i = 0; i < s->points.n; i++) {
		frame.low = fmin(frame.low, points[i].value);
		frame.high = fmax(frame.high, points[i].value);
	}
	margin = 0.05 * (frame.high - frame.low);
	margin = margin > 0 ? margin : frame.high != 0 ? fabs(frame.high) * 0.05 : 1;
	frame.low -= margin;
	frame.high += margin;
	return frame;
}

static void draw_grid(const struct lull_history_series *s, const struct frame *frame, FILE *to)
{
	for (int i = 0; i <= N_GRID; i++) {
		f64 value = frame->low + (frame->high - frame->low) * i / N_GRID;
		f64 y = y_of(frame, value);
		char label[48];

		lull_metric_value(s->metric, value > 0 ? value : 0, label, sizeof(label));
		fprintf(to,
			"<line class=\"grid\" x1=\"%g\" x2=\"%g\" y1=\"%.1f\" y2=\"%.1f\"/>"
			"<text x=\"%g\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
			LEFT, WIDTH - RIGHT, y, y, LEFT - 8, y + 4, label);
	}
}

static void draw_level(const struct frame *frame, size_t from, size_t to_ix, f64 value, FILE *to)
{
	fprintf(to, "<line class=\"level\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n",
		x_of(frame, from), x_of(frame, to_ix), y_of(frame, value), y_of(frame, value));
}

static void draw_changes(const struct lull_history_series *s, const struct frame *frame, FILE *to)
{
	const struct lull_changepoint *changes = s->changes.all.at;
	size_t n = s->changes.all.n;

	for (size_t i = 0; i < n; i++) {
		f64 x = (x_of(frame, changes[i].ix - 1) + x_of(frame, changes[i].ix)) / 2;

		fprintf(to,
			"<line class=\"change\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%g\" y2=\"%g\"/>"
			"<text x=\"%.1f\" y=\"%g\" text-anchor=\"middle\">%zu</text>\n",
			x, x, TOP, HEIGHT - BOTTOM, x, HEIGHT - 8, i + 1);
		if (!i)
			draw_level(frame, 0, changes[i].ix - 1, changes[i].before, to);
		draw_level(frame, changes[i].ix,
			   i + 1 < n ? changes[i + 1].ix - 1 : s->points.n - 1, changes[i].after,
			   to);
	}
}

static void draw_points(const struct lull_history_series *s, const struct frame *frame, FILE *to)
{
	const struct lull_history_point *points = s->points.at;

	for (size_t i = 0; i < s->points.n; i++) {
		char value[48];

		lull_metric_value(s->metric, points[i].value, value, sizeof(value));
		fprintf(to, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\"><title>", x_of(frame, i),
			y_of(frame, points[i].value));
		put_escaped(points[i].commit, to);
		fputc(' ', to);
		put_day(points[i].date, to);
		fprintf(to, ": %s</title></circle>\n", value);
	}
}

static void list_changes(const struct lull_history_series *s, FILE *to)
{
	const struct lull_changepoint *changes = s->changes.all.at;
	const struct lull_history_point *points = s->points.at;

	if (!s->changes.all.n) {
		fputs("<p>No change found.</p>\n", to);
		return;
	}
	fputs("<table>\n<tr><th></th><th>commit</th><th>date</th><th>change</th></tr>\n", to);
	for (size_t i = 0; i < s->changes.all.n; i++) {
		const struct lull_history_point *at = &points[changes[i].ix];
		struct lull_str text = LULL_STR_INIT;

		lull_history_say(s, &changes[i], &text);
		fprintf(to, "<tr><td>%zu</td><td><code>", i + 1);
		put_escaped(lull_history_short(at->commit).text, to);
		fputs("</code></td><td>", to);
		put_day(at->date, to);
		fputs("</td><td>", to);
		put_escaped(lull_str_text(&text), to);
		fputs("</td></tr>\n", to);
		lull_str_release(&text);
	}
	fputs("</table>\n", to);
}

static void draw_series(const struct lull_history_series *s, FILE *to)
{
	struct frame frame;

	fputs("<h2>", to);
	put_escaped(s->spec, to);
	fprintf(to, ", %zu commits</h2>\n", s->points.n);
	if (!s->points.n)
		return;
	frame = frame_of(s);
	fprintf(to, "<svg viewBox=\"0 0 %g %g\" role=\"img\">\n", WIDTH, HEIGHT);
	draw_grid(s, &frame, to);
	draw_changes(s, &frame, to);
	draw_points(s, &frame, to);
	fputs("</svg>\n", to);
	list_changes(s, to);
}

void lull_history_html(const struct lull_history *h, const struct lull_history_series *all,
		       size_t n, FILE *to)
{
	const struct lull_history_run *runs = h->runs.at;

	fputs(head, to);
	fputs("<title>lull: history of ", to);
	put_escaped(h->runs.n ? runs[0].program : "", to);
	fputs("</title>\n<h1>", to);
	put_escaped(h->runs.n ? runs[0].program : "", to);
	fputs("</h1>\n<p>", to);
	put_escaped(h->runs.n ? runs[0].device : "", to);
	fprintf(to, "%s%zu runs</p>\n", h->runs.n && *runs[0].device ? ", " : "", h->runs.n);
	for (size_t i = 0; i < n; i++)
		draw_series(&all[i], to);
}
