#include "record/live/flight.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "text/term.h"
#include "base/time.h"
#include "record/collector_int.h"
#include "record/live/pulse.h"

/*
 * Device records are brought in every 200 ms; a dump waits until those of the slow step are here.
 */
#define SETTLE_NS (LULL_NS_PER_S * 2 / 5)

/* How long a dump waits for a window (--duty). */
#define WINDOW_WAIT_NS (10 * LULL_NS_PER_S)

/* Names and rows of dimensions that are kept: some 100 MB, in memory and in each dump. */
#define MAX_DIMS 1000000u

u32 lull_flight_ask(struct lull_collector *c, enum lull_flight_why why, const char *reason)
{
	struct lull_flight *f = &c->flight;
	u64 now_ns = lull_now_ns();

	if (why == LULL_FLIGHT_TRIGGERED) {
		if (f->due_ns || lull_dump_is_busy(c) || now_ns < f->quiet_ns ||
		    f->n_triggered >= c->options->flight_limit) {
			f->n_refused++;
			return 0;
		}
		f->n_triggered++;
	}
	if (!f->due_ns) {
		f->due_ns = now_ns + SETTLE_NS;
		snprintf(f->reason, sizeof(f->reason), "%s", reason);
		lull_feed_agents_wake(c);
	}
	return f->n_begun + 1;
}

/* ---- rules ---- */

static void look_for_slow_step(struct lull_collector *c)
{
	struct lull_slow_step *slow = &c->pulse.slow;
	char reason[160], usual[64] = "";

	if (!slow->dur_ns)
		return;
	if (slow->usual_ns)
		snprintf(usual, sizeof(usual), ", usually %s", lull_format_ns(slow->usual_ns).text);
	snprintf(reason, sizeof(reason), "step %llu took %s%s", (unsigned long long)slow->number,
		 lull_format_ns(slow->dur_ns).text, usual);
	/* Where nothing is recorded right now, what is slow may last. */
	if (lull_flight_ask(c, LULL_FLIGHT_TRIGGERED, reason) && lull_feed_duty_is_paused(c))
		lull_duty_hurry(&c->duty);
	slow->dur_ns = 0;
}

static bool is_crash(const struct lull_process *p)
{
	static const int signals[] = { SIGSEGV, SIGBUS,	 SIGILL, SIGFPE,
				       SIGABRT, SIGKILL, SIGSYS, SIGTRAP };

	for (size_t i = 0; p->exit_kind == LULL_EXIT_SIGNAL && i < LULL_COUNT_OF(signals); i++)
		if ((int)p->exit_code == signals[i])
			return true;
	return false;
}

static void look_for_crash(struct lull_collector *c)
{
	struct lull_process **all = c->tree.processes.at;
	const struct lull_process *last = NULL;
	char reason[160];
	u32 n = 0;

	for (size_t i = 0; i < c->tree.processes.n; i++) {
		if (!is_crash(all[i]))
			continue;
		last = all[i];
		n++;
	}
	if (n <= c->flight.n_crashes)
		return;
	c->flight.n_crashes = n;
	snprintf(reason, sizeof(reason), "process %u (%s) died of signal %u (%s)", last->pid,
		 last->name, last->exit_code, strsignal((int)last->exit_code));
	lull_flight_ask(c, LULL_FLIGHT_TRIGGERED, reason);
}

/* ---- dumps ---- */

static void note_reason(struct lull_collector *c)
{
	struct lull_flight *f = &c->flight;
	char text[32];

	lull_recording_meta(&c->recording, "flight.reason", f->reason);
	snprintf(text, sizeof(text), "%u", f->n_begun);
	lull_recording_meta(&c->recording, "flight.number", text);
	snprintf(text, sizeof(text), "%u", f->n_anew);
	if (f->n_anew)
		lull_recording_meta(&c->recording, "flight.begun_anew", text);
	if (!f->n_refused)
		return;
	snprintf(text, sizeof(text), "%llu", (unsigned long long)f->n_refused);
	lull_recording_meta(&c->recording, "flight.not_written", text);
}

int lull_flight_place(struct lull_collector *c, u64 now_ns, struct lull_err *err)
{
	u64 age_ns = lull_control_age_ns(c, now_ns), keep_ns = c->flight.keep_ns;
	char ring[sizeof(c->ring_path) + 8];
	int rc;

	snprintf(ring, sizeof(ring), "%s.part", c->ring_path);
	c->flight.n_begun++;
	rc = lull_control_name(c, NULL, c->flight.n_begun, err);
	if (!rc)
		rc = lull_writer_fork(c->recording.writer, c->work_path,
				      age_ns > keep_ns ? age_ns - keep_ns : 0, err);
	if (rc)
		return rc;
	note_reason(c);
	/* In a child the ring is not ours to remove. */
	if (!c->is_dumping)
		unlink(ring);
	return 0;
}

/* The window that was asked for is on its way; a program that hangs has none. */
static bool is_window_due(const struct lull_collector *c, u64 now_ns)
{
	return c->options->is_duty && c->duty.is_hurried &&
	       now_ns < c->flight.due_ns + WINDOW_WAIT_NS;
}

static void begin_dump(struct lull_collector *c, u64 now_ns)
{
	struct lull_flight *f = &c->flight;
	struct lull_err err;

	f->due_ns = 0;
	f->quiet_ns = now_ns + f->keep_ns;
	lull_control_checkpoint(c, true);
	if (lull_dump_begin(c, f->n_begun + 1, NULL, &err) != 0) {
		lull_progress_say(&c->progress, err.msg);
		f->n_done++;
	}
	f->n_begun++;
	f->n_refused = 0;
}

void lull_flight_done(struct lull_collector *c, u32 number, const char *path)
{
	struct lull_flight *f = &c->flight;
	struct lull_str line = LULL_STR_INIT;

	f->n_done = number;
	snprintf(f->last_path, sizeof(f->last_path), "%s", path);
	if (*path) {
		lull_str_addf(&line, "%s: %s", path, f->reason);
		lull_progress_say(&c->progress, line.at);
		lull_str_release(&line);
	}
}

/* ---- the ring ---- */

static void cut_ring(struct lull_collector *c, u64 now_ns)
{
	struct lull_flight *f = &c->flight;
	u64 age_ns = lull_control_age_ns(c, now_ns);
	struct lull_err err;

	if (age_ns < 2 * f->keep_ns || age_ns - f->trim_ns < f->keep_ns)
		return;
	f->trim_ns = age_ns;
	if (lull_writer_trim(c->recording.writer, age_ns - f->keep_ns, &err) != 0 &&
	    !c->has_report_failed) {
		c->has_report_failed = true;
		c->report_err = err;
	}
}

/*
 * Names, stacks and the like are kept for ever, since any block may refer to them. A program that
 * makes up new ones all the time would fill the memory: then everything is forgotten once.
 */
static void begin_anew(struct lull_collector *c)
{
	struct lull_err err;

	if (lull_writer_stats(c->recording.writer).n_dims < MAX_DIMS || lull_dump_is_busy(c))
		return;
	lull_control_cancel(c);
	c->flight.n_anew++;
	c->flight.trim_ns = 0;
	if (lull_control_begin(c, NULL, &err) != 0 && !c->has_report_failed) {
		c->has_report_failed = true;
		c->report_err = err;
	}
}

void lull_flight_tick(struct lull_collector *c, u64 now_ns)
{
	struct lull_flight *f = &c->flight;

	if (!f->is_on || !lull_recording_is_on(&c->recording))
		return;
	look_for_slow_step(c);
	look_for_crash(c);
	if (f->due_ns && now_ns >= f->due_ns && !lull_dump_is_busy(c) && !is_window_due(c, now_ns))
		begin_dump(c, now_ns);
	cut_ring(c, now_ns);
	begin_anew(c);
}

int lull_flight_end(struct lull_collector *c, struct lull_err *err)
{
	struct lull_flight *f = &c->flight;
	int status = c->target.wait_status;

	lull_dump_wait(c, 0);
	/* A crash of the program itself is told best by how it ended. */
	if (WIFSIGNALED(status))
		snprintf(f->reason, sizeof(f->reason), "the program died of signal %d (%s)",
			 WTERMSIG(status), strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status))
		snprintf(f->reason, sizeof(f->reason), "the program ended with status %d",
			 WEXITSTATUS(status));
	else if (!f->due_ns) {
		lull_control_cancel(c);
		return 0;
	}
	return lull_control_end(c, err);
}
