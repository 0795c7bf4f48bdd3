#include "launch/progress.h"

#include "base/str.h"
#include "base/term.h"

void lull_progress_recording(struct lull_progress *p, const struct lull_progress_state *state)
{
	struct lull_str line = LULL_STR_INIT;

	if (!lull_progress_is_due(p))
		return;
	lull_str_addf(&line, "%s  %s events  %s", lull_format_ns(p->drawn_ns - p->begin_ns).text,
		      lull_format_count(state->n_events).text,
		      lull_format_bytes(state->written_bytes).text);
	if (state->n_lost)
		lull_str_addf(&line, "  %s lost", lull_format_count(state->n_lost).text);
	lull_progress_draw(p, lull_str_text(&line));
	lull_str_release(&line);
}
