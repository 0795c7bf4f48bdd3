/*
 * lull timeline - a few steps of a recording as a picture in the terminal.
 */
#include "cmd/cmd.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "cause/why.h"
#include "cmd/losses.h"
#include "cmd/sink.h"
#include "cmd/timeline_draw.h"
#include "import/import.h"
#include "text/opt.h"
#include "text/term.h"
#include "text/text_png.h"

#define DEFAULT_STEPS 3
#define MAX_STEPS     1000u
/* Columns of a picture: as wide as a screen, and still readable when it is shrunk. */
#define PNG_WIDTH 140

struct timeline_words {
	u64 step, n_steps, width;
	const char *png; /* where a picture goes, - for standard output; NULL: text */
	bool is_ascii, is_overwriting;
};

/* What the drawing looks like on a terminal, as a picture. */
static int draw_png(const struct lull_why *why, struct lull_timeline_look *look,
		    const struct timeline_words *w, struct lull_err *err)
{
	struct lull_sink sink;
	char *text = NULL;
	size_t len;
	FILE *to = lull_memstream(&text, &len);
	int rc;

	look->is_ascii = false;
	look->has_colour = true;
	look->width = w->width ? (int)w->width : PNG_WIDTH;
	rc = lull_timeline_draw(to, why, look, err);
	fclose(to);
	if (!rc)
		rc = lull_sink_open(&sink, w->png, w->is_overwriting, err);
	if (!rc) {
		lull_text_png(sink.to, text, len);
		rc = lull_sink_close(&sink, err);
	}
	free(text);
	return rc;
}

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
	if (!rc && w->png)
		rc = draw_png(&why, &look, w, err);
	else if (!rc)
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
		OPT_STR(0, "png", "FILE", &w.png,
			"write it as a picture, - for standard output, 140 columns wide"),
		OPT_BOOL('f', "force-overwrite", &w.is_overwriting,
			 "replace a picture of that name"),
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
