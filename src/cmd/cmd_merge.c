/*
 * lull merge - make a job of a folder of rank reports: check that they belong together, fit their
 * clocks, and write what was found as a manifest.
 */
#include "cmd/cmd.h"

#include <stdio.h>

#include "text/opt.h"
#include "text/term.h"
#include "cmd/job/job_print.h"
#include "job/job_json.h"

enum { FORMAT_TEXT, FORMAT_JSON };

struct merge {
	struct lull_job_options options;
	int format;
	bool is_dry;
};

static int print(const struct merge *m, const struct lull_job *job)
{
	int width = lull_term_width(stdout);
	struct lull_json j;

	if (m->format == FORMAT_JSON) {
		lull_json_init(&j, stdout);
		j.is_pretty = true;
		lull_job_json_manifest(&j, job);
		putchar('\n');
		return LULL_OK;
	}
	lull_job_print_notes(stdout, job, width);
	printf("%zu rank%s\n", job->ranks.n, job->ranks.n == 1 ? "" : "s");
	lull_job_print_clocks(stdout, job, width);
	return LULL_OK;
}

static int run(const struct merge *m, const char *folder, struct lull_err *err)
{
	struct lull_job job;
	int rc = lull_job_open(&job, folder, &m->options, err);

	/* Without a common time, what is measured between ranks would be made up. */
	if (!rc && job.clocks >= LULL_CLOCKS_DURATIONS)
		rc = lull_fail(err, LULL_E_UNSUPPORTED,
			       "clocks of the ranks in %s cannot be aligned: %s", folder,
			       job.clocks_why);
	if (!rc && lull_team_speaks(&job.team)) {
		rc = print(m, &job);
		if (!rc && !m->is_dry)
			rc = lull_job_write_manifest(&job, err);
	}
	rc = lull_job_status(&job, rc);
	lull_job_release(&job);
	return rc;
}

int cmd_merge(int argc, char **argv, struct lull_err *err)
{
	static const char *const formats[] = { "text", "json", NULL };
	struct merge m = { .format = FORMAT_TEXT };
	const struct lull_opt opts[] = {
		OPT_USAGE("lull merge [OPTIONS] FOLDER",
			  "Check the rank reports in a folder, align their clocks, and write "
			  "job.json. The reports are not changed."),
		OPT_FLAG(0, "by-rank", &m.options.is_by_rank,
			 "fit a clock for each rank, although ranks of one host share one"),
		OPT_FLAG('n', "dry-run", &m.is_dry, "write nothing"),
		OPT_ENUM('f', "format", &m.format, formats, "format of the answer (default: text)"),
		OPT_END(),
	};
	int first = lull_opt_parse(argc, argv, opts, err);

	if (first < 0)
		return first;
	if (argc - first != 1 || !lull_job_is_folder(argv[first]))
		return lull_fail(err, LULL_E_USAGE, "expected one folder of rank reports%s%s",
				 argc - first == 1 ? ", and this is not one: " : "",
				 argc - first == 1 ? argv[first] : "");
	return run(&m, argv[first], err);
}
