/*
 * runners - which other threads run while a cause holds the device up.
 *
 * Threads of a process that have the same name and do the same are one group: a program that starts
 * threads for every step has many of them, of which none runs for long.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"
#include "cause/evidence.h"
#include "cause/location.h"
#include "cause/thresholds.h"

/* What was seen of a thread while the cause held, or of a group of them. */
struct runner {
	u64 n;		       /* samples, or ns on a CPU */
	u64 ran_ns;	       /* on a CPU, beside samples */
	u32 stack;	       /* of a sample, of the function and the line with most of them */
	u32 lane;	       /* of a group: its first thread */
	u32 n_lanes;	       /* of a group: threads that were seen */
	u64 function;	       /* of that sample */
	u32 votes, line_votes; /* by which the function, and the line in it, lead */
	bool is_python;	       /* the sample is Python's */
};

/*
 * Let a sample decide where the thread was: a function that more than half of the samples are in
 * leads in the end, and so does a line within it. Stacks themselves differ in small things.
 */
static void vote(const struct lull_subject *s, struct runner *p, u32 stack)
{
	u64 function = stack ? lull_location_function(s, stack) : 0;

	if (!p->stack)
		p->stack = stack;
	if (!function)
		return;
	if (!p->votes) {
		p->function = function;
		p->line_votes = 0;
	}
	if (p->function != function) {
		p->votes--;
		return;
	}
	p->votes++;
	if (!p->line_votes)
		p->stack = stack;
	if (lull_location_frame(s, stack) == lull_location_frame(s, p->stack))
		p->line_votes++;
	else
		p->line_votes--;
}

static void count_python(struct lull_subject *s, enum lull_cause_ix cause, struct runner *lanes)
{
	struct lull_pysample_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, s->reader, LULL_TABLE_pysample, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			struct runner *p = &lanes[cols.lane[i]];

			if (cols.is_idle[i] ||
			    !lull_subject_is_during(s, (u8)cause, cols.start_ns[i]))
				continue;
			p->n++;
			p->is_python = true;
			vote(s, p, cols.stack[i]);
		}
	}
	lull_cursor_release(&c);
}

static void count_native(struct lull_subject *s, enum lull_cause_ix cause, struct runner *lanes)
{
	struct lull_sample_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, s->reader, LULL_TABLE_sample, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			struct runner *p = &lanes[cols.lane[i]];

			if (!lull_subject_is_during(s, (u8)cause, cols.start_ns[i]))
				continue;
			p->n++;
			if (!p->is_python)
				vote(s, p, cols.stack[i]);
		}
	}
	lull_cursor_release(&c);
}

/* How much of [from_ns, to_ns) the cause has. */
static u64 shared_ns(const struct lull_subject *s, enum lull_cause_ix cause, u64 from_ns, u64 to_ns)
{
	size_t i = lull_vec_upper(&s->intervals, offsetof(struct lull_interval, from_ns), from_ns);
	const struct lull_interval *at = s->intervals.at;
	u64 sum = 0;

	for (i -= i > 0; i < s->intervals.n && at[i].from_ns < to_ns; i++) {
		struct lull_span part = { at[i].from_ns, at[i].to_ns };

		part = lull_span_cut(part, from_ns, to_ns);
		sum += at[i].cause == cause ? part.to_ns - part.from_ns : 0;
	}
	return sum;
}

/* For how long each thread ran while the cause held; false if that was not recorded. */
static bool add_up(const struct lull_subject *s, enum lull_cause_ix cause, struct runner *all)
{
	bool has_any = false;
	struct lull_sched_cols cols;
	size_t n;
	struct lull_cursor c;

	lull_cursor_init(&c, s->reader, LULL_TABLE_sched, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		has_any = true;
		for (size_t i = 0; i < n; i++) {
			u64 end_ns = lull_span_end_ns(cols.start_ns[i], cols.dur_ns[i]);

			all[cols.lane[i]].ran_ns += shared_ns(s, cause, cols.start_ns[i], end_ns);
		}
	}
	lull_cursor_release(&c);
	return has_any;
}

/* What the threads of a group have in common: process, name, and the function they were seen in. */
static u64 key_of(const struct lull_subject *s, const struct lull_lane_row *lane, u32 stack)
{
	u64 function = stack ? lull_location_function(s, stack) : 0;

	return ((u64)lane->process << 32 | lane->name) + function * 0x9e3779b97f4a7c15ull;
}

/* The group with the most, of threads that launch nothing; its n is 0 if there is none. */
static struct runner most(const struct lull_subject *s, const struct runner *all)
{
	size_t n_lanes;
	const struct lull_lane_row *lanes = lull_reader_dim(s->reader, LULL_TABLE_lane, &n_lanes);
	struct runner *groups = lull_alloc(n_lanes + 1, sizeof(*groups)), best = { 0 };
	u32 n = 0;
	struct lull_map known;

	lull_map_init(&known);
	for (u32 i = 1; i <= n_lanes; i++) {
		const struct lull_lane_row *lane = &lanes[i - 1];
		u32 *ix;
		bool is_new;

		if (!all[i].n || !lane->process || s->chain.chain_of_lane[i])
			continue;
		ix = lull_map_add(&known, key_of(s, lane, all[i].stack), &is_new);
		if (is_new) {
			*ix = n;
			groups[n++] = (struct runner){ .stack = all[i].stack, .lane = i };
		}
		groups[*ix].n += all[i].n;
		groups[*ix].ran_ns += all[i].ran_ns;
		groups[*ix].n_lanes++;
		if (groups[*ix].n > best.n)
			best = groups[*ix];
	}
	lull_map_release(&known);
	free(groups);
	return best;
}

/* A thread that hardly ran is not the one that is waited for. */
static bool is_worth_telling(const struct lull_subject *s, const struct lull_finding *f, u64 ran_ns)
{
	return (f64)ran_ns >= LULL_T(line_share) * (f64)s->cost_ns[f->cause];
}

bool lull_show_producer(struct lull_why *why, struct lull_finding *f)
{
	struct lull_subject *s = why->lead;
	size_t n_lanes, n;
	const struct lull_lane_row *lanes = lull_reader_dim(s->reader, LULL_TABLE_lane, &n_lanes);
	const struct lull_process_row *processes =
		lull_reader_dim(s->reader, LULL_TABLE_process, &n);
	struct runner *all = lull_alloc(n_lanes + 1, sizeof(*all)), best;
	bool has_ran;
	const struct lull_lane_row *lane;
	struct lull_location at;
	char place[160];

	count_python(s, f->cause, all);
	count_native(s, f->cause, all);
	has_ran = add_up(s, f->cause, all);
	best = most(s, all);
	free(all);
	if (!best.n || (f64)best.n < LULL_T(producer_samples))
		return false;
	/* Python's samples are also of threads that wake up for a moment now and then. */
	if (has_ran && !is_worth_telling(s, f, best.ran_ns))
		return false;
	lane = &lanes[best.lane - 1];
	at = lull_location_find(s, LULL_NONE, best.stack);
	lull_location_format(&at, place, sizeof(place));
	lull_show(f, "sample", NULL, "meanwhile %s%s%s of process %u run%s%s%s (%u sample%s)",
		  best.n_lanes == 1 ? "thread" : lull_show_count(best.n_lanes).text,
		  best.n_lanes == 1 ? " " : " threads ",
		  lull_reader_string(s->reader, lane->name, NULL), processes[lane->process - 1].pid,
		  best.n_lanes == 1 ? "s" : "", *place ? " " : "", place, (u32)best.n,
		  best.n == 1 ? "" : "s");
	return true;
}

bool lull_show_runner(struct lull_why *why, struct lull_finding *f)
{
	const struct lull_subject *s = why->lead;
	size_t n_lanes;
	const struct lull_lane_row *lanes = lull_reader_dim(s->reader, LULL_TABLE_lane, &n_lanes);
	struct runner *all = lull_alloc(n_lanes + 1, sizeof(*all)), best;
	struct lull_number ran;
	const char *name;

	add_up(s, f->cause, all);
	for (u32 i = 1; i <= n_lanes; i++)
		all[i].n = lanes[i - 1].process == s->process ? all[i].ran_ns : 0;
	best = most(s, all);
	free(all);
	if (!is_worth_telling(s, f, best.n))
		return false;
	name = lull_reader_string(s->reader, lanes[best.lane - 1].name, NULL);
	ran = lull_why_time((f64)best.n / lull_why_n_steps(why));
	if (best.n_lanes > 1)
		lull_show(f, "sched", NULL, "meanwhile %s threads%s%s run for %s of each step",
			  lull_show_count(best.n_lanes).text, *name ? " named " : "", name,
			  ran.text);
	else
		lull_show(f, "sched", NULL, "meanwhile thread %s%s%u%s runs for %s of each step",
			  name, *name ? " (" : "", lanes[best.lane - 1].tid, *name ? ")" : "",
			  ran.text);
	return true;
}

/* The sample of Python of this thread that is nearest to a moment; 0 if there is none. */
static u32 python_stack(struct lull_reader *r, u32 lane, u64 at_ns)
{
	struct lull_pysample_cols cols;
	u64 nearest_ns = UINT64_MAX;
	struct lull_cursor c;
	u32 stack = 0;
	size_t n;

	lull_cursor_init(&c, r, LULL_TABLE_pysample, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			u64 ns = cols.start_ns[i] < at_ns ? at_ns - cols.start_ns[i]
							  : cols.start_ns[i] - at_ns;

			if (cols.lane[i] != lane || ns >= nearest_ns)
				continue;
			nearest_ns = ns;
			stack = cols.stack[i];
		}
	}
	lull_cursor_release(&c);
	return stack;
}

static void advise_giver(const struct lull_giver *g, struct lull_finding *f)
{
	snprintf(f->advice.fix, sizeof(f->advice.fix), "%s",
		 g->is_sleep
			 ? "hand over without the sleep, as soon as there is something, or from "
			   "several threads; none if the thread is to keep this rate: then the "
			   "device is idle by design"
			 : "let that thread ask for several things at once, or ahead; none if they "
			   "come no faster: then the device is idle by design");
}

bool lull_show_giver(struct lull_why *why, struct lull_finding *f)
{
	const struct lull_giver *g = &why->lead->giver;
	size_t n_lanes, n;
	const struct lull_lane_row *lanes = lull_reader_dim(why->reader, LULL_TABLE_lane, &n_lanes);
	const struct lull_process_row *processes =
		lull_reader_dim(why->reader, LULL_TABLE_process, &n);
	const struct lull_lane_row *lane;
	struct lull_location at;
	char place[160];
	u32 stack;

	if (!g->lane)
		return false;
	lane = &lanes[g->lane - 1];
	stack = python_stack(why->reader, g->lane, g->at_ns);
	at = lull_location_find(why->lead, LULL_NONE, stack ? stack : g->stack);
	lull_location_format(&at, place, sizeof(place));
	lull_show(f, "oscall", NULL,
		  "thread %s of process %u ends the wait; until then it %s%s%s (%s)",
		  lull_reader_string(why->reader, lane->name, NULL),
		  processes[lane->process - 1].pid,
		  g->is_sleep ? "sleeps" : "waits for data from elsewhere", *place ? ": " : "",
		  place, lull_reader_string(why->reader, g->call, NULL));
	advise_giver(g, f);
	return true;
}
