#include "cmd/job_export.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/str.h"
#include "cmd/job_print.h"
#include "import/import.h"
#include "job/json.h"

struct exporting {
	const struct lull_export *format;
	const struct lull_export_options *options;
	bool is_overwriting;
	const char *to;
};

static int make_folder(const char *path, struct lull_err *err)
{
	if (mkdir(path, 0777) && errno != EEXIST)
		return lull_fail_errno(err, "creating the folder %s", path);
	return LULL_OK;
}

/* One table of one rank. */
static int write_table(const struct exporting *e, struct lull_reader *r, i64 rank,
		       const struct lull_table_desc *table, struct lull_err *err)
{
	struct lull_export_options options = *e->options;
	struct lull_str path = LULL_STR_INIT;
	struct lull_export_target target;
	char *name = lull_strdup(table->name);
	int rc;

	lull_vec_init(&options.tables, sizeof(char *));
	lull_vec_add(&options.tables, &name, 1);
	lull_str_addf(&path, "%s/rank=%lld/table=%s", e->to, (long long)rank, table->name);
	rc = make_folder(lull_str_text(&path), err);
	lull_str_addf(&path, "/part-0%s", e->format->suffix);
	target = (struct lull_export_target){ lull_str_text(&path), e->is_overwriting };
	if (!rc)
		rc = lull_export_write(r, e->format, &options, &target, err);
	lull_vec_release(&options.tables);
	lull_str_release(&path);
	free(name);
	return rc;
}

static int write_rank(const struct exporting *e, const struct lull_job *job,
		      const struct lull_job_rank *rank, struct lull_err *err)
{
	struct lull_str path = LULL_STR_INIT;
	const struct lull_schema *schema;
	struct lull_reader *r;
	int rc;

	lull_job_path(job, rank, &path);
	rc = lull_import_open(lull_str_text(&path), &r, err);
	if (rc)
		goto out;
	lull_str_clear(&path);
	lull_str_addf(&path, "%s/rank=%lld", e->to, (long long)rank->rank);
	rc = make_folder(lull_str_text(&path), err);
	schema = lull_reader_schema(r);
	for (size_t i = 0; !rc && i < schema->n; i++)
		if (lull_export_holds(r, &schema->tables[i], e->options))
			rc = write_table(e, r, rank->rank, &schema->tables[i], err);
	lull_reader_close(r);
out:
	lull_str_release(&path);
	return rc;
}

/* What one process could not do, all know. */
static int agree(struct lull_job *job, int rc, struct lull_err *err)
{
	struct lull_team_parts parts;
	struct lull_err own = { LULL_OK, "" };

	if (rc)
		own = *err;
	if (lull_team_gather(&job->team, &own, sizeof(own), &parts, err)) {
		lull_team_parts_release(&parts);
		return err->code;
	}
	rc = LULL_OK;
	for (u32 i = 0; i < job->team.size && !rc; i++) {
		memcpy(&own, parts.at[i], sizeof(own));
		if (own.code)
			rc = lull_fail(err, own.code, "%s", own.msg);
	}
	lull_team_parts_release(&parts);
	return rc;
}

static int write_all(const struct exporting *e, struct lull_job *job, struct lull_err *err)
{
	const struct lull_job_rank *all = job->ranks.at;
	struct lull_job manifest = *job;
	struct stat st;
	int rc = LULL_OK;

	if (lull_team_speaks(&job->team)) {
		if (!e->is_overwriting && stat(e->to, &st) == 0)
			rc = lull_fail(err, LULL_E_IO,
				       "%s exists; --force-overwrite writes into it, --output names "
				       "another folder",
				       e->to);
		if (!rc)
			rc = make_folder(e->to, err);
	}
	rc = agree(job, rc, err);
	for (size_t i = 0; !rc && i < job->ranks.n; i++)
		if (all[i].owner == job->team.rank)
			rc = make_folder(e->to, err) || write_rank(e, job, &all[i], err)
				     ? err->code
				     : LULL_OK;
	rc = agree(job, rc, err);
	manifest.folder = e->to;
	if (!rc && lull_team_speaks(&job->team))
		rc = lull_job_write_manifest(&manifest, err);
	return rc;
}

int lull_job_export(const char *folder, const struct lull_export *format,
		    const struct lull_export_options *options,
		    const struct lull_export_target *target, struct lull_err *err)
{
	struct exporting e = { format, options, target->is_overwriting, target->path };
	struct lull_str name = LULL_STR_INIT;
	size_t len = strlen(folder);
	struct lull_job job;
	int rc;

	if (!format->member_suffix || !format->write)
		return lull_fail(err, LULL_E_USAGE,
				 "%s is a folder of rank reports; only formats that have a file for "
				 "each table take one, such as parquet or csv",
				 folder);
	while (len > 1 && folder[len - 1] == '/')
		len--;
	lull_str_addf(&name, "%.*s-%s", (int)len, folder, format->name);
	e.to = e.to ? e.to : lull_str_text(&name);
	rc = lull_job_open(&job, folder, NULL, err);
	if (!rc)
		rc = write_all(&e, &job, err);
	if (!rc && lull_team_speaks(&job.team))
		fprintf(stderr, "lull: %s: %zu ranks\n", e.to, job.ranks.n);
	rc = lull_job_status(&job, rc);
	lull_job_release(&job);
	lull_str_release(&name);
	return rc;
}
