/*
 * roofline: operations a second against what the chip can compute and move, with a chart.
 *
 * The chart is LULL_CHART_WIDTH columns wide, both axes logarithmic. "/" are the slopes of DRAM, L2
 * and L1, "-" the ceilings of the types the kernel computes with, D, 2 and 1 its points.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "counter/roofline.h"
#include "counter/section.h"

#define WIDTH  60
#define HEIGHT 15
/* On each side of the place where DRAM meets the ceiling; further out nothing changes any more. */
#define DECADES	     3
#define MOST_DECADES 24

struct chart {
	char at[HEIGHT][WIDTH + 1];
	f64 x0, x1, y0, y1; /* decimal logarithms */
};

/* What lies beyond the edge is drawn on it. */
static int column(const struct chart *c, f64 x)
{
	f64 at = (log10(x) - c->x0) / (c->x1 - c->x0);

	return (int)lround(fmin(1, fmax(0, at)) * (WIDTH - 1));
}

static int row(const struct chart *c, f64 y)
{
	f64 above = (log10(y) - c->y0) / (c->y1 - c->y0) * (HEIGHT - 1);

	return HEIGHT - 1 - (int)lround(fmin(HEIGHT, fmax(-1, above)));
}

static f64 at_column(const struct chart *c, int x)
{
	return pow(10, c->x0 + (c->x1 - c->x0) * x / (WIDTH - 1));
}

static void plot(struct chart *c, int x, int y, char mark)
{
	if (x >= 0 && x < WIDTH && y >= 0 && y < HEIGHT)
		c->at[y][x] = mark;
}

static f64 top_ceiling(const struct lull_roofline *r)
{
	f64 top = 0;

	for (int i = 0; i < LULL_N_CEILINGS; i++)
		if (lull_roofline_shows(r, i))
			top = fmax(top, r->ceiling[i]);
	return top;
}

/* Whole decades around all points and the place where DRAM meets the highest ceiling. */
static bool scale(struct chart *c, const struct lull_roofline *r)
{
	f64 top = top_ceiling(r), knee = top / r->slope[LULL_SLOPE_dram];
	f64 low = knee / 10, high = knee * 10, bottom = r->rate;

	for (int i = 0; i < LULL_N_SLOPES; i++)
		if (!isnan(r->intensity[i])) {
			low = fmin(low, r->intensity[i] / 2);
			high = fmax(high, r->intensity[i] * 2);
		}
	c->x0 = fmax(floor(log10(low)), floor(log10(knee)) - DECADES);
	c->x1 = fmin(ceil(log10(high)), ceil(log10(knee)) + DECADES);
	c->y1 = ceil(log10(top));
	c->y0 = floor(log10(fmin(bottom, pow(10, c->x0) * r->slope[LULL_SLOPE_dram])));
	/* Numbers that no chip has would make axes that no screen has. */
	return c->x0 > -MOST_DECADES && c->x1 < MOST_DECADES && c->x0 < c->x1 &&
	       c->y0 > -MOST_DECADES && c->y1 < MOST_DECADES && c->y0 < c->y1;
}

static void draw_roofs(struct chart *c, const struct lull_roofline *r)
{
	f64 top = top_ceiling(r);

	for (int x = 0; x < WIDTH; x++) {
		f64 intensity = at_column(c, x);

		for (int i = 0; i < LULL_N_SLOPES; i++)
			if (intensity * r->slope[i] <= top)
				plot(c, x, row(c, intensity * r->slope[i]), '/');
		for (int i = 0; i < LULL_N_CEILINGS; i++)
			if (lull_roofline_shows(r, i) &&
			    intensity * fmax(r->slope[LULL_SLOPE_dram], r->slope[LULL_SLOPE_l1]) >=
				    r->ceiling[i])
				plot(c, x, row(c, r->ceiling[i]), '-');
	}
}

/* "0.01", "1", "10 k"; returns its length. */
static int decade_text(f64 decade, char to[16])
{
	static const char *const units[] = { "", "k", "M", "G", "T", "P" };
	int power = (int)lround(decade), unit = power / 3;

	if (power < 0)
		return snprintf(to, 16, "%.*f", -power > 6 ? 6 : -power, pow(10, power));
	if (unit >= (int)LULL_COUNT_OF(units))
		return snprintf(to, 16, "1e%d", power);
	return snprintf(to, 16, "%.*s%s", power % 3 + 1, "100", units[unit]);
}

/* "10 T" at the left of each decade, the rest of the lines without. */
static void axis(const struct chart *c, int y, char to[16])
{
	f64 decade = c->y0 + (c->y1 - c->y0) * (HEIGHT - 1 - y) / (HEIGHT - 1);
	f64 nearest = round(decade);

	to[0] = 0;
	if (fabs(decade - nearest) <= (c->y1 - c->y0) / (HEIGHT - 1) / 2 - 1e-9 &&
	    row(c, pow(10, nearest)) == y)
		decade_text(nearest, to);
}

static void put_axis(const struct chart *c, struct lull_sheet *to)
{
	char line[WIDTH + 40];
	int end = 0; /* no label before this column */

	memset(line, ' ', sizeof(line));
	for (int decade = (int)c->x0; decade <= (int)c->x1; decade++) {
		int x = column(c, pow(10, decade));
		char text[16];
		int len = decade_text(decade, text);

		x = x + len > WIDTH ? WIDTH - len : x;
		if (x < end)
			continue;
		memcpy(&line[10 + x], text, (size_t)len);
		end = x + len + 1;
	}
	line[10 + WIDTH] = 0;
	lull_sheet_draw(to, line);
}

static void put_chart(const struct lull_roofline *r, struct lull_sheet *to)
{
	static const char marks[LULL_N_SLOPES] = { 'D', '2', '1' };
	struct chart c;

	if (!scale(&c, r))
		return;
	memset(c.at, ' ', sizeof(c.at));
	draw_roofs(&c, r);
	for (int i = LULL_N_SLOPES; i-- > 0;)
		if (!isnan(r->intensity[i]))
			plot(&c, column(&c, r->intensity[i]), row(&c, r->rate), marks[i]);
	for (int y = 0; y < HEIGHT; y++) {
		char label[16], line[WIDTH + 32];
		int len = WIDTH;

		axis(&c, y, label);
		while (len > 0 && c.at[y][len - 1] == ' ')
			len--;
		snprintf(line, sizeof(line), "%8s |%.*s", label, len, c.at[y]);
		lull_sheet_draw(to, line);
	}
	put_axis(&c, to);
	lull_sheet_draw(
		to, "          FLOP/s over FLOP a byte; D, 2 and 1: the kernel at DRAM, L2 and L1");
}

static void put(struct lull_sheet *to, const char *label, f64 value, const char *unit,
		const char *note)
{
	lull_sheet_put(to,
		       &(struct lull_sheet_line){ .kind = LULL_SHEET_VALUE,
						  .label = label,
						  .key = "",
						  .value = value,
						  .unit = unit },
		       note);
}

static void put_points(const struct lull_roofline *r, struct lull_sheet *to)
{
	char note[160];

	for (int i = 0; i < LULL_N_SLOPES; i++) {
		if (isnan(r->intensity[i]))
			continue;
		snprintf(note, sizeof(note), "%.1f %% of %s, its roof by %s",
			 100 * r->rate / r->roof[i], lull_k_format(r->roof[i], "FLOP/s").text,
			 lull_k_format(r->slope[i], "B/s").text);
		put(to, lull_slope_names[i], r->intensity[i], "FLOP/B",
		    isnan(r->roof[i]) ? "" : note);
	}
}

/* Those the kernel computes with are drawn; the others are for comparison. */
static void put_ceilings(const struct lull_roofline *r, struct lull_sheet *to)
{
	struct lull_str others = LULL_STR_INIT;
	char note[96];

	for (int i = 0; i < LULL_N_CEILINGS; i++) {
		const char *name = lull_ceiling_names[i];

		if (!(r->ceiling[i] > 0))
			continue;
		if (!lull_roofline_shows(r, i)) {
			lull_str_addf(&others, "%s%s %s", others.len ? ", " : "", name,
				      lull_k_format(r->ceiling[i], "FLOP/s").text);
			continue;
		}
		snprintf(note, sizeof(note), "ceiling; it computed %s",
			 lull_k_format(r->ops[i], "FLOP").text);
		put(to, name, r->ceiling[i], "FLOP/s", note);
	}
	if (others.len)
		lull_sheet_say(to, "Other ceilings: %s.", others.at);
	lull_str_release(&others);
}

static void say(const struct lull_roofline *r, struct lull_sheet *to)
{
	f64 left = r->bound >= 0 ? r->roof[r->bound] / r->rate : NAN;
	bool is_flat;

	if (isnan(left))
		return;
	is_flat = r->roof[r->bound] >= r->ceiling[r->type] * 0.999;
	if (left < 1.5)
		lull_sheet_say(to, "It runs within %.0f %% of its roof, %s of %s.",
			       100 * fmax(0, left - 1), is_flat ? "the ceiling" : "the slope",
			       is_flat ? lull_ceiling_names[r->type] : lull_slope_names[r->bound]);
	else
		lull_sheet_say(to,
			       "It lies %.1f times below its roof, %s of %s: something else than "
			       "%s holds it back.",
			       left, is_flat ? "the ceiling" : "the slope",
			       is_flat ? lull_ceiling_names[r->type] : lull_slope_names[r->bound],
			       is_flat ? "arithmetic" : "bandwidth");
}

static void run(const struct lull_profile *p, struct lull_sheet *to)
{
	struct lull_roofline r;

	lull_roofline_of(&r, p);
	if (isnan(r.rate)) {
		to->n_missing++;
		return;
	}
	put(to, "Achieved", r.rate, "FLOP/s", r.type >= 0 ? lull_ceiling_names[r.type] : "");
	if (r.type < 0) {
		lull_sheet_say(to, "It does no floating-point arithmetic, so it has no place under "
				   "the roof.");
		return;
	}
	put_points(&r, to);
	put_ceilings(&r, to);
	say(&r, to);
	if (top_ceiling(&r) > 0 && r.slope[LULL_SLOPE_dram] > 0 && r.rate > 0)
		put_chart(&r, to);
}

const struct lull_section lull_section_roofline = {
	.name = "roofline",
	.title = "Roofline",
	.what = "operations a second, against what the chip can compute and move",
	.run = run,
};
