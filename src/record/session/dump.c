#include "record/session/dump.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/time.h"
#include "record/collector_int.h"

/* What a child tells about its report. */
struct news {
	int code; /* 0, or enum lull_code */
	char msg[512];
	u64 size_bytes, n_events, n_lost;
	f64 seconds;
	char path[4096];
	char notices[4096];
};

/* In the child: finish the report and say how it went. Never returns. */
static void finish(struct lull_collector *c, int fd)
{
	static struct news news;
	struct lull_err err = { 0 };

	prctl(PR_SET_NAME, "lull-dump");
	c->is_dumping = true;
	news.code = lull_control_finish(c, lull_now_ns(), &err);
	if (news.code) {
		snprintf(news.msg, sizeof(news.msg), "%s", err.msg);
	} else {
		const struct lull_report_done *done =
			lull_vec_get(&c->result->reports, c->result->reports.n - 1);

		news.size_bytes = done->size_bytes;
		news.n_events = done->n_events;
		news.n_lost = done->n_lost;
		news.seconds = done->seconds;
		snprintf(news.path, sizeof(news.path), "%s", done->path);
		snprintf(news.notices, sizeof(news.notices), "%s",
			 done->notices ? done->notices : "");
	}
	_exit(write(fd, &news, sizeof(news)) == sizeof(news) ? 0 : 1);
}

int lull_dump_begin(struct lull_collector *c, u32 number, const char *path, struct lull_err *err)
{
	struct lull_dump *d;
	int fds[2];
	pid_t pid;

	u64 cpu_ns;

	lull_dump_wait(c, LULL_MAX_DUMPS - 1);
	cpu_ns = lull_control_cpu_ns(c);
	if (pipe2(fds, O_CLOEXEC) != 0)
		return lull_fail_errno(err, "making a pipe");
	pid = fork();
	if (pid == 0) {
		close(fds[0]);
		c->cpu_forked_ns = cpu_ns;
		finish(c, fds[1]);
	}
	close(fds[1]);
	if (pid < 0) {
		close(fds[0]);
		return lull_fail_errno(err, "starting a process to write the report: fork");
	}
	d = lull_vec_push(&c->dumps);
	*d = (struct lull_dump){ pid, fds[0], number, path ? lull_strdup(path) : NULL };
	return 0;
}

static void take_news(struct lull_collector *c, u32 number, const struct news *news)
{
	struct lull_report_done *done;

	if (news->code) {
		lull_progress_say(&c->progress, news->msg);
		if (!c->has_report_failed) {
			c->has_report_failed = true;
			lull_fail(&c->report_err, news->code, "%s", news->msg);
		}
		return;
	}
	lull_vec_push(&c->result->reports);
	done = lull_vec_get(&c->result->reports, c->result->reports.n - 1);
	/* Children end in any order; reports are told in theirs. */
	for (size_t i = c->result->reports.n - 1; i && done[-1].number > number; i--, done--)
		done[0] = done[-1];
	*done = (struct lull_report_done){
		.number = number,
		.path = lull_strdup(news->path),
		.size_bytes = news->size_bytes,
		.n_events = news->n_events,
		.n_lost = news->n_lost,
		.seconds = news->seconds,
		.notices = *news->notices ? lull_strdup(news->notices) : NULL,
	};
}

/* All that the child has to say; a pipe may hand it over in pieces. */
static bool read_news(int fd, struct news *news)
{
	size_t len = 0;

	while (len < sizeof(*news)) {
		ssize_t n = read(fd, (char *)news + len, sizeof(*news) - len);

		if (n <= 0)
			return false;
		len += (size_t)n;
	}
	news->msg[sizeof(news->msg) - 1] = news->path[sizeof(news->path) - 1] = '\0';
	news->notices[sizeof(news->notices) - 1] = '\0';
	return true;
}

void lull_dump_reap(struct lull_collector *c, pid_t pid, int status)
{
	struct lull_dump *all = c->dumps.at, d;
	struct news *news;
	size_t i = 0;

	while (i < c->dumps.n && all[i].pid != pid)
		i++;
	if (i == c->dumps.n)
		return;
	d = all[i];
	memmove(all + i, all + i + 1, (c->dumps.n - i - 1) * sizeof(*all));
	c->dumps.n--;
	news = lull_alloc(1, sizeof(*news));
	if (!read_news(d.fd, news)) {
		*news = (struct news){ .code = LULL_E_IO };
		snprintf(news->msg, sizeof(news->msg), "writing %s failed with status %#x",
			 d.path ? d.path : "a report", (unsigned)status);
	}
	close(d.fd);
	free(d.path);
	take_news(c, d.number, news);
	if (c->flight.is_on)
		lull_flight_done(c, d.number, news->path);
	free(news);
}

bool lull_dump_is_busy(const struct lull_collector *c)
{
	return c->dumps.n > 0;
}

void lull_dump_wait(struct lull_collector *c, size_t n)
{
	while (c->dumps.n > n) {
		const struct lull_dump *first = c->dumps.at;
		pid_t pid = first->pid;
		int status = 0;

		waitpid(pid, &status, 0);
		lull_dump_reap(c, pid, status);
	}
}
