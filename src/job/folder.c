/*
 * folder - which files make the job, and which process reads which.
 *
 * Every process lists its own folder: on a shared filesystem all see the same, on local disks each
 * sees what lies there. A file goes to the process that has the fewest bytes to read among those
 * that see it.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/sort.h"
#include "job/job_int.h"

/* A file as one process sees it. */
struct listed {
	char file[sizeof(((struct lull_job_rank *)0)->file)];
	u64 size_bytes;
	u32 owner;
	u32 pad;
};

bool lull_job_is_folder(const char *path)
{
	struct stat st;

	return path && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool ends_in(const char *name, const char *suffix)
{
	size_t len = strlen(name), n = strlen(suffix);

	return len > n && strcmp(name + len - n, suffix) == 0;
}

/* Reports, and traces of PyTorch, which write one for each rank, too. */
static bool is_report(const char *name)
{
	return ends_in(name, ".lull") || ends_in(name, ".json.gz") ||
	       ends_in(name, ".pt.trace.json");
}

static int by_name(const void *a, const void *b)
{
	const struct listed *x = a, *y = b;
	int order = strcmp(x->file, y->file);

	return order ? order : (x->owner > y->owner) - (x->owner < y->owner);
}

static int list_own(const struct lull_job *job, struct lull_vec *to, struct lull_err *err)
{
	DIR *dir = opendir(job->folder);
	struct dirent *entry;

	if (!dir)
		return lull_fail_errno(err, "opening the folder %s", job->folder);
	while ((entry = readdir(dir))) {
		struct lull_str path = LULL_STR_INIT;
		struct listed *l;
		struct stat st;

		lull_str_addf(&path, "%s/%s", job->folder, entry->d_name);
		if (*entry->d_name != '.' && is_report(entry->d_name) &&
		    stat(lull_str_text(&path), &st) == 0 && S_ISREG(st.st_mode)) {
			l = lull_vec_push(to);
			snprintf(l->file, sizeof(l->file), "%s", entry->d_name);
			l->size_bytes = (u64)st.st_size;
			l->owner = job->team.rank;
		}
		lull_str_release(&path);
	}
	closedir(dir);
	return LULL_OK;
}

/* Files are by name, each once for every process that sees it. */
static void assign(const struct lull_job *job, const struct lull_vec *all, struct lull_vec *files)
{
	const struct listed *at = all->at;
	u64 *load = lull_alloc(job->team.size, sizeof(*load));

	for (size_t i = 0, end; i < all->n; i = end) {
		struct lull_job_rank *rank = lull_vec_push(files);
		size_t best = i;

		for (end = i; end < all->n && strcmp(at[end].file, at[i].file) == 0; end++)
			best = load[at[end].owner] < load[at[best].owner] ? end : best;
		snprintf(rank->file, sizeof(rank->file), "%s", at[i].file);
		rank->size_bytes = at[best].size_bytes;
		rank->owner = at[best].owner;
		load[rank->owner] += rank->size_bytes;
	}
	free(load);
}

int lull_job_list(struct lull_job *job, struct lull_vec *files, struct lull_err *err)
{
	struct lull_team_parts parts = { NULL, NULL, NULL };
	struct lull_err own = { LULL_OK, "" };
	struct lull_vec listed, all;
	int rc, failed;

	lull_vec_init(&listed, sizeof(struct listed));
	lull_vec_init(&all, sizeof(struct listed));
	failed = list_own(job, &listed, &own);
	rc = lull_team_gather(&job->team, listed.at, listed.n * sizeof(struct listed), &parts, err);
	for (u32 i = 0; !rc && i < job->team.size; i++)
		lull_vec_add(&all, parts.at[i], parts.len[i] / sizeof(struct listed));
	if (all.n)
		lull_sort(all.at, all.n, sizeof(struct listed), by_name);
	if (!rc && all.n)
		assign(job, &all, files);
	else if (!rc && failed)
		rc = lull_fail(err, own.code, "%s", own.msg);
	else if (!rc)
		rc = lull_fail(
			err, LULL_E_NOT_FOUND,
			"no reports in the folder %s: expected one .lull for each rank, such "
			"as lull profile -o %s/run writes under a launcher",
			job->folder, job->folder);
	lull_team_parts_release(&parts);
	lull_vec_release(&listed);
	lull_vec_release(&all);
	return rc;
}
