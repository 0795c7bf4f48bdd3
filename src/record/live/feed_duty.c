/*
 * feed_duty - windows of a recording that is mostly off: ask for them, follow them, end them.
 *
 *	REST -> WANTED -> OPEN -> REST
 *
 * A program with steps starts and ends a window itself (agent/core/window_steps.h). If none does in
 * time, the recorder switches all agents on and off by the clock.
 */
#include <stdio.h>

#include "base/time.h"
#include "record/collector_int.h"

/* A window by steps has so many, and takes so long, at least: a few whole ones of short loops. */
#define WINDOW_STEPS 5u
#define WINDOW_NS    (LULL_NS_PER_S / 5)

/* A window by time. */
#define TIMED_NS (LULL_NS_PER_S / 2)

/* How long to wait for a step to start a window: before any was seen; and else in steps. */
#define PATIENCE_NS    (2 * LULL_NS_PER_S)
#define PATIENCE_STEPS 4u

/* Nothing that is in a window of steps takes longer; a loop that stopped does. */
#define LONGEST_NS (300 * LULL_NS_PER_S)

/* Window.kind */
enum { BY_STEPS = 1, BY_TIME = 2 };

bool lull_feed_duty_is_paused(const struct lull_collector *c)
{
	return c->options->is_duty && !lull_axis_is_open(&c->axis);
}

void lull_feed_duty_control(struct lull_collector *c)
{
	struct lull_control *control = c->session.control;

	control->window_steps = WINDOW_STEPS;
	control->window_ticks = lull_clock_ticks(&c->clock, WINDOW_NS);
	control->capture_repeats = 0;
	atomic_store(&control->watch, LULL_WATCH_DUTY);
}

void lull_feed_duty_begin(struct lull_collector *c)
{
	lull_axis_release(&c->axis);
	lull_axis_init(&c->axis);
	c->recording.axis = &c->axis;
	c->recording.duty = &c->duty;
	c->window.state = LULL_WINDOW_REST;
	c->window.n_begun = atomic_load(&c->session.control->capture_began);
	lull_duty_start(&c->duty, c->begin_ns);
}

/* ---- a window starts ---- */

static void open_window(struct lull_collector *c, bool is_timed)
{
	struct lull_control *control = c->session.control;
	u64 begin_ns = lull_clock_ns_of(&c->clock, atomic_load(&control->start_counter));

	c->window.n_begun = atomic_load(&control->capture_began);
	c->window.state = LULL_WINDOW_OPEN;
	c->window.is_timed = is_timed;
	c->window.begin_ns = begin_ns > c->begin_ns ? begin_ns : c->begin_ns;
	lull_axis_open(&c->axis, c->window.begin_ns);
	control->left_out_ns =
		c->window.begin_ns - c->begin_ns - lull_axis_ns(&c->axis, c->window.begin_ns);
	c->window.n_events = c->recording.n_events;
	c->next_usage_ns = 0;
	lull_feed_perf_resume(c, c->window.begin_ns);
}

void lull_feed_duty_follow(struct lull_collector *c)
{
	struct lull_control *control = c->session.control;

	if (!c->options->is_duty || !lull_recording_is_on(&c->recording))
		return;
	if (atomic_load(&control->capture_began) > c->window.n_begun)
		open_window(c, false);
	/* What comes from here on lasted longer than the window, if it is not older. */
	if (lull_axis_is_open(&c->axis) && !atomic_load(&control->record))
		lull_axis_close(&c->axis,
				lull_clock_ns_of(&c->clock, atomic_load(&control->stop_counter)));
}

static void want_window(struct lull_collector *c, u64 now_ns)
{
	struct lull_control *control = c->session.control;
	u32 number = atomic_load(&control->last_record) + 1;

	c->window.state = LULL_WINDOW_WANTED;
	c->window.wanted_ns = now_ns;
	/* Its report is open. */
	atomic_store(&control->filed_record, number);
	atomic_store(&control->next_record, number);
}

static void start_by_time(struct lull_collector *c)
{
	struct lull_control *control = c->session.control;
	u32 number = atomic_exchange(&control->next_record, 0);

	if (!number)
		return; /* an agent has just started it */
	lull_feed_agents_arm(c);
	atomic_store(&control->start_counter, lull_control_counter(c));
	atomic_store(&control->last_record, number);
	atomic_fetch_add(&control->capture_began, 1);
	open_window(c, true);
	atomic_store(&control->record, number);
	atomic_store(&control->armed, 0);
	lull_feed_agents_wake(c);
}

/* ---- a window ends ---- */

static void add_row(struct lull_collector *c, const struct lull_duty_count *count)
{
	struct lull_recording *r = &c->recording;
	const struct lull_axis_window *w = lull_vec_get(&c->axis.windows, c->axis.windows.n - 1);
	struct lull_window_row row = {
		.start_ns = w->at_ns,
		.dur_ns = w->end_ns - w->begin_ns,
		.real_ns = w->begin_ns - c->begin_ns,
		.n_steps = count->n_steps,
		.steps_ns = count->steps_ns,
		.n_outside = count->n_outside,
		.outside_ns = count->outside_ns,
		.kind = c->window.is_timed ? BY_TIME : BY_STEPS,
	};

	lull_recording_add(r, LULL_TABLE_window, &row);
}

/* All of the window has been read: close it in the report, and plan the next. */
static void end_window(struct lull_collector *c, u64 now_ns)
{
	struct lull_duty_count count;
	const struct lull_axis_window *w;

	if (c->window.state != LULL_WINDOW_OPEN)
		return;
	lull_axis_close(&c->axis, lull_clock_ns_of(&c->clock,
						   atomic_load(&c->session.control->stop_counter)));
	w = lull_vec_get(&c->axis.windows, c->axis.windows.n - 1);
	lull_recording_close_open(&c->recording, w->end_ns);
	lull_duty_had(&c->duty, c->recording.n_events - c->window.n_events,
		      lull_feed_agents_have_cuda(c));
	lull_duty_ended(&c->duty, w->end_ns - w->begin_ns, now_ns, &count);
	add_row(c, &count);
	c->window.state = LULL_WINDOW_REST;
}

static bool is_window_over(struct lull_collector *c, u64 now_ns)
{
	u64 age_ns = now_ns > c->window.begin_ns ? now_ns - c->window.begin_ns : 0;

	if (!atomic_load(&c->session.control->record))
		return true;
	if (c->window.is_timed)
		return age_ns >= TIMED_NS;
	return age_ns >= LONGEST_NS || lull_collector_is_capturer_gone(c);
}

/* How long a step may take to start the window. */
static u64 patience_ns(const struct lull_collector *c)
{
	u64 usual_ns = lull_duty_usual_ns(&c->duty);

	/* Whoever had none so far is not waited for again. */
	if (!c->duty.task && c->duty.n_windows)
		return 0;
	return PATIENCE_NS + PATIENCE_STEPS * usual_ns;
}

void lull_feed_duty(struct lull_collector *c, u64 now_ns)
{
	if (!c->options->is_duty || !lull_recording_is_on(&c->recording))
		return;
	lull_feed_duty_follow(c);
	switch (c->window.state) {
	case LULL_WINDOW_REST:
		if (lull_duty_is_due(&c->duty, now_ns))
			want_window(c, now_ns);
		break;
	case LULL_WINDOW_WANTED:
		if (now_ns - c->window.wanted_ns >= patience_ns(c))
			start_by_time(c);
		break;
	case LULL_WINDOW_OPEN:
		if (!is_window_over(c, now_ns))
			break;
		lull_control_pause(c);
		end_window(c, lull_now_ns());
		lull_control_checkpoint(c, true);
		break;
	}
}

/* ---- the report ends ---- */

static void note(struct lull_collector *c, const char *key, const char *text)
{
	lull_recording_meta(&c->recording, key, text);
}

static void note_cost(struct lull_collector *c, f64 elapsed_ns)
{
	const struct lull_duty *d = &c->duty;
	char text[128];

	if (!d->total.n_steps || !d->total.n_outside)
		return;
	snprintf(text, sizeof(text), "%.3f %% of the run, by %u steps in windows and %u outside",
		 100 * (f64)d->cost_ns / elapsed_ns, d->total.n_steps, d->total.n_outside);
	note(c, "duty.cost", text);
}

void lull_feed_duty_finish(struct lull_collector *c, u64 now_ns)
{
	const struct lull_duty *d = &c->duty;
	f64 elapsed_ns = (f64)(now_ns - c->begin_ns + 1);
	char text[128];

	if (!c->options->is_duty)
		return;
	end_window(c, now_ns);
	/* Steps after the last window count, too. */
	c->duty.total.n_outside += d->count.n_outside;
	snprintf(text, sizeof(text), "%u", d->count.n_outside);
	note(c, "duty.tail_steps", text);
	snprintf(text, sizeof(text), "%.2f %% of %.1f s, in %u windows",
		 100 * (f64)d->recorded_ns / elapsed_ns, elapsed_ns / 1e9, d->n_windows);
	note(c, "duty.recorded", text);
	lull_recording_issue(&c->recording, LULL_ISSUE_windows, NULL, d->n_windows + !d->n_windows,
			     text);
	snprintf(text, sizeof(text), "%llu", (unsigned long long)elapsed_ns);
	note(c, "duty.elapsed_ns", text);
	snprintf(text, sizeof(text), "%u", d->total.n_steps + d->total.n_outside);
	note(c, "duty.steps", text);
	snprintf(text, sizeof(text), "%llu", (unsigned long long)d->seed);
	note(c, "duty.seed", text);
	note_cost(c, elapsed_ns);
}
