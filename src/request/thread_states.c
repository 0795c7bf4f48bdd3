/*
 * thread_states - what the threads that work for requests did, each moment one thing.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "model/nest.h"
#include "model/wait.h"
#include "request/name_class.h"
#include "request/requests_int.h"
#include "request/sweep.h"
#include "wire/vocabulary.h"

/* sched.end_reason */
#define SCHED_WAITS	1
#define SCHED_PREEMPTED 2

/*
 * Calls that start work take 2 to 10 us. A launch that takes this long may wait for room in the
 * device's queue; a copy waits for its end, or copies between buffers of the host.
 */
#define LONG_CALL_NS 100000u

/* overhead.kind */
#define OVERHEAD_COMPILES	 1u
#define OVERHEAD_LOADS_MODULE	 262144u
#define OVERHEAD_LOADS_FUNCTIONS 327680u

struct states {
	struct lull_request_reader *q;
	struct lull_vec *edges; /* by lane: struct lull_edge */
	struct lull_name_classes of_name;
};

/* Time in which a thread has a CPU. */
struct stay {
	u64 from_ns, to_ns;
	u32 lane;
	u8 end_reason;
};

static bool is_used(const struct lull_request_reader *q, u32 lane)
{
	return lane && q->first_slice[lane + 1] > q->first_slice[lane];
}

static u8 state_of_call(const char *name)
{
	switch (lull_call_kind_of(name)) {
	case LULL_KIND_OF_SYNC:
		return LULL_THREAD_IN_SYNC;
	case LULL_KIND_OF_COPY:
		return LULL_THREAD_IN_COPY;
	case LULL_KIND_OF_ALLOC:
		return LULL_THREAD_IN_ALLOC;
	case LULL_KIND_OF_MODULE:
		return LULL_THREAD_IN_LOAD;
	case LULL_KIND_OF_LAUNCH:
		return LULL_THREAD_IN_LONG_LAUNCH;
	default:
		return LULL_THREAD_IN_CUDA;
	}
}

static u8 state_of_wait(const char *name)
{
	return lull_wait_of(name) == LULL_WAIT_LOCK ? LULL_THREAD_IN_LOCK : LULL_THREAD_WAITS;
}

static void add(struct states *s, u32 lane, u64 from_ns, u64 dur_ns, u8 state)
{
	lull_sweep_add(&s->edges[lane], from_ns, lull_span_end_ns(from_ns, dur_ns), state);
}

static void take_call(struct states *s, const struct lull_cuda_call_cols *cols, size_t i)
{
	u8 state = lull_name_class(&s->of_name, cols->name[i], state_of_call);

	if (state == LULL_THREAD_IN_LONG_LAUNCH && cols->dur_ns[i] < LONG_CALL_NS)
		state = LULL_THREAD_IN_CUDA;
	if (state == LULL_THREAD_IN_COPY && cols->dur_ns[i] >= LONG_CALL_NS)
		state = LULL_THREAD_IN_LONG_COPY;
	add(s, cols->lane[i], cols->start_ns[i], cols->dur_ns[i], state);
}

static void read_cuda(struct states *s)
{
	struct lull_request_reader *q = s->q;
	struct lull_cuda_call_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, q->reader, LULL_TABLE_cuda_call, q->window.from_ns, q->window.to_ns);
	while ((n = lull_cursor_next(&c, &cols)) > 0)
		for (size_t i = 0; i < n; i++)
			if (is_used(q, cols.lane[i]))
				take_call(s, &cols, i);
	lull_cursor_release(&c);
}

static u32 lane_of(const struct lull_request_reader *q, u32 process, u32 tid)
{
	for (size_t i = 0; i < q->n_lanes; i++)
		if (q->lanes[i].process == process && q->lanes[i].tid == tid && tid)
			return (u32)(i + 1);
	return 0;
}

/* Code that CUDA loads or compiles inside another call, such as the first launch of a kernel. */
static void read_loads(struct states *s)
{
	struct lull_request_reader *q = s->q;
	struct lull_overhead_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, q->reader, LULL_TABLE_overhead, q->window.from_ns, q->window.to_ns);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			u32 kind = cols.kind[i], lane = lane_of(q, cols.process[i], cols.tid[i]);

			if (is_used(q, lane) &&
			    (kind == OVERHEAD_COMPILES || kind == OVERHEAD_LOADS_MODULE ||
			     kind == OVERHEAD_LOADS_FUNCTIONS))
				add(s, lane, cols.start_ns[i], cols.dur_ns[i], LULL_THREAD_IN_LOAD);
		}
	}
	lull_cursor_release(&c);
}

static void read_oscalls(struct states *s)
{
	struct lull_request_reader *q = s->q;
	struct lull_oscall_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, q->reader, LULL_TABLE_oscall, q->window.from_ns, q->window.to_ns);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			u64 start_ns = cols.start_ns[i];
			u64 end_ns = lull_span_end_ns(start_ns, cols.dur_ns[i]);

			if (!is_used(q, cols.lane[i]))
				continue;
			add(s, cols.lane[i], start_ns, cols.dur_ns[i],
			    lull_name_class(&s->of_name, cols.name[i], state_of_wait));
			lull_request_take_call(q, cols.lane[i],
					       (struct lull_span){ start_ns, end_ns },
					       cols.name[i]);
		}
	}
	lull_cursor_release(&c);
}

static void read_gil(struct states *s)
{
	struct lull_request_reader *q = s->q;
	struct lull_gil_wait_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, q->reader, LULL_TABLE_gil_wait, q->window.from_ns, q->window.to_ns);
	while ((n = lull_cursor_next(&c, &cols)) > 0)
		for (size_t i = 0; i < n; i++)
			if (is_used(q, cols.lane[i]))
				add(s, cols.lane[i], cols.start_ns[i], cols.dur_ns[i],
				    LULL_THREAD_WANTS_LOCK);
	lull_cursor_release(&c);
}

static int stay_by_lane(const void *a, const void *b)
{
	const struct stay *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	return x->from_ns < y->from_ns ? -1 : x->from_ns > y->from_ns;
}

/* Without a CPU from the end of one stay to the start of the next. */
static void take_stays(struct states *s, struct lull_vec *stays)
{
	const struct stay *at = stays->at;

	lull_sort(stays->at, stays->n, sizeof(*at), stay_by_lane);
	for (size_t i = 1; i < stays->n; i++) {
		u8 reason = at[i - 1].end_reason;

		if (at[i].lane == at[i - 1].lane &&
		    (reason == SCHED_WAITS || reason == SCHED_PREEMPTED))
			lull_sweep_add(&s->edges[at[i].lane], at[i - 1].to_ns, at[i].from_ns,
				       reason == SCHED_PREEMPTED ? LULL_THREAD_WANTS_CPU
								 : LULL_THREAD_BLOCKED);
	}
}

/* The stays of a thread on one CPU may be stored after later ones on another: each has a buffer. */
static void read_sched(struct states *s)
{
	struct lull_request_reader *q = s->q;
	struct lull_sched_cols cols;
	struct lull_cursor c;
	struct lull_vec stays;
	size_t n;

	lull_vec_init(&stays, sizeof(struct stay));
	lull_cursor_init(&c, q->reader, LULL_TABLE_sched, q->window.from_ns, q->window.to_ns);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		q->to->has_sched = true;
		for (size_t i = 0; i < n; i++)
			if (is_used(q, cols.lane[i]))
				*(struct stay *)lull_vec_push(&stays) = (struct stay){
					.from_ns = cols.start_ns[i],
					.to_ns = lull_span_end_ns(cols.start_ns[i], cols.dur_ns[i]),
					.lane = cols.lane[i],
					.end_reason = cols.end_reason[i],
				};
	}
	lull_cursor_release(&c);
	take_stays(s, &stays);
	lull_vec_release(&stays);
}

/* What a range of our hooks says: 0 for nothing. */
static u8 state_of_range(struct lull_reader *r, const struct lull_label_row *label)
{
	const char *name;

	if (label->api != LULL_LABEL_API_HOOK)
		return 0;
	name = lull_reader_string(r, label->name, NULL);
	if (!strcmp(name, "gc.collect"))
		return LULL_THREAD_COLLECTS;
	return !strncmp(name, "compile", 7) ? LULL_THREAD_COMPILES : 0;
}

static void take_range(struct states *s, const struct lull_range_cols *cols, size_t i, u8 state)
{
	struct lull_request_reader *q = s->q;

	if (is_used(q, cols->lane[i]))
		add(s, cols->lane[i], cols->start_ns[i], cols->dur_ns[i], state);
	if (state == LULL_THREAD_COLLECTS && cols->lane[i])
		*(struct lull_request_slice *)lull_vec_push(&q->collections) =
			(struct lull_request_slice){
				.from_ns = cols->start_ns[i],
				.to_ns = lull_span_end_ns(cols->start_ns[i], cols->dur_ns[i]),
				.process = q->lanes[cols->lane[i] - 1].process,
				.lane = cols->lane[i],
			};
}

static int by_start(const void *a, const void *b)
{
	const struct lull_request_slice *x = a, *y = b;

	return x->from_ns < y->from_ns ? -1 : x->from_ns > y->from_ns;
}

/* Of collections the id says how far it and all before it reach. */
static void set_reach(struct lull_vec *collections)
{
	struct lull_request_slice *s = collections->at;
	u64 latest_ns = 0;

	for (size_t i = 0; i < collections->n; i++) {
		latest_ns = s[i].to_ns > latest_ns ? s[i].to_ns : latest_ns;
		s[i].id = latest_ns;
	}
}

static void read_ranges(struct states *s)
{
	struct lull_request_reader *q = s->q;
	struct lull_range_cols cols;
	struct lull_cursor c;
	size_t n;
	const struct lull_label_row *labels = lull_reader_dim(q->reader, LULL_TABLE_label, &n);
	u8 *of_label = lull_alloc(n + 1, 1);

	for (size_t i = 0; i < n; i++)
		of_label[i + 1] = state_of_range(q->reader, &labels[i]);
	lull_cursor_init(&c, q->reader, LULL_TABLE_range, q->window.from_ns, q->window.to_ns);
	while ((n = lull_cursor_next(&c, &cols)) > 0)
		for (size_t i = 0; i < n; i++)
			if (of_label[cols.label[i]])
				take_range(s, &cols, i, of_label[cols.label[i]]);
	lull_cursor_release(&c);
	free(of_label);
	lull_sort(q->collections.at, q->collections.n, sizeof(struct lull_request_slice), by_start);
	set_reach(&q->collections);
}

static void keep_state(void *ctx, u64 from_ns, u64 to_ns, const u32 *counts)
{
	struct lull_vec *to = ctx;
	const struct lull_state *last = to->n ? lull_vec_get(to, to->n - 1) : NULL;
	u8 state = LULL_N_THREAD_STATES - 1;

	(void)to_ns;
	while (state && !counts[state])
		state--;
	if (last && last->state == state)
		return;
	*(struct lull_state *)lull_vec_push(to) = (struct lull_state){ from_ns, state };
}

static void flatten(struct states *s, u32 lane)
{
	struct lull_vec *edges = &s->edges[lane], *to = &s->q->states[lane];

	lull_sweep(edges, keep_state, to);
	if (edges->n)
		*(struct lull_state *)lull_vec_push(to) =
			(struct lull_state){ ((struct lull_edge *)edges->at)[edges->n - 1].at_ns,
					     LULL_THREAD_RUNS };
	lull_vec_release(edges);
}

void lull_request_states(struct lull_request_reader *q)
{
	struct states s = { .q = q };
	size_t n = q->n_lanes + 1;

	s.edges = lull_alloc(n, sizeof(*s.edges));
	lull_name_classes_init(&s.of_name, q->reader);
	for (size_t i = 0; i < n; i++)
		lull_vec_init(&s.edges[i], sizeof(struct lull_edge));
	read_cuda(&s);
	read_loads(&s);
	read_oscalls(&s);
	read_gil(&s);
	read_sched(&s);
	read_ranges(&s);
	for (size_t i = 0; i < n; i++)
		flatten(&s, (u32)i);
	free(s.edges);
	lull_name_classes_release(&s.of_name);
}
