#include "text/progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/convert.h"
#include "text/term.h"
#include "base/time.h"

/* Four redraws a second: looks alive, costs nothing, and does not flicker over slow connections. */
#define INTERVAL_NS (LULL_NS_PER_S / 4)

/* What is over sooner ends before anybody wonders what is going on. */
#define FIRST_NS (LULL_NS_PER_S)

/* To the first column, and erase up to the end of the line. */
#define ERASE "\r\033[K"

void lull_progress_init(struct lull_progress *p, bool is_quiet)
{
	*p = (struct lull_progress){ .begin_ns = lull_now_ns() };
	p->phase_ns = p->begin_ns;
	p->is_quiet = is_quiet;
	p->is_on = !is_quiet && lull_term_is_tty(stderr);
}

void lull_progress_begin(struct lull_progress *p, const char *what, const char *unit, u64 total)
{
	p->what = what;
	p->unit = unit;
	p->total = total;
	p->phase_ns = p->is_on ? lull_now_ns() : 0;
}

/* Who is in the background of a shell draws over what others show there, or is stopped for it. */
static bool is_in_background(void)
{
	pid_t group = tcgetpgrp(STDERR_FILENO);

	return group >= 0 && group != getpgrp();
}

bool lull_progress_is_due(struct lull_progress *p)
{
	u64 now_ns = p->is_on ? lull_now_ns() : 0;

	if (!p->is_on || now_ns - p->begin_ns < FIRST_NS || now_ns - p->drawn_ns < INTERVAL_NS)
		return false;
	p->drawn_ns = now_ns;
	return !is_in_background();
}

/* In one write, so that lines of other programs do not end up in the middle of it. */
static void put(const char *text, size_t len)
{
	if (write(STDERR_FILENO, text, len) < 0)
		return;
}

void lull_progress_draw(struct lull_progress *p, const char *text)
{
	struct lull_str line = LULL_STR_INIT;

	lull_str_addf(&line, ERASE "lull: %s", text);
	put(line.at, line.len);
	lull_str_release(&line);
	p->is_drawn = true;
}

void lull_progress_clear(struct lull_progress *p)
{
	if (!p->is_drawn)
		return;
	put(ERASE, strlen(ERASE));
	p->is_drawn = false;
	p->drawn_ns = 0;
}

void lull_progress_say(struct lull_progress *p, const char *text)
{
	struct lull_str line = LULL_STR_INIT;

	if (p->is_quiet)
		return;
	lull_progress_clear(p);
	lull_str_addf(&line, "lull: %s\n", text);
	put(line.at, line.len);
	lull_str_release(&line);
}

void lull_progress_format(struct lull_str *to, const struct lull_progress *p, u64 done, u64 dur_ns)
{
	f64 per_ns = dur_ns ? (f64)done / (f64)dur_ns : 0;
	u64 rate = lull_u64_of(per_ns * (f64)LULL_NS_PER_S);

	lull_str_puts(to, p->what);
	if (p->total)
		lull_str_addf(to, "  %u %%",
			      done < p->total ? (unsigned)(100 * (f64)done / (f64)p->total) : 100);
	if (!p->unit)
		lull_str_addf(to, "  %s/s", lull_format_bytes(rate).text);
	else
		lull_str_addf(to, "  %s %s/s", lull_format_count(rate).text, p->unit);
	if (done < p->total && per_ns > 0) {
		f64 left_ns = (f64)(p->total - done) / per_ns;

		/* A century is as good as any longer time, and fits. */
		if (left_ns < 3.2e18)
			lull_str_addf(to, "  %s left", lull_format_ns((u64)left_ns).text);
	}
}

void lull_progress_at(struct lull_progress *p, u64 done)
{
	struct lull_str line = LULL_STR_INIT;

	if (!lull_progress_is_due(p))
		return;
	lull_progress_format(&line, p, done, p->drawn_ns - p->phase_ns);
	lull_progress_draw(p, lull_str_text(&line));
	lull_str_release(&line);
}
