#include "launch/progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "base/term.h"
#include "base/time.h"

/* Four redraws a second: looks alive, costs nothing, and does not flicker over slow connections. */
#define INTERVAL_NS (LULL_NS_PER_S / 4)

/* Recordings shorter than this end before anybody wonders what is going on. */
#define FIRST_NS (LULL_NS_PER_S)

/* To the first column, and erase up to the end of the line. */
#define ERASE "\r\033[K"

void lull_progress_init(struct lull_progress *p, bool is_quiet)
{
	*p = (struct lull_progress){ .begin_ns = lull_now_ns() };
	p->is_on = !is_quiet && lull_term_is_tty(stderr);
}

/* In one write, so that lines of the recorded program do not end up in the middle of it. */
static void put(const char *text, size_t len)
{
	if (write(STDERR_FILENO, text, len) < 0)
		return;
}

void lull_progress_write(struct lull_progress *p, const struct lull_progress_state *state)
{
	u64 now_ns = p->is_on ? lull_now_ns() : 0;
	struct lull_str line = LULL_STR_INIT;

	if (!p->is_on || now_ns - p->begin_ns < FIRST_NS || now_ns - p->drawn_ns < INTERVAL_NS)
		return;
	lull_str_addf(&line, ERASE "lull: %s  %s events  %s",
		      lull_format_ns(now_ns - p->begin_ns).text,
		      lull_format_count(state->n_events).text,
		      lull_format_bytes(state->written_bytes).text);
	if (state->n_lost)
		lull_str_addf(&line, "  %s lost", lull_format_count(state->n_lost).text);
	put(line.at, line.len);
	lull_str_release(&line);
	p->is_drawn = true;
	p->drawn_ns = now_ns;
}

void lull_progress_clear(struct lull_progress *p)
{
	if (!p->is_drawn)
		return;
	put(ERASE, strlen(ERASE));
	p->is_drawn = false;
	p->drawn_ns = 0;
}
