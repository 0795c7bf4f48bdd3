#include "record/session/remote.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/time.h"
#include "record/collector_int.h"
#include "record/live/pulse_frame.h"
#include "record/session/secrets.h"

#define LINE_MAX_BYTES 8192

/* Sealing a long recording may take a while; past this the recorder is taken for hung. */
#define ANSWER_TIMEOUT_S 120

/* Bytes of a command line that a message shows: it stays one line. */
#define MAX_COMMAND 60

static int fill_address(struct sockaddr_un *a, const char *session_path, struct lull_err *err)
{
	memset(a, 0, sizeof(*a));
	a->sun_family = AF_UNIX;
	if (snprintf(a->sun_path, sizeof(a->sun_path), "%s/socket", session_path) >=
	    (int)sizeof(a->sun_path))
		return lull_fail(
			err, LULL_E_IO,
			"session path '%s' is too long for a socket; set TMPDIR to a shorter path",
			session_path);
	return 0;
}

int lull_remote_listen(struct lull_collector *c, struct lull_err *err)
{
	struct sockaddr_un a;
	int rc = fill_address(&a, c->session.path, err);

	if (rc)
		return rc;
	c->socket_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->socket_fd < 0)
		return lull_fail_errno(err, "making the control socket");
	if (bind(c->socket_fd, (struct sockaddr *)&a, sizeof(a)) != 0 ||
	    listen(c->socket_fd, 8) != 0)
		return lull_fail_errno(err, "binding the control socket '%s'", a.sun_path);
	return 0;
}

static void do_start(struct lull_collector *c, const char *arg, struct lull_str *answer)
{
	struct lull_err err;

	if (lull_control_begin(c, *arg ? arg : NULL, &err) != 0)
		lull_str_addf(answer, "error %s", err.msg);
	else
		lull_str_addf(answer, "ok %s", c->report_path);
}

static void do_stop(struct lull_collector *c, const char *arg, struct lull_str *answer)
{
	struct lull_err err;

	(void)arg;
	if (lull_control_end(c, &err) != 0)
		lull_str_addf(answer, "error %s", err.msg);
	else
		lull_str_addf(answer, "ok %s", c->report_path);
}

static void do_cancel(struct lull_collector *c, const char *arg, struct lull_str *answer)
{
	(void)arg;
	if (!lull_recording_is_on(&c->recording)) {
		lull_str_puts(answer, "error no recording is running");
		return;
	}
	lull_control_cancel(c);
	lull_str_puts(answer, "ok the recording is discarded");
}

static void do_shutdown(struct lull_collector *c, const char *arg, struct lull_str *answer)
{
	int signal = (int)strtol(arg, NULL, 10);

	/* First, so that agents know when the recording ends that it was the last. */
	atomic_store(&c->session.control->is_over, 1);
	lull_control_cancel(c);
	if (signal > 0 && !c->options->attach) {
		lull_control_kill(c, signal);
		c->kill_at_ns = lull_now_ns() + 5 * LULL_NS_PER_S;
	}
	c->is_shutdown = true;
	lull_str_puts(answer, "ok the session ends with its program");
}

/* Leave programs that we attached to; the report is written when the loop has ended. */
static void do_detach(struct lull_collector *c, const char *arg, struct lull_str *answer)
{
	(void)arg;
	if (!c->options->attach) {
		lull_str_puts(answer, "error this session started its program; lull stop ends the "
				      "recording");
		return;
	}
	c->is_over = true;
	lull_str_puts(answer, "ok detached; the program continues");
}

/* "snapshot": the number of a dump that is being made; "snapshot N": where that one is. */
static void do_snapshot(struct lull_collector *c, const char *arg, struct lull_str *answer)
{
	u32 number = (u32)strtoul(arg, NULL, 10);

	if (!c->flight.is_on || !lull_recording_is_on(&c->recording)) {
		lull_str_puts(answer, c->flight.is_on
					      ? "error no recording is running"
					      : "error this session keeps all of its recording; "
						"start it with lull profile --flight=SECONDS");
	} else if (!number) {
		lull_str_addf(answer, "ok %u",
			      lull_flight_ask(c, LULL_FLIGHT_ASKED, "lull snapshot"));
	} else if (c->flight.n_done < number) {
		lull_str_puts(answer, "ok ");
	} else if (c->flight.last_path[0]) {
		lull_str_addf(answer, "ok %s", c->flight.last_path);
	} else {
		lull_str_addf(answer, "error %s", c->report_err.msg);
	}
}

/* What is missing already, and why if writing failed. */
static void add_losses(const struct lull_collector *c, struct lull_str *answer)
{
	u64 n_lost = lull_control_losses(c);

	if (n_lost)
		lull_str_addf(answer, ", %llu lost", (unsigned long long)n_lost);
	if (c->has_report_failed)
		lull_str_addf(answer, " (%s)", c->report_err.msg);
}

static void do_status(struct lull_collector *c, const char *arg, struct lull_str *answer)
{
	f64 age_s = (f64)(lull_now_ns() - c->start_ns) / 1e9;

	(void)arg;
	if (!lull_recording_is_on(&c->recording)) {
		lull_str_addf(answer, "ok %s; the program has been running for %.1f s",
			      c->n_records ? "stopped" : "ready, nothing recorded yet", age_s);
		return;
	}
	lull_str_addf(answer, "ok recording to %s: %.1f s, %llu events", c->report_path,
		      (f64)(lull_now_ns() - c->begin_ns) / 1e9,
		      (unsigned long long)c->recording.n_events);
	add_losses(c, answer);
}

/* Live values, for `lull top`. Rows are looked at from the first time on that somebody asks. */
static void do_pulse(struct lull_collector *c, const char *arg, struct lull_str *answer)
{
	struct lull_pulse_frame f = { .now_ns = lull_now_ns(), .pid = (u64)c->target.pid };

	(void)arg;
	if (!c->recording.pulse) {
		lull_pulse_init(&c->pulse);
		lull_recording_watch(&c->recording, &c->pulse);
	}
	f.age_ns = f.now_ns - c->start_ns;
	f.is_recording = lull_recording_is_on(&c->recording);
	f.n_events = f.is_recording ? c->recording.n_events : 0;
	f.n_lost = f.is_recording ? lull_control_losses(c) : 0;
	lull_pulse_frame_fill(&f, &c->pulse);
	lull_str_puts(answer, "ok ");
	lull_pulse_frame_write(answer, &f);
}

/* For messages of commands that were not told which session they mean. */
static void do_who(struct lull_collector *c, const char *arg, struct lull_str *answer)
{
	struct lull_str command = LULL_STR_INIT;
	int argc = 0;

	(void)arg;
	while (c->argv[argc])
		argc++;
	lull_secrets_filter_argv(argc, c->argv, &command);
	lull_str_addf(answer, "ok session %s: %.*s%s, process %d", c->session.control->session_name,
		      MAX_COMMAND, lull_str_text(&command), command.len > MAX_COMMAND ? "..." : "",
		      (int)c->target.pid);
	lull_str_release(&command);
}

/* What a session understands. */
static const struct request {
	const char *name;
	void (*run)(struct lull_collector *c, const char *arg, struct lull_str *answer);
} requests[] = {
	{ "start", do_start },	     { "stop", do_stop },     { "cancel", do_cancel },
	{ "shutdown", do_shutdown }, { "status", do_status }, { "snapshot", do_snapshot },
	{ "pulse", do_pulse },	     { "detach", do_detach }, { "who", do_who },
};

static void answer_line(struct lull_collector *c, char *line, struct lull_str *answer)
{
	char *arg = strchr(line, ' ');

	if (arg)
		*arg++ = '\0';
	for (size_t i = 0; i < LULL_COUNT_OF(requests); i++) {
		if (strcmp(requests[i].name, line) == 0) {
			requests[i].run(c, arg ? arg : "", answer);
			return;
		}
	}
	lull_str_addf(answer, "error this recorder does not know '%s'", line);
}

void lull_remote_serve(struct lull_collector *c)
{
	struct timeval limit = { .tv_sec = 1 };
	struct lull_str answer = LULL_STR_INIT;
	char line[LINE_MAX_BYTES];
	ssize_t n;
	int fd = accept4(c->socket_fd, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	n = recv(fd, line, sizeof(line) - 1, 0);
	if (n > 0) {
		line[n] = '\0';
		answer_line(c, line, &answer);
		send(fd, answer.at, answer.len, MSG_NOSIGNAL);
	}
	lull_str_release(&answer);
	close(fd);
}

/* The session meant by a name, a path, or nothing at all. */
static int find_session(const char *name, char *path, size_t room, struct lull_err *err)
{
	struct lull_vec all;
	const struct lull_session_entry *e;
	size_t n = 0;

	lull_vec_init(&all, sizeof(*e));
	lull_session_list(&all);
	e = all.at;
	for (size_t i = 0; i < all.n; i++) {
		if (!e[i].is_alive ||
		    (*name && strcmp(e[i].name, name) != 0 && strcmp(e[i].path, name) != 0))
			continue;
		snprintf(path, room, "%s", e[i].path);
		n++;
	}
	lull_vec_release(&all);
	if (n == 1)
		return 0;
	if (n > 1)
		return lull_fail(err, LULL_E_USAGE,
				 "%zu sessions run here; choose one with --session=NAME (lull "
				 "sessions lists them)",
				 n);
	if (*name)
		return lull_fail(err, LULL_E_NOT_FOUND, "no session '%s'; lull sessions lists them",
				 name);
	return lull_fail(err, LULL_E_NOT_FOUND,
			 "no session is running; start one with lull launch -- PROGRAM");
}

/* A recorder may end after it was listed. */
static int fail_asking(const char *what, struct lull_err *err)
{
	if (errno == ECONNRESET || errno == EPIPE || errno == ECONNREFUSED || errno == ENOENT)
		return lull_fail(err, LULL_E_NOT_FOUND, "the session ended before it answered");
	return lull_fail_errno(err, "%s", what);
}

static int exchange(int fd, const char *request, struct lull_str *answer, struct lull_err *err)
{
	struct timeval limit = { .tv_sec = ANSWER_TIMEOUT_S };
	char line[LINE_MAX_BYTES];
	ssize_t n;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (send(fd, request, strlen(request), MSG_NOSIGNAL) < 0)
		return fail_asking("asking the recorder", err);
	n = recv(fd, line, sizeof(line) - 1, 0);
	if (n == 0)
		errno = ECONNRESET;
	else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return lull_fail(err, LULL_E_IO, "the recorder did not answer within %d s",
				 ANSWER_TIMEOUT_S);
	if (n <= 0)
		return fail_asking("waiting for the recorder's answer", err);
	line[n] = '\0';
	if (strncmp(line, "ok ", 3) != 0)
		return lull_fail(err, LULL_E_USAGE, "%s",
				 strncmp(line, "error ", 6) == 0 ? line + 6 : line);
	lull_str_puts(answer, line + 3);
	return 0;
}

int lull_remote_ask(const char *session, const char *request, struct lull_str *answer,
		    struct lull_err *err)
{
	char path[LULL_SESSION_PATH_MAX];
	struct sockaddr_un a;
	int rc, fd;

	rc = find_session(session, path, sizeof(path), err);
	if (!rc)
		rc = fill_address(&a, path, err);
	if (rc)
		return rc;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return lull_fail_errno(err, "making a socket");
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) != 0)
		rc = fail_asking("reaching the session", err);
	else
		rc = exchange(fd, request, answer, err);
	close(fd);
	return rc;
}
