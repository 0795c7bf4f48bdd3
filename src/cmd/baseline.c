/*
 * A new baseline is written into NAME.new and then takes the place of the old one, so that a full
 * disk leaves the old one as it was.
 */
#include "cmd/baseline.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "import/import.h"
#include "trace/reader.h"

static bool is_file(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static int by_length_and_name(const void *a, const void *b)
{
	const char *x = *(char *const *)a, *y = *(char *const *)b;

	if (strlen(x) != strlen(y))
		return strlen(x) < strlen(y) ? -1 : 1;
	return strcmp(x, y);
}

static bool is_report(const char *name)
{
	size_t len = strlen(name);

	return len > 5 && strcmp(name + len - 5, ".lull") == 0;
}

/* The reports in a folder, by number. */
static void list_reports(DIR *dir, const char *folder, struct lull_vec *paths)
{
	size_t first = paths->n;
	struct dirent *entry;

	while ((entry = readdir(dir))) {
		struct lull_str path = LULL_STR_INIT;

		if (!is_report(entry->d_name))
			continue;
		lull_str_addf(&path, "%s/%s", folder, entry->d_name);
		*(char **)lull_vec_push(paths) = lull_strdup(lull_str_text(&path));
		lull_str_release(&path);
	}
	if (paths->n > first)
		lull_sort((char **)paths->at + first, paths->n - first, sizeof(char *),
			  by_length_and_name);
}

int lull_baseline_find(const char *store, const char *word, struct lull_vec *paths,
		       struct lull_err *err)
{
	struct lull_str folder = LULL_STR_INIT;
	size_t n = paths->n;
	DIR *dir;

	if (is_file(word)) {
		*(char **)lull_vec_push(paths) = lull_strdup(word);
		return LULL_OK;
	}
	lull_str_addf(&folder, "%s/%s", store, word);
	dir = opendir(lull_str_text(&folder));
	if (dir) {
		list_reports(dir, lull_str_text(&folder), paths);
		closedir(dir);
	}
	if (paths->n == n)
		lull_fail(err, LULL_E_NOT_FOUND,
			  "no baseline '%s': there is no such report, and none in %s; lull gate "
			  "--save %s REPORT... stores one",
			  word, store, word);
	lull_str_release(&folder);
	return paths->n == n ? err->code : LULL_OK;
}

static int copy_file(const char *from, const char *to, struct lull_err *err)
{
	int in = open(from, O_RDONLY | O_CLOEXEC), out;
	char bytes[65536];
	ssize_t n;

	if (in < 0)
		return lull_fail_errno(err, "opening %s", from);
	out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (out < 0) {
		close(in);
		return lull_fail_errno(err, "creating %s", to);
	}
	while ((n = read(in, bytes, sizeof(bytes))) > 0)
		if (write(out, bytes, (size_t)n) != n) {
			n = -1;
			break;
		}
	if (n < 0)
		lull_fail_errno(err, "copying %s to %s", from, to);
	close(in);
	if (close(out) && n == 0) {
		n = -1;
		lull_fail_errno(err, "writing %s", to);
	}
	return n < 0 ? err->code : LULL_OK;
}

static void remove_folder(const char *folder)
{
	struct lull_vec paths;
	DIR *dir = opendir(folder);
	char **at;

	if (!dir)
		return;
	lull_vec_init(&paths, sizeof(char *));
	list_reports(dir, folder, &paths);
	closedir(dir);
	at = paths.at;
	for (size_t i = 0; i < paths.n; i++) {
		unlink(at[i]);
		free(at[i]);
	}
	lull_vec_release(&paths);
	rmdir(folder);
}

static int make_folder(const char *path, struct lull_err *err)
{
	if (mkdir(path, 0777) && errno != EEXIST)
		return lull_fail_errno(err, "creating the folder %s", path);
	return LULL_OK;
}

static int copy_all(const char *folder, char **reports, struct lull_err *err)
{
	int rc = LULL_OK;

	for (size_t i = 0; !rc && reports[i]; i++) {
		struct lull_str path = LULL_STR_INIT;
		struct lull_reader *reader;

		/* What is no report would be found out in every later comparison. */
		rc = lull_import_open(reports[i], &reader, err);
		if (rc)
			break;
		lull_reader_close(reader);
		lull_str_addf(&path, "%s/%zu.lull", folder, i + 1);
		rc = copy_file(reports[i], lull_str_text(&path), err);
		lull_str_release(&path);
	}
	return rc;
}

/* Put the new folder in the place of the old one. */
static int replace(const char *fresh, const char *folder, struct lull_err *err)
{
	remove_folder(folder);
	if (rename(fresh, folder))
		return lull_fail_errno(err, "renaming %s to %s", fresh, folder);
	return LULL_OK;
}

int lull_baseline_save(const char *store, const char *name, char **reports, struct lull_err *err)
{
	struct lull_str folder = LULL_STR_INIT, fresh = LULL_STR_INIT;
	int rc;

	if (strchr(name, '/') || *name == '.' || !*name)
		return lull_fail(
			err, LULL_E_USAGE,
			"'%s' is not a name for a baseline: it must not contain / or start with .",
			name);
	lull_str_addf(&folder, "%s/%s", store, name);
	lull_str_addf(&fresh, "%s/.%s.new", store, name);
	rc = make_folder(store, err);
	if (!rc) {
		remove_folder(lull_str_text(&fresh));
		rc = make_folder(lull_str_text(&fresh), err);
	}
	if (!rc)
		rc = copy_all(lull_str_text(&fresh), reports, err);
	if (!rc)
		rc = replace(lull_str_text(&fresh), lull_str_text(&folder), err);
	else
		remove_folder(lull_str_text(&fresh));
	if (!rc)
		fprintf(stderr, "lull: baseline '%s' is in %s\n", name, lull_str_text(&folder));
	lull_str_release(&folder);
	lull_str_release(&fresh);
	return rc;
}
