#include "fleet/fleet_keep.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "base/time.h"
#include "base/vec.h"

#define MAX_DEPTH 8

/* Recorders write every second, but those that record now and then may pause for long. */
#define STALE_NS (3600 * LULL_NS_PER_S)

struct file {
	char *path;
	u64 size_bytes, mtime_ns;
	bool is_report;
};

static bool ends_in(const char *name, const char *suffix)
{
	size_t len = strlen(name), n = strlen(suffix);

	return len > n && strcmp(name + len - n, suffix) == 0;
}

static u64 mtime_of(const struct stat *st)
{
	return (u64)st->st_mtim.tv_sec * LULL_NS_PER_S + (u64)st->st_mtim.tv_nsec;
}

static int list(const char *folder, struct lull_vec *to, int depth, struct lull_err *err)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;

	if (!dir)
		return depth ? 0 : lull_fail_errno(err, "opening the folder %s", folder);
	while ((entry = readdir(dir))) {
		struct lull_str path = LULL_STR_INIT;
		struct stat st;
		bool is_report = ends_in(entry->d_name, ".lull");

		lull_str_addf(&path, "%s/%s", folder, entry->d_name);
		if (*entry->d_name == '.' || lstat(path.at, &st) != 0) {
			lull_str_release(&path);
			continue;
		}
		if (S_ISDIR(st.st_mode) && depth < MAX_DEPTH)
			list(path.at, to, depth + 1, err);
		else if (S_ISREG(st.st_mode) && (is_report || ends_in(entry->d_name, ".part")))
			*(struct file *)lull_vec_push(to) =
				(struct file){ lull_strdup(path.at), (u64)st.st_size, mtime_of(&st),
					       is_report };
		lull_str_release(&path);
	}
	closedir(dir);
	return 0;
}

static int by_age(const void *a, const void *b)
{
	const struct file *x = a, *y = b;

	if (x->mtime_ns != y->mtime_ns)
		return x->mtime_ns < y->mtime_ns ? -1 : 1;
	return strcmp(x->path, y->path);
}

/* A recorder of this machine has it open. */
static bool is_locked(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	bool is = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0;

	if (fd >= 0)
		close(fd);
	return is;
}

/* Somebody writes this `.part` file. */
static bool is_written(const char *path, u64 mtime_ns, u64 now_ns)
{
	return now_ns < mtime_ns + STALE_NS || is_locked(path);
}

/* Somebody writes it, or is about to replace it. */
static bool is_busy(const struct file *f, const struct lull_fleet_bound *bound, u64 now_ns)
{
	struct lull_str part = LULL_STR_INIT;
	struct stat st;
	bool is;

	if (bound->is_busy && bound->is_busy(bound->ctx, f->path))
		return true;
	if (!f->is_report)
		return is_written(f->path, f->mtime_ns, now_ns);
	lull_str_addf(&part, "%s.part", f->path);
	is = stat(part.at, &st) == 0 && is_written(part.at, mtime_of(&st), now_ns);
	lull_str_release(&part);
	return is;
}

/* Remove the file if it is too much, or have it finished if nobody else will. */
static void treat(const struct file *f, const struct lull_fleet_bound *bound, u64 now_ns,
		  struct lull_fleet_kept *kept)
{
	u64 age_ns = now_ns > f->mtime_ns ? now_ns - f->mtime_ns : 0;
	bool is_too_much = (bound->max_age_ns && age_ns > bound->max_age_ns) ||
			   (bound->max_bytes && kept->n_bytes > bound->max_bytes);

	if ((!is_too_much && f->is_report) || is_busy(f, bound, now_ns))
		return;
	if (!is_too_much && bound->on_stale) {
		bound->on_stale(bound->ctx, f->path);
	} else if (is_too_much && unlink(f->path) == 0) {
		kept->n_bytes -= f->size_bytes;
		kept->n_reports -= f->is_report;
		kept->n_removed++;
	}
}

int lull_fleet_keep(const char *folder, const struct lull_fleet_bound *bound, u64 now_ns,
		    struct lull_fleet_kept *kept, struct lull_err *err)
{
	struct lull_vec files;
	struct file *all;
	int rc;

	*kept = (struct lull_fleet_kept){ 0 };
	lull_vec_init(&files, sizeof(struct file));
	rc = list(folder, &files, 0, err);
	all = files.at;
	for (size_t i = 0; i < files.n; i++) {
		kept->n_bytes += all[i].size_bytes;
		kept->n_reports += all[i].is_report;
	}
	if (files.n)
		lull_sort(all, files.n, sizeof(*all), by_age);
	for (size_t i = 0; i < files.n; i++) {
		treat(&all[i], bound, now_ns, kept);
		free(all[i].path);
	}
	lull_vec_release(&files);
	return rc;
}
