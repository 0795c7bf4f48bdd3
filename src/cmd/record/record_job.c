#include "cmd/record/record_job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/session/job_rank.h"
#include "record/live/metrics_port.h"

size_t lull_record_job_opts(struct lull_record_job *job, struct lull_opt *opts)
{
	const struct lull_opt all[] = {
		OPT_GROUP("Long jobs with many ranks"),
		OPT_STR(0, "ranks", "LIST", &job->ranks,
			"record only these ranks of a job, such as 0,8,16-23; all (default); "
			"stage-heads[:STAGES], the first of each pipeline stage"),
		OPT_STR(0, "part-dir", "DIR", &job->part_dir,
			"write the report here first, then move it to its place (default: TMPDIR "
			"if "
			"that place is on NFS, Lustre or the like)"),
		OPT_F64(0, "flight", "SECONDS", &job->flight_s,
			"flight recorder: keep the last seconds, and write them on SIGUSR1, lull "
			"snapshot, --trigger or a crash"),
		OPT_STR(0, "trigger", "RULE", &job->trigger,
			"with --flight, write them when a step takes longer: step>1.5x (than "
			"usual), "
			"step>200ms"),
		OPT_STR(0, "duty", "SHARE", &job->duty,
			"record a few steps now and then, such as 2% of the time, at random "
			"moments; "
			"CUPTI is gone in between"),
		OPT_STR(0, "budget", "SHARE", &job->budget,
			"the same, as often as it may cost: 0.5% of the program's time, measured "
			"by its steps"),
		OPT_U64(0, "duty-seed", "N", &job->duty_seed,
			"with --duty or --budget, where random moments come from (default: another "
			"one each time)"),
		OPT_U64(0, "flight-limit", "N", &job->flight_limit,
			"maximum number of reports for slow steps and crashes (default: 10)"),
		OPT_STR(0, "metrics-port", "[ADDR:]PORT", &job->metrics,
			"step time, idle share, launches, bytes and losses for Prometheus, on this "
			"machine unless ADDR is given; local rank N takes PORT + N"),
	};

	_Static_assert(LULL_COUNT_OF(all) <= LULL_RECORD_JOB_OPTS, "make room for all options");
	memcpy(opts, all, sizeof(all));
	return LULL_COUNT_OF(all);
}

/* step>1.5x, step>200ms; units ns, us, ms, s. */
static int parse_trigger(const char *text, struct lull_collector_options *o, struct lull_err *err)
{
	static const struct {
		const char *name;
		f64 ns;
	} units[] = { { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 } };
	const char *number = strncmp(text, "step>", 5) == 0 ? text + 5 : "";
	char *unit;
	f64 value = strtod(number, &unit);

	if (unit != number && value > 1 && strcmp(unit, "x") == 0) {
		o->slow_factor = value;
		return 0;
	}
	for (size_t i = 0; unit != number && i < LULL_COUNT_OF(units); i++) {
		if (strcmp(unit, units[i].name) != 0 || value <= 0 || value * units[i].ns > 1e18)
			continue;
		o->slow_ns = (u64)(value * units[i].ns);
		return 0;
	}
	return lull_fail(err, LULL_E_USAGE,
			 "--trigger: '%s' is not a rule such as 'step>1.5x' or 'step>200ms' (in "
			 "quotes: > is special in the shell)",
			 text);
}

static int parse_flight(struct lull_record_job *job, struct lull_collector_options *o,
			struct lull_err *err)
{
	if (job->flight_s < 0 || job->flight_s > 86400)
		return lull_fail(err, LULL_E_USAGE, "--flight is 0 to 86400 seconds");
	if (job->trigger && !(job->flight_s > 0))
		return lull_fail(err, LULL_E_USAGE,
				 "--trigger needs --flight=SECONDS, the time to keep");
	if (job->flight_s > 0 && o->begin == LULL_BEGIN_ON_RANGE)
		return lull_fail(err, LULL_E_USAGE,
				 "--flight and --capture-range exclude each other; a flight "
				 "recorder is always on");
	o->flight_s = job->flight_s;
	o->flight_limit = (u32)job->flight_limit;
	return job->trigger ? parse_trigger(job->trigger, o, err) : 0;
}

/* 2%, or 0.02. */
static int parse_share(const char *name, const char *text, f64 *share, struct lull_err *err)
{
	char *end;
	f64 value = strtod(text, &end);

	if (end != text && strcmp(end, "%") == 0)
		value /= 100, end++;
	if (end == text || *end || !(value > 0) || value >= 1)
		return lull_fail(err, LULL_E_USAGE,
				 "--%s: '%s' is not a share of the time such as 2%% or 0.02", name,
				 text);
	*share = value;
	return 0;
}

int lull_record_duty_parse(const char *duty, const char *budget, u64 seed,
			   struct lull_collector_options *o, struct lull_err *err)
{
	if (!duty && !budget)
		return 0;
	if (o->begin != LULL_BEGIN_AT_ONCE || o->kernels)
		return lull_fail(err, LULL_E_USAGE,
				 "--duty and --budget cannot be combined with --steps, "
				 "--capture-range or --start-later; they say themselves when to "
				 "record");
	if (duty && parse_share("duty", duty, &o->duty_share, err))
		return err->code;
	if (budget && parse_share("budget", budget, &o->duty_budget, err))
		return err->code;
	o->is_duty = true;
	o->duty_seed = seed;
	return 0;
}

static int parse_metrics(struct lull_record_job *job, struct lull_collector_options *o,
			 struct lull_err *err)
{
	struct lull_rank rank = lull_job_rank();
	i64 port;

	if (!job->metrics)
		return 0;
	if (lull_metrics_parse(job->metrics, job->metrics_address, sizeof(job->metrics_address),
			       &o->metrics_port, err))
		return err->code;
	o->metrics_address = job->metrics_address;
	port = o->metrics_port + (o->metrics_port && rank.local_rank > 0 ? rank.local_rank : 0);
	if (port > 65535)
		return lull_fail(err, LULL_E_USAGE,
				 "--metrics-port: port %u + local rank %lld is more than 65535",
				 o->metrics_port, (long long)rank.local_rank);
	o->metrics_port = (u16)port;
	return 0;
}

int lull_record_job_parse(struct lull_record_job *job, char **argv,
			  struct lull_collector_options *o, struct lull_err *err)
{
	size_t room = sizeof(((struct lull_control *)0)->ranks);

	o->part_dir = job->part_dir;
	if (job->ranks) {
		if (lull_job_ranks(job->ranks, argv, &job->rank_list, err))
			return err->code;
		if (job->rank_list.len >= room)
			return lull_fail(
				err, LULL_E_USAGE,
				"--ranks: the list has %zu characters, the limit is %zu; use "
				"FROM-TO",
				job->rank_list.len, room - 1);
		o->ranks = job->rank_list.at;
	}
	if (parse_flight(job, o, err) ||
	    lull_record_duty_parse(job->duty, job->budget, job->duty_seed, o, err))
		return err->code;
	return parse_metrics(job, o, err);
}

int lull_record_job_step_aside(const struct lull_record_job *job, char **argv,
			       const struct lull_vec *env, int *status, struct lull_err *err)
{
	struct lull_rank rank = lull_job_rank();
	char **more = env->at;

	if (!job->ranks || rank.rank < 0 ||
	    lull_ranks_has(job->rank_list.at, rank.rank, rank.n_ranks))
		return 0;
	for (size_t i = 0; i < env->n; i++)
		putenv(more[i]);
	execvp(argv[0], argv);
	*status = errno == ENOENT ? 127 : 126;
	if (errno == ENOENT)
		return lull_fail(err, LULL_E_NOT_FOUND, "'%s' not found; is the path right?",
				 argv[0]);
	return lull_fail_errno(err, "cannot execute '%s'", argv[0]);
}

void lull_record_job_release(struct lull_record_job *job)
{
	lull_str_release(&job->rank_list);
}
