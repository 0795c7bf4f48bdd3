#include "record/session/stops.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "record/collector_int.h"
#include "record/session/helper.h"

/*
 * What a terminal or a shell sends to a group reaches its members one after the other: whoever is
 * found stopped may have SIGCONT on its way, or we what stopped it.
 */
#define N_LOOKS 3
#define LOOK_US 2000

/* How long the program may run while we are stopped. */
#define GUARD_US 20000

/* A stop that nobody has taken (without WNOWAIT it is taken then) and that is not over. */
static bool is_stopped(pid_t pid, int options, int *signal)
{
	siginfo_t info = { 0 };

	if (waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOHANG | options) != 0 || !info.si_pid)
		return false;
	*signal = info.si_status;
	return true;
}

static bool stays_stopped(pid_t pid, int *signal)
{
	for (int i = 0; i < N_LOOKS; i++) {
		if (i)
			usleep(LOOK_US);
		if (!is_stopped(pid, WNOWAIT, signal))
			return false;
	}
	return true;
}

/* By /proc, for those who are not its parent. */
static bool is_shown_stopped(pid_t pid)
{
	struct lull_str text = LULL_STR_INIT;
	char path[32];
	const char *after;
	bool is = false;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (lull_file_read(path, &text)) {
		after = strrchr(text.at, ')');
		is = after && (after[2] == 'T' || after[2] == 't');
	}
	lull_str_release(&text);
	return is;
}

/* A child that continues us when the program is continued or killed: we cannot see it meanwhile. */
static pid_t start_guard(pid_t program)
{
	sigset_t all, before;
	pid_t recorder = getpid(), guard;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	guard = lull_helper_fork(STDERR_FILENO, "lull-guard");
	if (guard == 0) {
		do
			usleep(GUARD_US);
		while (is_shown_stopped(program));
		kill(recorder, SIGCONT);
		_exit(0);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return guard;
}

/* Returns when we are continued. */
static void stop_with(int signum)
{
	void (*before)(int) =
		signal(signum, SIG_DFL); /* fails for SIGSTOP, which has no other way */
	sigset_t set, blocked;

	sigemptyset(&set);
	sigaddset(&set, signum);
	raise(signum);
	sigprocmask(SIG_UNBLOCK, &set, &blocked);
	sigprocmask(SIG_SETMASK, &blocked, NULL);
	if (before != SIG_ERR)
		signal(signum, before);
}

void lull_stops_follow(struct lull_collector *c)
{
	pid_t pid = c->target.pid, guard;
	int signum;

	while (!c->target.has_ended && stays_stopped(pid, &signum)) {
		lull_progress_clear(&c->progress);
		guard = start_guard(pid);
		if (guard < 0)
			return;
		is_stopped(pid, 0, &signum); /* what is found later is another stop */
		stop_with(signum);
		kill(guard, SIGKILL);
		waitpid(guard, NULL, 0);
		usleep(LOOK_US);
		if (is_shown_stopped(pid) && !is_stopped(pid, WNOWAIT, &signum))
			kill(pid, SIGCONT);
	}
}
