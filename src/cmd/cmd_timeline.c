/*
 * lull timeline - a few steps of a recording, or of a job, as a picture in the terminal.
 */
#include "cmd/cmd.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cause/why.h"
#include "cmd/job/job_print.h"
#include "cmd/losses.h"
#include "cmd/sink.h"
#include "cmd/timeline/job_timeline.h"
#include "cmd/timeline/timeline_draw.h"
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

/* A report or a job, to be drawn: one of both. */
struct drawn {
	const struct lull_why *why;
	const struct lull_job *job;
};

static int draw_to(FILE *to, const struct drawn *what, const struct lull_timeline_look *look,
		   struct lull_err *err)
{
	return what->job ? lull_job_timeline_draw(to, what->job, look, err)
			 : lull_timeline_draw(to, what->why, look, err);
}

/* What the drawing looks like on a terminal, as a picture. */
static int draw_png(const struct drawn *what, struct lull_timeline_look *look,
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
	rc = draw_to(to, what, look, err);
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

static int draw(const struct drawn *what, const struct timeline_words *w, struct lull_err *err)
{
	struct lull_timeline_look look = { .step = w->step, .n_steps = (u32)w->n_steps };

	look.width = w->width ? (int)w->width : lull_term_width(stdout);
	look.is_ascii = w->is_ascii || !lull_term_is_utf8();
	look.has_colour = lull_term_has_colour(stdout);
	if (!look.n_steps)
		look.n_steps = w->step == LULL_TIMELINE_NO_STEP ? DEFAULT_STEPS : 1;
	return w->png ? draw_png(what, &look, w, err) : draw_to(stdout, what, &look, err);
}

static int draw_report(const char *path, const struct timeline_words *w, struct lull_err *err)
{
	struct lull_why_options options = { .path = path };
	struct lull_reader *r;
	struct lull_why why;
	int rc;

	if (lull_sink_spare_input(w->png, path, err) || lull_import_open(path, &r, err))
		return err->code;
	lull_losses_warn_cut(r, path);
	rc = lull_why_run(&why, r, &options, err);
	if (!rc)
		rc = draw(&(struct drawn){ .why = &why }, w, err);
	if (rc)
		lull_err_wrap(err, "%s", path);
	lull_why_release(&why);
	lull_losses_close(r, path);
	return rc;
}

static int draw_job(const char *path, const struct timeline_words *w, struct lull_err *err)
{
	struct lull_job job;
	int rc = lull_job_open(&job, path, NULL, err);

	if (!rc)
		rc = lull_job_run(&job, err);
	if (!rc && lull_team_speaks(&job.team)) {
		lull_job_print_notes(stderr, &job, lull_term_width(stderr));
		rc = draw(&(struct drawn){ .job = &job }, w, err);
		if (rc)
			lull_err_wrap(err, "%s", path);
	}
	rc = lull_job_status(&job, rc);
	lull_job_release(&job);
	return rc;
}

int cmd_timeline(int argc, char **argv, struct lull_err *err)
{
	struct timeline_words w = { .step = LULL_TIMELINE_NO_STEP };
	const struct lull_opt opts[] = {
		OPT_USAGE(
			"lull timeline [OPTIONS] FILE|FOLDER",
			"Draw a few steps of a recording in the terminal: what the device ran, why "
			"it was idle, what threads did; or of a folder of rank reports, a line for "
			"each rank."),
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
	return lull_job_is_folder(argv[first]) ? draw_job(argv[first], &w, err)
					       : draw_report(argv[first], &w, err);
}
