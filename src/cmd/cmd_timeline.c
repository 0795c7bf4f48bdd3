/*
 * lull timeline - a few steps of a recording as a picture in the terminal.
 */
#include "cmd/cmd.h"

#include <stdio.h>
#include <sys/stat.h>

#include "cause/why.h"
#include "cmd/losses.h"
#include "cmd/timeline_draw.h"
#include "import/import.h"
#include "text/opt.h"
#include "text/term.h"

#define DEFAULT_STEPS 3
#define MAX_STEPS     1000u

struct timeline_words {
	u64 step, n_steps, width;
	bool is_ascii;
};

static int draw(const char *path, const struct timeline_words *w, struct lull_err *err)
{
	struct lull_timeline_look look = { .step = w->step, .n_steps = (u32)w->n_steps };
	struct lull_why_options options = { .path = path };
	struct lull_reader *r;
	struct lull_why why;
	int rc;

	look.width = w->width ? (int)w->width : lull_term_width(stdout);
	look.is_ascii = w->is_ascii || !lull_term_is_utf8();
	look.has_colour = lull_term_has_colour(stdout);
	if (!look.n_steps)
		look.n_steps = w->step == LULL_TIMELINE_NO_STEP ? DEFAULT_STEPS : 1;
	if (lull_import_open(path, &r, err))
		return err->code;
	lull_losses_warn_cut(r);
	rc = lull_why_run(&why, r, &options, err);
	if (!rc)
		rc = lull_timeline_draw(stdout, &why, &look, err);
	if (rc)
		lull_err_wrap(err, "%s", path);
	lull_why_release(&why);
	lull_reader_close(r);
	return rc;
}

int cmd_timeline(int argc, char **argv, struct lull_err *err)
{
	struct timeline_words w = { .step = LULL_TIMELINE_NO_STEP };
	const struct lull_opt opts[] = {
		OPT_USAGE(
			"lull timeline [OPTIONS] FILE",
			"Draw a few steps of a recording in the terminal: what the device ran, why "
			"it was idle, what threads did."),
		OPT_U64(0, "step", "N", &w.step, "show step N (default: some usual ones)"),
		OPT_U64('n', "steps", "N", &w.n_steps,
			"show N steps (default: 3, or 1 with --step)"),
		OPT_U64(0, "width", "N", &w.width, "columns (default: the terminal's)"),
		OPT_FLAG(0, "ascii", &w.is_ascii, "only characters of ASCII"),
		OPT_END(),
	};
	int first = lull_opt_parse(argc, argv, opts, err);
	struct stat st;

	if (first < 0)
		return first;
	if (argc - first != 1)
		return lull_fail(err, LULL_E_USAGE,
				 "expected one report; see lull timeline --help");
	if (w.width && (w.width < LULL_TERM_MIN_WIDTH || w.width > MAX_STEPS))
		return lull_fail(err, LULL_E_USAGE, "option --width: from %d to %u columns",
				 LULL_TERM_MIN_WIDTH, MAX_STEPS);
	if (w.n_steps > MAX_STEPS)
		return lull_fail(err, LULL_E_USAGE, "option --steps: at most %u", MAX_STEPS);
	if (stat(argv[first], &st) == 0 && S_ISDIR(st.st_mode))
		return lull_fail(err, LULL_E_USAGE,
				 "%s is a folder; give one of the reports in it, or see all ranks "
				 "with lull view",
				 argv[first]);
	return draw(argv[first], &w, err);
}
