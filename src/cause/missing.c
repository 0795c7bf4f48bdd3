/*
 * missing - sources that were not recorded, what they are needed for, and how to record them.
 *
 * Which causes need a source is in their `needs`; nothing here names a cause.
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "cause/thresholds.h"
#include "cause/why_int.h"

/* A source that more causes need than this is needed for all of it. */
#define MAX_NAMED 3

/* process.exit_kind of a program that ended by itself. */
#define EXITED 1

static bool lacks_calls(const struct lull_why *why)
{
	return !why->lead->chain.n;
}

static bool lacks_host(const struct lull_why *why)
{
	return !why->lead->host.events.n && !why->lead->host.has_samples;
}

static bool lacks_gil(const struct lull_why *why)
{
	const struct lull_host *h = &why->lead->host;

	return !h->has_gil && !h->has_ops && lull_subject_is_python(why->lead);
}

static bool lacks_sched(const struct lull_why *why)
{
	return !why->lead->host.has_sched;
}

static bool lacks_os(const struct lull_why *why)
{
	return !why->lead->host.has_os;
}

static bool lacks_counters(const struct lull_why *why)
{
	return !lull_reader_stats(why->reader, LULL_TABLE_counter).n_rows;
}

static bool lacks_ranks(const struct lull_why *why)
{
	return why->lead->collective_ns && why->n_subjects < 2;
}

static bool lacks_graphs(const struct lull_why *why)
{
	const struct lull_subject *s = why->lead;

	return 2 * s->blind_ns[LULL_BLIND_GRAPH] > s->window_ns - s->split_ns[LULL_SPLIT_COMPUTE];
}

static const struct source {
	u32 need; /* LULL_NEED_... */
	const char *what;
	const char *options; /* of lull profile */
	bool (*is_missing)(const struct lull_why *why);
} sources[] = {
	{ LULL_NEED_CALLS, "CUDA calls", "--trace=cuda,nvtx,osrt,python-gil ", lacks_calls },
	{ LULL_NEED_HOST, "what threads do between calls (samples, ranges, operators)",
	  "--sample=process-tree --python-sampling=true ", lacks_host },
	{ LULL_NEED_GIL, "waits for Python's lock", "--trace=cuda,nvtx,osrt,python-gil ",
	  lacks_gil },
	{ LULL_NEED_SCHED, "scheduling of threads", "--cpuctxsw=process-tree ", lacks_sched },
	{ LULL_NEED_OS, "calls of the C library", "--trace=cuda,nvtx,osrt,python-gil ", lacks_os },
	{ LULL_NEED_COUNTERS, "clocks and power", "--gpu-metrics=nvml ", lacks_counters },
	{ LULL_NEED_RANKS, "the other ranks", "--trace=cuda,nvtx,osrt,python-gil,nccl ",
	  lacks_ranks },
	{ LULL_NEED_GRAPHS, "kernels of CUDA graphs", "--cuda-graph-trace=node ", lacks_graphs },
};

/* " (needed for gil)": the causes that cannot do without it, if they are few. */
static void add_causes(struct lull_str *text, u32 need)
{
	u32 n = 0, n_said = 0;

	for (int i = 0; i < LULL_N_CAUSES; i++)
		n += !!(lull_causes[i]->needs & need);
	for (int i = 0; n <= MAX_NAMED && i < LULL_N_CAUSES; i++) {
		if (lull_causes[i]->needs & need)
			lull_str_addf(text, "%s%s",
				      !n_said++	    ? " (needed for "
				      : n_said == n ? " and "
						    : ", ",
				      lull_causes[i]->id);
	}
	lull_str_puts(text, n_said ? ")" : "");
}

void lull_why_missing(struct lull_why *why)
{
	for (size_t i = 0; i < LULL_COUNT_OF(sources); i++) {
		struct lull_str text = LULL_STR_INIT;

		if (!sources[i].is_missing(why))
			continue;
		lull_str_puts(&text, sources[i].what);
		add_causes(&text, sources[i].need);
		*(char **)lull_vec_push(&why->missing) = lull_strdup(lull_str_text(&text));
		lull_str_release(&text);
	}
}

const char *lull_why_command(const struct lull_why *why)
{
	size_t n;
	const struct lull_process_row *processes =
		lull_reader_dim(why->reader, LULL_TABLE_process, &n);
	const char *line =
		lull_reader_string(why->reader, processes[why->lead->process - 1].cmdline, NULL);

	return line && *line ? line : "PROGRAM";
}

/* Whether the program came to its end: the same command would give no more steps. */
static bool has_ended(const struct lull_why *why)
{
	size_t n;
	const struct lull_process_row *processes =
		lull_reader_dim(why->reader, LULL_TABLE_process, &n);

	return processes[why->lead->process - 1].exit_kind == EXITED;
}

void lull_why_settle(struct lull_why *why, u32 needs)
{
	struct lull_str text = LULL_STR_INIT;
	bool is_of_ranks = false, is_found = false, is_trial = needs == LULL_NEED_TRIAL;

	lull_str_puts(&text, is_trial ? "lull try " : "lull profile ");
	for (size_t i = 0; i < LULL_COUNT_OF(sources); i++) {
		if (!(sources[i].need & needs) || !sources[i].is_missing(why))
			continue;
		is_found = true;
		is_of_ranks |= sources[i].need == LULL_NEED_RANKS;
		lull_str_puts(&text, sources[i].options);
	}
	lull_str_addf(&text, "%s%s", is_trial ? "" : "-- ", lull_why_command(why));
	snprintf(why->settle, sizeof(why->settle), "%s", lull_str_text(&text));
	snprintf(why->settle_how, sizeof(why->settle_how), "%s",
		 is_of_ranks	  ? "on every rank, then lull why on the folder of their reports"
		 : is_trial	  ? "which measures what the fixes bring"
		 : is_found	  ? ""
		 : has_ended(why) ? "and let the program do more steps: it came to its end here"
				  : "for more steps");
	lull_str_release(&text);
}
