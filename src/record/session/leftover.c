#include "record/session/leftover.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/vec.h"
#include "record/session/session.h"

/* More runs than that died here one after the other: something else is wrong. */
#define MAX_NUMBER 1000

/* Whoever writes a report has locked it (base/io.h). */
static bool is_locked(const char *part)
{
	int fd = open(part, O_RDWR | O_CLOEXEC);
	bool is = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0;

	if (fd >= 0)
		close(fd);
	return is;
}

/* NAME-unfinished.lull, NAME-unfinished2.lull, ...: the first that is free. */
static bool find_name(const char *path, struct lull_str *name)
{
	size_t n = strlen(path);

	if (n > 5 && strcmp(path + n - 5, ".lull") == 0)
		n -= 5;
	for (int i = 1; i < MAX_NUMBER; i++) {
		struct lull_str part = LULL_STR_INIT;
		bool is_free;

		lull_str_clear(name);
		lull_str_addf(name, "%.*s-unfinished", (int)n, path);
		if (i > 1)
			lull_str_addf(name, "%d", i);
		lull_str_puts(name, ".lull");
		lull_str_addf(&part, "%s.part", name->at);
		is_free = access(name->at, F_OK) != 0 && access(part.at, F_OK) != 0;
		lull_str_release(&part);
		if (is_free)
			return true;
	}
	return false;
}

/* Both without ".part": what lies in shared memory belongs to the file of the new name now. */
static void tell_session(const struct lull_session_entry *e, const char *to)
{
	struct lull_session session;
	struct lull_err ignored;

	if (lull_session_open(&session, e->path, &ignored) != 0)
		return;
	snprintf(session.control->report_path, sizeof(session.control->report_path), "%s", to);
	lull_session_close(&session);
}

/* By a session of ours that lives. */
static bool is_written(const struct lull_vec *sessions, const char *full)
{
	for (size_t i = 0; i < sessions->n; i++) {
		const struct lull_session_entry *e = lull_vec_get(sessions, i);

		if (e->is_alive && strcmp(e->report_path, full) == 0)
			return true;
	}
	return false;
}

static int move(const struct lull_vec *sessions, const char *full, struct lull_str *kept,
		struct lull_err *err)
{
	struct lull_str name = LULL_STR_INIT, from = LULL_STR_INIT;
	int rc = 0;

	lull_str_addf(&from, "%s.part", full);
	if (is_written(sessions, full) || is_locked(from.at))
		rc = lull_fail(err, LULL_E_IO, "%s is being written by another recorder", from.at);
	else if (!find_name(full, &name))
		rc = lull_fail(err, LULL_E_IO,
			       "%s: %d unfinished reports of this name exist already", from.at,
			       MAX_NUMBER);
	if (!rc) {
		size_t before = kept->len;

		lull_str_addf(kept, "%s.part", name.at);
		if (rename(from.at, kept->at + before) != 0)
			rc = lull_fail_errno(err, "renaming %s", from.at);
	}
	for (size_t i = 0; !rc && i < sessions->n; i++) {
		const struct lull_session_entry *e = lull_vec_get(sessions, i);

		if (strcmp(e->report_path, full) == 0)
			tell_session(e, name.at);
	}
	lull_str_release(&name);
	lull_str_release(&from);
	return rc;
}

int lull_leftover_move(const char *path, struct lull_str *kept, struct lull_err *err)
{
	struct lull_str part = LULL_STR_INIT;
	struct lull_vec sessions;
	char full[PATH_MAX], *end;
	int rc = 0;

	lull_str_addf(&part, "%s.part", path);
	/* A link to a file of another name is somebody else's business. */
	if (realpath(part.at, full) && (end = strrchr(full, '.')) && strcmp(end, ".part") == 0) {
		*end = '\0';
		lull_vec_init(&sessions, sizeof(struct lull_session_entry));
		lull_session_list(&sessions);
		rc = move(&sessions, full, kept, err);
		lull_vec_release(&sessions);
	}
	lull_str_release(&part);
	return rc;
}
