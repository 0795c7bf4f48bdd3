#include "cmd/kernel/kernel_collect.h"

#include <dirent.h>
#include <regex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/convert.h"
#include "base/mem.h"
#include "base/str.h"
#include "text/term.h"
#include "cmd/kernel/kernel_from.h"
#include "cmd/kernel/kernel_habits.h"
#include "cmd/kernel/kernel_metrics.h"
#include "counter/kset.h"
#include "record/collector.h"

static const char *const replays[] = { "kernel", "application", "range", NULL };
enum { REPLAY_KERNEL, REPLAY_APPLICATION, REPLAY_RANGE }; /* replays[] */
static const char *const controls[] = { "none", "base", "all", NULL };
static const char *const processes[] = { "all", "application-only", NULL };

void lull_kernel_collect_init(struct lull_kernel_collect *k)
{
	*k = (struct lull_kernel_collect){ .timeout_s = 60, .top = 3 };
	lull_vec_init(&k->sets, sizeof(char *));
	lull_vec_init(&k->sections, sizeof(char *));
	lull_vec_init(&k->metrics, sizeof(char *));
	lull_vec_init(&k->devices, sizeof(char *));
	lull_vec_init(&k->env, sizeof(char *));
}

void lull_kernel_collect_release(struct lull_kernel_collect *k)
{
	lull_opt_list_release(&k->sets);
	lull_opt_list_release(&k->sections);
	lull_opt_list_release(&k->metrics);
	lull_opt_list_release(&k->devices);
	lull_opt_list_release(&k->env);
	free(k->id_name);
}

static size_t add(struct lull_opt *to, size_t room, size_t used, const struct lull_opt *from,
		  size_t n)
{
	for (size_t i = 0; i < n && used < room; i++)
		to[used++] = from[i];
	return used;
}

static size_t add_which(struct lull_kernel_collect *k, struct lull_opt *to, size_t room,
			size_t used)
{
	const struct lull_opt opts[] = {
		OPT_GROUP("Which launches to measure"),
		OPT_STR('k', "kernel-name", "NAME", &k->kernel_name,
			"kernels of this name, without template and parameters; regex:EXPR for "
			"an expression (default: all)"),
		OPT_U64('s', "launch-skip", "N", &k->skip,
			"skip the first N of them, in each process"),
		OPT_U64('c', "launch-count", "N", &k->count,
			"measure N of them, in each process (default: all)"),
		OPT_STR(0, "nvtx-include", "[DOMAIN@]RANGE", &k->nvtx_include,
			"only those launched inside this NVTX or lull.h range; regex:EXPR for an "
			"expression"),
		OPT_FLAG(0, "nvtx", &k->nvtx, "record ranges; always done"),
		OPT_LIST(0, "device", "LIST", &k->devices, "only on these devices (default: all)"),
		OPT_LIST(0, "devices", "LIST", &k->devices, "the same"),
		OPT_ENUM(0, "target-processes", &k->target_processes, processes,
			 "all processes of the program (the default and only value)"),
	};

	return add(to, room, used, opts, LULL_COUNT_OF(opts));
}

static size_t add_what(struct lull_kernel_collect *k, struct lull_opt *to, size_t room, size_t used)
{
	const struct lull_opt opts[] = {
		OPT_GROUP("What to measure"),
		OPT_LIST(0, "set", "NAME", &k->sets,
			 "basic (default), roofline, full, detailed; --list-sets says what they "
			 "contain and cost"),
		OPT_LIST(0, "section", "NAME", &k->sections,
			 "these sections instead of a set; --list-sections"),
		OPT_LIST(0, "metrics", "LIST", &k->metrics,
			 "these metrics, by lull's key or CUPTI's name; --list-metrics"),
		OPT_ENUM(0, "replay", &k->replay, replays,
			 "how passes are made: CUPTI runs the kernel again and restores memory "
			 "(kernel, the default); the whole program runs again (application), also "
			 "for all kernels of a range together (range)"),
		OPT_ENUM(0, "replay-mode", &k->replay, replays, "the same"),
		OPT_F64(0, "timeout", "SECONDS", &k->timeout_s,
			"kill the program if measuring one launch takes longer than this; 0 for no "
			"limit (default: 60)"),
		OPT_ENUM(0, "clock-control", &k->clock_control, controls,
			 "only none, the default: clocks are not changed, but recorded"),
		OPT_ENUM(0, "cache-control", &k->cache_control, controls,
			 "only none, the default: caches are not flushed"),
		OPT_FLAG(0, "list-metrics", &k->list_metrics,
			 "list the metrics and exit; with --chip all metrics of CUPTI"),
		OPT_FLAG(0, "query-metrics", &k->list_metrics, "the same"),
		OPT_FLAG(0, "list-sets", &k->list_sets,
			 "list the sets with their passes on a chip, and exit"),
		OPT_FLAG(0, "list-sections", &k->list_sections,
			 "list the sections with their passes, and exit"),
		OPT_STR(0, "chip", "NAME", &k->chip, "chip for the lists, such as GH100 or GA100"),
		OPT_STR(0, "chips", "NAME", &k->chip, "the same"),
	};

	return add(to, room, used, opts, LULL_COUNT_OF(opts));
}

static size_t add_rest(struct lull_kernel_collect *k, struct lull_opt *to, size_t room, size_t used)
{
	const struct lull_opt opts[] = {
		OPT_GROUP("The run and its report"),
		OPT_STR('o', "output", "NAME", &k->output,
			"report name, as for lull profile (default: report1, report2, ...)"),
		OPT_BOOL('f', "force-overwrite", &k->force, "replace a report of that name"),
		OPT_LIST('e', "env-var", "A=B", &k->env,
			 "set environment variables for the program"),
		OPT_BOOL(0, "discard-environment", &k->discard_env,
			 "store no environment variables"),
		OPT_STR(0, "session-new", "NAME", &k->session, "name of the session"),
		OPT_FLAG('q', "quiet", &k->quiet, "no status line and no closing lines"),
	};

	return add(to, room, used, opts, LULL_COUNT_OF(opts));
}

size_t lull_kernel_collect_opts(struct lull_kernel_collect *k, struct lull_opt *to, size_t room)
{
	size_t n = add_which(k, to, room, 0);

	n = add_what(k, to, room, n);
	n = add_rest(k, to, room, n);
	return n + lull_kernel_habits(k, to + n, room - n);
}

/* An expression that the agent could not use is refused here. */
static int check_regex(const char *option, const char *text, struct lull_err *err)
{
	char why[160];
	regex_t regex;
	int rc = regcomp(&regex, text, REG_EXTENDED | REG_NOSUB);

	if (!rc) {
		regfree(&regex);
		return 0;
	}
	regerror(rc, &regex, why, sizeof(why));
	return lull_fail(err, LULL_E_USAGE, "--%s: '%s' is not a regular expression: %s", option,
			 text, why);
}

static int put_name(char *to, size_t room, u32 *is_regex, const char *option, const char *text,
		    struct lull_err *err)
{
	*is_regex = strncmp(text, "regex:", 6) == 0;
	text += *is_regex ? 6 : 0;
	if (strlen(text) >= room)
		return lull_fail(err, LULL_E_USAGE, "--%s: longer than %zu bytes", option,
				 room - 1);
	memcpy(to, text, strlen(text) + 1);
	return *is_regex ? check_regex(option, text, err) : 0;
}

static int wish_filters(const struct lull_kernel_collect *k, struct lull_kwish *wish,
			struct lull_err *err)
{
	struct lull_kwish_filter *f = &wish->filters[0];

	if (k->from)
		return lull_kernel_from(k->from, k->top, wish, err);
	wish->n_filters = 1;
	f->skip = k->skip;
	f->count = k->count;
	return k->kernel_name ? put_name(f->name, sizeof(f->name), &f->is_regex, "kernel-name",
					 k->kernel_name, err)
			      : 0;
}

/* [DOMAIN@]RANGE; a slash at the end, as other tools want it, means nothing here. */
static int wish_range(const char *text, struct lull_kwish *wish, struct lull_err *err)
{
	const char *at = strncmp(text, "regex:", 6) == 0 ? NULL : strchr(text, '@');
	size_t n = at ? (size_t)(at - text) : 0;

	if (n >= sizeof(wish->range_domain))
		return lull_fail(err, LULL_E_USAGE, "--nvtx-include: the domain is too long");
	memcpy(wish->range_domain, text, n);
	if (put_name(wish->range, sizeof(wish->range), &wish->is_range_regex, "nvtx-include",
		     at ? at + 1 : text, err))
		return err->code;
	n = strlen(wish->range);
	if (!wish->is_range_regex && n && wish->range[n - 1] == '/')
		wish->range[--n] = '\0';
	if (!n || (!wish->is_range_regex && strchr(wish->range, '/')))
		return lull_fail(err, LULL_E_USAGE,
				 "--nvtx-include: '%s' is not [DOMAIN@]RANGE; for nested ranges, "
				 "give the innermost one",
				 text);
	wish->has_range = 1;
	return 0;
}

static int wish_devices(const struct lull_vec *list, u64 *devices, struct lull_err *err)
{
	char **words = list->at, *end;

	*devices = list->n ? 0 : UINT64_MAX;
	for (size_t i = 0; i < list->n; i++) {
		u64 ix = strtoull(words[i], &end, 10);

		if (*end || end == words[i] || ix >= 64)
			return lull_fail(err, LULL_E_USAGE,
					 "--device: '%s' is not the number of a device", words[i]);
		*devices |= 1ull << ix;
	}
	return 0;
}

/* What is to be measured, from sets, sections and metrics. */
static int choose(const struct lull_kernel_collect *k, struct lull_kset *set, struct lull_err *err)
{
	char **sets = k->sets.at, **sections = k->sections.at, **metrics = k->metrics.at;
	bool is_chosen = k->sets.n || k->sections.n || k->metrics.n;
	int rc = is_chosen ? 0 : lull_kset_add_set(set, "basic", err);

	for (size_t i = 0; i < k->sets.n && !rc; i++)
		rc = lull_kset_add_set(set, sets[i], err);
	for (size_t i = 0; i < k->sections.n && !rc; i++)
		rc = lull_kset_add_section(set, sections[i], err);
	for (size_t i = 0; i < k->metrics.n && !rc; i++)
		rc = lull_kset_add_metric(set, metrics[i], err);
	return rc;
}

/* The hardware does one or the other: for both, the program runs once for each. */
struct wants {
	bool counters, samples;
};

/* Whether more than time and clocks is to be counted. */
static bool has_counters(const struct lull_kset *set)
{
	struct lull_kset least;
	bool has;

	lull_kset_init(&least);
	has = set->metrics.n > least.metrics.n || set->others.n;
	lull_kset_release(&least);
	return has;
}

/* Nothing was chosen but the set that is measured anyway. */
static bool is_basic(const struct lull_kernel_collect *k)
{
	char **sets = k->sets.at;

	return !k->sections.n && !k->metrics.n &&
	       (!k->sets.n || (k->sets.n == 1 && strcmp(sets[0], "basic") == 0));
}

static int wish_metrics(const struct lull_kernel_collect *k, struct lull_kwish *wish,
			struct wants *wants, struct lull_err *err)
{
	struct lull_kset set;
	int rc;

	if (lull_kernel_metrics_check(&k->metrics, err))
		return err->code;
	lull_kset_init(&set);
	rc = choose(k, &set, err);
	set.is_plain = k->replay == REPLAY_RANGE && is_basic(k);
	if (!rc && k->replay == REPLAY_RANGE && !k->quiet && lull_kset_has_patches(&set))
		fprintf(stderr,
			"lull: CUPTI adds code to kernels to count some of these metrics; in those "
			"runs kernels do not overlap (the set basic has no such metrics)\n");
	if (!rc)
		rc = lull_kset_write(&set, wish->metrics, sizeof(wish->metrics), err);
	*wants = (struct wants){ .samples = set.has_source,
				 .counters = !set.has_source || has_counters(&set) };
	lull_kset_release(&set);
	return rc;
}

static int check(const struct lull_kernel_collect *k, struct lull_err *err)
{
	if (k->clock_control || k->cache_control)
		return lull_fail(err, LULL_E_USAGE,
				 "--%s-control: only none is possible; the report has the clocks "
				 "that the kernel ran at",
				 k->clock_control ? "clock" : "cache");
	if (k->replay == REPLAY_RANGE && (k->kernel_name || k->from))
		return lull_fail(err, LULL_E_USAGE,
				 "--replay range measures all kernels of a range as one; choose it "
				 "with --nvtx-include or cudaProfilerStart(), not with --%s",
				 k->from ? "from" : "kernel-name");
	if (k->timeout_s < 0)
		return lull_fail(err, LULL_E_USAGE, "--timeout cannot be negative");
	return 0;
}

static int make_wish(const struct lull_kernel_collect *k, struct lull_kwish *wish,
		     struct wants *wants, struct lull_err *err)
{
	wish->replay = LULL_REPLAY_KERNEL + (u32)k->replay;
	if (check(k, err) || wish_filters(k, wish, err) ||
	    wish_devices(&k->devices, &wish->devices, err) || wish_metrics(k, wish, wants, err))
		return err->code;
	if (k->replay == REPLAY_RANGE && wants->samples)
		return lull_fail(err, LULL_E_USAGE,
				 "--replay range: samples are of single kernels; leave out the "
				 "section source and the set detailed");
	return k->nvtx_include ? wish_range(k->nvtx_include, wish, err) : 0;
}

/* What went wrong, a line each. */
static void say_notices(const char *what, const char *lines)
{
	while (lines && *lines) {
		size_t n = strcspn(lines, "\n");

		fprintf(stderr, "lull: warning: %s%.*s\n", what, (int)n, lines);
		lines += n + (lines[n] == '\n');
	}
}

static void say_done(const struct lull_kernel_collect *k, const struct lull_report_done *done,
		     const struct lull_collector_result *result)
{
	const char *what = k->replay == REPLAY_RANGE ? "range" : "launch";
	u64 each_ns = result->n_measured ? result->measured_ns / result->n_measured : 0;

	fprintf(stderr, "lull: %s  %s in %.1f s", done->path,
		lull_format_bytes(done->size_bytes).text, done->seconds);
	if (result->n_measured && result->n_passes)
		fprintf(stderr, "; %llu %s%s in %u pass%s, %s a %s, %s a pass",
			(unsigned long long)result->n_measured, what,
			result->n_measured == 1	    ? ""
			: k->replay == REPLAY_RANGE ? "s"
						    : "es",
			result->n_passes, result->n_passes == 1 ? "" : "es",
			lull_format_ns(each_ns).text, what,
			lull_format_ns(each_ns / result->n_passes).text);
	fputc('\n', stderr);
	say_notices("", done->notices);
}

/* Which launches were looked for, as the command line said it. */
static void add_wish(const struct lull_kernel_collect *k, struct lull_str *to)
{
	if (k->from)
		lull_str_addf(to, " --from %s", k->from);
	if (k->kernel_name)
		lull_str_addf(to, " --kernel-name %.80s", k->kernel_name);
	if (k->skip)
		lull_str_addf(to, " --launch-skip %llu", (unsigned long long)k->skip);
	if (k->nvtx_include)
		lull_str_addf(to, " --nvtx-include %.80s", k->nvtx_include);
	for (size_t i = 0; i < k->devices.n; i++)
		lull_str_addf(to, "%s%s", i ? "," : " --device ", ((char **)k->devices.at)[i]);
}

/* Launches there were, but not those that were looked for. */
static int fail_missed(const struct lull_kernel_collect *k,
		       const struct lull_collector_result *result, struct lull_err *err)
{
	const struct lull_str *ran = &result->ran;
	struct lull_str wish = LULL_STR_INIT;

	add_wish(k, &wish);
	lull_fail(err, LULL_E_NOT_FOUND, "none of %llu launches was measured%s%s%s%s%s",
		  (unsigned long long)result->n_launches, wish.len ? "; looked for" : "",
		  lull_str_text(&wish), ran->len ? "; these kernels ran: " : "", lull_str_text(ran),
		  ran->len ? ""
			   : "; lull profile and lull stats -r cuda_gpu_kern_sum show the names of "
			     "kernels");
	lull_str_release(&wish);
	return err->code;
}

/* The names were wrong, or nothing was launched: what to do. */
static int fail_empty(const struct lull_kernel_collect *k,
		      const struct lull_collector_result *result, struct lull_err *err)
{
	if (result->n_launches && k->replay == REPLAY_RANGE)
		return lull_fail(err, LULL_E_NOT_FOUND, "no range was measured; %s",
				 k->nvtx_include
					 ? "--nvtx-include has to name a range that the program "
					   "starts and ends on one thread"
					 : "the program has to call cudaProfilerStart() and "
					   "cudaProfilerStop(), or --nvtx-include has to name a "
					   "range");
	if (!result->n_launches)
		return lull_fail(err, LULL_E_NOT_FOUND,
				 "the program launched no kernel, or CUDA could not be recorded; "
				 "lull doctor says whether it can");
	return fail_missed(k, result, err);
}

/* Where a run puts its report, and where the samples of an earlier one are. */
struct run {
	const char *output;
	const char *samples_from; /* NULL = none */
};

static int run_once(const struct lull_kernel_collect *k, const struct lull_kwish *wish, char **argv,
		    const struct run *run, struct lull_collector_result *result,
		    struct lull_err *err)
{
	const struct lull_collector_options options = {
		.sources = LULL_SOURCE_CUDA | LULL_SOURCE_NVTX | LULL_SOURCE_ANNOTATE |
			   LULL_SOURCE_KERNELS,
		.samples = LULL_PERF_NONE,
		.switches = LULL_PERF_NONE,
		.rate_hz = 1000,
		.cuda_flush_ms = 200,
		.output = run->output,
		.is_overwriting = k->force,
		.kill_signal = SIGTERM,
		.is_waiting_for_all = true,
		.is_stopping_on_exit = true,
		.env = &k->env,
		.is_env_inherited = true,
		.is_env_discarded = k->discard_env,
		.session_name = k->session ? k->session : "",
		.is_quiet = k->quiet,
		.has_output = true,
		.is_run_again = true,
		.kernels = wish,
		.samples_from = run->samples_from,
		.kernel_timeout_ns = lull_u64_of(k->timeout_s * 1e9),
	};

	return lull_collector_run(&options, argv, result, err);
}

/*
 * A run whose report is the user's. `n_passes`, where the program runs once for each, becomes how
 * many there are; if that is more than this run has made, the report goes again.
 */
static int run_last(const struct lull_kernel_collect *k, const struct lull_kwish *wish, char **argv,
		    const char *samples_from, u32 *n_passes, struct lull_kernel_done *done,
		    struct lull_err *err)
{
	const struct run run = { k->output, samples_from };
	struct lull_collector_result result = { 0 };
	const struct lull_report_done *reports;
	int rc = run_once(k, wish, argv, &run, &result, err);

	reports = result.reports.at;
	done->exit_status = result.has_hung ? 1 : result.exit_status;
	if (n_passes)
		*n_passes = rc || done->exit_status ? 1 : result.n_passes;
	if (n_passes && *n_passes > 1) {
		if (result.reports.n)
			unlink(reports[0].path);
		lull_collector_result_release(&result);
		return rc;
	}
	if (result.reports.n) {
		done->report = lull_strdup(reports[0].path);
		if (!k->quiet)
			say_done(k, &reports[0], &result);
	}
	if (!rc && !result.n_measured && !done->exit_status)
		rc = fail_empty(k, &result, err);
	lull_collector_result_release(&result);
	return rc;
}

/* What a run leaves for the next one. */
struct early {
	u32 n_passes;
	struct lull_str report; /* its path, which may have the rank in it */
};

/* A run whose report is not the user's. */
static int run_early(const struct lull_kernel_collect *k, const struct lull_kwish *wish,
		     char **argv, const char *report, struct early *early,
		     struct lull_kernel_done *done, struct lull_err *err)
{
	const struct run run = { report, NULL };
	struct lull_collector_result result = { 0 };
	int rc = run_once(k, wish, argv, &run, &result, err);

	done->exit_status = result.has_hung ? 1 : result.exit_status;
	early->n_passes = result.n_passes;
	lull_str_clear(&early->report);
	if (result.reports.n) {
		const struct lull_report_done *first = result.reports.at;

		lull_str_puts(&early->report, first->path);
		if (wish->is_sampled && !k->quiet)
			say_notices("no samples: ", first->notices);
	}
	lull_collector_result_release(&result);
	return rc;
}

static void say_run(const struct lull_kernel_collect *k, u32 ix, u32 n)
{
	if (!k->quiet)
		fprintf(stderr, "lull: run %u of %u\n", ix, n);
}

/*
 * The program once for each pass; counters are kept in a folder from run to run. How many passes
 * there are is known after the first, which may have been all.
 */
static int run_passes(const struct lull_kernel_collect *k, struct lull_kwish *wish, char **argv,
		      const char *samples_from, struct lull_kernel_done *done, struct lull_err *err)
{
	struct early early = { .n_passes = 2, .report = LULL_STR_INIT };
	struct lull_str report = LULL_STR_INIT;
	u32 n_passes = 0;
	int rc = run_last(k, wish, argv, samples_from, &n_passes, done, err);

	if (rc || n_passes < 2)
		return rc;
	say_run(k, 1, n_passes);
	lull_str_addf(&report, "%s/run%%n.lull", wish->data_folder);
	for (wish->pass_ix = 1; wish->pass_ix + 1 < n_passes && !rc && !done->exit_status;
	     wish->pass_ix++) {
		rc = run_early(k, wish, argv, report.at, &early, done, err);
		if (!rc && !done->exit_status)
			say_run(k, wish->pass_ix + 1, n_passes);
	}
	if (done->exit_status)
		fprintf(stderr,
			"lull: run %u of %u ended with status %d; all runs are needed for the "
			"counters, so there is no report\n",
			wish->pass_ix, n_passes, done->exit_status);
	if (!rc && !done->exit_status)
		rc = run_last(k, wish, argv, samples_from, NULL, done, err);
	lull_str_release(&early.report);
	lull_str_release(&report);
	return rc;
}

/* A run that takes samples; `samples` becomes the path of its report, in the folder. */
static int run_samples(const struct lull_kernel_collect *k, struct lull_kwish *wish, char **argv,
		       struct lull_str *samples, struct lull_kernel_done *done,
		       struct lull_err *err)
{
	struct early early = { .n_passes = 0, .report = LULL_STR_INIT };
	int rc;

	wish->is_sampled = 1;
	rc = run_early(k, wish, argv, samples->at, &early, done, err);
	wish->is_sampled = 0;
	lull_str_clear(samples);
	lull_str_puts(samples, lull_str_text(&early.report));
	lull_str_release(&early.report);
	if (!rc && !k->quiet)
		fprintf(stderr,
			"lull: the samples are complete; the program runs again for counters\n");
	return rc;
}

static void remove_folder(const char *path)
{
	DIR *folder = opendir(path);
	const struct dirent *entry;

	while (folder && (entry = readdir(folder)))
		unlinkat(dirfd(folder), entry->d_name, 0);
	if (folder)
		closedir(folder);
	rmdir(path);
}

/* More than one run: what they have for each other lies in a folder. */
static int run_often(const struct lull_kernel_collect *k, struct lull_kwish *wish,
		     const struct wants *wants, char **argv, struct lull_kernel_done *done,
		     struct lull_err *err)
{
	const char *base = getenv("TMPDIR");
	struct lull_str samples = LULL_STR_INIT;
	const char *samples_from;
	char folder[sizeof(wish->data_folder)];
	int rc = 0,
	    n = snprintf(folder, sizeof(folder), "%s/lull-XXXXXX", base && *base ? base : "/tmp");

	if (n >= (int)sizeof(folder) || !mkdtemp(folder))
		return lull_fail_errno(err, "making a folder for counters in %s (TMPDIR)",
				       base && *base ? base : "/tmp");
	lull_str_addf(&samples, "%s/samples.lull", folder);
	if (wants->samples)
		rc = run_samples(k, wish, argv, &samples, done, err);
	samples_from = wants->samples && samples.len ? samples.at : NULL;
	if (k->replay != REPLAY_KERNEL)
		memcpy(wish->data_folder, folder, sizeof(folder));
	if (!rc && !done->exit_status)
		rc = k->replay != REPLAY_KERNEL
			     ? run_passes(k, wish, argv, samples_from, done, err)
			     : run_last(k, wish, argv, samples_from, NULL, done, err);
	remove_folder(folder);
	lull_str_release(&samples);
	return rc;
}

int lull_kernel_collect(const struct lull_kernel_collect *k, char **argv,
			struct lull_kernel_done *done, struct lull_err *err)
{
	/* Its names take 100 KiB: too much for the stack. */
	struct lull_kwish *wish = lull_alloc(1, sizeof(*wish));
	struct wants wants = { false, false };
	int rc = make_wish(k, wish, &wants, err);

	*done = (struct lull_kernel_done){ .report = NULL };
	wish->is_sampled = !wants.counters;
	if (!rc)
		rc = wants.counters && (wants.samples || k->replay != REPLAY_KERNEL)
			     ? run_often(k, wish, &wants, argv, done, err)
			     : run_last(k, wish, argv, NULL, NULL, done, err);
	free(wish);
	return rc;
}
