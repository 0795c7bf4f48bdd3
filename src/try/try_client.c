/*
 * Servers: a run is the program with a client that asks it, and what counts are its requests.
 *
 * Each run is recorded, in all of them alike, since only a recording knows requests (src/request).
 * The client is a command of the user's; while it fails, the server is still starting. What it
 * writes is compared as the output of the program.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/time.h"
#include "compare/request_values.h"
#include "import/import.h"
#include "try/try_int.h"

/* Between attempts of the client, and how often we look whether it has ended. */
#define PAUSE_US 200000
#define LOOK_US	 10000

static void become_client(const char *command, const char *output)
{
	int fd = open(output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	setpgid(0, 0);
	dup2(null, 0);
	dup2(fd, 1);
	dup2(null, 2);
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(127);
}

/* Whether a child has ended, without taking its status from who waits for it. */
static bool has_ended(pid_t pid)
{
	siginfo_t info = { .si_pid = 0 };

	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid;
}

/* One attempt; its status, or -1 if the server has ended or time is over. */
static int ask(const struct lull_try *t, pid_t server, const char *output, u64 until_ns)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0)
		become_client(t->options->client, output);
	if (pid < 0)
		return -1;
	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (*t->how.is_stopped || has_ended(server) || lull_now_ns() > until_ns) {
			kill(-pid, SIGKILL);
			waitpid(pid, NULL, 0);
			return -1;
		}
		usleep(LOOK_US);
	}
	kill(-pid, SIGKILL);
	return status;
}

bool lull_try_attend(const struct lull_try *t, pid_t server, const char *folder)
{
	u64 until_ns = lull_now_ns() + (u64)(t->how.limit_s * 1e9);
	struct lull_str output = LULL_STR_INIT;
	int status;

	lull_str_addf(&output, "%s/stdout", folder);
	while ((status = ask(t, server, output.at, until_ns)) > 0)
		usleep(PAUSE_US);
	lull_str_release(&output);
	return status == 0;
}

static u64 whole_request(const struct lull_one_request *one)
{
	return lull_request_ns(one);
}

/* Requests of the recording, as steps of the run. */
static int read_requests(struct lull_try_seen *seen, const char *path, struct lull_err *err)
{
	struct lull_reader *r;
	struct lull_vec values;
	const u64 *at;
	int rc;

	if (lull_import_open(path, &r, err))
		return err->code;
	lull_vec_init(&values, sizeof(u64));
	rc = lull_request_values(&values, r, whole_request, err);
	at = values.at;
	seen->steps.n = 0;
	for (size_t i = 0; i < values.n; i++)
		*(f64 *)lull_vec_push(&seen->steps) = (f64)at[i];
	seen->n_measured = values.n;
	lull_vec_release(&values);
	lull_reader_close(r);
	return rc;
}

int lull_try_serve(struct lull_try *t, struct lull_trial *trial,
		   const struct lull_trial_change *change, u32 number, struct lull_err *err)
{
	struct lull_str folder = LULL_STR_INIT, path = LULL_STR_INIT;
	struct lull_err why = { LULL_OK, "" };
	u64 began_ns = lull_now_ns();
	bool is_answered = false;

	*trial = (struct lull_trial){ .end = LULL_TRIAL_FAILED, .status = 1 };
	lull_try_seen_init(&trial->seen);
	lull_str_addf(&folder, "%s/%u", t->folder.at, number);
	lull_str_addf(&path, "%s/requests.lull", folder.at);
	if (!lull_try_record_in(t, change, path.at, folder.at, &is_answered, &why)) {
		lull_try_log_read(&trial->seen, folder.at);
		lull_trial_read_output(trial, folder.at);
		if (is_answered && !read_requests(&trial->seen, path.at, &why))
			trial->end = LULL_TRIAL_DONE;
	}
	if (*t->how.is_stopped)
		trial->end = LULL_TRIAL_STOPPED;
	else if (!is_answered && !why.code)
		lull_fail(&why, LULL_E_IO, "the client does not succeed");
	lull_str_clear(&t->recorded);
	lull_str_puts(&t->recorded, path.at);
	snprintf(trial->words, sizeof(trial->words), "%.*s", (int)sizeof(trial->words) - 1,
		 why.msg);
	trial->status = trial->end == LULL_TRIAL_DONE ? 0 : 1;
	trial->wall_ns = lull_now_ns() - began_ns;
	lull_str_release(&folder);
	lull_str_release(&path);
	(void)err;
	return LULL_OK;
}
