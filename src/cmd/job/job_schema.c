/*
 * job_schema - the schema of `lull why FOLDER --format json`.
 */
#include "cmd/schema_json.h"

static const struct lull_property clocks[] = {
	{ "how", "string", "same (one host), fitted, durations (no fit) or none", NULL },
	{ "why", "string|null", "why there is no fit", NULL },
	{ "domains", "integer", "clocks", NULL },
	{ "residual_ns", "number", "how far single collectives scatter, at worst", NULL },
	{ "error_ns", "number", "standard error of the offsets, at worst", NULL },
	{ "bound_ns", "number", "what offsets are certain to, at worst", NULL },
	{ "checked_ranks", "integer", "--by-rank: ranks that share a clock with another", NULL },
	{ "checked_off_ns", "number", "how far the fits of these are off, at worst", NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct lull_property shares[] = {
	{ "compute", "number", "kernels run", NULL },
	{ "wait", "number", "in collectives, for the last rank", NULL },
	{ "transfer", "number", "bytes move with nothing beside", NULL },
	{ "bubble", "number", "waiting in sends and receives", NULL },
	{ "copy", "number", "copies with nothing beside", NULL },
	{ "idle", "number", "nothing runs", NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct lull_property stragglers[] = {
	{ "rank", "integer", "that others wait for", NULL },
	{ "host", "string|null", "where it runs", NULL },
	{ "file", "string", "its report", NULL },
	{ "since_step", "integer|null", "null: in all steps", NULL },
	{ "late_ns", "number", "after the others, a step, since then", NULL },
	{ "share_of_steps", "number", "in which it is late, since then", NULL },
	{ "cause", "string|null", "its own; null if it cannot be told", NULL },
	{ "excess_ns", "number", "a step: what it spends on that more than others", NULL },
	{ "evidence", "string|null", "the evidence", NULL },
	{ "fix", "string", "one thing to try", NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct lull_property stages[] = {
	{ "stage", "integer", "from where batches enter", NULL },
	{ "ranks", "integer", "replicas", NULL },
	{ "compute_ns", "number", "a step", NULL },
	{ "bubble_ns", "number", "a step: waiting in sends and receives", NULL },
	{ "compute", "number", "share of the step", NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct lull_property groups[] = {
	{ "n", "integer", "ranks", NULL },
	{ "cause", "string|null", "most common one of each alone", NULL },
	{ "is_late", "boolean", "others wait for them", NULL },
	{ "compute", "number", "and wait, transfer, bubble, copy, idle: mean shares", NULL },
	{ "ranks", "array", "which", NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct lull_property collectives[] = {
	{ "name", "string", "operation", NULL },
	{ "communicator", "string|null", "its name", NULL },
	{ "ranks", "integer", "of the communicator, 0 if not known", NULL },
	{ "size_below_bytes", "integer", "a power of two; sizes are at least half of it", NULL },
	{ "n", "integer", "over all ranks, in steady steps", NULL },
	{ "total_ns", "integer", "time on the device", NULL },
	{ "wait_ns", "integer", "of that: for the last rank", NULL },
	{ "transfer_ns", "integer", "the rest, where other ranks are known", NULL },
	{ "exposed_ns", "integer", "of the total: no kernel beside it", NULL },
	{ "exposed_wait_ns", "integer", "of the waiting: no kernel beside it", NULL },
	{ "bytes", "integer", "messages, larger side", NULL },
	{ "algorithm_gb_s", "number", "bytes by transfer time", NULL },
	{ "bus_gb_s", "number", "the same in terms of links", NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct lull_property communicators[] = {
	{ "groups", "integer", "communicators of this kind", NULL },
	{ "ranks", "integer", "of each", NULL },
	{ "name", "string|null", "theirs, if they have the same", NULL },
	{ "operations", "string", "what they do, the most frequent first", NULL },
	{ "n", "integer", "operations over all ranks, in steady steps", NULL },
	{ "rank_steps", "integer", "divide by this for one rank and step", NULL },
	{ "bytes", "integer", "messages, larger side", NULL },
	{ "total_ns", "integer", "time on the device", NULL },
	{ "exposed_ns", "integer", "of that: no kernel beside it", NULL },
	{ "role", "string|null", "what they are for; null: cannot tell", NULL },
	{ "is_guess", "boolean", "the role is not in their name", NULL },
	{ "members", "array", "ranks of the first of them, 64 at most", NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct lull_property heat[] = {
	{ "ranks_a_row", "integer", "a cell shows the largest of what it covers", NULL },
	{ "steps_a_column", "integer", "the same", NULL },
	{ "first_step", "integer", "of the first column", NULL },
	{ "most_ns", "number", "the largest", NULL },
	{ "rows", "array", "of arrays of ns; null: not recorded", NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct lull_property clock[] = {
	{ "begin_ns", "integer", "time of the job at time 0 of the report", NULL },
	{ "utc_offset_ns", "integer", "how far the host's UTC is ahead of the reference's", NULL },
	{ "drift_ppm", "number", "what the reference gains on it", NULL },
	{ "residual_ns", "number", "scatter of single collectives", NULL },
	{ "error_ns", "number", "standard error of the offset", NULL },
	{ "bound_ns", "number", "what the offset is certain to", NULL },
	{ "collectives", "integer", "the fit rests on", NULL },
	{ "domain", "integer", "ranks with the same number share a clock", NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct lull_property ranks[] = {
	{ "rank", "integer", "its number", NULL },
	{ "file", "string", "its report", NULL },
	{ "host", "string|null", "where it ran", NULL },
	{ "local_rank", "integer|null", "on that host", NULL },
	{ "rank_from", "string|null", "where that comes from: report, name, communicator or order",
	  NULL },
	{ "clock", "object", "how its times become times of the job", clock },
	{ "cause", "string|null", "what lull why says about it alone", NULL },
	{ "stage", "integer|null", "of the pipeline", NULL },
	{ "group", "integer", "index into groups", NULL },
	{ "steps", "integer", "steady ones", NULL },
	{ "step_ns", "number", "mean", NULL },
	{ "window_ns", "integer", "all of them; the six below add up to it", NULL },
	{ "compute_ns", "integer", "kernels run", NULL },
	{ "wait_ns", "integer", "for the last rank", NULL },
	{ "transfer_ns", "integer", "bytes move", NULL },
	{ "bubble_ns", "integer", "in sends and receives", NULL },
	{ "copy_ns", "integer", "copies", NULL },
	{ "idle_ns", "integer", "nothing runs", NULL },
	{ "late_ns", "integer", "after the others, sum over the steps", NULL },
	{ "exposed_ns", "integer", "communication without kernels: wait, transfer and bubble",
	  NULL },
	{ "overlapped_ns", "integer", "communication while kernels run, a part of compute_ns",
	  NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct lull_property skipped[] = {
	{ "file", "string", "that could not be used", NULL },
	{ "why", "string", "why not", NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct lull_property document[] = {
	{ "folder", "string", "what was analysed", NULL },
	{ "world_size", "integer|null", "ranks of the job", NULL },
	{ "first", "string|null", "what delays the job; null if that cannot be determined", NULL },
	{ "cannot_tell", "string|null", "why not", NULL },
	{ "likely", "string|null", "then: the cause that is likely all the same", NULL },
	{ "step_ns", "number", "median step", NULL },
	{ "mean_step_ns", "number", "mean step of all ranks", NULL },
	{ "cost_ns", "number", "of the first cause, a step", NULL },
	{ "steps", "integer", "of the job, warm-up left out", NULL },
	{ "first_step", "integer", "number of the first of them", NULL },
	{ "shares", "object", "where the time of the ranks goes", shares },
	{ "hidden", "number", "share of the collectives' time with computing beside it", NULL },
	{ "clocks", "object", "how the clocks of ranks were aligned", clocks },
	{ "collectives_met", "integer", "with two or more ranks", NULL },
	{ "each", "integer", "only every n-th collective was read; 1: all", NULL },
	{ "notes", "array", "warnings about the answer", NULL },
	{ "skipped", "array", "reports that could not be used", skipped },
	{ "stragglers", "array", "ranks that others wait for, worst first", stragglers },
	{ "stages", "array", "of a pipeline", stages },
	{ "groups", "array", "ranks that behave alike", groups },
	{ "collectives", "array", "by operation, ranks and size", collectives },
	{ "communicators", "array", "groups that exchange data, most time first", communicators },
	{ "late", "object", "heat map of how late ranks arrive, by rank and step", heat },
	{ "waiting", "object", "heat map of how long they wait", heat },
	{ "ranks", "array", "by rank", ranks },
	{ NULL, NULL, NULL, NULL },
};

void lull_schema_of_job(struct lull_json *j)
{
	lull_schema_json_object(j, "lull why FOLDER --format json", document);
}
