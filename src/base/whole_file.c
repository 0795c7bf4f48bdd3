#include "base/whole_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"

static bool exists(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

static bool is_dot(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

static bool ends_in(const char *name, const char *suffix)
{
	size_t len = strlen(name), cut = strlen(suffix);

	return len > cut && !strcmp(name + len - cut, suffix);
}

/* True if the folder holds nothing that is not ours. */
static bool is_ours(const char *path, const char *suffix)
{
	DIR *dir = opendir(path);
	const struct dirent *entry;
	bool ok = dir != NULL;

	while (ok && (entry = readdir(dir)))
		ok = is_dot(entry->d_name) || ends_in(entry->d_name, suffix);
	if (dir)
		closedir(dir);
	return ok;
}

int lull_whole_file_remove(const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *entry;

	if (!dir)
		return unlink(path);
	while ((entry = readdir(dir)))
		if (!is_dot(entry->d_name))
			unlinkat(dirfd(dir), entry->d_name, 0);
	closedir(dir);
	return rmdir(path);
}

/* Those who write the file may say less about it: SQLite is unable to open a database. */
static int check_folder(const char *path, struct lull_err *err)
{
	const char *slash = strrchr(path, '/');
	char *folder = lull_strndup(path, slash ? (size_t)(slash - path) : 0);
	int rc = LULL_OK;

	if (*folder && access(folder, F_OK))
		rc = lull_fail_creating(err, path);
	free(folder);
	return rc;
}

static int check_free(const struct lull_whole_file *place, struct lull_err *err)
{
	const char *suffix = place->rules.member_suffix;
	struct stat st;

	if (lstat(place->path, &st))
		return check_folder(place->path, err);
	if (!place->rules.is_overwriting)
		return lull_fail(err, LULL_E_IO, "%s exists; --force-overwrite replaces it",
				 place->path);
	if (!suffix && S_ISDIR(st.st_mode))
		return lull_fail(err, LULL_E_IO, "%s is a folder; give the name of a file",
				 place->path);
	if (suffix && (!S_ISDIR(st.st_mode) || !is_ours(place->path, suffix)))
		return lull_fail(err, LULL_E_IO,
				 "%s is a folder that contains other files than %s files; remove "
				 "it, or give another name",
				 place->path, suffix);
	return LULL_OK;
}

int lull_whole_file_begin(struct lull_whole_file *place, const char *path,
			  const struct lull_whole_file_rules *rules, struct lull_err *err)
{
	struct lull_str part = LULL_STR_INIT;
	size_t len = strlen(path);

	while (len > 1 && path[len - 1] == '/')
		len--;
	*place = (struct lull_whole_file){ .rules = *rules };
	lull_str_add(&part, path, len);
	place->path = lull_strdup(part.at);
	lull_str_addf(&part, ".%d.part", (int)getpid());
	place->part = part.at;
	if (check_free(place, err)) {
		free(place->path);
		free(place->part);
		return err->code;
	}
	/* Only a process of the same number that was killed can have left one. */
	if (exists(place->part))
		lull_whole_file_remove(place->part);
	return LULL_OK;
}

/* Rename, never over something that came in between; file systems that cannot promise it try. */
static int rename_to_free(const char *from, const char *to)
{
	if (!renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE))
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -1;
	if (exists(to)) {
		errno = EEXIST;
		return -1;
	}
	return rename(from, to);
}

static int settle(const struct lull_whole_file *place, struct lull_err *err)
{
	int rc = check_free(place, err);

	if (rc)
		return rc;
	/* Files are replaced in one step. Folders cannot be: the old one goes first. */
	if (place->rules.is_overwriting && !place->rules.member_suffix)
		rc = rename(place->part, place->path);
	else if (place->rules.is_overwriting && exists(place->path) &&
		 lull_whole_file_remove(place->path))
		return lull_fail_errno(err, "replacing %s", place->path);
	else
		rc = rename_to_free(place->part, place->path);
	return rc ? lull_fail_errno(err, "creating %s", place->path) : LULL_OK;
}

int lull_whole_file_end(struct lull_whole_file *place, int rc, struct lull_err *err)
{
	if (!rc)
		rc = settle(place, err);
	if (rc && exists(place->part))
		lull_whole_file_remove(place->part);
	free(place->path);
	free(place->part);
	return rc;
}
