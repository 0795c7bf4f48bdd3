#include "record/session/record_progress.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "text/term.h"

/* The descriptor of the program is the terminal we would draw on; so it is if nobody can tell. */
static bool is_on_screen(pid_t pid, int fd)
{
	struct stat ours, theirs;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
	if (stat(path, &theirs) != 0)
		return errno != ENOENT;
	return fstat(STDERR_FILENO, &ours) != 0 ||
	       (S_ISCHR(theirs.st_mode) && theirs.st_rdev == ours.st_rdev);
}

void lull_progress_recording(struct lull_progress *p, const struct lull_progress_state *state)
{
	struct lull_str line = LULL_STR_INIT;

	if (!lull_progress_is_due(p) || !state->pid || is_on_screen(state->pid, STDOUT_FILENO) ||
	    is_on_screen(state->pid, STDERR_FILENO))
		return;
	lull_str_addf(&line, "%s  %s events  %s", lull_format_ns(p->drawn_ns - p->begin_ns).text,
		      lull_format_count(state->n_events).text,
		      lull_format_bytes(state->written_bytes).text);
	if (state->n_lost)
		lull_str_addf(&line, "  %s lost", lull_format_count(state->n_lost).text);
	lull_progress_draw(p, lull_str_text(&line));
	lull_str_release(&line);
}
