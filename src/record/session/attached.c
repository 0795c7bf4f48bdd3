/*
 * attached - recording programs that run already (src/attach/ has how they are entered).
 *
 * They are not our children: that they end is seen in /proc, and nothing of ours ends them.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attach/attach.h"
#include "base/mem.h"
#include "base/time.h"
#include "record/collector_int.h"
#include "record/process/image.h"
#include "record/session/locate.h"

/* How long agents may take to leave. */
#define LEAVE_TRIES 5000 /* of 1 ms */

static size_t n_targets(const struct lull_collector *c)
{
	return c->options->attach->n;
}

static pid_t pid_at(const struct lull_collector *c, size_t ix)
{
	return *(pid_t *)lull_vec_get(c->options->attach, ix);
}

/* The file is the same in the mount namespace of the process. */
static bool is_same_file(pid_t pid, const char *path)
{
	char there[4200];
	struct stat a, b;

	snprintf(there, sizeof(there), "/proc/%d/root%s", (int)pid, path);
	return stat(path, &a) == 0 && stat(there, &b) == 0 && a.st_ino == b.st_ino &&
	       a.st_dev == b.st_dev;
}

int lull_attached_inspect(struct lull_collector *c, struct lull_err *err)
{
	struct lull_attach_target target;
	int rc;

	/* The one that was named has to work; of others it is said later. */
	c->target.pid = pid_at(c, 0);
	rc = lull_attach_inspect(&target, c->target.pid, err);
	if (!rc && target.is_other_mounts && !is_same_file(c->target.pid, "/dev/shm"))
		snprintf(c->attach_root, sizeof(c->attach_root), "/proc/%d/root",
			 (int)c->target.pid);
	return rc;
}

/* The program's user must be able to write to the folder. */
static void hand_over(struct lull_collector *c, pid_t pid)
{
	struct stat theirs;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	/* If it fails, the agent says that it finds no way. */
	if (geteuid() == 0 && stat(path, &theirs) == 0 && theirs.st_uid != 0)
		lull_session_give(&c->session, theirs.st_uid, theirs.st_gid);
}

/* All threads that are there; those that come later inherit their events. */
static void follow_threads(struct lull_collector *c, pid_t pid)
{
	struct lull_err err;
	struct dirent *e;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = c->perf ? opendir(path) : NULL;
	while (dir && (e = readdir(dir))) {
		pid_t tid = (pid_t)atoi(e->d_name);

		if (tid <= 0 || tid == c->target.pid)
			continue;
		if (lull_perf_follow(c->perf, tid, &err) != 0 && !*c->perf_refusal)
			snprintf(c->perf_refusal, sizeof(c->perf_refusal), "%.255s", err.msg);
	}
	if (dir)
		closedir(dir);
}

/* The session's folder as the process sees it; NULL if it does not. */
static const char *folder_for(const struct lull_collector *c, pid_t pid)
{
	const char *path = c->session.path + strlen(c->attach_root);
	char there[LULL_SESSION_PATH_MAX + 64];
	struct stat a, b;

	snprintf(there, sizeof(there), "/proc/%d/root%s", (int)pid, path);
	return fstat(c->session.dir_fd, &a) == 0 && stat(there, &b) == 0 && a.st_ino == b.st_ino &&
			       a.st_dev == b.st_dev
		       ? path
		       : NULL;
}

static int enter(struct lull_collector *c, pid_t pid, struct lull_err *err)
{
	struct lull_attach_target target;
	struct lull_attach_done done = { 0 };
	struct lull_str python = LULL_STR_INIT, agent = LULL_STR_INIT;
	struct lull_attach_wish wish = { .number = c->start_ns };
	int rc = lull_attach_inspect(&target, pid, err);

	if (rc)
		return rc;
	hand_over(c, pid);
	wish.folder = folder_for(c, pid);
	if (!wish.folder)
		return lull_fail(err, LULL_E_UNSUPPORTED,
				 "process %d (%s) sees other files than the first one (another "
				 "container); attach to it alone",
				 (int)pid, target.name);
	if (is_same_file(pid, c->agent_path.at))
		lull_str_puts(&agent, c->agent_path.at);
	else
		rc = lull_attach_lend(pid, c->agent_path.at, &agent, err);
	if (is_same_file(pid, c->agent_path.at))
		lull_locate_python(c->agent_path.at, &python);
	wish.agent_path = lull_str_text(&agent);
	wish.python_path = lull_str_text(&python);
	if (!rc)
		rc = lull_attach_enter(&target, &wish, &done, err);
	lull_str_release(&python);
	lull_str_release(&agent);
	if (!rc && done.stop_ns > c->result->stop_ns)
		c->result->stop_ns = done.stop_ns;
	return rc;
}

/* Enter all; the first that was named has to work, of others it is said that they did not. */
static int enter_all(struct lull_collector *c, struct lull_err *err)
{
	struct lull_err other;
	int rc = enter(c, c->target.pid, err);

	for (size_t i = 1; i < n_targets(c) && !rc; i++)
		if (enter(c, pid_at(c, i), &other) != 0)
			lull_progress_say(&c->progress, other.msg);
	return rc;
}

int lull_attached_launch(struct lull_collector *c, struct lull_err *err)
{
	const struct lull_collector_options *o = c->options;
	/* A report that may not be written is no reason to enter a program. */
	int rc = lull_control_name(c, NULL, 0, err);

	if (rc)
		return rc;
	c->start_ns = lull_now_ns();
	c->last_tick_ns = c->start_ns;
	/* A timer of our own for each thread can only be made by that thread, at its start. */
	lull_feed_perf_open(c);
	c->session.control->sources &= ~(u32)LULL_SOURCE_TIMER;
	for (size_t i = 0; i < n_targets(c); i++) {
		pid_t pid = pid_at(c, i);

		follow_threads(c, pid);
		lull_tree_get(&c->tree, (u32)pid, 0, c->start_ns)->is_ours = true;
	}
	rc = enter_all(c, err);
	if (!rc && o->begin == LULL_BEGIN_AT_ONCE)
		rc = lull_control_begin(c, NULL, err);
	if (!rc)
		lull_control_await_range(c);
	c->is_launched = !rc;
	return rc;
}

void lull_attached_check(struct lull_collector *c)
{
	bool is_any = false;

	for (size_t i = 0; i < n_targets(c) && !is_any; i++)
		is_any = lull_is_alive((u32)pid_at(c, i));
	if (!is_any && !c->target.has_ended) {
		c->target.has_ended = true;
		c->ended_ns = lull_now_ns();
	}
	if (c->is_shutdown || !is_any)
		c->is_over = true;
}

void lull_attached_part(struct lull_collector *c)
{
	struct lull_process **all = c->tree.processes.at;

	if (!c->session.control)
		return;
	atomic_store(&c->session.control->record, 0);
	atomic_store(&c->session.control->is_over, 1);
	lull_feed_agents_wake(c);
	for (size_t i = 0, n = 0; i < c->tree.processes.n; i++) {
		struct lull_image_file *f = all[i]->file;

		/* A child that was forked meanwhile has no thread that could leave. */
		while (f && f->head->is_attached &&
		       !atomic_load_explicit(&f->head->has_left, memory_order_acquire) &&
		       lull_is_alive(all[i]->pid) && n++ < LEAVE_TRIES)
			usleep(1000);
	}
}
