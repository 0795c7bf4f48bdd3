#include "record/collector.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/time.h"
#include "record/gpu/kernel_seen.h"
#include "record/perf/callstack.h"
#include "record/collector_int.h"
#include "record/session/locate.h"
#include "record/session/signals.h"
#include "record/session/stamps.h"
#include "record/session/stops.h"

/*
 * 20 ms: 16 busy threads fill 10 MB meanwhile, a twentieth of the pool; 50 wake-ups a second cost
 * 0.1 %.
 */
#define TICK_MS 20

/* 10 ms when Python stacks are taken, which are due 100 times a second. */
#define PYTHON_TICK_MS 10

/* A program that ignores the polite signal gets SIGKILL after this. */
#define KILL_GRACE_NS (5 * LULL_NS_PER_S)

/* What is left behind mostly ends sooner; then there is nothing to tell. */
#define SAY_WAIT_NS (2 * LULL_NS_PER_S)

/* Room for buffers we want to see before we use a folder. */
#define BUFFER_BYTES (64ull << 20)

static void free_process(struct lull_process *p)
{
	lull_callstack_free(p);
	lull_feed_python_free(p);
}

/* Split NAME@DOMAIN; a backslash takes the meaning from the @ after it. */
static void set_capture_range(struct lull_control *control, const char *text)
{
	char *to = control->capture_range;
	size_t n = 0;

	for (; *text; text++) {
		if (*text == '\\' && text[1] == '@') {
			text++;
		} else if (*text == '@' && to == control->capture_range) {
			to = control->capture_domain;
			n = 0;
			continue;
		}
		if (n < sizeof(control->capture_range) - 1)
			to[n++] = *text;
	}
}

static void fill_libraries(struct lull_control *control, const struct lull_vec *list)
{
	char **words = list ? list->at : NULL;
	size_t room = sizeof(control->libraries), used = 0;

	for (size_t i = 0; list && i < list->n && used < room; i++)
		used += (size_t)snprintf(control->libraries + used, room - used, "%s%s\n", words[i],
					 strchr(words[i], ':') ? "" : ":*");
}

static void fill_control(struct lull_collector *c)
{
	const struct lull_collector_options *o = c->options;
	struct lull_control *control = c->session.control;

	control->sources = o->sources;
	control->is_clock = c->clock.is_clock;
	control->tick_hz = c->clock.tick_hz;
	control->osrt_threshold_ticks = lull_clock_ticks(&c->clock, o->osrt_threshold_ns);
	control->backtrace_ticks = lull_clock_ticks(&c->clock, o->backtrace_threshold_ns);
	control->backtrace_bytes = 6144;
	control->cuda_flush_ms = o->cuda_flush_ms;
	for (size_t i = 0; i < LULL_N_CALL_KINDS; i++)
		if (o->cuda_backtrace_ns[i])
			control->cuda_backtrace_ticks[i] =
				lull_clock_ticks(&c->clock, o->cuda_backtrace_ns[i]) | 1;
	control->timer_period_ns =
		(u32)(LULL_NS_PER_S / (o->rate_hz ? o->rate_hz : LULL_PERF_CHEAP_HZ));
	control->sample_bytes = 8192;
	control->capture_repeats = o->range_end == LULL_RANGE_END_REPEAT ||
						   o->range_end == LULL_RANGE_END_REPEAT_SHUTDOWN
					   ? o->range_repeats
					   : 1;
	control->mpi_family = o->mpi_family;
	snprintf(control->ranks, sizeof(control->ranks), "%s", o->ranks ? o->ranks : "");
	fill_libraries(control, o->libraries);
	if (o->kernels)
		control->kernels = *o->kernels;
	if (o->is_duty)
		lull_feed_duty_control(c);
	if (o->begin == LULL_BEGIN_ON_RANGE) {
		if (o->capture_range)
			set_capture_range(control, o->capture_range);
		control->schedule = o->schedule;
		/*
		 * A schedule of the command line says when CUPTI is needed; its first step is one.
		 */
		atomic_store(&control->armed, o->watch == LULL_WATCH_STEPS &&
						      o->schedule.skip_first + o->schedule.wait +
								      o->schedule.warmup <=
							      1);
		atomic_store(&control->watch, o->watch);
	}
}

static bool has_children(void)
{
	siginfo_t info;

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* Children besides our own helpers. Where the kernel does not list them, those go. */
static bool has_recorded_children(struct lull_collector *c)
{
	struct lull_str list = LULL_STR_INIT;
	pid_t sampler = lull_feed_gpu_pid(c);
	bool is_any = false;
	char path[64], *at, *end;

	if (!sampler && !c->witness.pid)
		return has_children();
	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)gettid());
	if (!lull_file_read(path, &list)) {
		lull_feed_gpu_close(c);
		lull_witness_stop(&c->witness);
		return has_children();
	}
	for (at = list.at; at && !is_any; at = end) {
		long pid = strtol(at, &end, 10);

		if (end == at)
			break;
		is_any = pid != sampler && pid != c->witness.pid;
	}
	lull_str_release(&list);
	return is_any;
}

/*
 * Two descriptors for each process, and more for perf: as many as we may have. The program, which
 * has been forked, keeps the limit it was given.
 */
static void raise_file_limit(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) != 0)
		return;
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
}

/* Everything that can fail before the program runs. */
static int prepare(struct lull_collector *c, struct lull_err *err)
{
	const struct lull_collector_options *o = c->options;
	struct lull_spawn_env env = {
		.session_path = c->session.path,
		.has_nvtx = o->sources & LULL_SOURCE_NVTX,
		.has_cuda = o->sources & LULL_SOURCE_CUDA,
		.has_nccl = o->sources & LULL_SOURCE_NCCL,
		.has_torch = o->sources & LULL_SOURCE_TORCH,
		.is_inherited = o->is_env_inherited,
		.more = o->env,
	};
	sigset_t inherited;
	int rc;

	/* Whoever ignores it never hears of children that end; a parent may have left it so. */
	env.is_deaf = signal(SIGCHLD, SIG_DFL) == SIG_IGN;
	c->has_strangers = has_children();
	lull_feed_gpu_open(c);
	lull_witness_start(&c->witness);
	rc = lull_locate_agent(&c->agent_path, err);
	if (!rc && o->attach)
		rc = lull_attached_inspect(c, err);
	if (rc)
		return rc;
	env.agent_path = c->agent_path.at;
	rc = lull_session_create(&c->session, c->attach_root, o->session_name, BUFFER_BYTES, err);
	if (rc)
		return rc;
	fill_control(c);
	lull_clock_tick(&c->clock, c->session.control);
	rc = lull_signals_open(c, &inherited, err);
	env.signals = &inherited;
	if (!rc)
		rc = lull_remote_listen(c, err);
	if (!rc)
		rc = lull_feed_metrics_open(c, err);
	if (!rc && !o->attach)
		rc = lull_spawn(&c->target, c->argv, &env, err);
	/*
	 * After the fork, so that the program finds them as we did: a write beyond a limit or into
	 * a closed pipe is an error for us, not our end; one to a terminal from its background does
	 * not stop us (stty tostop).
	 */
	signal(SIGTTOU, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	raise_file_limit();
	if (!rc && !o->is_run_again && !o->attach)
		lull_spawn_let_go(o->has_output);
	return rc;
}

/*
 * Let the program go; the recording is on before its first instruction if that is what was asked
 * for.
 */
static int launch(struct lull_collector *c, struct lull_err *err)
{
	const struct lull_collector_options *o = c->options;
	struct lull_process *p;
	int rc = 0;

	c->start_ns = lull_now_ns();
	c->last_tick_ns = c->start_ns;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	lull_feed_perf_open(c);
	p = lull_tree_get(&c->tree, (u32)c->target.pid, (u32)getpid(), c->start_ns);
	p->is_ours = true;
	p->is_awaiting_exec = true;
	if (o->begin == LULL_BEGIN_AT_ONCE) {
		if (o->delay_s > 0)
			c->begin_at_ns = c->start_ns + (u64)(o->delay_s * 1e9);
		else
			rc = lull_control_begin(c, NULL, err);
	}
	if (rc) {
		kill(c->target.pid, SIGKILL);
		waitpid(c->target.pid, NULL, 0);
		return rc;
	}
	if (!o->is_duty)
		lull_control_await_range(c);
	c->is_launched = true;
	return lull_spawn_go(&c->target, c->argv[0], err);
}

void lull_collector_reap(struct lull_collector *c)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		struct lull_process *p = lull_tree_find(&c->tree, (u32)pid);

		lull_feed_gpu_ended(c, pid);
		if (pid == c->witness.pid)
			c->witness.pid = 0;
		lull_dump_reap(c, pid, status);
		if (p)
			lull_tree_ended(p, status, lull_now_ns());
		if (pid == c->target.pid) {
			c->target.has_ended = true;
			c->target.wait_status = status;
			c->ended_ns = lull_now_ns();
			lull_signals_allow_stop();
		}
	}
	lull_stops_follow(c);
}

/*
 * Somebody of the tree is still there. Orphans come to us (PR_SET_CHILD_SUBREAPER), also those so
 * young that nobody has told us about them.
 */
static bool is_tree_alive(struct lull_collector *c)
{
	struct lull_process **all = c->tree.processes.at;

	if (!c->has_strangers && has_recorded_children(c))
		return true;
	for (size_t i = 0; i < c->tree.processes.n; i++)
		if (all[i]->is_ours && !all[i]->end_ns && lull_is_alive(all[i]->pid))
			return true;
	return false;
}

static void note_survivors(struct lull_collector *c);

/* The recording ended on its own (duration, range): what becomes of the program? */
static void end_by_itself(struct lull_collector *c, bool is_killing)
{
	struct lull_err err;

	if (c->options->attach)
		note_survivors(c);
	if (lull_recording_is_on(&c->recording) &&
	    (c->is_shutdown || c->options->begin != LULL_BEGIN_ON_RANGE
		     ? lull_control_end(c, &err)
		     : lull_control_end_soon(c, &err)) != 0 &&
	    !c->has_report_failed) {
		c->has_report_failed = true;
		c->report_err = err;
	}
	c->stop_at_ns = 0;
	if (is_killing && c->options->kill_signal) {
		lull_control_kill(c, c->options->kill_signal);
		c->kill_at_ns = lull_now_ns() + KILL_GRACE_NS;
	}
}

static void begin_by_itself(struct lull_collector *c)
{
	struct lull_err err;

	c->begin_at_ns = 0;
	if (lull_control_begin(c, NULL, &err) != 0) {
		c->has_report_failed = true;
		c->report_err = err;
		atomic_store(&c->session.control->record, 0);
	}
}

void lull_collector_follow_begin(struct lull_collector *c)
{
	u32 began = atomic_load(&c->session.control->capture_began);

	if (began > c->n_records && !lull_recording_is_on(&c->recording) && !c->has_report_failed)
		begin_by_itself(c);
}

/* The number may be one that a process has in a PID namespace of its own. */
static bool is_inner(const struct lull_collector *c, u32 ns_pid)
{
	struct lull_process **all = c->tree.processes.at;

	for (size_t i = 0; i < c->tree.processes.n; i++)
		if (all[i]->pid_ns && all[i]->ns_pid == ns_pid && lull_is_alive(all[i]->pid))
			return true;
	return false;
}

bool lull_collector_is_capturer_gone(const struct lull_collector *c)
{
	u32 pid = atomic_load(&c->session.control->capture_pid);

	return pid && !lull_is_alive(pid) && !is_inner(c, pid);
}

/* The process whose range began the recording, or the last of a round, died inside it. */
static void end_for_the_dead(struct lull_collector *c)
{
	struct lull_control *control = c->session.control;
	bool has_left = lull_feed_agents_leave_round(c);

	if (!atomic_load(&control->record) || atomic_load(&control->n_in_round))
		return;
	if (!has_left && !lull_collector_is_capturer_gone(c))
		return;
	atomic_store(&control->capture_pid, 0);
	atomic_store(&control->record, 0);
	atomic_fetch_add(&control->capture_ended, 1);
}

/* Capture ranges: an agent switches recording on and off itself; we follow with the file. */
static void follow_ranges(struct lull_collector *c)
{
	enum lull_range_end end = c->options->range_end;
	u32 ended;

	if (c->options->begin != LULL_BEGIN_ON_RANGE)
		return;
	lull_collector_follow_begin(c);
	end_for_the_dead(c);
	ended = atomic_load(&c->session.control->capture_ended);
	if (ended <= c->n_ranges_seen || end == LULL_RANGE_END_NONE)
		return;
	c->n_ranges_seen = ended;
	if (end == LULL_RANGE_END_STOP_SHUTDOWN ||
	    (end == LULL_RANGE_END_REPEAT_SHUTDOWN && ended >= c->options->range_repeats))
		c->is_shutdown = true;
	end_by_itself(c, c->is_shutdown && c->options->is_kill_given);
}

static void follow_time(struct lull_collector *c, u64 now_ns)
{
	if (c->begin_at_ns && now_ns >= c->begin_at_ns)
		begin_by_itself(c);
	if (c->stop_at_ns && now_ns >= c->stop_at_ns) {
		/* First, so that agents know when the recording ends that it was the last. */
		atomic_store(&c->session.control->is_over, 1);
		end_by_itself(c, c->options->begin != LULL_BEGIN_ON_RANGE ||
					 c->options->is_kill_given);
		c->is_shutdown = true;
	}
	if (c->kill_at_ns && now_ns >= c->kill_at_ns) {
		lull_control_kill(c, SIGKILL);
		c->kill_at_ns = 0;
	}
}

/* Without a word it would look as if the program did not end. */
static void say_wait(struct lull_collector *c)
{
	struct lull_process **all = c->tree.processes.at;
	char line[160], count[32] = "";
	u32 n = 0;

	if (c->has_said_wait || lull_now_ns() - c->ended_ns < SAY_WAIT_NS)
		return;
	c->has_said_wait = true;
	for (size_t i = 0; i < c->tree.processes.n; i++)
		n += all[i]->is_ours && !all[i]->end_ns && lull_is_alive(all[i]->pid);
	if (n)
		snprintf(count, sizeof(count), "%u ", n);
	snprintf(line, sizeof(line),
		 "the program has ended; waiting for %sprocess%s that it started (Ctrl-C ends "
		 "the wait, --wait=primary avoids it)",
		 count, n == 1 ? "" : "es");
	lull_progress_say(&c->progress, line);
}

/* The program is gone, and with --wait=all everything it started, too. */
static void check_end(struct lull_collector *c)
{
	if (c->options->attach)
		lull_attached_check(c);
	if (!c->target.has_ended || lull_dump_is_busy(c))
		return;
	if (!c->options->is_stopping_on_exit && c->stop_at_ns)
		return;
	if (c->options->is_waiting_for_all && is_tree_alive(c)) {
		say_wait(c);
		return;
	}
	c->is_over = true;
}

static void show_progress(struct lull_collector *c)
{
	struct lull_progress_state state = { 0 };

	if (!lull_recording_is_on(&c->recording) || lull_feed_kernels_show(c))
		return;
	state.n_events = c->recording.n_events;
	state.written_bytes = lull_writer_stats(c->recording.writer).size_bytes;
	state.n_lost = lull_control_losses(c);
	state.pid = c->target.has_ended ? 0 : c->target.pid;
	lull_progress_recording(&c->progress, &state);
}

/* A server has come whose requests are recorded; its first ones may go without stamps. */
static void follow_stamps(struct lull_collector *c)
{
	_Atomic u32 *wanted = &c->session.control->wants_stamps;

	if (atomic_load_explicit(wanted, memory_order_relaxed) != 1)
		return;
	c->stamps_fd = c->stamps_fd < 0 ? lull_stamps_begin() : c->stamps_fd;
	atomic_store_explicit(wanted, 2, memory_order_relaxed); /* done, or not to be had */
}

/* One round of everything. */
static void tick(struct lull_collector *c)
{
	u64 now_ns = lull_now_ns();

	lull_clock_tick(&c->clock, c->session.control);
	follow_ranges(c);
	/*
	 * Images before perf: an exec that the kernel reports then finds the program its agent has
	 * announced.
	 */
	lull_feed_agents_scan(c);
	follow_stamps(c);
	lull_feed_perf(c, false);
	lull_feed_agents(c);
	lull_feed_usage(c);
	lull_feed_python(c);
	lull_feed_gpu(c);
	lull_feed_kernels(c);
	lull_feed_duty(c, now_ns);
	lull_control_checkpoint(c, false);
	lull_flight_tick(c, now_ns);
	lull_feed_metrics(c, now_ns);
	c->last_tick_ns = now_ns;
	follow_time(c, now_ns);
	if (c->is_shutdown)
		atomic_store(&c->session.control->is_over, 1);
	show_progress(c);
	check_end(c);
}

static void loop(struct lull_collector *c)
{
	while (!c->is_over) {
		struct pollfd fds[3] = {
			{ .fd = c->signal_fd, .events = POLLIN },
			{ .fd = c->socket_fd, .events = POLLIN },
			{ .fd = c->perf ? lull_perf_fd(c->perf) : -1, .events = POLLIN },
		};

		poll(fds, 3, c->options->is_python_sampled ? PYTHON_TICK_MS : TICK_MS);
		if (fds[0].revents)
			lull_signals_read(c);
		if (fds[1].revents)
			lull_remote_serve(c);
		tick(c);
	}
}

static int exit_status(int wait_status)
{
	return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

/* Processes that are left when the session ends: let them be, but say so. */
static void note_survivors(struct lull_collector *c)
{
	struct lull_process **all = c->tree.processes.at;
	u64 n = 0;

	for (size_t i = 0; i < c->tree.processes.n; i++) {
		if (!all[i]->is_ours || all[i]->end_ns || !lull_is_alive(all[i]->pid))
			continue;
		all[i]->exit_kind = LULL_EXIT_RUNNING;
		n++;
	}
	if (lull_recording_is_on(&c->recording) && !c->options->attach)
		lull_recording_issue(&c->recording, LULL_ISSUE_still_running, NULL, n, NULL);
}

static void note_kills(struct lull_collector *c)
{
	struct lull_process **all = c->tree.processes.at;

	for (size_t i = 0; lull_recording_is_on(&c->recording) && i < c->tree.processes.n; i++)
		if (all[i]->exit_kind == LULL_EXIT_SIGNAL)
			lull_recording_issue(&c->recording, LULL_ISSUE_killed, all[i], 1, NULL);
}

static void release(struct lull_collector *c)
{
	lull_mem_last_words("%s", "");
	lull_progress_clear(&c->progress);
	if (c->options->attach)
		lull_attached_part(c);
	lull_str_release(&c->agent_path);
	lull_feed_perf_close(c);
	lull_feed_gpu_close(c);
	lull_witness_stop(&c->witness);
	lull_dump_wait(c, 0);
	lull_vec_release(&c->dumps);
	lull_metrics_close(c->metrics);
	lull_recording_release(&c->recording);
	lull_pulse_release(&c->pulse);
	lull_tree_release(&c->tree);
	lull_clock_release(&c->clock);
	if (c->socket_fd >= 0)
		close(c->socket_fd);
	if (c->signal_fd >= 0)
		close(c->signal_fd);
	if (c->stamps_fd >= 0)
		close(c->stamps_fd);
	if (c->session.control) {
		atomic_store(&c->session.control->record, 0);
		atomic_store(&c->session.control->is_over, 1);
	}
	lull_session_remove(&c->session);
}

static void tell_kernels(struct lull_collector *c)
{
	const struct lull_kwish *wish = &c->session.control->kernels;

	c->result->n_launches = atomic_load(&wish->n_launches);
	c->result->n_measured = atomic_load(&wish->n_done);
	c->result->n_passes = atomic_load(&wish->n_passes);
	c->result->measured_ns = lull_clock_dur_ns(&c->clock, atomic_load(&wish->done_ticks));
	c->result->has_hung = c->has_hung;
	lull_kernel_seen(wish, &c->result->ran);
}

static int run(struct lull_collector *c, struct lull_err *err)
{
	int rc = prepare(c, err);

	if (!rc)
		rc = c->options->attach ? lull_attached_launch(c, err) : launch(c, err);
	if (rc) {
		lull_control_cancel(c);
		if (c->target.has_ended)
			c->result->exit_status = exit_status(c->target.wait_status);
		return rc;
	}
	loop(c);
	lull_signals_allow_stop();
	if (c->options->attach) /* agents are to leave when it ends */
		atomic_store(&c->session.control->is_over, 1);
	tell_kernels(c);
	lull_feed_perf(c, true);
	note_survivors(c);
	note_kills(c);
	if (lull_recording_is_on(&c->recording))
		rc = c->flight.is_on ? lull_flight_end(c, err) : lull_control_end(c, err);
	lull_dump_wait(c, 0);
	c->result->exit_status = exit_status(c->target.wait_status);
	if (!rc && c->has_report_failed) {
		*err = c->report_err;
		rc = err->code;
	}
	return rc;
}

/* Rows are looked at as they pass only if somebody wants to know. */
static void watch_rows(struct lull_collector *c)
{
	const struct lull_collector_options *o = c->options;

	c->flight.is_on = o->flight_s > 0;
	c->flight.keep_ns = (u64)(o->flight_s * 1e9);
	if (!c->flight.is_on && !o->metrics_address)
		return;
	lull_pulse_init(&c->pulse);
	c->pulse.slow_factor = o->slow_factor;
	c->pulse.slow_ns = o->slow_ns;
	c->recording.pulse = &c->pulse;
	c->turn_ns = lull_now_ns();
}

int lull_collector_run(const struct lull_collector_options *o, char **argv,
		       struct lull_collector_result *result, struct lull_err *err)
{
	struct lull_collector c = {
		.options = o,
		.result = result,
		.argv = argv,
		.socket_fd = -1,
		.signal_fd = -1,
		.stamps_fd = -1,
		.witness.fd = -1,
	};
	int rc;

	result->exit_status = 0;
	lull_vec_init(&result->reports, sizeof(struct lull_report_done));
	lull_vec_init(&c.dumps, sizeof(struct lull_dump));
	lull_clock_init(&c.clock);
	lull_tree_init(&c.tree);
	c.tree.on_free = free_process;
	lull_recording_init(&c.recording, &c.clock, &c.tree);
	c.recording.is_measuring = o->kernels != NULL;
	lull_progress_init(&c.progress, o->is_quiet);
	lull_axis_init(&c.axis);
	lull_duty_init(&c.duty, o->duty_share, o->duty_budget, o->duty_seed);
	watch_rows(&c);
	rc = run(&c, err);
	release(&c);
	return rc;
}

void lull_collector_result_release(struct lull_collector_result *result)
{
	struct lull_report_done *done = result->reports.at;

	for (size_t i = 0; i < result->reports.n; i++) {
		free(done[i].path);
		free(done[i].notices);
	}
	lull_vec_release(&result->reports);
	lull_str_release(&result->ran);
}
