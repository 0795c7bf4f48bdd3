#include "text/strip.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/time.h"
#include "text/term.h"

#define LEVELS 8

/* Columns between two marks of a ruler, at least. */
#define MARK_COLUMNS 9

void lull_strip_init(struct lull_strip *s, u64 from_ns, u64 to_ns, size_t n)
{
	*s = (struct lull_strip){ .from_ns = from_ns, .to_ns = to_ns, .n = n };
	s->cells = lull_alloc(n + 1, sizeof(*s->cells));
}

void lull_strip_release(struct lull_strip *s)
{
	free(s->cells);
	s->cells = NULL;
}

static f64 cell_ns(const struct lull_strip *s)
{
	return (f64)(s->to_ns - s->from_ns) / (f64)s->n;
}

size_t lull_strip_cell(const struct lull_strip *s, u64 at_ns)
{
	size_t cell;

	if (at_ns < s->from_ns || at_ns >= s->to_ns)
		return s->n;
	cell = (size_t)((f64)(at_ns - s->from_ns) / cell_ns(s));
	return cell < s->n ? cell : s->n - 1;
}

void lull_strip_add(struct lull_strip *s, u64 from_ns, u64 to_ns)
{
	f64 width = cell_ns(s), from, to;

	from_ns = from_ns > s->from_ns ? from_ns : s->from_ns;
	to_ns = to_ns < s->to_ns ? to_ns : s->to_ns;
	if (from_ns >= to_ns)
		return;
	s->sum_ns += (f64)(to_ns - from_ns);
	from = (f64)(from_ns - s->from_ns) / width;
	to = (f64)(to_ns - s->from_ns) / width;
	for (size_t i = lull_strip_cell(s, from_ns); i < s->n && (f64)i < to; i++)
		s->cells[i] += fmin(to, (f64)i + 1) - fmax(from, (f64)i);
}

void lull_strip_blocks(struct lull_str *to, const struct lull_strip *s, bool is_ascii)
{
	static const char *const eighths[LEVELS + 1] = {
		" ",
		"\xe2\x96\x81",
		"\xe2\x96\x82",
		"\xe2\x96\x83",
		"\xe2\x96\x84",
		"\xe2\x96\x85",
		"\xe2\x96\x86",
		"\xe2\x96\x87",
		"\xe2\x96\x88",
	};
	static const char *const ascii[LEVELS + 1] = {
		" ", ".", ":", "-", "=", "+", "*", "%", "#"
	};

	for (size_t i = 0; i < s->n; i++) {
		f64 part = fmin(s->cells[i], 1);
		int level = (int)lround(part * LEVELS);

		/* What is there at all is seen. */
		if (!level && part > 1e-9)
			level = 1;
		lull_str_puts(to, is_ascii ? ascii[level] : eighths[level]);
	}
}

/* 1, 2 or 5 times a power of ten, at least `least`. */
static u64 round_up(f64 least)
{
	static const u64 steps[] = { 1, 2, 5 };

	for (u64 power = 1;; power *= 10) {
		for (size_t i = 0; i < LULL_COUNT_OF(steps); i++) {
			if ((f64)(steps[i] * power) >= least || power > UINT64_MAX / 100)
				return steps[i] * power;
		}
	}
}

void lull_strip_ruler(struct lull_str *to, u64 dur_ns, size_t n)
{
	static const struct {
		const char *name;
		u64 ns;
	} units[] = { { "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", LULL_NS_PER_S } };
	u64 mark_ns = round_up((f64)dur_ns * MARK_COLUMNS / (f64)n);
	size_t unit = 0, from = to->len;

	while (unit + 1 < LULL_COUNT_OF(units) && mark_ns >= units[unit + 1].ns)
		unit++;
	for (u64 at_ns = 0; at_ns < dur_ns; at_ns += mark_ns) {
		size_t column = (size_t)((f64)at_ns * (f64)n / (f64)dur_ns);
		char mark[48];
		int len = snprintf(mark, sizeof(mark), "|%llu%s%s",
				   (unsigned long long)(at_ns / units[unit].ns), at_ns ? "" : " ",
				   at_ns ? "" : units[unit].name);

		if (column + (size_t)len > n)
			break;
		while (to->len - from < column)
			lull_str_add(to, " ", 1);
		lull_str_puts(to, mark);
	}
	while (to->len - from < n)
		lull_str_add(to, " ", 1);
}
