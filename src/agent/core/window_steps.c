#include "agent/core/window_steps.h"

#include "agent/core/capture.h"
#include "agent/core/ring.h"
#include "agent/core/schedule.h"

/* Steps may be long: two of them are enough if the window takes so many times the least. */
#define LONG_WINDOWS 20u

static struct {
	u32 pid;	 /* of the process that counts; a forked child begins again */
	u32 n_steps;	 /* whole ones in the present window */
	u64 begin;	 /* when it began */
	bool is_armed;	 /* sources are ready, the window begins with the next step */
	bool is_holding; /* the window is ours to end */
} duty;

static void emit(u64 number, u32 flags)
{
	bool is_inside = lull_has_recording();
	struct lull_thread *t = is_inside ? lull_recording() : lull_thread();

	lull_schedule_emit(t, number, flags | (is_inside ? 0 : LULL_STEP_OUTSIDE));
}

static bool is_enough(void)
{
	const struct lull_control *c = lull_agent.control;
	u64 ticks = lull_time() - duty.begin;

	/* The recorder may have ended it. */
	if (!lull_has_recording())
		return true;
	return (duty.n_steps >= c->window_steps && ticks >= c->window_ticks) ||
	       (duty.n_steps >= 2 && ticks >= LONG_WINDOWS * c->window_ticks);
}

static void end(void)
{
	if (!duty.is_holding)
		return;
	duty.is_holding = false;
	lull_capture_give();
	lull_schedule_arm(false);
}

static void begin(void)
{
	duty.is_armed = false;
	if (!atomic_load(&lull_agent.control->next_record) || !lull_capture_take()) {
		/* Another process was first. */
		if (!lull_has_recording())
			lull_schedule_arm(false);
		return;
	}
	duty.is_holding = true;
	duty.n_steps = 0;
	duty.begin = lull_time();
}

/* A step begins: is it in a window? */
static void follow(u64 number, u32 flags)
{
	bool is_wanted = atomic_load(&lull_agent.control->next_record) != 0;

	if (duty.is_holding) {
		duty.n_steps++;
		if (!is_enough())
			return;
		emit(number, LULL_STEP_END | (flags & LULL_STEP_HOOKED));
		end();
	} else if (duty.is_armed) {
		begin();
	} else if (is_wanted) {
		lull_schedule_arm_and_wait();
		duty.is_armed = true;
	}
}

void lull_window_steps_add(u64 number, u32 flags)
{
	if (!lull_agent.image)
		return;
	if (duty.pid != lull_agent.image->pid) {
		duty.pid = lull_agent.image->pid;
		duty.is_armed = false;
		duty.is_holding = false;
	}
	if (!(flags & LULL_STEP_END))
		follow(number, flags);
	emit(number, flags);
	if ((flags & LULL_STEP_END) && !(flags & LULL_STEP_NONE))
		end();
}
