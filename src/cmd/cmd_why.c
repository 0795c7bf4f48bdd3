/*
 * lull why - say why the GPU waits, prove it, and predict what the fix would bring.
 */
#include "cmd/cmd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "text/opt.h"
#include "text/term.h"
#include "cause/why.h"
#include "cmd/job/job_print.h"
#include "cmd/losses.h"
#include "cmd/why_print.h"
#include "import/import.h"
#include "job/job_json.h"

/* Exit status if --fail-on matched. */
#define MATCHED 3

enum { FORMAT_TEXT, FORMAT_JSON };
static const char *const formats[] = { "text", "json", NULL };

struct why_words {
	const char *path;
	struct lull_vec what_ifs, fail_ons; /* char * */
	int format;
	const char *step;
	struct lull_vec withouts; /* char * */
	struct lull_why_options options;
	bool has_all, is_agent, wants_schema, wants_causes;
};

/* CAUSE or CAUSE>SHARE, SHARE of the step as 0.2 or 20%. */
struct limit {
	int cause;
	f64 share;
};

static int parse_limit(const char *text, struct limit *limit, struct lull_err *err)
{
	size_t len = strcspn(text, ">");
	const char *nearest = NULL;
	char id[64], *end;

	snprintf(id, sizeof(id), "%.*s", (int)(len < sizeof(id) ? len : sizeof(id) - 1), text);
	limit->cause = lull_cause_find(id, &nearest);
	limit->share = -1;
	if (limit->cause < 0 && strcmp(id, "any") != 0)
		return lull_fail(err, LULL_E_USAGE, "option --fail-on: no cause %s%s%s", id,
				 nearest ? ": did you mean " : "", nearest ? nearest : "");
	if (!text[len])
		return LULL_OK;
	limit->share = strtod(text + len + 1, &end);
	if (*end == '%') {
		limit->share /= 100;
		end++;
	}
	if (end == text + len + 1 || *end || limit->share < 0 || limit->share > 1)
		return lull_fail(err, LULL_E_USAGE,
				 "option --fail-on: %s: expected a share such as 0.2 or 20%%",
				 text);
	return LULL_OK;
}

/* Whether the finding is what the limit forbids: the first cause, or one with that share. */
static bool is_over(const struct lull_why *why, const struct limit *limit)
{
	const struct lull_finding *all = why->findings.at;

	for (size_t i = 0; i < why->findings.n; i++) {
		bool is_it = limit->cause < 0 ? lull_causes[all[i].cause]->kind != LULL_CAUSE_BUSY
					      : all[i].cause == (enum lull_cause_ix)limit->cause;

		if (is_it &&
		    (limit->share < 0 ? (int)i == why->first : all[i].share > limit->share))
			return true;
	}
	return false;
}

static int judge(const struct lull_why *why, const struct why_words *w, bool is_damaged,
		 struct lull_err *err)
{
	const char *const *texts = w->fail_ons.at;
	struct limit limit;
	int status = 0;

	for (size_t i = 0; i < w->fail_ons.n; i++) {
		if (parse_limit(texts[i], &limit, err))
			return err->code;
		if (is_over(why, &limit))
			status = MATCHED;
	}
	/* Who cannot tell, or guesses, has not shown that all is well. */
	if (w->fail_ons.n && !status && (is_damaged || *why->cannot || why->is_probable))
		return lull_fail(err, LULL_E_NOT_FOUND, "--fail-on cannot be decided: %s",
				 is_damaged	? "the report is damaged"
				 : *why->cannot ? why->cannot
						: why->unsure);
	return status;
}

static int answer(const struct lull_why *why, const struct why_words *w, struct lull_vec *answers,
		  struct lull_err *err)
{
	const char *const *texts = w->what_ifs.at;

	for (size_t i = 0; i < w->what_ifs.n; i++) {
		struct lull_why_answer *a = lull_vec_push(answers);

		a->question = texts[i];
		if (lull_why_ask(why, texts[i], &a->prediction, err))
			return lull_err_wrap(err, "option --what-if");
	}
	return LULL_OK;
}

/* Steps are not what people ask about a server. */
static void point_to_requests(const struct lull_why *why, const char *path, int width)
{
	if (why->lead && why->lead->host.is_server)
		lull_term_say(stdout, 0, width,
			      "The program serves requests: `lull requests %s` says how long they "
			      "take, and why slow ones are slow.",
			      path);
}

static void print_text(const struct lull_why *why, const struct lull_vec *answers,
		       const struct why_words *w)
{
	int width = lull_term_width(stdout);

	lull_why_print(stdout, why, answers, width, w->has_all);
	point_to_requests(why, w->path, width);
}

static int run(const struct why_words *w, struct lull_err *err)
{
	struct lull_vec answers;
	struct lull_reader *r;
	struct lull_why why;
	int rc;

	if (lull_import_open(w->path, &r, err))
		return err->code;
	lull_losses_warn_cut(r, w->path);
	lull_vec_init(&answers, sizeof(struct lull_why_answer));
	rc = lull_why_run(&why, r, &w->options, err);
	if (rc == LULL_E_USAGE) {
		lull_err_wrap(err, "option --step-time");
	} else if (rc) {
		lull_err_wrap(err, "%s", w->path);
	} else {
		rc = answer(&why, w, &answers, err);
		if (!rc && w->is_agent)
			lull_why_print_agent(stdout, &why, w->path);
		else if (!rc && w->format == FORMAT_JSON)
			lull_why_print_json(stdout, &why, &answers, w->path);
		else if (!rc)
			print_text(&why, &answers, w);
		if (!rc)
			rc = judge(&why, w, lull_reader_n_damaged(r), err);
	}
	lull_why_release(&why);
	lull_vec_release(&answers);
	lull_losses_close(r, w->path);
	return rc;
}

/* ---- a folder: a job of many ranks ---- */

static bool is_over_job(const struct lull_job_verdict *v, const struct limit *limit)
{
	if (v->cause < 0)
		return false;
	if (limit->cause < 0 ? lull_causes[v->cause]->kind == LULL_CAUSE_BUSY
			     : limit->cause != v->cause)
		return false;
	return limit->share < 0 || v->cost_ns > limit->share * v->mean_ns;
}

static int judge_job(const struct lull_job *job, const struct why_words *w, struct lull_err *err)
{
	const char *const *texts = w->fail_ons.at;
	struct limit limit;
	int status = 0;

	for (size_t i = 0; i < w->fail_ons.n; i++) {
		if (parse_limit(texts[i], &limit, err))
			return err->code;
		if (is_over_job(&job->verdict, &limit))
			status = MATCHED;
	}
	if (w->fail_ons.n && !status && job->n_damaged)
		return lull_fail(err, LULL_E_NOT_FOUND,
				 "--fail-on cannot be decided: %u of the reports %s damaged",
				 job->n_damaged, job->n_damaged == 1 ? "is" : "are");
	if (w->fail_ons.n && !status && job->verdict.cause < 0)
		return lull_fail(err, LULL_E_NOT_FOUND, "--fail-on cannot be decided: %s",
				 job->verdict.why_not);
	return status;
}

static int run_job(const struct why_words *w, struct lull_err *err)
{
	struct lull_job job;
	struct lull_json j;
	int rc;

	if (w->what_ifs.n || w->step || w->withouts.n || w->is_agent)
		return lull_fail(err, LULL_E_USAGE,
				 "--what-if, --step-time, --without and --agent are for one "
				 "report; give one of those in %s",
				 w->path);
	rc = lull_job_open(&job, w->path, NULL, err);
	if (!rc)
		rc = lull_job_run(&job, err);
	if (!rc && lull_team_speaks(&job.team) && w->format == FORMAT_JSON) {
		lull_json_init(&j, stdout);
		j.is_pretty = true;
		lull_job_json(&j, &job);
		putchar('\n');
	} else if (!rc && lull_team_speaks(&job.team)) {
		lull_job_print(stdout, &job, lull_term_width(stdout), w->has_all);
	}
	if (!rc)
		rc = judge_job(&job, w, err);
	rc = lull_job_status(&job, rc);
	lull_job_release(&job);
	return rc;
}

static int set_without(struct why_words *w, struct lull_err *err)
{
	/* In the order of the bits LULL_WITHOUT_... */
	static const char *const sources[] = { "ranges", "ops",	    "python", "osrt", "gil",
					       "sched",	 "samples", "calls",  "steps" };
	const char *const *words = w->withouts.at;

	for (size_t i = 0; i < w->withouts.n; i++) {
		size_t k = 0;

		while (k < LULL_COUNT_OF(sources) && strcmp(sources[k], words[i]) != 0)
			k++;
		if (k == LULL_COUNT_OF(sources))
			return lull_fail(err, LULL_E_USAGE,
					 "option --without: no source %s; there are ranges, ops, "
					 "python, osrt, gil, sched, samples, calls and steps",
					 words[i]);
		w->options.without |= 1u << k;
	}
	return LULL_OK;
}

static int parse(struct why_words *w, int argc, char **argv, struct lull_err *err)
{
	const struct lull_opt opts[] = {
		OPT_USAGE("lull why [OPTIONS] FILE|FOLDER",
			  "Say why the GPU waits: the cause, the evidence, the fix and its "
			  "predicted gain."),
		OPT_FLAG('a', "all", &w->has_all,
			 "all causes with their evidence, not only the first"),
		OPT_ENUM('f', "format", &w->format, formats,
			 "format of the answer (default: text)"),
		OPT_FLAG(0, "agent", &w->is_agent,
			 "one page that lets a language model fix the program: cause, lines of "
			 "source, fix, how to check"),
		OPT_STR(0, "step-time", "TIME", &w->step,
			"time of a step without a profiler, such as 7.1ms; makes predictions "
			"better"),
		OPT_LIST(0, "what-if", "CAUSE[+CAUSE...][=FACTOR]", &w->what_ifs,
			 "predict the step if only FACTOR of this cause remains (default: 0); "
			 "kernel:NAME=FACTOR: if these kernels take FACTOR of their time"),
		OPT_LIST(0, "fail-on", "CAUSE[>SHARE]", &w->fail_ons,
			 "exit with 3 if this is the first cause, or takes more than SHARE of the "
			 "step (0.2 or 20%); any is every cause except a busy GPU"),
		OPT_LIST(0, "without", "SOURCE", &w->withouts,
			 "answer as if this had not been recorded: ranges, ops, python, osrt, gil, "
			 "sched, samples, calls, steps"),
		OPT_FLAG(0, "schema", &w->wants_schema,
			 "print the schema of --format json and exit"),
		OPT_FLAG(0, "causes", &w->wants_causes, "print what each cause means and exit"),
		OPT_END(),
	};
	int first = lull_opt_parse(argc, argv, opts, err);
	struct limit limit;

	if (first < 0)
		return first;
	if (w->step && strspn(w->step, "0123456789.") == strlen(w->step))
		return lull_fail(err, LULL_E_USAGE,
				 "option --step-time: '%s' has no unit; %sms are milliseconds",
				 w->step, *w->step ? w->step : "7.1");
	if (w->step && lull_duration_parse(w->step, &w->options.unrecorded_ns, err))
		return lull_err_wrap(err, "option --step-time");
	if (w->step && !w->options.unrecorded_ns)
		return lull_fail(err, LULL_E_USAGE,
				 "option --step-time: the time has to be above 0");
	for (size_t i = 0; i < w->fail_ons.n; i++) {
		if (parse_limit(((char **)w->fail_ons.at)[i], &limit, err))
			return err->code;
	}
	if (set_without(w, err))
		return err->code;
	if (w->is_agent && (w->what_ifs.n || w->has_all || w->format != FORMAT_TEXT))
		return lull_fail(err, LULL_E_USAGE,
				 "--agent prints a page of its own; it does not go with --all, "
				 "--format and --what-if");
	if (w->wants_schema || w->wants_causes)
		return LULL_OK;
	if (argc - first != 1)
		return lull_fail(err, LULL_E_USAGE, "give one file, such as report1.lull; got %d",
				 argc - first);
	w->path = w->options.path = argv[first];
	return LULL_OK;
}

int cmd_why(int argc, char **argv, struct lull_err *err)
{
	struct why_words w = { .path = NULL };
	int rc;

	lull_vec_init(&w.what_ifs, sizeof(char *));
	lull_vec_init(&w.fail_ons, sizeof(char *));
	lull_vec_init(&w.withouts, sizeof(char *));
	rc = parse(&w, argc, argv, err);
	if (!rc && w.wants_schema)
		lull_why_print_schema(stdout);
	else if (!rc && w.wants_causes)
		lull_why_print_causes(stdout);
	else if (!rc && lull_job_is_folder(w.path))
		rc = run_job(&w, err);
	else if (!rc)
		rc = run(&w, err);
	lull_opt_list_release(&w.what_ifs);
	lull_opt_list_release(&w.fail_ons);
	lull_opt_list_release(&w.withouts);
	return rc;
}
