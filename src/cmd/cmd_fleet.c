/*
 * lull fleet - GPU time that was lost in many reports, by cause and by job.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/str.h"
#include "base/time.h"
#include "cmd/cmd.h"
#include "cmd/sink.h"
#include "fleet/fleet.h"
#include "text/opt.h"
#include "text/out.h"

#define HOUR_NS (3600.0 * 1e9)

/* Reports that cannot be read and are named; the others are counted. */
#define N_NAMED 10

enum { BY_ALL, BY_CAUSE, BY_JOB, BY_REPORT };
static const char *const tables[] = { "all", "cause", "job", "report", NULL };

#define HOURS(column, text, is_more)                                                             \
	{                                                                                        \
		.name = column, .kind = LULL_OUT_FLOAT, .unit = "h", .decimals = 4, .doc = text, \
		.is_spare = is_more                                                              \
	}

static const struct lull_out_column cause_columns[] = {
	{ .name = "Cause", .kind = LULL_OUT_TEXT },
	HOURS("GPU Time Lost", "steady steps of all devices that it cost", false),
	{ .name = "Of GPU Time", .kind = LULL_OUT_PERCENT },
	{ .name = "Lost", .kind = LULL_OUT_NS, .is_spare = true },
	{ .name = "Jobs", .kind = LULL_OUT_INT },
	{ .name = "Worst Job", .kind = LULL_OUT_TEXT, .is_spare = true },
	{ .name = "Open", .kind = LULL_OUT_TEXT, .is_wanted = true },
};

static const struct lull_out_column job_columns[] = {
	{ .name = "Job", .kind = LULL_OUT_TEXT },
	{ .name = "Host", .kind = LULL_OUT_TEXT, .is_spare = true },
	{ .name = "Reports", .kind = LULL_OUT_INT, .is_spare = true },
	HOURS("GPU Time", "steady steps of all devices", true),
	HOURS("Lost", "what causes have of it", false),
	{ .name = "Lost", .kind = LULL_OUT_PERCENT },
	{ .name = "Lost", .kind = LULL_OUT_NS, .is_spare = true },
	{ .name = "Cause", .kind = LULL_OUT_TEXT, .is_wanted = true },
	HOURS("By Cause", "what it lost", true),
	{ .name = "Since", .kind = LULL_OUT_TEXT, .is_spare = true },
	{ .name = "Open", .kind = LULL_OUT_TEXT, .is_wanted = true },
};

static const struct lull_out_column report_columns[] = {
	{ .name = "Report", .kind = LULL_OUT_TEXT },  { .name = "State", .kind = LULL_OUT_TEXT },
	{ .name = "Job", .kind = LULL_OUT_TEXT },     { .name = "Host", .kind = LULL_OUT_TEXT },
	{ .name = "Rank", .kind = LULL_OUT_ID },      { .name = "Start", .kind = LULL_OUT_TEXT },
	{ .name = "GPUs", .kind = LULL_OUT_INT },     { .name = "Steps", .kind = LULL_OUT_INT },
	{ .name = "Step", .kind = LULL_OUT_NS },      { .name = "GPU Time", .kind = LULL_OUT_NS },
	{ .name = "Lost", .kind = LULL_OUT_NS },      { .name = "Cause", .kind = LULL_OUT_TEXT },
	{ .name = "Trouble", .kind = LULL_OUT_TEXT },
};

static void put_time(struct lull_out *out, u64 utc_ns)
{
	time_t seconds = (time_t)(utc_ns / LULL_NS_PER_S);
	char text[32];
	struct tm tm;

	if (!utc_ns || !gmtime_r(&seconds, &tm)) {
		lull_out_skip(out);
		return;
	}
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	lull_out_text(out, text);
}

static void put_report(struct lull_out *out, const struct lull_fleet *f, u32 ix)
{
	const struct lull_fleet_entry *e = lull_vec_get(&f->entries, ix);
	struct lull_str path = LULL_STR_INIT;

	lull_str_addf(&path, "%s/%s", f->folder, e->file);
	lull_out_text(out, path.at);
	lull_str_release(&path);
}

static f64 percent(u64 part, u64 whole)
{
	return whole ? 100.0 * (f64)part / (f64)whole : 0;
}

static void fill_causes(struct lull_out *out, const struct lull_fleet *f)
{
	const struct lull_fleet_cause *all = f->causes.at;

	for (size_t i = 0; i < f->causes.n; i++) {
		const struct lull_fleet_job *job = lull_vec_get(&f->jobs, all[i].worst_job);

		lull_out_row(out);
		lull_out_text(out, lull_causes[all[i].cause]->id);
		lull_out_f64(out, (f64)all[i].lost_ns / HOUR_NS);
		lull_out_f64(out, percent(all[i].lost_ns, f->gpu_ns));
		lull_out_i64(out, (i64)all[i].lost_ns);
		lull_out_i64(out, all[i].n_jobs);
		lull_out_text(out, job->name);
		put_report(out, f, job->worst);
	}
}

static void fill_jobs(struct lull_out *out, const struct lull_fleet *f)
{
	const struct lull_fleet_job *all = f->jobs.at;

	for (size_t i = 0; i < f->jobs.n; i++) {
		struct lull_str hosts = LULL_STR_INIT;

		lull_str_puts(&hosts, all[i].host);
		if (all[i].n_hosts > 1)
			lull_str_addf(&hosts, " +%u", all[i].n_hosts - 1);
		lull_out_row(out);
		lull_out_text(out, all[i].name);
		lull_out_text(out, lull_str_text(&hosts));
		lull_out_i64(out, all[i].n_reports);
		lull_out_f64(out, (f64)all[i].gpu_ns / HOUR_NS);
		lull_out_f64(out, (f64)all[i].lost_ns / HOUR_NS);
		lull_out_f64(out, percent(all[i].lost_ns, all[i].gpu_ns));
		lull_out_i64(out, (i64)all[i].lost_ns);
		lull_out_text(out, all[i].cause < 0 ? "" : lull_causes[all[i].cause]->id);
		lull_out_f64(out, all[i].cause < 0
					  ? 0
					  : (f64)all[i].by_cause_ns[all[i].cause] / HOUR_NS);
		put_time(out, all[i].since_utc_ns);
		put_report(out, f, all[i].worst);
		lull_str_release(&hosts);
	}
}

static void fill_reports(struct lull_out *out, const struct lull_fleet *f)
{
	const struct lull_fleet_entry *e = f->entries.at;

	for (u32 i = 0; i < f->entries.n; i++, e++) {
		u64 lost_ns = 0;

		for (int k = 0; k < LULL_N_CAUSES; k++)
			lost_ns += e->lost_ns[k];
		lull_out_row(out);
		put_report(out, f, i);
		lull_out_text(out, lull_fleet_state_name(e->state));
		lull_out_text(out, e->job);
		lull_out_text(out, e->host);
		if (e->rank < 0)
			lull_out_skip(out);
		else
			lull_out_i64(out, e->rank);
		put_time(out, e->start_utc_ns);
		lull_out_i64(out, e->n_gpus);
		lull_out_i64(out, (i64)e->n_steps);
		lull_out_i64(out, (i64)e->step_ns);
		lull_out_i64(out, (i64)e->gpu_ns);
		lull_out_i64(out, (i64)lost_ns);
		lull_out_text(out, e->first < 0 ? "" : lull_causes[e->first]->id);
		lull_out_text(out, e->trouble);
	}
}

static int print_table(const struct lull_fleet *f, int by, const struct lull_out_options *options,
		       struct lull_err *err)
{
	static const struct {
		const struct lull_out_column *columns;
		size_t n;
		void (*fill)(struct lull_out *out, const struct lull_fleet *f);
	} all[] = {
		[BY_ALL] = { job_columns, LULL_COUNT_OF(job_columns), fill_jobs },
		[BY_CAUSE] = { cause_columns, LULL_COUNT_OF(cause_columns), fill_causes },
		[BY_JOB] = { job_columns, LULL_COUNT_OF(job_columns), fill_jobs },
		[BY_REPORT] = { report_columns, LULL_COUNT_OF(report_columns), fill_reports },
	};
	struct lull_out out;
	int rc;

	lull_out_init(&out, all[by].columns, all[by].n);
	all[by].fill(&out, f);
	rc = lull_out_write(&out, options, stdout, err);
	lull_out_release(&out);
	return rc;
}

static const char *plural(u64 n)
{
	return n == 1 ? "" : "s";
}

/* Damaged reports by name, others by count: nobody can do much about a program without steps. */
static void print_troubles(const struct lull_fleet *f, FILE *to)
{
	u32 n_damaged = f->n_by_state[LULL_FLEET_DAMAGED],
	    n_silent = f->n_by_state[LULL_FLEET_NO_ANSWER], n_said = 0;
	const struct lull_fleet_entry *e = f->entries.at;

	if (n_damaged)
		fprintf(to, "%u report%s damaged:\n", n_damaged, n_damaged == 1 ? " is" : "s are");
	for (size_t i = 0; i < f->entries.n && n_said < N_NAMED; i++)
		if (e[i].state == LULL_FLEET_DAMAGED) {
			fprintf(to, "  %s: %s\n", e[i].file, e[i].trouble);
			n_said++;
		}
	if (n_damaged > n_said)
		fprintf(to, "  ... and %u more\n", n_damaged - n_said);
	if (n_silent)
		fprintf(to,
			"%u report%s no answer (no GPU work, or no steps); --by report says why\n",
			n_silent, n_silent == 1 ? " has" : "s have");
}

static void print_head(const struct lull_fleet *f)
{
	printf("%zu report%s of %zu job%s on %u host%s: %.4f GPU hours, %.4f of them lost (%.0f "
	       "%%).\n",
	       f->entries.n, plural(f->entries.n), f->jobs.n, plural(f->jobs.n), f->n_hosts,
	       plural(f->n_hosts), (f64)f->gpu_ns / HOUR_NS, (f64)f->lost_ns / HOUR_NS,
	       percent(f->lost_ns, f->gpu_ns));
}

static int print_all(const struct lull_fleet *f, const struct lull_out_options *options,
		     struct lull_err *err)
{
	int rc = 0;

	print_head(f);
	if (f->causes.n) {
		printf("\nLost, by cause:\n");
		rc = print_table(f, BY_CAUSE, options, err);
	}
	if (!rc && f->jobs.n) {
		printf("\nJobs, those that lost most first:\n");
		rc = print_table(f, BY_JOB, options, err);
	}
	if (f->n_by_state[LULL_FLEET_DAMAGED] || f->n_by_state[LULL_FLEET_NO_ANSWER])
		printf("\n");
	print_troubles(f, stdout);
	return rc;
}

int cmd_fleet(int argc, char **argv, struct lull_err *err)
{
	struct lull_out_options options = LULL_OUT_OPTIONS_INIT;
	const char *parquet = NULL;
	bool has_index = true, is_page;
	int by = BY_ALL;
	const struct lull_opt opts[] = {
		OPT_USAGE("lull fleet [OPTIONS] FOLDER",
			  "say across many reports which causes and jobs lose GPU time"),
		OPT_ENUM(0, "by", &by, tables,
			 "what a row is: cause, job or report; all (default): a summary, causes "
			 "and jobs"),
		OPT_ENUM('f', "format", &options.format, lull_out_format_names, "how to print"),
		OPT_U64('n', "top", "N", &options.top, "at most so many rows of each table"),
		OPT_STR(0, "parquet", "FILE", &parquet,
			"also write a row for each report and cause, for DuckDB, pandas and Spark"),
		OPT_BOOL(0, "index", &has_index,
			 "remember what was read in FOLDER/.lull-fleet (default: true)"),
		OPT_END(),
	};
	int first = lull_opt_parse(argc, argv, opts, err), rc;
	struct lull_fleet f;

	if (first < 0)
		return first;
	if (argc - first != 1)
		return lull_fail(err, LULL_E_USAGE,
				 "one folder is needed; try: lull fleet reports");
	if (lull_sink_spare_report(parquet, err))
		return err->code;
	rc = lull_fleet_read(&f, argv[first], has_index, err);
	if (!rc) {
		lull_fleet_sum(&f);
		if (parquet)
			rc = lull_fleet_write_parquet(&f, parquet, err);
		/* A program reads one table, not three things below each other. */
		is_page = by == BY_ALL && !options.format;
		if (!rc)
			rc = is_page ? print_all(&f, &options, err)
				     : print_table(&f, by, &options, err);
		if (!rc && !is_page)
			print_troubles(&f, stderr);
	}
	lull_fleet_release(&f);
	return rc;
}
