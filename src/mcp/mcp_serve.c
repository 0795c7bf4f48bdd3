#include "mcp/mcp_serve.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "mcp/mcp_int.h"

/* A message; an agent's program may be long, no sane call is longer. */
#define MAX_MESSAGE_BYTES (4u << 20)
/* Calls whose answer can be asked for again. */
#define MAX_CALLS 64u
/* How often deadlines, progress and kernels without pidfd are looked after. */
#define TICK_MS	    100
#define PROGRESS_NS 1000000000ull

static volatile sig_atomic_t wants_end;

static void on_signal(int signal_number)
{
	(void)signal_number;
	wants_end = 1;
}

u64 lull_mcp_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (u64)ts.tv_sec * 1000000000u + (u64)ts.tv_nsec;
}

/* ---- input ---- */

struct input {
	struct lull_str text;
	bool is_ended;
	bool is_skipping; /* the rest of a message that was too long */
};

/* The lines that are complete. A last line without an end counts at the end of the input. */
static void take_lines(struct lull_mcp_server *s, struct input *in)
{
	size_t from = 0;
	char *stop;

	while (from < in->text.len &&
	       (stop = memchr(in->text.at + from, '\n', in->text.len - from))) {
		size_t len = (size_t)(stop - in->text.at) - from;

		if (!in->is_skipping && strspn(in->text.at + from, " \t\r") < len)
			lull_mcp_handle(s, in->text.at + from, len);
		in->is_skipping = false;
		from += len + 1;
	}
	if (in->is_ended && from < in->text.len && !in->is_skipping) {
		lull_mcp_handle(s, in->text.at + from, in->text.len - from);
		from = in->text.len;
	}
	if (from)
		memmove(in->text.at, in->text.at + from, in->text.len - from);
	in->text.len -= from;
	if (in->text.len > MAX_MESSAGE_BYTES) {
		if (!in->is_skipping)
			lull_rpc_fail(&s->out, NULL, LULL_RPC_PARSE,
				      "a message has more than %u bytes", MAX_MESSAGE_BYTES);
		in->is_skipping = true;
		in->text.len = 0;
	}
}

static void read_input(struct lull_mcp_server *s, struct input *in)
{
	char *room = lull_str_room(&in->text, 1u << 16);
	ssize_t n = read(s->options->in, room, 1u << 16);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	lull_str_take(&in->text, room + (n > 0 ? n : 0));
	in->is_ended = n <= 0;
	take_lines(s, in);
}

/* ---- calls ---- */

static void release_call(struct lull_mcp_call *call)
{
	lull_mcp_job_release(&call->job);
	free(call->waiter.json);
	free(call->token);
	free(call->uri);
	free(call);
}

/* Forget the oldest that are done and answered. */
static void forget(struct lull_mcp_server *s)
{
	struct lull_mcp_call **calls = s->calls.at;
	size_t n = 0, n_over = s->calls.n > MAX_CALLS ? s->calls.n - MAX_CALLS : 0;

	for (size_t i = 0; i < s->calls.n; i++) {
		if (n_over && calls[i]->job.is_done && !calls[i]->waiter.json) {
			release_call(calls[i]);
			n_over--;
		} else {
			calls[n++] = calls[i];
		}
	}
	s->calls.n = n;
}

/* How many calls run, and how many requests wait for one. */
struct tally {
	size_t n_running, n_waiting;
};

static struct tally look_after(struct lull_mcp_server *s)
{
	struct lull_mcp_call **calls = s->calls.at;
	u64 now = lull_mcp_now_ns();
	struct tally t = { 0, 0 };

	for (size_t i = 0; i < s->calls.n; i++) {
		struct lull_mcp_call *c = calls[i];

		if (!c->job.is_done)
			lull_mcp_job_read(&c->job);
		if (!c->job.is_done && c->job.is_cancelled)
			lull_mcp_job_cancel(&c->job);
		if (c->waiter.json && (c->job.is_done || now >= c->deadline_ns))
			lull_mcp_answer(s, c);
		if (c->waiter.json && c->token && now >= c->progress_ns) {
			c->progress_ns = now + PROGRESS_NS;
			lull_mcp_tell_progress(s, c);
		}
		t.n_running += !c->job.is_done;
		t.n_waiting += c->waiter.json != NULL;
	}
	forget(s);
	return t;
}

static void end_calls(struct lull_mcp_server *s)
{
	struct lull_mcp_call **calls = s->calls.at;

	for (size_t i = 0; i < s->calls.n; i++)
		lull_mcp_job_cancel(&calls[i]->job);
}

/* ---- the loop ---- */

/* Wait for the input, a job, or the next look at the clock. */
static void wait_for(struct lull_mcp_server *s, struct input *in, bool has_jobs)
{
	struct lull_mcp_call **calls = s->calls.at;
	size_t n = 1;
	struct pollfd *fds = lull_alloc(1 + s->calls.n * LULL_MCP_JOB_FDS, sizeof(*fds));

	fds[0] = (struct pollfd){ .fd = in->is_ended ? -1 : s->options->in, .events = POLLIN };
	for (size_t i = 0; i < s->calls.n; i++)
		if (!calls[i]->job.is_done) {
			lull_mcp_job_watch(&calls[i]->job, fds + n);
			n += LULL_MCP_JOB_FDS;
		}
	if (poll(fds, n, has_jobs ? TICK_MS : -1) > 0 && fds[0].revents)
		read_input(s, in);
	free(fds);
}

static void loop(struct lull_mcp_server *s)
{
	struct input in = { .text = LULL_STR_INIT };
	struct tally t = { 0, 0 };
	bool is_ending = false;

	while (!in.is_ended || t.n_running || t.n_waiting) {
		bool is_over = wants_end || ferror(s->out.to) || (in.is_ended && !t.n_waiting);

		if (is_over && !is_ending) {
			is_ending = in.is_ended = true;
			end_calls(s);
		}
		wait_for(s, &in, t.n_running > 0);
		t = look_after(s);
		if (is_over && !t.n_running)
			break;
	}
	lull_str_release(&in.text);
}

/* Without SA_RESTART: a signal has to end poll(). */
static void catch_signals(void)
{
	struct sigaction action = { .sa_handler = on_signal };

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

int lull_mcp_serve(const struct lull_mcp_options *options, struct lull_err *err)
{
	struct lull_mcp_server s = { .options = options, .out = { .to = options->out } };
	struct lull_mcp_call **calls;

	s.folder = realpath(options->folder, NULL);
	if (!s.folder)
		return lull_fail_errno(err, "option --folder: %s", options->folder);
	lull_vec_init(&s.calls, sizeof(struct lull_mcp_call *));
	catch_signals();
	loop(&s);
	calls = s.calls.at;
	for (size_t i = 0; i < s.calls.n; i++)
		release_call(calls[i]);
	lull_vec_release(&s.calls);
	free(s.folder);
	return LULL_OK;
}
