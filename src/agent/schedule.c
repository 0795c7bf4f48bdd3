#include "agent/schedule.h"

#include <linux/futex.h>
#include <limits.h>
#include <time.h>

#include "agent/capture.h"
#include "agent/cuda.h"
#include "agent/sys.h"

/* How long a round waits for the recorder to close the report of the one before. */
#define TICKET_TRIES 2000u /* of 1 ms */

/* How long it waits for CUPTI. */
#define CUPTI_TRIES 500u

static struct {
	bool is_own;		  /* `own` is in force */
	struct lull_schedule own; /* of the program */
	u64 n_steps;		  /* so far */
	u32 pid;		  /* of the process that counts; a forked child begins again */
	bool is_said;		  /* the program says its steps itself */
	bool is_holding;	  /* this process began the present recording */
	bool is_tired;		  /* the recorder did not come back in time: it may be dead */
} schedule;

static void emit(u64 number, u32 flags)
{
	struct lull_thread *t = lull_recording();
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

/* Switch CUPTI on ahead of time, or let it go off. */
static void arm(bool is_armed)
{
	struct lull_control *c = lull_agent.control;

	if (atomic_exchange(&c->armed, is_armed) == (u32)is_armed)
		return;
	/* The thread that does it sleeps on this word. */
	syscall(SYS_futex, &c->flush_wanted, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void arm_and_wait(void)
{
	arm(true);
	for (u32 i = 0; i < CUPTI_TRIES && !lull_cuda_is_ready(); i++)
		lull_cuda_rouse();
}

static void begin(void)
{
	arm_and_wait();
	for (u32 i = 0; i < TICKET_TRIES && !schedule.is_tired && lull_capture_is_closing(); i++)
		nap();
	schedule.is_holding = lull_capture_take();
	schedule.is_tired = !schedule.is_holding && lull_capture_is_closing();
}

static void end(void)
{
	if (schedule.is_holding)
		lull_capture_give();
	schedule.is_holding = false;
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
		arm_and_wait();
	else if (now != PHASE_ACTIVE)
		arm(false);
}

void lull_schedule_step(u64 number, u32 flags)
{
	struct lull_schedule s;
	int saved = errno;

	if (!lull_agent.has_session)
		return;
	if (!(flags & LULL_STEP_HOOKED))
		schedule.is_said = true;
	else if (schedule.is_said)
		return;
	if (find_current(&s) && lull_agent.image) {
		if (schedule.pid != lull_agent.image->pid) {
			schedule.pid = lull_agent.image->pid;
			schedule.n_steps = 0;
			schedule.is_holding = false;
		}
		if (flags & LULL_STEP_END) {
			/* Before the recording ends, or nobody would see it. */
			emit(number, flags);
			if (!(flags & LULL_STEP_NONE))
				end();
			errno = saved;
			return;
		}
		if (schedule.is_holding)
			emit(number, LULL_STEP_END | (flags & LULL_STEP_HOOKED));
		follow(&s);
	}
	emit(number, flags);
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
		arm_and_wait();
	else
		arm(false);
	return true;
}

void lull_schedule_program(bool is_start)
{
	u32 watch = atomic_load_explicit(&lull_agent.control->watch, memory_order_relaxed);
	int saved = errno;

	if (!(watch & LULL_WATCH_PROGRAM))
		return;
	if (is_start) {
		arm_and_wait();
		lull_capture_take();
	} else {
		lull_capture_give();
		arm(false);
	}
	errno = saved;
}
