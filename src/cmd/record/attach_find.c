#include "cmd/record/attach_find.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"

int lull_attach_pid(const char *word, int *pid, struct lull_err *err)
{
	char *end;
	long n = strtol(word, &end, 10);

	if (*end || end == word || n <= 0 || n > 0x7fffffff)
		return lull_fail(
			err, LULL_E_USAGE,
			"'%s' is not the number of a process; --name finds one by its name", word);
	*pid = (int)n;
	return 0;
}

/* The parent of a process, 0 if it is gone. */
static pid_t parent_of(pid_t pid)
{
	struct lull_str text = LULL_STR_INIT;
	char path[64];
	const char *at;
	int parent = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (lull_file_read(path, &text)) {
		at = strrchr(text.at, ')');
		if (!at || sscanf(at, ") %*c %d", &parent) != 1)
			parent = 0;
	}
	lull_str_release(&text);
	return parent;
}

/* Its name is that, or its command line has it. */
static bool has_name(pid_t pid, const char *name)
{
	static const char *const files[] = { "comm", "cmdline" };
	struct lull_str text = LULL_STR_INIT;
	bool is_found = false;
	char path[64];

	for (size_t i = 0; i < LULL_COUNT_OF(files) && !is_found; i++) {
		snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, files[i]);
		lull_str_clear(&text);
		if (!lull_file_read(path, &text))
			continue;
		for (size_t k = 0; k + 1 < text.len; k++)
			if (!text.at[k])
				text.at[k] = ' ';
		is_found = strstr(text.at, name) != NULL;
	}
	lull_str_release(&text);
	return is_found;
}

static bool is_listed(const struct lull_vec *pids, pid_t pid)
{
	for (size_t i = 0; i < pids->n; i++)
		if (*(pid_t *)lull_vec_get(pids, i) == pid)
			return true;
	return false;
}

/* We, and who waits for us: their command lines have the name, too. */
static bool is_own(pid_t pid)
{
	for (pid_t at = getpid(); at > 1; at = parent_of(at))
		if (at == pid)
			return true;
	return false;
}

/* Append each process that has the name (if there is one), else each child of those listed. */
static bool add_each(const char *name, struct lull_vec *pids)
{
	DIR *dir = opendir("/proc");
	struct dirent *e;
	size_t n = pids->n;

	while (dir && (e = readdir(dir))) {
		pid_t pid = (pid_t)atoi(e->d_name);

		if (pid <= 0 || is_listed(pids, pid))
			continue;
		if (name ? has_name(pid, name) && !is_own(pid) : is_listed(pids, parent_of(pid)))
			lull_vec_add(pids, &pid, 1);
	}
	if (dir)
		closedir(dir);
	return pids->n > n;
}

static int find_by_name(const char *name, bool is_tree, struct lull_vec *pids, struct lull_err *err)
{
	struct lull_str list = LULL_STR_INIT;
	size_t n_roots = 0, root = 0;

	add_each(name, pids);
	for (size_t i = 0; i < pids->n; i++) {
		pid_t pid = *(pid_t *)lull_vec_get(pids, i);

		if (is_listed(pids, parent_of(pid)))
			continue; /* a worker of one that has the name */
		root = i;
		n_roots++;
		lull_str_addf(&list, " %d", (int)pid);
	}
	if (n_roots == 1 && root) {
		pid_t *at = pids->at, first = at[root];

		at[root] = at[0];
		at[0] = first;
	}
	if (n_roots == 1 && !is_tree)
		pids->n = 1;
	if (!pids->n)
		lull_fail(err, LULL_E_NOT_FOUND, "no process has the name '%s'", name);
	else if (n_roots > 1)
		lull_fail(err, LULL_E_USAGE,
			  "%zu processes have the name '%s':%.300s; give one of "
			  "them",
			  n_roots, name, list.at);
	lull_str_release(&list);
	return n_roots == 1 ? 0 : err->code;
}

int lull_attach_find(const char *name, char **words, int n_words, bool is_tree,
		     struct lull_vec *pids, struct lull_err *err)
{
	int pid = 0, rc;

	if (n_words != (name ? 0 : 1))
		return lull_fail(
			err, LULL_E_USAGE,
			name ? "--name and a PID cannot be combined; leave one out"
			     : "give the PID of one process, such as: lull attach 1234, or "
			       "--name");
	if (name) {
		rc = find_by_name(name, is_tree, pids, err);
	} else {
		rc = lull_attach_pid(words[0], &pid, err);
		if (!rc)
			lull_vec_add(pids, &(pid_t){ pid }, 1);
	}
	while (!rc && is_tree && add_each(NULL, pids))
		;
	return rc;
}
