#include "cmd/job/job_diff.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/convert.h"
#include "text/json.h"
#include "text/out.h"
#include "text/term.h"
#include "cmd/job/job_print.h"
#include "compare/decide.h"
#include "job/job_json.h"

/* The change of a step that is said to be one. */
#define THRESHOLD 0.05

enum { BEFORE, AFTER };

static const char *cause_of(const struct lull_job *job)
{
	return job->verdict.cause < 0 ? NULL : lull_causes[job->verdict.cause]->id;
}

/* "straggler (rank 17)" */
static void name_cause(const struct lull_job *job, char *to, size_t cap)
{
	const struct lull_job_straggler *late = job->stragglers.at;
	const struct lull_job_rank *ranks = job->ranks.at;

	if (cause_of(job) && lull_causes[job->verdict.cause]->ranks == LULL_RANKS_LATE)
		snprintf(to, cap, "%s (rank %lld)", cause_of(job),
			 (long long)ranks[late->rank_ix].rank);
	else
		snprintf(to, cap, "%s", cause_of(job) ? cause_of(job) : "unknown");
}

/* Lengths of the steps, of the rank that has most of them. */
static void sample(const struct lull_job *job, struct lull_samples *to)
{
	const struct lull_job_rank *all = job->ranks.at, *best = all;
	const struct lull_job_step *steps;
	u32 n;

	for (size_t i = 1; i < job->ranks.n; i++)
		best = all[i].n_steps > best->n_steps ? &all[i] : best;
	steps = lull_job_steps(job, best, &n);
	lull_samples_init(to);
	for (u32 i = 0; i < n; i++)
		lull_samples_add(to, (f64)steps[i].dur_ns);
	lull_samples_end_run(to);
}

static void decide(const struct lull_job *jobs, struct lull_decision *decision)
{
	const struct lull_decide_rule rule = { .threshold = THRESHOLD, .alpha = LULL_DECIDE_ALPHA };
	struct lull_samples samples[2];

	for (int i = 0; i < 2; i++)
		sample(&jobs[i], &samples[i]);
	lull_decide(&samples[0], &samples[1], &rule, decision);
	for (int i = 0; i < 2; i++)
		lull_samples_release(&samples[i]);
}

static const struct {
	const char *name;
	size_t off;
} parts[] = {
	{ "computing", offsetof(struct lull_job_verdict, compute) },
	{ "waiting for the last rank", offsetof(struct lull_job_verdict, wait) },
	{ "moving bytes, exposed", offsetof(struct lull_job_verdict, transfer) },
	{ "waiting in sends and receives", offsetof(struct lull_job_verdict, bubble) },
	{ "copying, exposed", offsetof(struct lull_job_verdict, copy) },
	{ "idle", offsetof(struct lull_job_verdict, idle) },
};

/* A part of the step in ns, mean over the ranks. */
static f64 part_ns(const struct lull_job *job, size_t i)
{
	f64 share;

	memcpy(&share, (const char *)&job->verdict + parts[i].off, sizeof(share));
	return share * job->verdict.mean_ns;
}

static int print_parts(const struct lull_job *jobs, struct lull_err *err)
{
	static const struct lull_out_column columns[] = {
		{ .name = "Part of a step", .kind = LULL_OUT_TEXT },
		{ .name = "Before", .kind = LULL_OUT_NS, .decimals = 1 },
		{ .name = "After", .kind = LULL_OUT_NS, .decimals = 1 },
		{ .name = "Difference", .kind = LULL_OUT_NS, .decimals = 1 },
	};
	struct lull_out_options options = LULL_OUT_OPTIONS_INIT;
	struct lull_out out;
	int rc;

	lull_out_init(&out, columns, LULL_COUNT_OF(columns));
	for (size_t i = 0; i < LULL_COUNT_OF(parts); i++) {
		f64 before = part_ns(&jobs[BEFORE], i), after = part_ns(&jobs[AFTER], i);

		if (before < 1 && after < 1)
			continue;
		lull_out_row(&out);
		lull_out_text(&out, parts[i].name);
		lull_out_f64(&out, before);
		lull_out_f64(&out, after);
		lull_out_f64(&out, after - before);
	}
	options.is_human = true;
	printf("\nMean over the ranks:\n");
	rc = lull_out_write(&out, &options, stdout, err);
	lull_out_release(&out);
	return rc;
}

static const struct lull_job_kind *find_kind(const struct lull_job *job,
					     const struct lull_job_kind *like)
{
	const struct lull_job_kind *all = job->kinds.at;

	for (size_t i = 0; i < job->kinds.n; i++)
		if (strcmp(all[i].name, like->name) == 0 && all[i].n_ranks == like->n_ranks &&
		    all[i].size_class == like->size_class)
			return &all[i];
	return NULL;
}

static void put_kind(struct lull_out *out, const struct lull_job_kind *before,
		     const struct lull_job_kind *after)
{
	const struct lull_job_kind *any = before ? before : after, *both[] = { before, after };

	lull_out_row(out);
	lull_out_text(out, any->name);
	lull_out_i64(out, any->n_ranks);
	lull_out_i64(out, (i64)(1ULL << any->size_class));
	for (int i = 0; i < 2; i++) {
		if (both[i] && both[i]->n)
			lull_out_f64(out, (f64)both[i]->dur_ns / (f64)both[i]->n);
		else
			lull_out_skip(out);
	}
	for (int i = 0; i < 2; i++) {
		if (both[i] && both[i]->dur_ns)
			lull_out_f64(out, (f64)both[i]->wait_ns / (f64)both[i]->dur_ns * 100);
		else
			lull_out_skip(out);
	}
}

static int print_kinds(const struct lull_job *jobs, struct lull_err *err)
{
	static const struct lull_out_column columns[] = {
		{ .name = "Operation", .kind = LULL_OUT_TEXT },
		{ .name = "Ranks", .kind = LULL_OUT_ID },
		{ .name = "Below", .kind = LULL_OUT_BYTES },
		{ .name = "Before", .kind = LULL_OUT_NS, .decimals = 1 },
		{ .name = "After", .kind = LULL_OUT_NS, .decimals = 1 },
		{ .name = "Waits Before", .kind = LULL_OUT_PERCENT },
		{ .name = "Waits After", .kind = LULL_OUT_PERCENT },
	};
	struct lull_out_options options = LULL_OUT_OPTIONS_INIT;
	const struct lull_job_kind *all = jobs[BEFORE].kinds.at;
	struct lull_out out;
	int rc = LULL_OK;

	lull_out_init(&out, columns, LULL_COUNT_OF(columns));
	for (size_t i = 0; i < jobs[BEFORE].kinds.n; i++)
		put_kind(&out, &all[i], find_kind(&jobs[AFTER], &all[i]));
	all = jobs[AFTER].kinds.at;
	for (size_t i = 0; i < jobs[AFTER].kinds.n; i++)
		if (!find_kind(&jobs[BEFORE], &all[i]))
			put_kind(&out, NULL, &all[i]);
	options.is_human = true;
	if (lull_out_len(&out)) {
		printf("\nCollectives, each:\n");
		rc = lull_out_write(&out, &options, stdout, err);
	}
	lull_out_release(&out);
	return rc;
}

static int print_text(const struct lull_job *jobs, struct lull_err *err)
{
	struct lull_decision d;
	char before[64], after[64];
	struct lull_str change = LULL_STR_INIT;

	decide(jobs, &d);
	name_cause(&jobs[BEFORE], before, sizeof(before));
	name_cause(&jobs[AFTER], after, sizeof(after));
	for (int i = 0; i < 2; i++)
		lull_job_print_notes(stderr, &jobs[i], lull_term_width(stderr));
	if (jobs[BEFORE].verdict.cause == jobs[AFTER].verdict.cause)
		printf("The bottleneck is still %s.\n", after);
	else
		printf("The bottleneck moved from %s to %s.\n", before, after);
	lull_str_addf(&change, "%zu ranks before, %zu after. Step: %s before, %s after (medians); ",
		      jobs[BEFORE].ranks.n, jobs[AFTER].ranks.n,
		      lull_format_ns(lull_u64_of(d.before)).text,
		      lull_format_ns(lull_u64_of(d.after)).text);
	if (d.verdict == LULL_INCONCLUSIVE || d.verdict == LULL_NOT_COMPARABLE)
		lull_str_puts(&change, d.why);
	else
		lull_decide_say(&d, &change);
	lull_term_line(stdout, lull_str_text(&change), 0);
	lull_str_release(&change);
	return print_parts(jobs, err) || print_kinds(jobs, err) ? err->code : LULL_OK;
}

static void print_json(const struct lull_job *jobs)
{
	static const char *const names[] = { "before", "after" };
	struct lull_json j;

	lull_json_init(&j, stdout);
	j.is_pretty = true;
	lull_json_object(&j);
	for (int i = 0; i < 2; i++) {
		lull_json_key(&j, names[i]);
		lull_job_json(&j, &jobs[i]);
	}
	lull_json_end(&j);
	putchar('\n');
}

int lull_job_diff(const char *before, const char *after, bool is_json, struct lull_err *err)
{
	struct lull_job jobs[2];
	int rc = lull_job_open(&jobs[BEFORE], before, NULL, err), rc_after;

	if (!rc)
		rc = lull_job_run(&jobs[BEFORE], err);
	rc_after = rc ? rc : lull_job_open(&jobs[AFTER], after, NULL, err);
	if (!rc && !rc_after)
		rc_after = lull_job_run(&jobs[AFTER], err);
	if (!rc_after && lull_team_speaks(&jobs[BEFORE].team)) {
		if (is_json)
			print_json(jobs);
		else
			rc_after = print_text(jobs, err);
	}
	rc_after = lull_job_status(&jobs[BEFORE], rc_after);
	if (!rc)
		lull_job_release(&jobs[AFTER]);
	lull_job_release(&jobs[BEFORE]);
	return rc_after;
}
