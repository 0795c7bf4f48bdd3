#include "agent/core/schedule.h"

#include <linux/futex.h>
#include <limits.h>
#include <time.h>

#include "agent/core/capture.h"
#include "agent/core/window_steps.h"
#include "agent/core/source.h"
#include "agent/core/sys.h"

/* How long a round waits for the recorder to close the report of the one before. */
#define TICKET_TRIES 2000u /* of 1 ms */

/* How long it waits to be in a round that another process begins. */
#define OTHER_TRIES 20u

/* How long it waits for sources to be ready. */
#define READY_TRIES 500u /* of 1 ms */

static struct {
	bool is_own;		  /* `own` is in force */
	struct lull_schedule own; /* of the program */
	u64 n_steps;		  /* so far */
	u32 pid;		  /* of the process that counts; a forked child begins again */
	bool is_said;		  /* the program says its steps itself */
	bool is_holding;	  /* the present recording is also of this process's steps */
	bool is_tired;		  /* the recorder did not come back in time: it may be dead */
} schedule;

void lull_schedule_reset(void)
{
	memset(&schedule, 0, sizeof(schedule));
}

void lull_schedule_emit(struct lull_thread *t, u64 number, u32 flags)
{
	struct lull_wire_step *e;

	if (!t)
		return;
	e = lull_reserve(t, LULL_EVENT_step, sizeof(*e));
	if (!e)
		return;
	e->head.a = flags;
	e->number = number;
	lull_commit(t, sizeof(*e));
}

/* The one in force; false if there is none. */
static bool find_current(struct lull_schedule *s)
{
	const struct lull_control *c = lull_agent.control;
	bool is_given = atomic_load_explicit(&c->watch, memory_order_relaxed) & LULL_WATCH_STEPS;

	*s = is_given ? c->schedule : schedule.own;
	return is_given || schedule.is_own;
}

enum phase { PHASE_OFF, PHASE_WARM, PHASE_ACTIVE };

static enum phase phase_of(const struct lull_schedule *s, u64 step, bool *is_first)
{
	u64 before = (u64)s->wait + s->warmup, round = before + s->active, at;

	*is_first = false;
	if (step < s->skip_first || !s->active)
		return PHASE_OFF;
	step -= s->skip_first;
	if (s->repeat && step / round >= s->repeat)
		return PHASE_OFF;
	at = step % round;
	*is_first = at == before;
	return at >= before ? PHASE_ACTIVE : at >= s->wait ? PHASE_WARM : PHASE_OFF;
}

static void nap(void)
{
	struct timespec ms = { 0, 1000000 };

	syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0L, &ms, NULL);
}

void lull_schedule_arm(bool is_armed)
{
	struct lull_control *c = lull_agent.control;

	if (atomic_exchange(&c->armed, is_armed) == (u32)is_armed)
		return;
	/* Threads of sources that have to do something for it sleep on this word. */
	syscall(SYS_futex, &c->flush_wanted, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void lull_schedule_arm_and_wait(void)
{
	lull_schedule_arm(true);
	for (u32 i = 0; i < READY_TRIES && !lull_sources_prepare(); i++)
		;
}

/* Be one more process of the round that others began; false if there is none. */
static bool join(struct lull_control *c)
{
	u32 n = atomic_load(&c->n_in_round);

	while (n)
		if (atomic_compare_exchange_weak(&c->n_in_round, &n, n + 1))
			return true;
	return false;
}

static void hold(bool is_holding)
{
	schedule.is_holding = is_holding;
	atomic_store(&lull_agent.image->is_in_round, is_holding);
}

/*
 * The processes of a job come to a step one after the other: the first begins the recording, the
 * last one to leave its steps ends it.
 */
static void begin(void)
{
	struct lull_control *c = lull_agent.control;

	lull_schedule_arm_and_wait();
	for (u32 i = 0; i < TICKET_TRIES; i++) {
		if (join(c)) {
			hold(true);
			break;
		}
		if (lull_capture_is_closing()) {
			if (schedule.is_tired)
				break;
			nap();
			continue;
		}
		if (lull_capture_take()) {
			atomic_store(&c->n_in_round, 1);
			hold(true);
			break;
		}
		/* Another one may be between its two lines above. */
		if (!atomic_load(&c->record) || i >= OTHER_TRIES)
			break;
		nap();
	}
	schedule.is_tired = !schedule.is_holding && lull_capture_is_closing();
}

static void end(void)
{
	struct lull_control *c = lull_agent.control;

	if (!schedule.is_holding)
		return;
	if (atomic_fetch_sub(&c->n_in_round, 1) == 1)
		lull_capture_give();
	hold(false);
}

static void follow(const struct lull_schedule *s)
{
	bool is_first, is_next_first;
	u64 step = schedule.n_steps++;
	enum phase now = phase_of(s, step, &is_first), next = phase_of(s, step + 1, &is_next_first);

	if (now != PHASE_ACTIVE || is_first)
		end();
	if (now == PHASE_ACTIVE && is_first)
		begin();
	else if (now == PHASE_WARM || next == PHASE_ACTIVE)
		lull_schedule_arm_and_wait();
	else if (now != PHASE_ACTIVE)
		lull_schedule_arm(false);
}

void lull_schedule_step(u64 number, u32 flags)
{
	struct lull_schedule s;
	int saved = errno;

	if (!lull_agent.has_session)
		return;
	lull_sources_passed();
	if (!(flags & LULL_STEP_HOOKED))
		schedule.is_said = true;
	else if (schedule.is_said)
		return;
	if (lull_window_steps_are_on()) {
		lull_window_steps_add(number, flags);
		errno = saved;
		return;
	}
	if (find_current(&s) && lull_agent.image) {
		if (schedule.pid != lull_agent.image->pid) {
			schedule.pid = lull_agent.image->pid;
			schedule.n_steps = 0;
			schedule.is_holding = false;
		}
		if (flags & LULL_STEP_END) {
			/* Before the recording ends, or nobody would see it. */
			lull_schedule_emit(lull_recording(), number, flags);
			if (!(flags & LULL_STEP_NONE))
				end();
			errno = saved;
			return;
		}
		if (schedule.is_holding)
			lull_schedule_emit(lull_recording(), number,
					   LULL_STEP_END | (flags & LULL_STEP_HOOKED));
		follow(&s);
		/* Others may still be in their round: this step is not of it. */
		if (!schedule.is_holding && atomic_load(&lull_agent.control->n_in_round)) {
			errno = saved;
			return;
		}
	}
	lull_schedule_emit(lull_recording(), number, flags);
	errno = saved;
}

bool lull_schedule_set(const struct lull_schedule *s)
{
	u32 watch = atomic_load_explicit(&lull_agent.control->watch, memory_order_relaxed);

	if (!(watch & LULL_WATCH_PROGRAM))
		return false;
	schedule.own = *s;
	schedule.is_own = true;
	schedule.n_steps = 0;
	if ((u64)s->skip_first + s->wait + s->warmup <= 1)
		lull_schedule_arm_and_wait();
	else
		lull_schedule_arm(false);
	return true;
}

void lull_schedule_program(bool is_start)
{
	u32 watch = atomic_load_explicit(&lull_agent.control->watch, memory_order_relaxed);
	int saved = errno;

	if (!(watch & LULL_WATCH_PROGRAM))
		return;
	lull_sources_passed();
	if (is_start) {
		lull_schedule_arm_and_wait();
		lull_capture_take();
	} else {
		lull_capture_give();
		lull_schedule_arm(false);
		lull_sources_ended();
	}
	errno = saved;
}
