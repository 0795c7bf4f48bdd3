#include "cause/giver.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/sort.h"
#include "cause/subject.h"
#include "cause/thresholds.h"
#include "model/thread/call_names.h"
#include "model/thread/descriptors.h"
#include "model/thread/doing.h"
#include "model/words.h"

/* A wait of a launching thread. */
struct wait {
	u64 from_ns, to_ns;
};

/* A call of another thread that waits. */
struct call {
	u64 from_ns, to_ns;
	u32 lane;
	u32 name, stack;
	bool is_sleep;
};

/* Threads of one process with one name. */
struct group {
	u32 n;		  /* waits that one of them ends */
	u32 n_sleeps;	  /* of those, after a sleep */
	size_t last;	  /* the last of those waits, from 1 */
	u64 inside_ns;	  /* of all waits, in calls that wait */
	struct call call; /* the longest one that ended a wait */
};

struct finder {
	const struct lull_subject *s;
	struct lull_vec waits; /* struct wait by time; none overlaps another */
	u32 *groups; /* by lane: index into all, or LULL_NONE for one that does not count */
	struct group *all;
	bool has_children; /* processes that may send what is read */
	struct lull_call_names names;
	struct lull_descriptors descriptors;
};

static int by_from(const void *a, const void *b)
{
	const struct wait *x = a, *y = b;

	return (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

/* Where two launching threads wait at the same time, the wait that began first counts. */
static void leave_out_overlaps(struct lull_vec *waits)
{
	struct wait *at = waits->at;
	size_t n = 0;

	if (waits->n)
		lull_sort(at, waits->n, sizeof(*at), by_from);
	for (size_t i = 0; i < waits->n; i++) {
		if (!n || at[i].from_ns >= at[n - 1].to_ns)
			at[n++] = at[i];
	}
	waits->n = n;
}

/* The long waits of the launching threads for others, in the steady steps. */
static void find_waits(struct finder *f)
{
	const struct lull_subject *s = f->s;
	const struct lull_host_event *events = s->host.events.at;
	const struct lull_slice *at = s->slices.at;

	for (size_t i = 0; i < s->slices.n; i++) {
		const struct lull_host_event *e =
			at[i].event == LULL_NONE ? NULL : &events[at[i].event];

		if (e && e->kind == LULL_HOST_OSCALL && !(e->inside & LULL_IN_CHILD) &&
		    (e->inside & (LULL_IN_QUEUE | LULL_IN_LOCK)) &&
		    e->end_ns - e->begin_ns >= LULL_TN(gap_long_ns) &&
		    s->chain.nodes[at[i].node].round >= s->rounds.first_steady)
			*(struct wait *)lull_vec_push(&f->waits) =
				(struct wait){ .from_ns = e->begin_ns, .to_ns = e->end_ns };
	}
	leave_out_overlaps(&f->waits);
}

static bool is_child(const struct lull_process_row *processes, u32 own, u32 process)
{
	return process &&
	       (process == own || processes[process - 1].parent_pid == processes[own - 1].pid);
}

/* The threads that launch nothing, by process and name. */
static void find_groups(struct finder *f)
{
	const struct lull_subject *s = f->s;
	size_t n, n_lanes;
	const struct lull_lane_row *lanes = lull_reader_dim(s->reader, LULL_TABLE_lane, &n_lanes);
	const struct lull_process_row *processes =
		lull_reader_dim(s->reader, LULL_TABLE_process, &n);
	struct lull_map known;
	u32 n_groups = 0;

	f->groups = lull_alloc(n_lanes + 1, sizeof(*f->groups));
	f->all = lull_alloc(n_lanes + 1, sizeof(*f->all));
	lull_map_init(&known);
	f->groups[0] = LULL_NONE;
	for (u32 i = 1; i <= n_lanes; i++) {
		const struct lull_lane_row *lane = &lanes[i - 1];
		const char *name = lull_reader_string(s->reader, lane->name, NULL);
		bool is_new;
		u32 *ix;

		f->groups[i] = LULL_NONE;
		if (lane->kind == LULL_LANE_STREAM || s->chain.chain_of_lane[i] ||
		    !is_child(processes, s->process, lane->process) || !strncmp(name, "lull-", 5))
			continue;
		ix = lull_map_add(&known, (u64)lane->process << 32 | lane->name, &is_new);
		*ix = is_new ? n_groups++ : *ix;
		f->groups[i] = *ix;
		f->has_children |= lane->process != s->process;
	}
	lull_map_release(&known);
}

static u64 shared_ns(const struct wait *w, u64 from_ns, u64 to_ns)
{
	struct lull_span part =
		lull_span_cut((struct lull_span){ from_ns, to_ns }, w->from_ns, w->to_ns);

	return part.to_ns - part.from_ns;
}

/* What a call waits for, where that is nothing that a thread of the recording gives; else 0. */
static u32 waits_for(const struct finder *f, u32 bits, const struct lull_descriptor_call *call)
{
	const u32 ours = LULL_IN_WRITE | LULL_IN_LOCK | LULL_IN_QUEUE;
	u32 use;

	if ((bits & LULL_IN_SLEEP) || ((bits & LULL_IN_EVENTS) && !call->ret))
		return LULL_IN_SLEEP;
	if (f->has_children || (bits & ours))
		return 0;
	use = bits & (LULL_IN_READ | LULL_IN_SOCKET) ? lull_descriptor_bits(&f->descriptors, call)
						     : 0;
	return (bits | use) & (LULL_IN_FILE | LULL_IN_DEMAND)
		       ? 0
		       : bits & (LULL_IN_EVENTS | LULL_IN_SOCKET | LULL_IN_READ);
}

/* Whether a call ended so shortly before the wait did, for its length, that this is no chance. */
static bool has_ended(const struct call *c, const struct wait *w)
{
	return c->to_ns <= w->to_ns &&
	       (f64)(w->to_ns - c->to_ns) <= LULL_T(giver_late) * (f64)(c->to_ns - c->from_ns);
}

/* A call of another thread: for how long it lies in waits, and which one it ends. */
static void add_call(struct finder *f, const struct call *c)
{
	struct group *g = &f->all[f->groups[c->lane]];
	const struct wait *at = f->waits.at;
	size_t i = lull_vec_upper(&f->waits, offsetof(struct wait, from_ns), c->from_ns);

	for (i -= i > 0; i < f->waits.n && at[i].from_ns < c->to_ns; i++) {
		g->inside_ns += shared_ns(&at[i], c->from_ns, c->to_ns);
		if (!has_ended(c, &at[i]) || g->last == i + 1)
			continue;
		g->last = i + 1;
		g->n++;
		g->n_sleeps += c->is_sleep;
		if (c->to_ns - c->from_ns > g->call.to_ns - g->call.from_ns)
			g->call = *c;
	}
}

/* The one in row `i`; `row` is its number among all calls. */
static void look_at(struct finder *f, const struct lull_oscall_cols *cols, size_t i, u64 row)
{
	struct call call = { .from_ns = cols->start_ns[i],
			     .to_ns = lull_span_end_ns(cols->start_ns[i], cols->dur_ns[i]),
			     .lane = cols->lane[i],
			     .name = cols->name[i],
			     .stack = cols->stack[i] };
	u32 what;

	if (f->groups[call.lane] == LULL_NONE || call.to_ns == call.from_ns)
		return;
	what = waits_for(f, lull_call_name_of(&f->names, call.name).bits,
			 &(struct lull_descriptor_call){
				 .name = lull_reader_string(f->s->reader, call.name, NULL),
				 .row = row,
				 .arg = cols->arg[i],
				 .ret = cols->ret[i],
				 .lane = call.lane });
	call.is_sleep = what & LULL_IN_SLEEP;
	if (what)
		add_call(f, &call);
}

static void find_calls(struct finder *f)
{
	struct lull_oscall_cols cols;
	struct lull_cursor c;
	u64 row = 0;
	size_t n;

	lull_call_names_init(&f->names, f->s->reader);
	lull_descriptors_init(&f->descriptors, f->s->reader);
	lull_cursor_init(&c, f->s->reader, LULL_TABLE_oscall, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++)
			look_at(f, &cols, i, row++);
	}
	lull_cursor_release(&c);
	lull_descriptors_release(&f->descriptors);
	lull_call_names_release(&f->names);
}

/* For how much of the waits threads outside of the chain have a CPU; true if that was recorded. */
static bool find_work(const struct finder *f, u64 *sum_ns)
{
	const struct wait *at = f->waits.at;
	struct lull_sched_cols cols;
	struct lull_cursor c;
	bool has_any = false;
	size_t n;

	lull_cursor_init(&c, f->s->reader, LULL_TABLE_sched, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		has_any = true;
		for (size_t k = 0; k < n; k++) {
			u64 from_ns = cols.start_ns[k];
			u64 to_ns = lull_span_end_ns(from_ns, cols.dur_ns[k]);
			size_t i =
				lull_vec_upper(&f->waits, offsetof(struct wait, from_ns), from_ns);

			if (f->groups[cols.lane[k]] == LULL_NONE)
				continue;
			for (i -= i > 0; i < f->waits.n && at[i].from_ns < to_ns; i++)
				*sum_ns += shared_ns(&at[i], from_ns, to_ns);
		}
	}
	lull_cursor_release(&c);
	return has_any;
}

/*
 * The group that ends most of the waits, and is in such calls for most of their time; or NULL.
 * Whoever reads may get it from one that sleeps.
 */
static const struct group *find_giver(const struct finder *f)
{
	size_t n_lanes = lull_reader_n_dim(f->s->reader, LULL_TABLE_lane);
	const struct wait *at = f->waits.at;
	const struct group *found = NULL;
	u64 sum_ns = 0, work_ns = 0;

	for (size_t i = 0; i < f->waits.n; i++)
		sum_ns += at[i].to_ns - at[i].from_ns;
	/* Whoever works is waited for. */
	if (!find_work(f, &work_ns) || (f64)work_ns >= LULL_T(line_share) * (f64)sum_ns)
		return NULL;
	for (size_t i = 0; i < n_lanes; i++) {
		const struct group *g = &f->all[i];

		if ((size_t)g->n * 2 > f->waits.n && (f64)g->n >= LULL_T(producer_samples) &&
		    g->inside_ns * 2 > sum_ns && (!found || g->n_sleeps > found->n_sleeps))
			found = g;
	}
	return found;
}

void lull_giver_init(struct lull_giver *g, const struct lull_subject *s)
{
	struct finder f = { .s = s };
	const struct group *found;

	*g = (struct lull_giver){ .lane = 0 };
	if (!s->process || !s->chain.chain_of_lane)
		return;
	lull_vec_init(&f.waits, sizeof(struct wait));
	find_waits(&f);
	if (f.waits.n) {
		find_groups(&f);
		find_calls(&f);
		found = find_giver(&f);
		if (found)
			*g = (struct lull_giver){
				.lane = found->call.lane,
				.call = found->call.name,
				.stack = found->call.stack,
				.at_ns = found->call.from_ns / 2 + found->call.to_ns / 2,
				.is_sleep = found->n_sleeps * 2 > found->n,
			};
	}
	free(f.groups);
	free(f.all);
	lull_vec_release(&f.waits);
}
