/*
 * lull attach - record a program that runs already.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "cmd/cmd.h"
#include "cmd/record/attach_find.h"
#include "cmd/record/record_job.h"
#include "cmd/record/record_options.h"
#include "cmd/record/trace_words.h"
#include "record/collector.h"
#include "record/session/session.h"
#include "text/opt.h"
#include "text/term.h"
#include "wire/wire.h"

struct words {
	const char *duration, *output, *name, *session, *duty, *budget;
	u64 steps;
	struct lull_vec trace, ignored;
	bool tree, force, stats, why, python, quiet;
};

static int understand(struct words *w, struct lull_collector_options *o, struct lull_err *err)
{
	char **words = w->trace.at;

	*o = (struct lull_collector_options){
		.samples = LULL_PERF_PROCESS_TREE,
		.switches = LULL_PERF_PROCESS_TREE,
		.is_python_sampled = w->python,
		.python_rate_hz = 100,
		.osrt_threshold_ns = 1000,
		.backtrace_threshold_ns = 80000,
		.cuda_flush_ms = 200,
		.output = w->output,
		.is_overwriting = w->force,
		.is_stopping_on_exit = true,
		.is_env_inherited = true,
		.is_env_discarded = true,
		.is_gpu_sampled = true,
		.gpu_devices = UINT64_MAX,
		.session_name = w->session,
		.is_quiet = w->quiet,
		.sources = w->trace.n ? 0 : lull_trace_default() | LULL_SOURCE_TORCH,
	};
	for (size_t i = 0; i < w->trace.n; i++)
		/* Variables for libraries come too late. */
		if (!lull_trace_word(words[i], &o->sources, &w->ignored))
			return lull_fail(err, LULL_E_USAGE,
					 "--trace: '%s' is not known; choose among %s", words[i],
					 lull_trace_choices);
	if (w->steps) {
		o->begin = LULL_BEGIN_ON_RANGE;
		o->watch = LULL_WATCH_STEPS;
		o->schedule =
			(struct lull_schedule){ .wait = 1, .active = (u32)w->steps, .repeat = 1 };
		o->range_end = LULL_RANGE_END_STOP_SHUTDOWN;
	}
	if (lull_record_duty_parse(w->duty, w->budget, 0, o, err))
		return err->code;
	if (w->duration && lull_duration_seconds(w->duration, &o->duration_s, err))
		return lull_err_wrap(err, "--duration");
	return 0;
}

static void print_done(const struct words *w, const struct lull_collector_result *result, pid_t pid)
{
	const struct lull_report_done *done = result->reports.at;
	bool is_alive = lull_is_alive((u32)pid);

	if (w->quiet)
		return;
	for (size_t i = 0; i < result->reports.n; i++) {
		fprintf(stderr, "lull: %s  %s, %s events in %.1f s, %s lost\n", done[i].path,
			lull_format_bytes(done[i].size_bytes).text,
			lull_format_count(done[i].n_events).text, done[i].seconds,
			done[i].n_lost ? lull_format_count(done[i].n_lost).text : "none");
		for (const char *at = done[i].notices; at && *at; at += strcspn(at, "\n") + 1)
			fprintf(stderr, "lull: warning: %.*s\n", (int)strcspn(at, "\n"), at);
	}
	fprintf(stderr, "lull: process %d %s; a thread of it was stopped for %.1f ms\n", (int)pid,
		is_alive ? "continues" : "has ended", (f64)result->stop_ns / 1e6);
	if (is_alive)
		fputs("lull: programs that it starts are only recorded from its start on: lull "
		      "profile\n",
		      stderr);
	if (result->reports.n)
		lull_record_print_next(done[result->reports.n - 1].path);
}

/*
 * The arguments with which the program was started, as lines of one text and as pointers to them.
 */
static void read_command(pid_t pid, struct lull_str *text, struct lull_vec *argv)
{
	char path[64];
	FILE *f;
	int c;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	f = fopen(path, "re");
	while (f && (c = fgetc(f)) != EOF)
		lull_str_add(text, &(char){ (char)c }, 1);
	if (f)
		fclose(f);
	if (!text->len)
		lull_str_add(text, "?", 2);
	for (size_t i = 0; i < text->len; i += strlen(text->at + i) + 1)
		*(char **)lull_vec_push(argv) = text->at + i;
	lull_vec_push(argv);
}

static int follow_up(const struct lull_collector_result *result, const char *command,
		     struct lull_err *err)
{
	const struct lull_report_done *done = result->reports.at;
	const char *nearest;
	const struct lull_cmd *cmd = lull_cmd_find(command, &nearest);
	char *args[] = { (char *)command, result->reports.n ? done[0].path : NULL, NULL };

	return cmd && result->reports.n ? cmd->run(2, args, err) : 0;
}

static int record(const struct words *w, struct lull_collector_options *o,
		  const struct lull_vec *pids, struct lull_err *err)
{
	struct lull_collector_result result = { 0 };
	struct lull_str text = LULL_STR_INIT;
	struct lull_vec argv;
	pid_t pid = *(pid_t *)pids->at;
	int rc;

	lull_vec_init(&argv, sizeof(char *));
	read_command(pid, &text, &argv);
	o->attach = pids;
	rc = lull_collector_run(o, argv.at, &result, err);
	if (!rc || result.reports.n)
		print_done(w, &result, pid);
	if (!rc && w->stats)
		rc = follow_up(&result, "stats", err);
	if (!rc && w->why)
		rc = follow_up(&result, "why", err);
	lull_collector_result_release(&result);
	lull_vec_release(&argv);
	lull_str_release(&text);
	return rc;
}

int cmd_attach(int argc, char **argv, struct lull_err *err)
{
	struct words w = { .session = "", .python = true };
	const struct lull_opt opts[] = {
		OPT_USAGE("lull attach [OPTIONS] PID", "record a program that runs already"),
		OPT_STR('d', "duration", "TIME", &w.duration,
			"stop after this long: 10s, 500ms, a number of seconds; the program "
			"continues (default: at Ctrl-C, lull detach, or its end)"),
		OPT_U64(0, "steps", "N", &w.steps,
			"record so many steps of the training loop, from the next one on"),
		OPT_STR(0, "duty", "SHARE", &w.duty,
			"record a few steps now and then, such as 2% of the time, at random "
			"moments; CUPTI is gone in between"),
		OPT_STR(0, "budget", "SHARE", &w.budget,
			"the same, as often as it may cost: 0.5% of the program's time, measured "
			"by its steps"),
		OPT_STR(0, "name", "NAME", &w.name,
			"the process of this name, or whose command line has it, in place of PID"),
		OPT_FLAG(0, "tree", &w.tree, "also the processes that it has started"),
		OPT_LIST('t', "trace", "LIST", &w.trace, lull_trace_help),
		OPT_BOOL(0, "python-sampling", &w.python, "Python call stacks (default: true)"),
		OPT_STR('o', "output", "NAME", &w.output, "report name, as for lull profile"),
		OPT_BOOL('f', "force-overwrite", &w.force, "overwrite an existing report"),
		OPT_BOOL(0, "stats", &w.stats, "print the summaries when done"),
		OPT_BOOL(0, "why", &w.why, "say why the GPU waits when done"),
		OPT_STR(0, "session-new", "NAME", &w.session,
			"name of the session (default: attach-PID)"),
		OPT_FLAG('q', "quiet", &w.quiet, "no status line and no summary at the end"),
		OPT_END(),
	};
	struct lull_collector_options options;
	struct lull_vec pids;
	char session[64];
	int first, rc;

	lull_vec_init(&pids, sizeof(pid_t));
	lull_vec_init(&w.trace, sizeof(char *));
	lull_vec_init(&w.ignored, sizeof(char *));
	first = lull_opt_parse(argc, argv, opts, err);
	rc = first < 0 ? first : 0;
	if (!rc)
		rc = lull_attach_find(w.name, argv + first, argc - first, w.tree, &pids, err);
	if (!rc)
		rc = understand(&w, &options, err);
	if (!rc) {
		snprintf(session, sizeof(session), "attach-%d", (int)*(pid_t *)pids.at);
		if (!*options.session_name)
			options.session_name = session;
		rc = record(&w, &options, &pids, err);
	}
	lull_opt_list_release(&w.trace);
	lull_opt_list_release(&w.ignored);
	lull_vec_release(&pids);
	return rc;
}
