#include "base/newest.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"

struct search {
	const char *folder, *suffix;
	struct lull_vec *files;
	struct lull_vec folders; /* struct below: those still to be looked into */
};

struct below {
	char *path;
	int depth;
};

static int newest_first(const void *a, const void *b)
{
	const struct lull_newest *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? 1 : -1;
	return strcmp(x->path, y->path);
}

static bool ends_in(const char *name, const char *suffix)
{
	size_t len = strlen(name), n = strlen(suffix);

	return len > n && !strcmp(name + len - n, suffix);
}

static void consider(struct search *s, const char *path, int depth)
{
	struct lull_str full = LULL_STR_INIT;
	struct stat st;

	lull_str_addf(&full, "%s/%s", s->folder, path);
	if (lstat(full.at, &st) != 0) {
		lull_str_release(&full);
		return;
	}
	if (S_ISDIR(st.st_mode) && depth < LULL_NEWEST_DEPTH) {
		*(struct below *)lull_vec_push(&s->folders) =
			(struct below){ lull_strdup(path), depth + 1 };
	} else if (S_ISREG(st.st_mode) && ends_in(path, s->suffix) &&
		   s->files->n < LULL_NEWEST_MAX) {
		*(struct lull_newest *)lull_vec_push(s->files) =
			(struct lull_newest){ lull_strdup(path), (u64)st.st_size,
					      (i64)st.st_mtim.tv_sec * 1000000000 +
						      st.st_mtim.tv_nsec };
	}
	lull_str_release(&full);
}

static void look(struct search *s, const struct below *below)
{
	struct lull_str path = LULL_STR_INIT;
	struct dirent *entry;
	DIR *dir;

	lull_str_addf(&path, "%s/%s", s->folder, below->path);
	dir = opendir(path.at);
	while (dir && (entry = readdir(dir))) {
		if (*entry->d_name == '.')
			continue;
		lull_str_clear(&path);
		lull_str_addf(&path, "%s%s%s", below->path, *below->path ? "/" : "", entry->d_name);
		consider(s, path.at, below->depth);
	}
	if (dir)
		closedir(dir);
	lull_str_release(&path);
}

void lull_newest_list(const char *folder, const char *suffix, struct lull_vec *files)
{
	struct search s = { .folder = folder, .suffix = suffix, .files = files };

	lull_vec_init(files, sizeof(struct lull_newest));
	lull_vec_init(&s.folders, sizeof(struct below));
	*(struct below *)lull_vec_push(&s.folders) = (struct below){ lull_strdup(""), 0 };
	for (size_t i = 0; i < s.folders.n; i++) {
		/* The array may move while the folder is looked into. */
		struct below below = ((struct below *)s.folders.at)[i];

		look(&s, &below);
		free(below.path);
	}
	lull_vec_release(&s.folders);
	lull_sort(files->at, files->n, sizeof(struct lull_newest), newest_first);
}

void lull_newest_release(struct lull_vec *files)
{
	struct lull_newest *all = files->at;

	for (size_t i = 0; i < files->n; i++)
		free(all[i].path);
	lull_vec_release(files);
}
