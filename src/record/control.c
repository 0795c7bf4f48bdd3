/*
 * control - begin, end and cancel recordings; make the file safe; end the program.
 */
#include "record/collector_int.h"
#include "record/gpu/join_samples.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include "record/process/image.h"
#include "record/session/job_rank.h"
#include "record/session/leftover.h"
#include "record/session/machine.h"
#include "record/session/naming.h"
#include "record/session/secrets.h"
#include "record/session/spool.h"
#include "trace/issue.h"

/* A checkpoint a second bounds what a killed recorder has to find again in shared memory. */
#define CHECKPOINT_NS LULL_NS_PER_S

/*
 * More than this held back makes a checkpoint due at once, so that threads do not run out of
 * chunks.
 */
#define HELD_BYTES (16u << 20)

/* Agents that had read `record` before it became 0 finish their event within this. */
#define SETTLE_US 2000

/*
 * Work of a device is rarely longer than this; a program that has ended is not waited for. Where
 * work had queued up it is waited for a little longer.
 */
#define LATE_FLUSHES 2
#define HELD_FLUSHES 10
#define LATE_US	     20000

/* An agent announces itself within a few ms of the exec, unless its libraries are slow to load. */
#define AGENT_GRACE_NS LULL_NS_PER_S

static void on_fact(void *ctx, const char *key, const char *value)
{
	lull_recording_meta(ctx, key, value);
}

static void write_environment(struct lull_collector *c)
{
	if (c->options->is_env_discarded)
		return;
	for (char **v = environ; *v; v++) {
		const char *eq = strchr(*v, '=');
		char *name, key[256];

		if (!eq)
			continue;
		name = lull_strndup(*v, (size_t)(eq - *v));
		snprintf(key, sizeof(key), "environment.%s", name);
		lull_recording_meta(&c->recording, key, lull_secrets_filter_env(name, eq + 1));
		free(name);
	}
}

/* Who, what, where: known when the recording begins. */
static void write_facts(struct lull_collector *c)
{
	struct lull_str command = LULL_STR_INIT;
	int argc = 0;

	while (c->argv[argc])
		argc++;
	lull_secrets_filter_argv(argc, c->argv, &command);
	lull_recording_meta(&c->recording, "recording.command", lull_str_text(&command));
	lull_recording_meta(&c->recording, "recording.version", LULL_VERSION);
	lull_recording_meta(&c->recording, "recording.session", c->session.control->session_name);
	lull_machine_read(on_fact, &c->recording);
	lull_job_begin(&c->recording);
	write_environment(c);
	lull_str_release(&command);
}

u64 lull_control_cpu_ns(const struct lull_collector *c)
{
	return c->cpu_forked_ns + lull_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

u64 lull_control_age_ns(const struct lull_collector *c, u64 now_ns)
{
	return c->options->is_duty ? lull_axis_ns(&c->axis, now_ns) : now_ns - c->begin_ns;
}

/* How much of it is kept. */
static u64 recorded_ns(const struct lull_collector *c, u64 now_ns)
{
	u64 age_ns = lull_control_age_ns(c, now_ns);

	return c->flight.is_on && age_ns > c->flight.keep_ns ? c->flight.keep_ns : age_ns;
}

/* What the recording itself cost: known when it ends. */
static void write_cost(struct lull_collector *c, u64 now_ns)
{
	struct lull_recording *r = &c->recording;
	struct lull_writer_stats stats = lull_writer_stats(r->writer);
	struct rusage use;
	char text[64];

	getrusage(RUSAGE_SELF, &use);
	snprintf(text, sizeof(text), "%.3f s", (f64)recorded_ns(c, now_ns) / 1e9);
	lull_recording_meta(r, "recording.duration", text);
	if (c->sample_hz) {
		int n = snprintf(text, sizeof(text), "%u per second of CPU time", c->sample_hz);

		if (c->sample_cost_ns)
			snprintf(text + n, sizeof(text) - (size_t)n, ", %.1f us each",
				 (f64)c->sample_cost_ns / 1e3);
		lull_recording_meta(r, "recording.samples", text);
	}
	snprintf(text, sizeof(text), "%.3f s (%.1f %% of one core)",
		 (f64)(lull_control_cpu_ns(c) - c->cpu_start_ns) / 1e9,
		 100.0 * (f64)(lull_control_cpu_ns(c) - c->cpu_start_ns) /
			 (f64)(now_ns - c->begin_ns + 1));
	lull_recording_meta(r, "cost.collector_cpu", text);
	snprintf(text, sizeof(text), "%ld MiB", use.ru_maxrss / 1024);
	lull_recording_meta(r, "cost.collector_memory", text);
	snprintf(text, sizeof(text), "%llu rows", (unsigned long long)(stats.n_rows + r->n_events));
	lull_recording_meta(r, "cost.events", text);
}

/*
 * Where a report goes, for whoever has to recover it: absolute, since they may stand elsewhere. ""
 * if it is too long.
 */
static void note_path(char *to, size_t room, const char *path)
{
	char folder[2048];
	bool is_relative = path[0] != '/' && getcwd(folder, sizeof(folder));
	int n = snprintf(to, room, "%s%s%s", is_relative ? folder : "", is_relative ? "/" : "",
			 path);

	if (n >= (int)room)
		to[0] = '\0';
}

u64 lull_control_counter(const struct lull_collector *c)
{
	return c->clock.is_clock ? lull_now_ns() : lull_counter();
}

/* A report of this name is being written by a child of ours. */
static bool is_taken(const void *ctx, const char *path)
{
	const struct lull_collector *c = ctx;
	const struct lull_dump *all = c->dumps.at;

	for (size_t i = 0; i < c->dumps.n; i++)
		if (all[i].path && strcmp(all[i].path, path) == 0)
			return true;
	return false;
}

/* Where the report goes in the end, and where it is written. */
static int choose_paths(const struct lull_collector *c, const char *output, u32 number,
			struct lull_str paths[2], struct lull_err *err)
{
	struct lull_rank rank = lull_job_rank();
	struct lull_naming naming = {
		.pattern = output ? output : c->options->output,
		.pid = c->target.pid,
		/* The ring of a flight recorder is no report: it is in nobody's way. */
		.is_overwriting = c->options->is_overwriting || (c->flight.is_on && !number),
		.rank = &rank,
		.n_restarts = lull_rank_number(getenv("TORCHELASTIC_RESTART_COUNT")),
		.number = number,
		.is_taken = is_taken,
		.ctx = c,
	};
	int rc = lull_naming_format(&naming, &paths[0], err);

	return rc ? rc : lull_spool_place(c->options->part_dir, paths[0].at, &paths[1], err);
}

int lull_control_name(struct lull_collector *c, const char *output, u32 number,
		      struct lull_err *err)
{
	struct lull_str paths[2] = { LULL_STR_INIT, LULL_STR_INIT };
	int rc = choose_paths(c, output, number, paths, err);

	if (!rc) {
		snprintf(c->report_path, sizeof(c->report_path), "%s", paths[0].at);
		snprintf(c->work_path, sizeof(c->work_path), "%s", paths[1].at);
	}
	lull_str_release(&paths[0]);
	lull_str_release(&paths[1]);
	return rc;
}

/* The ring of a flight recorder has a name that no report has. */
static void name_ring(const struct lull_collector *c, char *path, size_t room)
{
	size_t n = strlen(path);

	if (c->flight.is_on && n > 5)
		snprintf(path + n - 5, room - n, "-ring.lull");
}

/* A second report of one run never takes the place of the first, whatever -f says. */
static u32 next_number(const struct lull_collector *c, const char *output)
{
	return !output && c->n_records ? c->n_records + 1 : 0;
}

void lull_control_await_range(struct lull_collector *c)
{
	struct lull_control *control = c->session.control;
	struct lull_str paths[2] = { LULL_STR_INIT, LULL_STR_INIT };
	struct lull_err ignored; /* it is told when the range begins */

	control->next_report_path[0] = '\0';
	if (choose_paths(c, NULL, next_number(c, NULL), paths, &ignored) == 0) {
		note_path(control->next_report_path, sizeof(control->next_report_path),
			  paths[1].at);
		name_ring(c, control->next_report_path, sizeof(control->next_report_path));
	}
	lull_str_release(&paths[0]);
	lull_str_release(&paths[1]);
	/* Last: from here on an agent that sees a range begins a recording. */
	atomic_store(&control->next_record, c->n_records + 1);
}

/* With -f, what a recorder left that died is in nobody's way; and it is not lost. */
static int pass_leftover(struct lull_collector *c, struct lull_err *err)
{
	struct lull_str kept = LULL_STR_INIT, line = LULL_STR_INIT;
	int rc = c->options->is_overwriting ? lull_leftover_move(c->work_path, &kept, err) : 0;

	if (!rc && kept.len) {
		lull_str_addf(
			&line,
			"%s.part is unfinished because its recorder died; finish it with: lull "
			"recover %s",
			c->work_path, kept.at);
		lull_progress_say(&c->progress, line.at);
	}
	lull_str_release(&line);
	lull_str_release(&kept);
	return rc;
}

/*
 * Which report is open, for whoever has to recover it: in the control page, and in our last words.
 */
static void note_open(struct lull_collector *c, const char *path)
{
	struct lull_control *control = c->session.control;

	if (!*path) {
		control->report_path[0] = '\0';
		lull_mem_last_words("the program continues");
		return;
	}
	note_path(control->report_path, sizeof(control->report_path), path);
	lull_mem_last_words("the program continues; make a report of the recorded data with: lull "
			    "recover %s.part",
			    path);
}

/* Open the report, and write what is known at its start. */
static int open_report(struct lull_collector *c, struct lull_err *err)
{
	int rc;

	name_ring(c, c->work_path, sizeof(c->work_path));
	snprintf(c->ring_path, sizeof(c->ring_path), "%s", c->work_path);
	c->begin_ns = c->options->begin == LULL_BEGIN_ON_RANGE ? c->last_tick_ns : lull_now_ns();
	rc = pass_leftover(c, err);
	if (!rc)
		rc = lull_recording_begin(&c->recording, c->work_path, c->begin_ns, err);
	if (rc)
		return rc;
	/* Nobody misses the ring after a crash of the machine. */
	if (c->flight.is_on)
		lull_writer_set_temporary(c->recording.writer);
	c->recording.is_unresolved = c->options->is_unresolved;
	c->recording.debug_dirs = c->options->debug_dirs;
	c->cpu_start_ns = lull_control_cpu_ns(c);
	c->checkpoint_ns = c->begin_ns;
	c->next_usage_ns = 0; /* even a short report has it at its start and end */
	c->stop_at_ns =
		c->options->duration_s > 0 ? c->begin_ns + (u64)(c->options->duration_s * 1e9) : 0;
	if (c->options->is_duty)
		lull_feed_duty_begin(c);
	write_facts(c);
	note_open(c, c->work_path);
	c->session.control->epoch_ns = c->begin_ns;
	lull_control_checkpoint(c, true);
	lull_feed_perf_begin(c);
	c->n_records++;
	atomic_store(&c->session.control->filed_record, c->n_records);
	return 0;
}

/* From here on the agents write. */
static void switch_agents_on(struct lull_collector *c)
{
	struct lull_control *control = c->session.control;

	/* A program that has not begun has done nothing that could be too old. */
	if (c->is_launched || c->options->attach)
		atomic_store(&control->start_counter, lull_control_counter(c));
	atomic_store(&control->last_record, c->n_records);
	atomic_store(&control->record, c->n_records);
}

int lull_control_begin(struct lull_collector *c, const char *output, struct lull_err *err)
{
	/* An agent that saw a capture range, or a step of a window, has switched it on itself. */
	bool is_ours = c->options->begin != LULL_BEGIN_ON_RANGE && !c->options->is_duty;
	int rc;

	if (lull_recording_is_on(&c->recording))
		return lull_fail(err, LULL_E_USAGE,
				 "a recording is already running; stop it first");
	rc = lull_control_name(c, output, next_number(c, output), err);
	if (rc)
		return rc;
	/* The program may go on when we have answered: its next call is to be in the report. */
	if (is_ours)
		lull_feed_agents_arm(c);
	rc = open_report(c, err);
	if (is_ours && !rc)
		switch_agents_on(c);
	if (is_ours)
		atomic_store(&c->session.control->armed, 0);
	lull_feed_agents_wake(c);
	return rc;
}

void lull_control_checkpoint(struct lull_collector *c, bool is_forced)
{
	u64 now_ns = lull_now_ns();
	struct lull_err err;

	/* Between windows there is nothing that would have to be found again. */
	if (!lull_recording_is_on(&c->recording) || (!is_forced && lull_feed_duty_is_paused(c))) {
		lull_feed_agents_release(c);
		return;
	}
	if (!is_forced && now_ns - c->checkpoint_ns < CHECKPOINT_NS &&
	    lull_feed_agents_held(c) < HELD_BYTES)
		return;
	c->checkpoint_ns = now_ns;
	/*
	 * A disk that is full must not stop the program: rows that cannot be written are counted as
	 * lost by the writer, and the chunks go back all the same.
	 */
	if (lull_recording_checkpoint(&c->recording, now_ns, &err) != 0 && !c->has_report_failed) {
		c->has_report_failed = true;
		c->report_err = err;
	}
	lull_feed_agents_release(c);
}

/* Trouble after which a part of the recording is missing that was asked for. */
static bool is_worth_a_line(u16 issue)
{
	static const u16 issues[] = {
		LULL_ISSUE_no_cupti,	  LULL_ISSUE_cupti_refused,    LULL_ISSUE_cupti_taken,
		LULL_ISSUE_um_refused,	  LULL_ISSUE_no_device_time,   LULL_ISSUE_cupti_dropped,
		LULL_ISSUE_cupti_shared,  LULL_ISSUE_device_tail,      LULL_ISSUE_no_cuda,
		LULL_ISSUE_ranges_missed, LULL_ISSUE_counters_refused, LULL_ISSUE_not_replayed,
		LULL_ISSUE_kernel_failed, LULL_ISSUE_kernel_hung,      LULL_ISSUE_samples_unmatched,
		LULL_ISSUE_agent_refused, LULL_ISSUE_image_unopened,
	};

	for (size_t i = 0; i < LULL_COUNT_OF(issues); i++)
		if (issues[i] == issue)
			return true;
	return false;
}

/* These troubles as lines, each kind once; NULL if there are none. */
static char *notices_of(const struct lull_recording *r)
{
	const struct lull_trouble *t = r->troubles.at;
	struct lull_str lines = LULL_STR_INIT;
	bool is_said[UINT8_MAX] = { false };

	for (size_t i = 0; i < r->troubles.n; i++) {
		const struct lull_issue_desc *desc = lull_issue_find(t[i].issue);

		if (!desc || !is_worth_a_line(t[i].issue) || is_said[t[i].issue])
			continue;
		is_said[t[i].issue] = true;
		lull_str_addf(&lines, "%s%s%s%s\n", desc->text, t[i].detail ? " (" : "",
			      t[i].detail ? t[i].detail : "", t[i].detail ? ")" : "");
	}
	return lines.len ? lines.at : NULL;
}

static struct lull_report_done *add_done(struct lull_collector *c, u64 now_ns, u64 n_events,
					 u64 n_lost)
{
	struct lull_report_done *done = lull_vec_push(&c->result->reports);
	struct stat st;

	done->path = lull_strdup(c->report_path);
	done->number = c->flight.is_on ? c->flight.n_begun : c->n_records;
	done->size_bytes = stat(c->report_path, &st) == 0 ? (u64)st.st_size : 0;
	done->n_events = n_events;
	done->n_lost = n_lost;
	done->seconds = (f64)recorded_ns(c, now_ns) / 1e9;
	return done;
}

u64 lull_control_losses(const struct lull_collector *c)
{
	struct lull_process **all = c->tree.processes.at;
	u64 n = lull_writer_stats(c->recording.writer).n_lost;

	for (size_t i = 0; i < c->tree.processes.n; i++) {
		struct lull_task **tasks = all[i]->tasks.at;

		n += all[i]->n_unplaced;
		for (size_t j = 0; j < all[i]->tasks.n; j++)
			n += tasks[j]->n_dropped;
	}
	return n;
}

/*
 * Programs that ran without an agent. A process that only forked is not one: it is its parent's
 * program. One that has just begun may still get its agent.
 */
static void note_uninstrumented(struct lull_collector *c, u64 now_ns)
{
	struct lull_process **all = c->tree.processes.at;

	for (size_t i = 0; i < c->tree.processes.n; i++) {
		const struct lull_process *p = all[i];
		bool has_executed = p->is_exec_known || p->pid == (u32)c->target.pid;
		bool is_settled = p->end_ns || now_ns - p->start_ns > AGENT_GRACE_NS;

		if (p->is_ours && !p->had_agent && has_executed && is_settled &&
		    (!p->end_ns || p->end_ns >= c->begin_ns))
			lull_recording_issue(&c->recording, LULL_ISSUE_no_agent, all[i], 1,
					     p->exe ? p->exe : p->name);
	}
}

/* Capture ranges that found us busy with the report before. */
static void note_missed(struct lull_collector *c)
{
	u32 n = atomic_load(&c->session.control->capture_missed);
	char detail[32];

	snprintf(detail, sizeof(detail), "%u of them", n - c->n_missed);
	lull_recording_issue(&c->recording, LULL_ISSUE_ranges_missed, NULL, n - c->n_missed,
			     detail);
	c->n_missed = n;
}

/* Why a process could not make its file in shared memory, as far as an error says it. */
static const char *reason_of(u32 error)
{
	switch (error) {
	case ENOENT:
		return "shared memory is not there: another root or file system";
	case EACCES:
	case EPERM:
		return "shared memory is not writable: another user, or a sandbox";
	case ENOSPC:
		return "shared memory is full";
	case EFBIG:
		return "a limit on the size of files, ulimit -f";
	case EMFILE:
		return "a limit on open files, ulimit -n";
	case ENFILE:
		return "the system has no more open files";
	case ENOMEM:
		return "no memory, or a limit on it";
	case EROFS:
		return "shared memory is read-only";
	default:
		return NULL;
	}
}

/* Processes whose agents could not even open an image, and images that we could not. */
static void note_refused(struct lull_collector *c)
{
	u32 n = atomic_load(&c->session.control->n_refused);

	lull_recording_issue(&c->recording, LULL_ISSUE_agent_refused, NULL, n - c->n_refused,
			     reason_of(atomic_load(&c->session.control->refused_errno)));
	c->n_refused = n;
	lull_recording_issue(&c->recording, LULL_ISSUE_image_unopened, NULL, c->n_unopened, NULL);
}

/* Asked for by name, CUDA that nobody used is worth a line: there may be no driver. */
static void note_no_cuda(struct lull_collector *c)
{
	static const u16 told[] = { LULL_ISSUE_no_cupti, LULL_ISSUE_cupti_refused,
				    LULL_ISSUE_cupti_taken };
	struct lull_process **all = c->tree.processes.at;
	const struct lull_trouble *t = c->recording.troubles.at;

	if (!c->options->is_cuda_wanted)
		return;
	for (size_t i = 0; i < c->tree.processes.n; i++)
		if (all[i]->has_cuda ||
		    (all[i]->file && atomic_load(&all[i]->file->head->has_cuda)))
			return;
	for (size_t i = 0; i < c->recording.troubles.n; i++)
		for (size_t j = 0; j < LULL_COUNT_OF(told); j++)
			if (t[i].issue == told[j])
				return;
	lull_recording_issue(&c->recording, LULL_ISSUE_no_cuda, NULL, 1, NULL);
}

/* The report could not be sealed: how much is missing, and how to get at the rest. */
static int say_what_is_left(const struct lull_collector *c, u64 n_lost, struct lull_err *err)
{
	struct lull_err cause = *err;

	if (!n_lost)
		return lull_fail(err, cause.code, "%.300s; finish it with: lull recover %s.part",
				 cause.msg, c->work_path);
	return lull_fail(err, cause.code,
			 "%.300s; %llu events lost, recover the others with: lull recover %s.part",
			 cause.msg, (unsigned long long)n_lost, c->work_path);
}

/* The dump could not be written where it belongs: the ring is all there is. */
static int keep_ring(struct lull_collector *c, u64 now_ns, struct lull_err *err)
{
	struct lull_err cause = *err, ignored;

	if (c->is_dumping || lull_recording_finish(&c->recording, now_ns, &ignored) != 0)
		return cause.code;
	return lull_fail(err, cause.code, "%.300s; the recorded data is in %s", cause.msg,
			 c->ring_path);
}

/* What agents and processes of ours have counted since the last report. */
static void note_counts(struct lull_collector *c)
{
	lull_feed_agents_issues(c);
	lull_feed_gpu_issues(c);
	note_missed(c);
	note_refused(c);
	c->is_counted = true;
}

int lull_control_finish(struct lull_collector *c, u64 now_ns, struct lull_err *err)
{
	u64 n_events, n_lost;
	struct lull_err ignored;
	char *notices;
	int rc;

	if (!c->is_counted)
		note_counts(c);
	lull_feed_duty_finish(c, now_ns);
	note_uninstrumented(c, now_ns);
	note_no_cuda(c);
	if (c->options->samples_from)
		lull_join_samples(&c->recording, c->options->samples_from, &ignored);
	c->next_usage_ns = 0;
	lull_feed_usage(c);
	write_cost(c, now_ns);
	/* What fails here is lost, and must be so before losses are counted; sealing fails, too. */
	lull_writer_flush(c->recording.writer, &ignored);
	if (c->flight.is_on && lull_flight_place(c, now_ns, err))
		return keep_ring(c, now_ns, err);
	n_events = c->flight.is_on ? lull_writer_stats(c->recording.writer).n_rows
				   : c->recording.n_events;
	n_lost = lull_control_losses(c);
	notices = notices_of(&c->recording);
	rc = lull_recording_finish(&c->recording, now_ns, err);
	if (rc)
		rc = say_what_is_left(c, n_lost, err);
	else
		rc = lull_spool_deliver(c->work_path, c->report_path, err);
	if (!rc)
		add_done(c, now_ns, n_events, n_lost)->notices = notices;
	else
		free(notices);
	return rc;
}

/*
 * Work that ran when records were brought in: CUPTI holds back all of a buffer until the last of
 * its work is done. Where that takes long, in the end it has to give what it has.
 */
static void take_late_work(struct lull_collector *c)
{
	for (int i = 0; i < LATE_FLUSHES || (i < HELD_FLUSHES && lull_feed_agents_is_held_back(c));
	     i++) {
		usleep(LATE_US);
		lull_feed_agents_flush(c);
	}
	if (!lull_feed_agents_is_held_back(c))
		return;
	atomic_store(&c->session.control->is_flush_forced, 1);
	lull_feed_agents_flush(c);
	atomic_store(&c->session.control->is_flush_forced, 0);
}

/* Stop the agents and take the last of what they wrote; returns when that was. */
static u64 stop_agents(struct lull_collector *c)
{
	u64 now_ns;
	bool is_used;

	/* A program may end its recording before we have seen that it began. */
	lull_feed_agents_scan(c);
	is_used = lull_feed_agents_flush(c);
	/* A window that is wanted (--duty) must not start now. */
	if (c->options->is_duty)
		atomic_store(&c->session.control->next_record, 0);
	if (atomic_load(&c->session.control->record))
		atomic_store(&c->session.control->stop_counter, lull_control_counter(c));
	atomic_store(&c->session.control->record, 0);
	atomic_store(&c->session.control->capture_pid, 0);
	lull_feed_agents_wake(c);
	usleep(SETTLE_US);
	lull_clock_tick(&c->clock, c->session.control);
	now_ns = lull_now_ns();
	lull_feed_perf_end(c, now_ns);
	if (is_used)
		take_late_work(c);
	lull_feed_agents_scan(c);
	lull_feed_agents(c);
	return now_ns;
}

void lull_control_pause(struct lull_collector *c)
{
	stop_agents(c);
}

/* The report is closed for us, one way or the other: ready for the next capture range. */
static void leave_report(struct lull_collector *c)
{
	note_open(c, "");
	c->is_counted = false;
	lull_feed_agents_release(c);
	if (!c->options->is_duty)
		lull_control_await_range(c);
}

int lull_control_end(struct lull_collector *c, struct lull_err *err)
{
	int rc;

	if (!lull_recording_is_on(&c->recording))
		return lull_fail(err, LULL_E_USAGE, "no recording is running");
	rc = lull_control_finish(c, stop_agents(c), err);
	leave_report(c);
	return rc;
}

int lull_control_end_soon(struct lull_collector *c, struct lull_err *err)
{
	u64 now_ns = stop_agents(c);
	int rc = 0;

	/* Before there is a child: agents go on counting, and it would see other numbers. */
	note_counts(c);
	/* Without a child it takes longer, no more. */
	if (lull_dump_begin(c, c->n_records, c->report_path, err) != 0)
		rc = lull_control_finish(c, now_ns, err);
	else
		lull_recording_abandon(&c->recording);
	leave_report(c);
	return rc;
}

void lull_control_cancel(struct lull_collector *c)
{
	if (!lull_recording_is_on(&c->recording))
		return;
	if (c->options->is_duty)
		atomic_store(&c->session.control->next_record, 0);
	atomic_store(&c->session.control->record, 0);
	usleep(SETTLE_US);
	lull_feed_perf_end(c, lull_now_ns());
	lull_feed_agents(c);
	lull_recording_discard(&c->recording);
	note_open(c, "");
	lull_feed_agents_release(c);
}

void lull_control_kill(struct lull_collector *c, int signal)
{
	struct lull_process **all = c->tree.processes.at;

	if (!c->target.has_ended)
		kill(c->target.pid, signal);
	for (size_t i = 0; i < c->tree.processes.n; i++)
		if (all[i]->is_ours && !all[i]->end_ns && all[i]->pid != (u32)c->target.pid &&
		    lull_is_alive(all[i]->pid))
			kill((pid_t)all[i]->pid, signal);
}
