/*
 * lull fleetd - has the GPU processes of this host recorded by a policy, week after week.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/duration.h"
#include "base/file.h"
#include "base/str.h"
#include "base/time.h"
#include "cmd/cmd.h"
#include "fleet/fleet_find.h"
#include "fleet/fleetd.h"
#include "record/live/metrics_port.h"
#include "text/opt.h"
#include "text/out.h"

#define ATTACH "lull attach --budget {budget} -d {seconds} -o {output} {pid}"

/* The words of the command line, before they mean anything. */
struct words {
	const char *policy, *share, *budget, *every, *report, *keep_bytes, *keep_age, *metrics;
	bool is_dry_run;
	int format;
};

static const struct lull_out_column columns[] = {
	{ .name = "PID", .kind = LULL_OUT_ID },
	{ .name = "Choice", .kind = LULL_OUT_TEXT },
	{ .name = "Rule", .kind = LULL_OUT_TEXT },
	{ .name = "Command", .kind = LULL_OUT_TEXT },
	{ .name = "Would Run", .kind = LULL_OUT_TEXT },
};

static void put_words(struct lull_out *out, char **words)
{
	struct lull_str text = LULL_STR_INIT;

	for (char **w = words; *w; w++)
		lull_str_addf(&text, "%s%s", w == words ? "" : " ", *w);
	lull_out_text(out, lull_str_text(&text));
	lull_str_release(&text);
}

static void put_process(struct lull_out *out, const struct lull_fleetd_options *o,
			const struct lull_fleet_process *p)
{
	static const char *const choices[] = { "record", "skip", "not chosen", "no rule" };
	const struct lull_fleet_rule *rule;
	enum lull_fleet_choice choice = lull_fleet_policy_choose(o->policy, p, &rule);
	char line[32] = "";

	lull_out_row(out);
	lull_out_i64(out, p->pid);
	lull_out_text(out, choices[choice]);
	if (rule && rule->line)
		snprintf(line, sizeof(line), "line %u", rule->line);
	lull_out_text(out, rule && !rule->line ? "default" : line);
	lull_out_text(out, p->cmdline);
	if (choice == LULL_FLEET_RECORD) {
		char **words = lull_fleetd_words(o, p, rule, lull_clock_ns(CLOCK_REALTIME));

		put_words(out, words);
		lull_fleetd_free_words(words);
	} else {
		lull_out_skip(out);
	}
}

/* What a round would do, without doing it. */
static int list_choices(const struct lull_fleetd_options *o, int format, struct lull_err *err)
{
	struct lull_out_options options = LULL_OUT_OPTIONS_INIT;
	struct lull_vec found;
	struct lull_out out;
	int rc;

	options.format = format;
	lull_vec_init(&found, sizeof(struct lull_fleet_process));
	rc = lull_fleet_find(&found, err);
	if (!rc) {
		lull_out_init(&out, columns, LULL_COUNT_OF(columns));
		for (size_t i = 0; i < found.n; i++)
			put_process(&out, o, lull_vec_get(&found, i));
		rc = lull_out_write(&out, &options, stdout, err);
		lull_out_release(&out);
	}
	lull_vec_release(&found);
	return rc;
}

/* 500M, 10G, or bytes; 0 for no bound. */
static int parse_bytes(const char *text, u64 *to, struct lull_err *err)
{
	static const char units[] = "KMGT";
	char *end;
	f64 value = strtod(text, &end);
	const char *unit = *end ? strchr(units, *end) : NULL;

	if (end == text || value < 0 || (*end && (!unit || end[1])) || value > 1e18)
		return lull_fail(err, LULL_E_USAGE, "--keep-bytes: '%s' is not a size such as 10G",
				 text);
	for (const char *u = units; unit && u <= unit; u++)
		value *= 1024;
	*to = (u64)value;
	return 0;
}

/* Days as well, which lull_duration_parse() does not have. */
static int parse_age(const char *text, u64 *to, struct lull_err *err)
{
	char *end;
	f64 days = strtod(text, &end);

	if (end != text && strcmp(end, "d") == 0 && days >= 0 && days < 1e5) {
		*to = (u64)(days * 86400e9);
		return 0;
	}
	return lull_duration_parse(text, to, err) ? lull_err_wrap(err, "--keep-age") : 0;
}

static int parse_rules(const struct words *w, struct lull_fleet_policy *policy,
		       struct lull_err *err)
{
	struct lull_str text = LULL_STR_INIT;
	f64 share = 1, budget = 0.005;
	int rc = 0;

	if (w->share && !lull_fleet_share(w->share, &share))
		rc = lull_fail(err, LULL_E_USAGE, "--share: '%s' is not a share such as 25%%",
			       w->share);
	else if (w->budget && !lull_fleet_share(w->budget, &budget))
		rc = lull_fail(err, LULL_E_USAGE, "--budget: '%s' is not a share such as 0.5%%",
			       w->budget);
	lull_fleet_policy_init(policy, share, budget);
	if (!rc && w->policy) {
		if (!lull_file_read(w->policy, &text))
			rc = lull_fail_errno(err, "reading the policy %s", w->policy);
		else
			rc = lull_fleet_policy_parse(policy, lull_str_text(&text), w->policy, err);
	}
	lull_str_release(&text);
	return rc;
}

static int understand(const struct words *w, struct lull_fleetd_options *o, char *address,
		      size_t room, struct lull_err *err)
{
	struct stat st;

	if (lull_duration_parse(w->every, &o->every_ns, err))
		return lull_err_wrap(err, "--every");
	if (lull_duration_parse(w->report, &o->report_ns, err))
		return lull_err_wrap(err, "--report");
	if (parse_bytes(w->keep_bytes, &o->max_bytes, err) ||
	    parse_age(w->keep_age, &o->max_age_ns, err))
		return err->code;
	if (stat(o->folder, &st) != 0 || !S_ISDIR(st.st_mode))
		return lull_fail(err, LULL_E_NOT_FOUND, "%s is no folder; make it first",
				 o->folder);
	if (!strstr(o->attach, "{pid}") || !strstr(o->attach, "{output}"))
		return lull_fail(err, LULL_E_USAGE,
				 "--attach needs {pid} and {output}, such as: " ATTACH);
	if (w->metrics) {
		if (lull_metrics_parse(w->metrics, address, room, &o->metrics_port, err))
			return err->code;
		o->metrics_address = address;
	}
	return 0;
}

int cmd_fleetd(int argc, char **argv, struct lull_err *err)
{
	struct words w = {
		.every = "30s", .report = "10m", .keep_bytes = "10G", .keep_age = "14d"
	};
	struct lull_fleet_policy policy;
	struct lull_fleetd_options o = { .attach = ATTACH, .at_once = 8, .policy = &policy };
	const struct lull_opt opts[] = {
		OPT_USAGE("lull fleetd [OPTIONS] FOLDER",
			  "have GPU processes of this host recorded, and keep reports"),
		OPT_GROUP("Who is recorded"),
		OPT_STR(0, "policy", "FILE", &w.policy,
			"rules by command line and cgroup (default: everybody)"),
		OPT_STR(0, "share", "SHARE", &w.share,
			"share of the processes, where a rule does not say (default: 100%)"),
		OPT_STR(0, "budget", "SHARE", &w.budget,
			"what recording may cost, where a rule does not say (default: 0.5%)"),
		OPT_U64(0, "at-once", "N", &o.at_once, "recordings at a time (default: 8)"),
		OPT_FLAG(0, "dry-run", &w.is_dry_run,
			 "list what would be recorded and why, and exit"),
		OPT_ENUM('f', "format", &w.format, lull_out_format_names,
			 "how to print with --dry-run"),
		OPT_GROUP("When"),
		OPT_STR(0, "every", "TIME", &w.every, "look for processes so often (default: 30s)"),
		OPT_STR(0, "report", "TIME", &w.report, "time that a report covers (default: 10m)"),
		OPT_U64(0, "rounds", "N", &o.n_rounds, "end after so many looks (default: never)"),
		OPT_GROUP("What is kept"),
		OPT_STR(0, "keep-bytes", "SIZE", &w.keep_bytes,
			"space for reports; the oldest go (default: 10G, 0: no bound)"),
		OPT_STR(0, "keep-age", "TIME", &w.keep_age,
			"age of reports (default: 14d, 0: no bound)"),
		OPT_GROUP("What is told"),
		OPT_STR(0, "metrics-port", "[ADDR:]PORT", &w.metrics,
			"metrics for Prometheus, on this machine unless ADDR is given"),
		OPT_STR(0, "otlp", "FILE", &o.otlp, "the same as OTLP in JSON, after each look"),
		OPT_STR(0, "attach", "COMMAND", &o.attach,
			"command that records a process (default: " ATTACH ")"),
		OPT_END(),
	};
	int first = lull_opt_parse(argc, argv, opts, err), rc;
	char address[64];

	if (first < 0)
		return first;
	if (argc - first != 1)
		return lull_fail(err, LULL_E_USAGE,
				 "one folder is needed; try: lull fleetd /var/lib/lull");
	o.folder = argv[first];
	rc = parse_rules(&w, &policy, err);
	if (!rc)
		rc = understand(&w, &o, address, sizeof(address), err);
	if (!rc)
		rc = w.is_dry_run ? list_choices(&o, w.format, err) : lull_fleetd_run(&o, err);
	lull_fleet_policy_release(&policy);
	return rc;
}
