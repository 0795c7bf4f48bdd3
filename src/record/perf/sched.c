#include "record/perf/sched.h"

/*
 * States of a thread. "Unknown" is one we have heard nothing of since the recording began or was
 * resumed: if the next thing it does is to leave its CPU, it was on it since then.
 *
 *	state      gets a CPU                             leaves its CPU
 *	unknown    on                                     off, row since the beginning
 *	off        on                                     off, no row: the switch-in was lost
 *	on         on, no row: the switch-out was lost    off, row
 *	dead       on: the number is used again           dead: the last switch follows the exit
 *
 * lull_map never deletes, and short-lived threads come by the million in a long recording. The dead
 * are therefore only marked, and swept with a rebuild of the map once they are the majority.
 */

enum state {
	UNKNOWN = 0,
	OFF,
	ON,
	DEAD,
};

struct thread {
	u32 pid, tid;
	u64 since_ns; /* on: when it got the CPU; unknown: from when on we would have seen it */
	u32 cpu;
	enum state state;
};

#define MIN_REBUILD 1024 /* dead threads worth a rebuild: below that the memory does not matter */

static struct thread *threads(const struct lull_sched *s)
{
	return s->threads.at;
}

/* Drop the dead once they are the majority: amortised constant work per death. */
static void forget_dead(struct lull_sched *s)
{
	size_t n_live = 0;

	for (size_t i = 0; i < s->threads.n; i++)
		if (threads(s)[i].state != DEAD)
			threads(s)[n_live++] = threads(s)[i];
	s->threads.n = n_live;
	s->n_dead = 0;
	lull_map_release(&s->by_tid);
	for (size_t i = 0; i < n_live; i++)
		*lull_map_add(&s->by_tid, threads(s)[i].tid, NULL) = (u32)i;
}

/* The thread's entry; a new one, or a dead one whose number comes back, has the given state. */
static struct thread *find(struct lull_sched *s, const struct lull_sched_event *e,
			   enum state if_new)
{
	bool is_new;
	u32 *ix = lull_map_add(&s->by_tid, e->tid, &is_new);
	struct thread *t;

	if (is_new) {
		*ix = (u32)s->threads.n;
		t = lull_vec_push(&s->threads);
	} else {
		t = lull_vec_get(&s->threads, *ix);
		if (t->state != DEAD)
			return t;
		s->n_dead--;
	}
	*t = (struct thread){
		.pid = e->pid, .tid = e->tid, .since_ns = s->start_ns, .state = if_new
	};
	return t;
}

static void end_stay(struct lull_sched *s, const struct thread *t, const struct lull_sched_event *e,
		     enum lull_sched_end reason)
{
	struct lull_sched_stay row = { .pid = t->pid, .tid = t->tid, .start_ns = t->since_ns };

	/* A record that came late, after a drain that had passed it, must not make a negative stay.
	 */
	row.dur_ns = e->time_ns > t->since_ns ? e->time_ns - t->since_ns : 0;
	row.cpu = t->state == ON ? t->cpu : e->cpu;
	row.end_reason = reason;
	s->row(s->ctx, &row);
}

void lull_sched_init(struct lull_sched *s, u64 start_ns, lull_sched_row_fn *row, void *ctx)
{
	*s = (struct lull_sched){ .row = row, .ctx = ctx, .start_ns = start_ns };
	lull_map_init(&s->by_tid);
	lull_vec_init(&s->threads, sizeof(struct thread));
}

void lull_sched_release(struct lull_sched *s)
{
	lull_map_release(&s->by_tid);
	lull_vec_release(&s->threads);
}

void lull_sched_in(struct lull_sched *s, const struct lull_sched_event *e)
{
	struct thread *t = find(s, e, OFF);

	t->state = ON;
	t->since_ns = e->time_ns;
	t->cpu = e->cpu;
}

void lull_sched_out(struct lull_sched *s, const struct lull_sched_event *e, bool is_preempted)
{
	const u32 *ix = lull_map_find(&s->by_tid, e->tid);
	struct thread *t;

	if (ix && threads(s)[*ix].state == DEAD)
		return;
	t = find(s, e, UNKNOWN);
	if (t->state == ON || t->state == UNKNOWN)
		end_stay(s, t, e, is_preempted ? LULL_SCHED_PREEMPTED : LULL_SCHED_WAITS);
	t->state = OFF;
}

void lull_sched_fork(struct lull_sched *s, const struct lull_sched_event *e)
{
	find(s, e, OFF);
}

void lull_sched_exit(struct lull_sched *s, const struct lull_sched_event *e)
{
	struct thread *t;

	/* Before this one dies: its last switch, yet to come, must find it dead. */
	if (s->n_dead > MIN_REBUILD && s->n_dead > s->threads.n / 2)
		forget_dead(s);
	t = find(s, e, OFF);
	if (t->state == ON)
		end_stay(s, t, e, LULL_SCHED_ENDED);
	t->state = DEAD;
	s->n_dead++;
}

void lull_sched_lost(struct lull_sched *s)
{
	for (size_t i = 0; i < s->threads.n; i++)
		if (threads(s)[i].state != DEAD)
			threads(s)[i].state = OFF;
}

void lull_sched_pause(struct lull_sched *s, u64 time_ns)
{
	for (size_t i = 0; i < s->threads.n; i++) {
		struct thread *t = &threads(s)[i];
		struct lull_sched_event e = { .time_ns = time_ns, .cpu = t->cpu };

		if (t->state == ON)
			end_stay(s, t, &e, LULL_SCHED_RECORDING_ENDED);
		if (t->state != DEAD)
			t->state = OFF;
	}
}

void lull_sched_resume(struct lull_sched *s, u64 time_ns)
{
	s->start_ns = time_ns;
	for (size_t i = 0; i < s->threads.n; i++) {
		struct thread *t = &threads(s)[i];

		if (t->state == DEAD)
			continue;
		t->state = UNKNOWN;
		t->since_ns = time_ns;
	}
}
