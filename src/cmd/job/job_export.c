#include "cmd/job/job_export.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "cmd/job/job_print.h"
#include "cmd/losses.h"
#include "import/import.h"
#include "job/job_json.h"

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

/* NAME.SUFFIX of the folder `from` becomes table=NAME/part-0.SUFFIX of the folder of the rank. */
static int move_table(const char *from, const char *rank, const char *file, struct lull_err *err)
{
	struct lull_str path = LULL_STR_INIT, old = LULL_STR_INIT;
	const char *dot = strchr(file, '.');
	int rc;

	lull_str_addf(&old, "%s/%s", from, file);
	lull_str_addf(&path, "%s/table=%.*s", rank, (int)(dot - file), file);
	rc = make_folder(lull_str_text(&path), err);
	lull_str_addf(&path, "/part-0%s", dot);
	if (!rc && rename(lull_str_text(&old), lull_str_text(&path)))
		rc = lull_fail_errno(err, "renaming %s to %s", lull_str_text(&old),
				     lull_str_text(&path));
	lull_str_release(&path);
	lull_str_release(&old);
	return rc;
}

static int move_tables(const char *from, const char *rank, struct lull_err *err)
{
	DIR *dir = opendir(from);
	struct dirent *entry;
	int rc = LULL_OK;

	if (!dir)
		return lull_fail_errno(err, "opening the folder %s", from);
	while (!rc && (entry = readdir(dir)))
		if (*entry->d_name != '.' && strchr(entry->d_name, '.'))
			rc = move_table(from, rank, entry->d_name, err);
	closedir(dir);
	if (!rc && rmdir(from))
		rc = lull_fail_errno(err, "removing the folder %s", from);
	return rc;
}

static int write_rank(const struct exporting *e, const struct lull_job *job,
		      const struct lull_job_rank *rank, struct lull_err *err)
{
	struct lull_str path = LULL_STR_INIT, to = LULL_STR_INIT, tables = LULL_STR_INIT;
	struct lull_export_target target = { .is_overwriting = true };
	struct lull_reader *r = NULL;
	int rc;

	lull_job_path(job, rank, &path);
	lull_str_addf(&to, "%s/rank=%lld", e->to, (long long)rank->rank);
	lull_str_addf(&tables, "%s/tables", lull_str_text(&to));
	target.path = lull_str_text(&tables);
	rc = lull_import_open(lull_str_text(&path), &r, err);
	if (!rc)
		rc = make_folder(lull_str_text(&to), err);
	if (!rc)
		rc = lull_export_write(r, e->format, e->options, &target, err);
	if (!rc)
		rc = move_tables(target.path, lull_str_text(&to), err);
	lull_losses_close(r, lull_str_text(&path));
	lull_str_release(&path);
	lull_str_release(&to);
	lull_str_release(&tables);
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
			rc = lull_fail(
				err, LULL_E_IO,
				"%s exists; --force-overwrite writes into it, --output names "
				"another folder",
				e->to);
		if (!rc)
			rc = make_folder(e->to, err);
	}
	rc = agree(job, rc, err);
	for (size_t i = 0; !rc && i < job->ranks.n; i++)
		if (all[i].owner == job->team.rank)
			rc = make_folder(e->to, err) || write_rank(e, job, &all[i], err) ? err->code
											 : LULL_OK;
	rc = agree(job, rc, err);
	manifest.folder = e->to;
	if (!rc && lull_team_speaks(&job->team))
		rc = lull_job_write_manifest(&manifest, err);
	return rc;
}

/* False where the folder can be read and has nothing of ours in it. */
static bool may_have_reports(const char *folder)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	bool has_any = !dir;

	while (!has_any && (entry = readdir(dir)) != NULL)
		has_any = strstr(entry->d_name, ".lull") || strstr(entry->d_name, ".json");
	if (dir)
		closedir(dir);
	return has_any;
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

	if (!may_have_reports(folder))
		return lull_fail(err, LULL_E_NOT_FOUND, "no reports in the folder %s", folder);
	if (!lull_export_makes_folder(format, options))
		return lull_fail(
			err, LULL_E_USAGE,
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
