#include "fleet/fleet.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "base/time.h"

/* Folders in folders: job, day, host. Links may go round in circles. */
#define MAX_DEPTH 8

const char *lull_fleet_state_name(enum lull_fleet_state state)
{
	static const char *const names[LULL_FLEET_N_STATES] = { "good", "no-answer", "damaged" };

	return names[state];
}

void lull_fleet_entry_release(struct lull_fleet_entry *e)
{
	free(e->file);
	free(e->trouble);
	free(e->job);
	free(e->host);
}

static bool is_report(const char *name)
{
	size_t n = strlen(name);

	return n > 5 && strcmp(name + n - 5, ".lull") == 0;
}

static void add(struct lull_fleet *f, const char *file, const struct stat *st)
{
	struct lull_fleet_entry *e = lull_vec_push(&f->entries);

	*e = (struct lull_fleet_entry){
		.file = lull_strdup(file),
		.size_bytes = (u64)st->st_size,
		.mtime_ns = (u64)st->st_mtim.tv_sec * LULL_NS_PER_S + (u64)st->st_mtim.tv_nsec,
	};
}

/* The reports in a folder (within ours, "" is ours itself) and below it. */
static int list(struct lull_fleet *f, const char *within, int depth, struct lull_err *err)
{
	struct lull_str path = LULL_STR_INIT, file = LULL_STR_INIT;
	struct dirent *entry;
	struct stat st;
	DIR *dir;

	lull_str_addf(&path, "%s/%s", f->folder, within);
	dir = opendir(lull_str_text(&path));
	if (!dir) {
		int rc = depth ? LULL_OK : lull_fail_errno(err, "opening the folder %s", f->folder);

		lull_str_release(&path);
		return rc; /* one below that is not ours to read is no failure */
	}
	while ((entry = readdir(dir))) {
		if (*entry->d_name == '.')
			continue;
		lull_str_clear(&file);
		lull_str_clear(&path);
		lull_str_addf(&file, "%s%s%s", within, *within ? "/" : "", entry->d_name);
		lull_str_addf(&path, "%s/%s", f->folder, lull_str_text(&file));
		if (stat(lull_str_text(&path), &st) != 0)
			continue;
		if (S_ISDIR(st.st_mode) && depth < MAX_DEPTH)
			list(f, lull_str_text(&file), depth + 1, err);
		else if (S_ISREG(st.st_mode) && is_report(entry->d_name))
			add(f, lull_str_text(&file), &st);
	}
	closedir(dir);
	lull_str_release(&file);
	lull_str_release(&path);
	return LULL_OK;
}

static int by_file(const void *a, const void *b)
{
	const struct lull_fleet_entry *x = a, *y = b;

	return strcmp(x->file, y->file);
}

static void examine(struct lull_fleet *f, struct lull_fleet_entry *e)
{
	struct lull_str path = LULL_STR_INIT;

	lull_str_addf(&path, "%s/%s", f->folder, e->file);
	lull_fleet_examine(e, path.at);
	lull_str_release(&path);
}

int lull_fleet_read(struct lull_fleet *f, const char *folder, bool has_index, struct lull_err *err)
{
	struct lull_fleet_entry *all;
	bool *is_known;
	int rc;

	*f = (struct lull_fleet){ .folder = lull_strdup(folder) };
	lull_vec_init(&f->entries, sizeof(struct lull_fleet_entry));
	lull_vec_init(&f->jobs, sizeof(struct lull_fleet_job));
	lull_vec_init(&f->causes, sizeof(struct lull_fleet_cause));
	rc = list(f, "", 0, err);
	if (rc)
		return rc;
	if (f->entries.n)
		lull_sort(f->entries.at, f->entries.n, sizeof(struct lull_fleet_entry), by_file);
	all = f->entries.at;
	is_known = lull_alloc(f->entries.n + 1, sizeof(*is_known));
	if (has_index)
		f->n_indexed = lull_fleet_index_load(folder, &f->entries, is_known);
	for (size_t i = 0; i < f->entries.n; i++)
		if (!is_known[i])
			examine(f, &all[i]);
	if (has_index && f->n_indexed < f->entries.n)
		lull_fleet_index_store(folder, &f->entries);
	free(is_known);
	return LULL_OK;
}

void lull_fleet_release(struct lull_fleet *f)
{
	struct lull_fleet_entry *all = f->entries.at;

	for (size_t i = 0; i < f->entries.n; i++)
		lull_fleet_entry_release(&all[i]);
	lull_vec_release(&f->entries);
	lull_vec_release(&f->jobs);
	lull_vec_release(&f->causes);
	free(f->folder);
}
