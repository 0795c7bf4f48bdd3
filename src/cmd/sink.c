#include "cmd/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "import/import.h"
#include "import/other_name.h"

/* The words of `text`, NULL at the end; they live in *copy, which the caller frees. */
static void split(struct lull_vec *words, const char *text, char **copy)
{
	char *rest = *copy = lull_strdup(text);
	char *word;

	lull_vec_init(words, sizeof(char *));
	while ((word = strsep(&rest, " \t"))) {
		if (*word)
			*(char **)lull_vec_push(words) = word;
	}
	lull_vec_push(words);
}

/* Start the program with the read end of a pipe as its standard input; *fd is the other end. */
static int spawn(struct lull_sink *sink, char **argv, int *fd)
{
	posix_spawn_file_actions_t actions;
	int ends[2], error;

	if (pipe2(ends, O_CLOEXEC))
		return errno;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
	error = posix_spawnp(&sink->pid, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[0]);
	*fd = ends[1];
	if (error) {
		close(ends[1]);
		sink->pid = 0;
	}
	return error;
}

static int open_program(struct lull_sink *sink, struct lull_err *err)
{
	struct lull_vec words;
	char *copy, **argv;
	int fd = -1, rc = LULL_OK;

	split(&words, sink->target + 1, &copy);
	argv = words.at;
	if (!argv[0]) {
		rc = lull_fail(err, LULL_E_USAGE, "\"@\" has to be followed by a program");
	} else if ((errno = spawn(sink, argv, &fd))) {
		rc = lull_fail_errno(err, "starting %s", argv[0]);
	} else {
		sink->to = fdopen(fd, "w");
		/* A program that reads only the beginning is no reason to die. */
		sink->old_handler = signal(SIGPIPE, SIG_IGN);
	}
	lull_vec_release(&words);
	free(copy);
	return rc;
}

int lull_sink_open(struct lull_sink *sink, const char *target, bool is_forced, struct lull_err *err)
{
	*sink = (struct lull_sink){ .target = target };
	if (*target == '@')
		return open_program(sink, err);
	if (!strcmp(target, "-")) {
		sink->to = stdout;
		return LULL_OK;
	}
	sink->to = fopen(target, is_forced ? "we" : "wxe");
	if (!sink->to && errno == EEXIST)
		return lull_fail(err, LULL_E_IO, "%s exists; --force-overwrite replaces it",
				 target);
	if (!sink->to)
		return lull_fail_creating(err, target);
	return LULL_OK;
}

int lull_sink_spare_report(const char *target, struct lull_err *err)
{
	if (!target || !lull_import_is_report(target))
		return LULL_OK;
	return lull_fail(err, LULL_E_USAGE, "%s is a report; name another file to write", target);
}

int lull_sink_spare_input(const char *target, const char *input, struct lull_err *err)
{
	struct lull_str used = LULL_STR_INIT;
	struct stat a, b;
	bool is_same = false;

	if (target) {
		lull_other_name(input, &used);
		is_same = !stat(target, &a) && !stat(lull_str_text(&used), &b) &&
			  S_ISREG(a.st_mode) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
	}
	lull_str_release(&used);
	return is_same ? lull_fail(err, LULL_E_USAGE,
				   "%s is what is read; name another file to write", target)
		       : LULL_OK;
}

static int wait_for(struct lull_sink *sink, struct lull_err *err)
{
	int status;

	while (waitpid(sink->pid, &status, 0) < 0) {
		if (errno != EINTR)
			return lull_fail_errno(err, "waiting for %s", sink->target + 1);
	}
	signal(SIGPIPE, sink->old_handler);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return LULL_OK;
	return lull_fail(err, LULL_E_IO, "%s failed (%s %d)", sink->target + 1,
			 WIFSIGNALED(status) ? "signal" : "status",
			 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

int lull_sink_close(struct lull_sink *sink, struct lull_err *err)
{
	bool is_bad = false;

	if (sink->to == stdout)
		return fflush(stdout) ? lull_fail_errno(err, "writing standard output") : LULL_OK;
	if (sink->to)
		is_bad = fclose(sink->to);
	if (sink->pid)
		return wait_for(sink, err);
	return is_bad ? lull_fail_errno(err, "writing %s", sink->target) : LULL_OK;
}
