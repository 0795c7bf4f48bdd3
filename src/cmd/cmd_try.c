/*
 * lull try - put fixes into a program without changing it, run it, and say what they bring.
 */
#include "cmd/cmd.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/duration.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include "base/whole_file.h"
#include "cmd/schema_json.h"
#include "record/session/locate.h"
#include "text/opt.h"
#include "text/term.h"
#include "try/try.h"

/* What a shell reports for a command that ^C has ended. */
#define INTERRUPTED 130

/* The user has not said how many steps. */
#define NOT_GIVEN UINT64_MAX

enum { FORMAT_TEXT, FORMAT_JSON, FORMAT_MARKDOWN };
static const char *const formats[] = { "text", "json", "markdown", NULL };

struct words {
	struct lull_try_options o;
	const char *budget, *patch;
	int format;
	bool is_forced, wants_list;
};

/* ---- JSON ---- */

static const struct lull_property gain_members[] = {
	{ "ratio", "number", "times as fast", NULL },
	{ "low", "number", "lower end of the 90 % interval", NULL },
	{ "high", "number", "upper end", NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct lull_property place_members[] = {
	{ "remedy", "string", "which one", NULL },
	{ "file", "string", "of the program", NULL },
	{ "line", "integer", "1-based", NULL },
	{ "text", "string", "what to write there", NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct lull_property entry_members[] = {
	{ "remedies", "array", "names; none in the baseline", NULL },
	{ "verdict", "string",
	  "baseline, gain, none, slower, unsure, nothing to change, differs, failed, hung, not "
	  "tried",
	  NULL },
	{ "why", "string|null", "what went wrong", NULL },
	{ "step_ns", "number|null", "median step, or request", NULL },
	{ "p99_ns", "number|null", "of requests, with --client: 99 of 100 take less", NULL },
	{ "gain", "object|null", "over the baseline; null if not measured", gain_members },
	{ "predicted", "number|null", "by lull why, times as fast", NULL },
	{ "promise", "number|null",
	  "the order of `tried`: the prediction, or where lull why cannot tell, times as fast if "
	  "all "
	  "that it is for were gone",
	  NULL },
	{ "runs", "integer", "runs that were measured", NULL },
	{ "difference", "number|null",
	  "largest difference of losses, as a share; null if there are none", NULL },
	{ "ready_ns", "integer", "from the start to the first measured step", NULL },
	{ "device_bytes", "integer", "peak of the memory that PyTorch reserved", NULL },
	{ "rss_bytes", "integer", "peak memory of the largest process", NULL },
	{ "places", "array", "where the program would be changed", place_members },
	{ "notes", "array", "what remedies say about their effect, such as why graphs break",
	  NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct lull_property document[] = {
	{ "baseline", "object", "the program as it is", entry_members },
	{ "tried", "array", "what was tried", entry_members },
	{ "best", "integer|null", "index of the best in `tried`; null if nothing gains", NULL },
	{ "chosen_by", "string|null", "how remedies were chosen", NULL },
	{ "steps_by", "string|null",
	  "what a step is, where the program marks none: a sentence; null if it does", NULL },
	{ "noise", "number", "of runs of the baseline: standard deviation over mean", NULL },
	{ "loss_drift", "number", "largest difference of losses between runs of the baseline",
	  NULL },
	{ "steps", "integer",
	  "measured steps of a run, or calls of the model; 0 where whole runs are compared", NULL },
	{ "stopped", "boolean", "the user stopped it", NULL },
	{ "over_budget", "boolean", "the budget was spent before the end", NULL },
	{ "runs", "integer", "of the program, in all", NULL },
	{ "forked_runs", "integer", "of these: forked where the program's import of PyTorch ends",
	  NULL },
	{ "not_forked", "string|null", "why they were not, where that was possible at all", NULL },
	{ "spent_ns", "integer", "all of it", NULL },
	{ NULL, NULL, NULL, NULL },
};

void lull_schema_of_try(struct lull_json *j)
{
	lull_schema_json_object(j, "lull try --format json", document);
}

/* ---- what is written besides ---- */

static int write_patch(const struct lull_try *t, const struct words *w, struct lull_err *err)
{
	const struct lull_whole_file_rules rules = { .is_overwriting = w->is_forced };
	const struct lull_try_entry *best = lull_try_best(t);
	struct lull_whole_file place;
	FILE *f;

	if (!best || !best->last.seen.patch.len) {
		fprintf(stderr, "lull: no patch: %s\n",
			best ? "the place to change is not certain" : "nothing gains");
		return LULL_OK;
	}
	if (lull_whole_file_begin(&place, w->patch, &rules, err))
		return err->code;
	f = fopen(place.part, "we");
	if (!f || fputs(best->last.seen.patch.at, f) < 0 || fclose(f) != 0)
		return lull_whole_file_end(&place, lull_fail_errno(err, "writing '%s'", w->patch),
					   err);
	return lull_whole_file_end(&place, LULL_OK, err);
}

/* Refuse what would be overwritten before the program runs for minutes. */
static int check_outputs(const struct words *w, struct lull_err *err)
{
	struct stat st;

	if (w->patch && !w->is_forced && stat(w->patch, &st) == 0)
		return lull_fail(err, LULL_E_USAGE, "--patch: '%s' exists; -f replaces it",
				 w->patch);
	if (w->o.keep && stat(w->o.keep, &st) == 0)
		return lull_fail(err, LULL_E_USAGE, "--output: '%s' exists; give a new folder",
				 w->o.keep);
	return LULL_OK;
}

static int print(const struct lull_try *t, const struct words *w, struct lull_err *err)
{
	if (w->format == FORMAT_JSON)
		lull_try_json(t, stdout);
	else if (w->format == FORMAT_MARKDOWN)
		lull_try_markdown(t, stdout);
	else
		lull_try_text(t, stdout, lull_term_width(stdout));
	return w->patch && !w->o.is_dry ? write_patch(t, w, err) : LULL_OK;
}

static int list(struct lull_err *err)
{
	struct lull_str agent = LULL_STR_INIT, folder = LULL_STR_INIT;
	struct lull_vec all;
	int rc = lull_locate_agent(&agent, err);

	lull_vec_init(&all, sizeof(struct lull_remedy));
	if (!rc && !lull_locate_python(agent.at, &folder))
		rc = lull_fail(err, LULL_E_NOT_FOUND, "the folder python is missing beside %s",
			       agent.at);
	if (!rc) {
		lull_str_puts(&folder, "/lull/remedies");
		rc = lull_remedy_read_folder(&all, folder.at, err);
	}
	for (size_t i = 0; i < all.n && !rc; i++) {
		const struct lull_remedy *r = lull_vec_get(&all, i);

		printf("%-21s %s%s%s\n", r->name, r->title,
		       r->is_exact ? "" : "; results may differ",
		       r->is_by_name ? "; only if named" : "");
	}
	lull_remedies_release(&all);
	lull_str_release(&agent);
	lull_str_release(&folder);
	return rc;
}

static int run(struct words *w, char **argv, struct lull_err *err)
{
	struct lull_try t;
	int rc;

	w->o.argv = argv;
	if (w->o.n_runs < LULL_DECIDE_MIN_RUNS)
		return lull_fail(err, LULL_E_USAGE,
				 "--runs: %d runs at least, to tell a gain from "
				 "noise",
				 LULL_DECIDE_MIN_RUNS);
	if (!w->o.n_steps)
		return lull_fail(err, LULL_E_USAGE, "--steps: 1 or more");
	w->o.is_timed = w->o.n_steps == NOT_GIVEN;
	if (w->o.is_timed)
		w->o.n_steps = LULL_TRY_STEPS;
	if (w->budget && lull_duration_parse(w->budget, &w->o.budget_ns, err))
		return lull_err_wrap(err, "--budget");
	if (check_outputs(w, err))
		return err->code;
	lull_try_init(&t, &w->o);
	rc = lull_try_run(&t, err);
	if (!rc)
		rc = print(&t, w, err);
	if (!rc && w->o.keep && !w->o.is_dry && !t.is_stopped)
		rc = lull_try_keep(&t, err);
	if (!rc && t.is_stopped)
		rc = INTERRUPTED;
	lull_try_release(&t);
	return rc;
}

/* ---- the command ---- */

/* A list whose items may have commas. */
static int add_item(void *ctx, const char *value, struct lull_err *err)
{
	(void)err;
	*(char **)lull_vec_push(ctx) = lull_strdup(value);
	return LULL_OK;
}

static int parse(struct words *w, int argc, char **argv, struct lull_err *err)
{
	const struct lull_opt opts[] = {
		OPT_USAGE("lull try [OPTIONS] PROGRAM [ARGS]",
			  "Put fixes into a program without changing it, run it with and without "
			  "them, and say how much faster its steps become."),
		OPT_GROUP("What to try (default: what lull why suggests)"),
		OPT_LIST(0, "only", "LIST", &w->o.only, "these remedies; A+B tries both together"),
		OPT_FLAG(0, "all", &w->o.has_all, "all remedies that need not be named"),
		OPT_CALL(0, "env", "A=B", add_item, &w->o.env,
			 "a variable of the environment; repeat for more"),
		OPT_CALL(0, "remedy", "FILE", add_item, &w->o.files,
			 "a remedy of your own; repeat for more"),
		OPT_FLAG(0, "list", &w->wants_list, "list the remedies and exit"),
		OPT_FLAG(0, "dry-run", &w->o.is_dry,
			 "say what would be tried; records some steps if nothing is named"),
		OPT_GROUP("How it is measured"),
		OPT_U64(0, "steps", "N", &w->o.n_steps,
			"steps to measure in each run (default: 40, or what 8 s are enough for)"),
		OPT_U64(0, "warmup", "N", &w->o.n_warmup,
			"steps before that, at least (default: 5)"),
		OPT_U64(0, "runs", "N", &w->o.n_runs,
			"runs of the program as it is and with each remedy (default: 4)"),
		OPT_STR(0, "budget", "TIME", &w->budget,
			"stop after this long, such as 10m (default: no limit)"),
		OPT_F64(0, "timeout", "SECONDS", &w->o.limit_s,
			"end a run that makes no progress for this long (default: 300)"),
		OPT_STR(0, "client", "COMMAND", &w->o.client,
			"the program is a server: measure requests that this command makes"),
		OPT_FLAG(0, "whole", &w->o.is_whole,
			 "compare whole runs, of programs without steps; each ends by itself"),
		OPT_FLAG(0, "fresh", &w->o.is_fresh,
			 "start each run anew, also where one could be forked after its imports"),
		OPT_GROUP("Output"),
		OPT_ENUM(0, "format", &w->format, formats, "output format (default: text)"),
		OPT_STR('o', "output", "FOLDER", &w->o.keep,
			"record the program as it is and with the best: baseline.lull and "
			"best.lull "
			"in a new folder"),
		OPT_STR(0, "patch", "FILE", &w->patch,
			"write the change of the best as a patch, where the lines are certain"),
		OPT_FLAG('f', "force-overwrite", &w->is_forced, "replace that file"),
		OPT_FLAG('q', "quiet", &w->o.is_quiet, "no progress"),
		OPT_END(),
	};

	return lull_opt_parse_program(argc, argv, opts, err);
}

int cmd_try(int argc, char **argv, struct lull_err *err)
{
	struct words w = {
		.o = { .n_steps = NOT_GIVEN, .n_warmup = 5, .n_runs = 4, .limit_s = 300 }
	};
	int first, rc;

	lull_vec_init(&w.o.only, sizeof(char *));
	lull_vec_init(&w.o.env, sizeof(char *));
	lull_vec_init(&w.o.files, sizeof(char *));
	first = parse(&w, argc, argv, err);
	if (first < 0)
		rc = first;
	else if (w.wants_list)
		rc = list(err);
	else if (first >= argc)
		rc = lull_fail(err, LULL_E_USAGE, "give a program to run");
	else
		rc = run(&w, argv + first, err);
	lull_opt_list_release(&w.o.only);
	lull_opt_list_release(&w.o.env);
	lull_opt_list_release(&w.o.files);
	return rc;
}
