#include "model/thread/others.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "model/thread/call_names.h"
#include "model/thread/doing.h"
#include "model/thread/stays.h"
#include "model/host.h"
#include "model/limits.h"
#include "model/callpath.h"
#include "model/span.h"
#include "model/work.h"

struct finder {
	struct lull_others *o;
	struct lull_reader *reader;
	u8 *counts; /* by lane, 0 or 1 */
};

static bool is_child(const struct lull_process_row *processes, u32 own, u32 process)
{
	return process &&
	       (process == own || processes[process - 1].parent_pid == processes[own - 1].pid);
}

static u8 *find_lanes(struct lull_reader *r, u32 process, const struct lull_chain *c)
{
	size_t n, n_lanes;
	const struct lull_lane_row *lanes = lull_reader_dim(r, LULL_TABLE_lane, &n_lanes);
	const struct lull_process_row *processes = lull_reader_dim(r, LULL_TABLE_process, &n);
	u8 *counts = lull_alloc(n_lanes + 1, sizeof(*counts));

	for (u32 i = 1; i <= n_lanes; i++) {
		const char *name = lull_reader_string(r, lanes[i - 1].name, NULL);

		counts[i] = lanes[i - 1].kind != LULL_LANE_STREAM && !c->chain_of_lane[i] &&
			    is_child(processes, process, lanes[i - 1].process) &&
			    strncmp(name, "lull-", 5) != 0;
	}
	return counts;
}

/* The file of the innermost function outside of the Linux kernel. */
static const char *module_of(struct lull_reader *r, u32 stack)
{
	size_t n;
	const struct lull_stack_row *stacks = lull_reader_dim(r, LULL_TABLE_stack, &n);
	const struct lull_frame_row *frames = lull_reader_dim(r, LULL_TABLE_frame, &n);
	const struct lull_module_row *modules = lull_reader_dim(r, LULL_TABLE_module, &n);

	for (; stack; stack = stacks[stack - 1].parent) {
		const struct lull_frame_row *frame = &frames[stacks[stack - 1].frame - 1];

		if (stacks[stack - 1].frame && frame->kind != LULL_FRAME_KERNEL)
			return frame->module ? lull_reader_string(
						       r, modules[frame->module - 1].path, NULL)
					     : "";
	}
	return "";
}

/* Threads of OpenMP spin for a while when their work is done: that is waiting, too. */
static void leave_out_spinners(struct finder *f)
{
	size_t n, n_lanes = lull_reader_n_dim(f->reader, LULL_TABLE_lane);
	i64 *votes = lull_alloc(n_lanes + 1, sizeof(*votes));
	struct lull_sample_cols cols;
	struct lull_cursor c;

	lull_cursor_init(&c, f->reader, LULL_TABLE_sample, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			if (f->counts[cols.lane[i]])
				votes[cols.lane[i]] +=
					lull_doing_is_pool(module_of(f->reader, cols.stack[i]))
						? 1
						: -1;
		}
	}
	lull_cursor_release(&c);
	for (size_t i = 1; i <= n_lanes; i++)
		f->counts[i] = f->counts[i] && votes[i] <= 0;
	free(votes);
}

static void put(struct finder *f, u32 lane, u64 from_ns, u64 to_ns)
{
	if (f->counts[lane] && to_ns > from_ns)
		*(struct lull_others_span *)lull_vec_push(&f->o->spans) =
			(struct lull_others_span){ from_ns, to_ns, 0 };
}

/* A thread that lost its CPU still has work to do, until it is back. */
static void add_stays(struct finder *f)
{
	size_t n_lanes = lull_reader_n_dim(f->reader, LULL_TABLE_lane);
	u64 *lost_ns = lull_alloc(n_lanes + 1, sizeof(*lost_ns));
	struct lull_vec stays;

	lull_vec_init(&stays, sizeof(struct lull_stay));
	if (lull_stays_collect(&stays, f->reader, 0, UINT64_MAX, f->counts))
		f->o->is_known = true;
	for (size_t i = 0; i < stays.n; i++) {
		const struct lull_stay *stay = lull_vec_get(&stays, i);
		u64 *lost = &lost_ns[stay->lane];

		put(f, stay->lane, *lost ? *lost : stay->begin_ns, stay->end_ns);
		*lost = stay->end_reason == LULL_STAY_PREEMPTED ? stay->end_ns : 0;
	}
	lull_vec_release(&stays);
	free(lost_ns);
}

static void add_samples(struct finder *f)
{
	u64 most_ns = LULL_LN(sample_ns);
	struct lull_sample_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, f->reader, LULL_TABLE_sample, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		f->o->is_known = true;
		for (size_t i = 0; i < n; i++) {
			u64 ns = cols.weight_ns[i] < most_ns ? cols.weight_ns[i] : most_ns;
			u64 at_ns = cols.start_ns[i];

			put(f, cols.lane[i], at_ns > ns ? at_ns - ns : 0, at_ns);
		}
	}
	lull_cursor_release(&c);
}

static void add_python(struct finder *f)
{
	u64 each_ns = LULL_LN(python_sample_ns);
	struct lull_pysample_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, f->reader, LULL_TABLE_pysample, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		f->o->is_known = true;
		for (size_t i = 0; i < n; i++) {
			u64 at_ns = cols.start_ns[i];

			if (!cols.is_idle[i])
				put(f, cols.lane[i], at_ns > each_ns ? at_ns - each_ns : 0, at_ns);
		}
	}
	lull_cursor_release(&c);
}

/* Whether a process says that it is a server. */
static bool has_server(struct lull_reader *r)
{
	size_t n;
	const struct lull_process_row *processes = lull_reader_dim(r, LULL_TABLE_process, &n);

	for (size_t i = 0; i < n; i++) {
		if (processes[i].is_server)
			return true;
	}
	return false;
}

/* Whether a call takes connections: sockets are those of clients then. */
static bool has_demand(const struct finder *f, struct lull_call_names *names)
{
	struct lull_oscall_cols cols;
	struct lull_cursor c;
	u32 bits = 0;
	size_t n;

	lull_cursor_init(&c, f->reader, LULL_TABLE_oscall, 0, UINT64_MAX);
	lull_cursor_want(&c, "name");
	while (!(bits & LULL_IN_DEMAND) && (n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++)
			bits |= lull_call_name_of(names, cols.name[i]).bits;
	}
	lull_cursor_release(&c);
	return bits & LULL_IN_DEMAND;
}

static void add_reads(struct finder *f)
{
	static const char *const wanted[] = { "start_ns", "dur_ns", "lane", "name" };
	struct lull_call_names names;
	struct lull_oscall_cols cols;
	struct lull_cursor c;
	u32 bits = LULL_IN_FILE;
	size_t n;

	lull_call_names_init(&names, f->reader);
	if (!has_server(f->reader) && !has_demand(f, &names))
		bits |= LULL_IN_SOCKET;
	lull_cursor_init(&c, f->reader, LULL_TABLE_oscall, 0, UINT64_MAX);
	for (size_t i = 0; i < LULL_COUNT_OF(wanted); i++)
		lull_cursor_want(&c, wanted[i]);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			if (f->counts[cols.lane[i]] &&
			    (lull_call_name_of(&names, cols.name[i]).bits & bits))
				put(f, cols.lane[i], cols.start_ns[i],
				    lull_span_end_ns(cols.start_ns[i], cols.dur_ns[i]));
		}
	}
	lull_cursor_release(&c);
	lull_call_names_release(&names);
}

static int by_from(const void *a, const void *b)
{
	const struct lull_others_span *x = a, *y = b;

	return (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

/* Where they overlap they become one. */
static void merge(struct lull_others *o)
{
	struct lull_others_span *at = o->spans.at;
	size_t n = 0;

	if (o->spans.n)
		lull_sort(at, o->spans.n, sizeof(*at), by_from);
	for (size_t i = 0; i < o->spans.n; i++) {
		if (n && at[i].from_ns <= at[n - 1].to_ns) {
			if (at[i].to_ns > at[n - 1].to_ns)
				at[n - 1].to_ns = at[i].to_ns;
			continue;
		}
		at[n++] = at[i];
	}
	o->spans.n = n;
	for (size_t i = 1; i < n; i++)
		at[i].before_ns = at[i - 1].before_ns + at[i - 1].to_ns - at[i - 1].from_ns;
}

void lull_others_init(struct lull_others *o, struct lull_reader *r, u32 process,
		      const struct lull_chain *c, u32 without)
{
	struct finder f = { .o = o, .reader = r };

	*o = (struct lull_others){ .is_known = false };
	lull_vec_init(&o->spans, sizeof(struct lull_others_span));
	if (!process || !c->chain_of_lane)
		return;
	f.counts = find_lanes(r, process, c);
	if (!(without & LULL_WITHOUT_SAMPLES))
		leave_out_spinners(&f);
	if (!(without & LULL_WITHOUT_SCHED))
		add_stays(&f);
	if (!o->is_known && !(without & LULL_WITHOUT_SAMPLES))
		add_samples(&f);
	if (!o->is_known && !(without & LULL_WITHOUT_PYTHON))
		add_python(&f);
	if (!(without & LULL_WITHOUT_OSRT))
		add_reads(&f);
	merge(o);
	free(f.counts);
}

void lull_others_init_launching(struct lull_others *o, struct lull_reader *r,
				const struct lull_chain *c, u32 without)
{
	struct finder f = { .o = o, .reader = r };
	size_t n;

	*o = (struct lull_others){ .is_known = false };
	lull_vec_init(&o->spans, sizeof(struct lull_others_span));
	if (!c->chain_of_lane || (without & LULL_WITHOUT_SCHED))
		return;
	lull_reader_dim(r, LULL_TABLE_lane, &n);
	f.counts = lull_alloc(n + 1, sizeof(*f.counts));
	for (size_t i = 1; i <= n; i++)
		f.counts[i] = c->chain_of_lane[i];
	add_stays(&f);
	merge(o);
	free(f.counts);
}

void lull_others_release(struct lull_others *o)
{
	lull_vec_release(&o->spans);
}

/* All of it before this moment. */
static u64 until(const struct lull_others *o, u64 at_ns)
{
	size_t i = lull_vec_upper(&o->spans, offsetof(struct lull_others_span, from_ns), at_ns);
	const struct lull_others_span *span;

	if (!i)
		return 0;
	span = lull_vec_get(&o->spans, i - 1);
	return span->before_ns + (at_ns < span->to_ns ? at_ns : span->to_ns) - span->from_ns;
}

u64 lull_others_ns(const struct lull_others *o, u64 from_ns, u64 to_ns)
{
	return to_ns > from_ns ? until(o, to_ns) - until(o, from_ns) : 0;
}
