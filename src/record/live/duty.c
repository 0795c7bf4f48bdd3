#include "record/live/duty.h"

#include <math.h>
#include <string.h>
#include <sys/random.h>

#include "base/sort.h"
#include "base/time.h"
#include "record/live/pulse.h"
#include "record/recording.h"

/* The first window comes after a second, on average: programs start up first. */
#define FIRST_NS LULL_NS_PER_S

/* Rests are never shorter: the recorder brings in the last records meanwhile. */
#define LEAST_REST_NS (LULL_NS_PER_S / 10)

/* Steps after a window, and the time, in which CUPTI may still be on its way out. */
#define N_AFTER	 3u
#define AFTER_NS LULL_NS_PER_S

/* Shorter steps are compared by their mean over so long. */
#define GROUP_NS (LULL_NS_PER_S / 50)

/*
 * After N_UNSEEN windows N_SEEN steps have to be seen that none has touched. In the beginning after
 * each: steps before the first one are those of a program that starts up.
 */
#define N_SEEN		16u
#define N_UNSEEN	10u
#define N_EXAMINED	10u
#define LONGEST_LOOK_NS (10 * LULL_NS_PER_S)

/*
 * Of a window without steps: of its time, at least; or of each event, and for CUPTI to come and go.
 * A launch is two events, and takes 1 to 2 us longer (H200).
 */
#define ASSUMED_COST 0.1
#define EVENT_NS     1000u
#define COMING_NS    (LULL_NS_PER_S / 10)

/* splitmix64: each number is a permutation of a counter. */
static f64 random_share(struct lull_duty *d)
{
	u64 z = d->random += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return (f64)((z ^ (z >> 31)) >> 11) / 9007199254740992.0;
}

void lull_duty_init(struct lull_duty *d, f64 share, f64 budget, u64 seed)
{
	*d = (struct lull_duty){ .share = share, .budget = budget, .seed = seed };
	if (!seed && getrandom(&d->seed, sizeof(d->seed), 0) != sizeof(d->seed))
		d->seed = lull_clock_ns(CLOCK_REALTIME);
	d->random = d->seed;
}

/* From half of it to one and a half. */
static u64 jittered(struct lull_duty *d, f64 rest_ns)
{
	return (u64)(rest_ns * (0.5 + random_share(d)));
}

void lull_duty_start(struct lull_duty *d, u64 now_ns)
{
	d->start_ns = now_ns;
	d->recorded_ns = 0;
	d->cost_ns = 0;
	d->n_windows = 0;
	d->count = d->total = (struct lull_duty_count){ 0 };
	d->next_ns = now_ns + jittered(d, FIRST_NS);
}

/* How long to rest until what was recorded is the share that it may have. */
static f64 rest_by_share(const struct lull_duty *d, u64 now_ns)
{
	return d->share > 0 ? (f64)d->recorded_ns / d->share - (f64)(now_ns - d->start_ns) : 0;
}

/* The same for what it cost. */
static f64 rest_by_budget(const struct lull_duty *d, u64 now_ns)
{
	f64 cost_ns = (f64)d->cost_ns + fmax((f64)d->beside_ns, 0);

	return d->budget > 0 ? cost_ns / d->budget - (f64)(now_ns - d->start_ns) : 0;
}

/*
 * The share is held on average: a rest is from half of what it needs to one and a half. The budget
 * is a limit: rests are never shorter.
 */
static u64 rest_of(struct lull_duty *d, u64 now_ns)
{
	u64 by_share = jittered(d, fmax(rest_by_share(d, now_ns), 0));
	f64 by_budget = fmax(rest_by_budget(d, now_ns), 0) * (1 + 0.5 * random_share(d));

	return (f64)by_share > by_budget ? by_share : (u64)by_budget;
}

/*
 * With windows as dense as CUPTI is slow to leave, all steps are alike, and cost seems to be none.
 * Whoever makes no more steps is not waited for.
 */
static bool must_see(const struct lull_duty *d, u64 now_ns)
{
	return d->budget > 0 && d->outside.n && d->n_unseen &&
	       (d->n_windows <= N_EXAMINED || d->n_unseen >= N_UNSEEN) &&
	       now_ns < d->next_ns + LONGEST_LOOK_NS;
}

bool lull_duty_is_due(struct lull_duty *d, u64 now_ns)
{
	if (now_ns < d->next_ns)
		return false;
	if (!d->is_hurried && must_see(d, now_ns))
		return false;
	/* Some of the cost comes in after the window. */
	if (d->is_hurried || rest_by_budget(d, now_ns) <= 0)
		return true;
	d->next_ns = now_ns + rest_of(d, now_ns);
	return false;
}

void lull_duty_hurry(struct lull_duty *d)
{
	d->next_ns = 0;
	d->is_hurried = true;
}

/* ---- what it costs ---- */

static u64 median_of(const struct lull_duty_steps *s)
{
	size_t n = s->n < LULL_DUTY_KEPT ? s->n : LULL_DUTY_KEPT;
	u64 sorted[LULL_DUTY_KEPT];

	if (!n)
		return 0;
	memcpy(sorted, s->last_ns, n * sizeof(*sorted));
	lull_sort_u64(sorted, n);
	return sorted[n / 2];
}

/* True if that completes a group. */
static bool keep(struct lull_duty_steps *s, u64 dur_ns)
{
	s->group_ns += dur_ns;
	s->n_group++;
	if (s->group_ns < GROUP_NS && s->n)
		return false;
	s->last_ns[s->n++ % LULL_DUTY_KEPT] = s->group_ns / s->n_group;
	s->group_ns = 0;
	s->n_group = 0;
	return true;
}

u64 lull_duty_usual_ns(const struct lull_duty *d)
{
	return median_of(&d->outside);
}

/*
 * A step just before or after a window: what it took longer than usual is part of the cost. Others
 * were quicker than usual, by chance: without them noise would count as cost.
 */
static void beside(struct lull_duty *d, u64 dur_ns, u64 usual_ns)
{
	if (usual_ns)
		d->beside_ns += (i64)(dur_ns - usual_ns);
}

void lull_duty_add(struct lull_duty *d, u64 dur_ns, bool is_outside)
{
	if (!is_outside) {
		if (d->held_ns)
			beside(d, d->held_ns, lull_duty_usual_ns(d));
		d->held_ns = 0;
		keep(&d->inside, dur_ns);
		d->count.n_steps++;
		d->count.steps_ns += dur_ns;
		return;
	}
	d->count.n_outside++;
	d->count.outside_ns += dur_ns;
	if (d->n_windows && (d->n_after < N_AFTER || d->after_ns < AFTER_NS)) {
		d->n_after++;
		d->after_ns += dur_ns;
		beside(d, dur_ns, d->before_ns);
		return;
	}
	if (d->held_ns && keep(&d->outside, d->held_ns) && ++d->n_seen >= N_SEEN)
		d->n_unseen = 0;
	d->held_ns = dur_ns;
}

static u64 cost_of(const struct lull_duty *d, u64 dur_ns)
{
	u64 usual_ns = lull_duty_usual_ns(d), inside_ns = median_of(&d->inside);

	if (!d->count.n_steps || !usual_ns)
		return (u64)fmax(ASSUMED_COST * (f64)dur_ns, (f64)d->assumed_ns);
	return inside_ns > usual_ns ? d->count.n_steps * (inside_ns - usual_ns) : 0;
}

void lull_duty_had(struct lull_duty *d, u64 n_events, bool has_device)
{
	d->assumed_ns = n_events * EVENT_NS + (has_device ? COMING_NS : 0);
}

void lull_duty_ended(struct lull_duty *d, u64 dur_ns, u64 now_ns, struct lull_duty_count *to)
{
	u64 rest_ns, planned_ns;

	d->recorded_ns += dur_ns;
	d->cost_ns += cost_of(d, dur_ns) + (d->beside_ns > 0 ? (u64)d->beside_ns : 0);
	d->beside_ns = 0;
	d->inside = (struct lull_duty_steps){ 0 };
	d->n_after = 0;
	d->after_ns = 0;
	d->assumed_ns = 0;
	d->before_ns = lull_duty_usual_ns(d);
	d->n_seen = 0;
	d->n_unseen++;
	d->n_windows++;
	d->is_hurried = false;
	*to = d->count;
	d->total.n_steps += d->count.n_steps;
	d->total.steps_ns += d->count.steps_ns;
	d->total.n_outside += d->count.n_outside;
	d->total.outside_ns += d->count.outside_ns;
	d->count = (struct lull_duty_count){ 0 };
	/* It is off for most of the time, whatever it costs. */
	rest_ns = jittered(d, (f64)(dur_ns > LEAST_REST_NS ? dur_ns : LEAST_REST_NS));
	rest_ns = rest_ns > LEAST_REST_NS ? rest_ns : LEAST_REST_NS;
	planned_ns = rest_of(d, now_ns);
	d->next_ns = now_ns + (rest_ns > planned_ns ? rest_ns : planned_ns);
}

/* ---- steps as they come ---- */

/* Live values have every step; those inside get there with their rows. */
static void tell(struct lull_recording *r, struct lull_task *task, u64 number, u64 dur_ns)
{
	struct lull_step_row row = {
		.start_ns = lull_recording_ns(r, task->seen_step_ns),
		.dur_ns = dur_ns,
		.number = number,
	};

	if (!r->pulse)
		return;
	row.lane = lull_recording_lane(r, task);
	lull_pulse_add(r->pulse, r, LULL_TABLE_step, &row);
}

void lull_duty_step(struct lull_duty *d, struct lull_recording *r, struct lull_task *task,
		    const struct lull_wire_step *e)
{
	u64 now_ns = lull_clock_ns_of(r->clock, e->head.counter);
	bool is_end = e->head.a & LULL_STEP_END;

	if (task->seen_step_ns && now_ns > task->seen_step_ns && !(e->head.a & LULL_STEP_NONE)) {
		u64 dur_ns = now_ns - task->seen_step_ns;

		if (!d->task || d->task->end_ns)
			d->task = task;
		if (d->task == task)
			lull_duty_add(d, dur_ns, task->is_step_outside);
		if (task->is_step_outside)
			tell(r, task, task->seen_step, dur_ns);
	}
	task->seen_step_ns = is_end ? 0 : now_ns;
	task->seen_step = e->number;
	task->is_step_outside = e->head.a & LULL_STEP_OUTSIDE;
}
