#include "mcp/mcp_job.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Time for a recorder to seal its report after SIGTERM; training programs may ignore it. */
#define PATIENCE_NS 10000000000ull

static u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (u64)ts.tv_sec * 1000000000u + (u64)ts.tv_nsec;
}

/* Linux 5.3; glibc has a function for it since 2.36 only. */
static int open_pid(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

/*
 * The command is this program. Its input is empty: ours are the messages. A group of its own, so
 * that a signal for the terminal's programs does not end it, and all of it can be killed.
 */
static int spawn(pid_t *pid, char **words, const char *folder, const int *ends)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t all;
	int error;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, ends[0], STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
	posix_spawn_file_actions_addchdir_np(&actions, folder);
	posix_spawnattr_init(&attr);
	sigfillset(&all);
	posix_spawnattr_setsigdefault(&attr, &all);
	posix_spawnattr_setpgroup(&attr, 0);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
	error = posix_spawn(pid, "/proc/self/exe", &actions, &attr, words, environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	return error;
}

static void close_pair(int *pair)
{
	if (pair[0] >= 0)
		close(pair[0]);
	if (pair[1] >= 0)
		close(pair[1]);
}

int lull_mcp_job_start(struct lull_mcp_job *job, char **words, const char *folder,
		       struct lull_err *err)
{
	int out[2] = { -1, -1 }, errors[2] = { -1, -1 };

	if (pipe2(out, O_CLOEXEC) || pipe2(errors, O_CLOEXEC) ||
	    (errno = spawn(&job->pid, words, folder, (int[]){ out[1], errors[1] }))) {
		close_pair(out);
		close_pair(errors);
		return lull_fail_errno(err, "starting lull %s", words[1]);
	}
	close(out[1]);
	close(errors[1]);
	fcntl(out[0], F_SETFL, O_NONBLOCK);
	fcntl(errors[0], F_SETFL, O_NONBLOCK);
	job->out = (struct lull_mcp_stream){ .fd = out[0] };
	job->err = (struct lull_mcp_stream){ .fd = errors[0] };
	job->pid_fd = open_pid(job->pid);
	job->start_ns = now_ns();
	return LULL_OK;
}

void lull_mcp_job_watch(const struct lull_mcp_job *job, struct pollfd *fds)
{
	fds[0] = (struct pollfd){ .fd = job->out.fd, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = job->err.fd, .events = POLLIN };
	fds[2] = (struct pollfd){ .fd = job->pid_fd, .events = POLLIN };
}

/* What is over the limit goes: the last bytes, or all but the last half. */
static void cut(struct lull_mcp_stream *s, bool keeps_end)
{
	size_t half = LULL_MCP_KEEP_BYTES / 2;

	if (s->text.len <= LULL_MCP_KEEP_BYTES)
		return;
	s->dropped_bytes += s->text.len - (keeps_end ? half : LULL_MCP_KEEP_BYTES);
	if (keeps_end) {
		memmove(s->text.at, s->text.at + s->text.len - half, half);
		s->text.len = half;
	} else {
		s->text.len = LULL_MCP_KEEP_BYTES;
	}
	s->text.at[s->text.len] = 0;
}

static void read_stream(struct lull_mcp_stream *s, bool keeps_end)
{
	ssize_t n = 1;

	while (s->fd >= 0 && n > 0) {
		char *room = lull_str_room(&s->text, 1u << 16);

		n = read(s->fd, room, 1u << 16);
		lull_str_take(&s->text, room + (n > 0 ? n : 0));
		cut(s, keeps_end);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
			close(s->fd);
			s->fd = -1;
		}
	}
}

static void close_stream(struct lull_mcp_stream *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

/*
 * A daemon that the program left may hold the pipes for ever; what the process itself wrote is in
 * them when it has ended.
 */
void lull_mcp_job_read(struct lull_mcp_job *job)
{
	int status = 0;
	pid_t ended = job->is_done ? 0 : waitpid(job->pid, &status, WNOHANG);

	read_stream(&job->out, job->keeps_end);
	read_stream(&job->err, job->keeps_end);
	if (ended != job->pid)
		return;
	job->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	job->is_done = true;
	job->end_ns = now_ns();
	close_stream(&job->out);
	close_stream(&job->err);
	if (job->pid_fd >= 0)
		close(job->pid_fd);
	job->pid_fd = -1;
}

void lull_mcp_job_cancel(struct lull_mcp_job *job)
{
	if (job->is_done || job->is_killed)
		return;
	if (!job->is_cancelled) {
		job->is_cancelled = true;
		job->cancel_ns = now_ns();
		kill(job->pid, SIGTERM);
	} else if (now_ns() - job->cancel_ns > PATIENCE_NS) {
		job->is_killed = true;
		kill(-job->pid, SIGKILL);
	}
}

u64 lull_mcp_job_dur_ns(const struct lull_mcp_job *job)
{
	return (job->is_done ? job->end_ns : now_ns()) - job->start_ns;
}

void lull_mcp_job_release(struct lull_mcp_job *job)
{
	int status;

	if (!job->is_done && job->pid) {
		kill(-job->pid, SIGKILL);
		while (waitpid(job->pid, &status, 0) < 0 && errno == EINTR)
			continue;
	}
	close_stream(&job->out);
	close_stream(&job->err);
	if (job->pid_fd >= 0)
		close(job->pid_fd);
	lull_str_release(&job->out.text);
	lull_str_release(&job->err.text);
}
