#include "model/host.h"

#include <stdlib.h>

#include "base/mem.h"
#include "model/nest.h"
#include "model/span.h"

/* sched.end_reason */
#define SCHED_WAITS	1
#define SCHED_PREEMPTED 2

/* Reading one table: which lanes count, and where rows go. */
struct loader {
	struct lull_host *host;
	struct lull_reader *reader;
	const struct lull_chain *chain;
	struct lull_cursor cursor;
};

static bool is_ours(const struct loader *l, u32 lane)
{
	return l->chain->chain_of_lane[lane] != 0;
}

static void begin(struct loader *l, enum lull_table table)
{
	lull_cursor_init(&l->cursor, l->reader, table, 0, UINT64_MAX);
	lull_cursor_want(&l->cursor, "start_ns");
	lull_cursor_want(&l->cursor, "lane");
}

static void add(struct loader *l, enum lull_host_kind kind, struct lull_host_event e)
{
	e.kind = (u8)kind;
	e.parent = LULL_NONE;
	if (is_ours(l, e.lane) && e.end_ns > e.begin_ns)
		*(struct lull_host_event *)lull_vec_push(&l->host->events) = e;
}

static void load_ranges(struct loader *l)
{
	struct lull_range_cols cols;
	size_t n, n_labels;
	const struct lull_label_row *labels =
		lull_reader_dim(l->reader, LULL_TABLE_label, &n_labels);
	u32 *bits = lull_alloc(n_labels + 1, sizeof(*bits));

	for (size_t i = 0; i < n_labels; i++) {
		const char *name = lull_reader_string(l->reader, labels[i].name, NULL);

		/* A step names nothing: all of the loop is in it. */
		bits[i + 1] = lull_name_is_step(name) ? LULL_IN_PHASE
						      : lull_name_bits(name) | LULL_IN_NAMED;
		if ((bits[i + 1] & LULL_IN_NAMED) && labels[i].api != LULL_LABEL_API_HOOK)
			bits[i + 1] |= LULL_IN_USER;
	}
	begin(l, LULL_TABLE_range);
	lull_cursor_want(&l->cursor, "dur_ns");
	lull_cursor_want(&l->cursor, "label");
	lull_cursor_want(&l->cursor, "flags");
	while ((n = lull_cursor_next(&l->cursor, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			if (cols.flags[i] & 12) /* start/end ranges are on no stack */
				continue;
			add(l, LULL_HOST_RANGE,
			    (struct lull_host_event){
				    .begin_ns = cols.start_ns[i],
				    .end_ns = lull_span_end_ns(cols.start_ns[i], cols.dur_ns[i]),
				    .lane = cols.lane[i],
				    .ref = cols.label[i],
				    .is_hook = cols.label[i] && labels[cols.label[i] - 1].api ==
									LULL_LABEL_API_HOOK,
				    .inside = bits[cols.label[i]] });
		}
	}
	lull_cursor_release(&l->cursor);
	free(bits);
}

static void load_ops(struct loader *l)
{
	struct lull_op_cols cols;
	size_t n, n_labels;
	const struct lull_op_label_row *labels =
		lull_reader_dim(l->reader, LULL_TABLE_op_label, &n_labels);
	u32 *bits = lull_alloc(n_labels + 1, sizeof(*bits));

	for (size_t i = 0; i < n_labels; i++) {
		bits[i + 1] = lull_op_bits(lull_reader_string(l->reader, labels[i].name, NULL));
		if (labels[i].kind == 2)
			bits[i + 1] |= LULL_IN_FRAMEWORK;
	}
	begin(l, LULL_TABLE_op);
	lull_cursor_want(&l->cursor, "dur_ns");
	lull_cursor_want(&l->cursor, "label");
	while ((n = lull_cursor_next(&l->cursor, &cols)) > 0) {
		l->host->has_ops = true;
		for (size_t i = 0; i < n; i++)
			add(l, LULL_HOST_OP,
			    (struct lull_host_event){
				    .begin_ns = cols.start_ns[i],
				    .end_ns = lull_span_end_ns(cols.start_ns[i], cols.dur_ns[i]),
				    .lane = cols.lane[i],
				    .ref = cols.label[i],
				    .inside = bits[cols.label[i]] });
	}
	lull_cursor_release(&l->cursor);
	free(bits);
}

static void load_pycalls(struct loader *l)
{
	struct lull_pycall_cols cols;
	size_t n, n_frames;
	const struct lull_frame_row *frames =
		lull_reader_dim(l->reader, LULL_TABLE_frame, &n_frames);

	begin(l, LULL_TABLE_pycall);
	lull_cursor_want(&l->cursor, "dur_ns");
	lull_cursor_want(&l->cursor, "frame");
	while ((n = lull_cursor_next(&l->cursor, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			u32 f = cols.frame[i], inside = 0;

			if (!is_ours(l, cols.lane[i]) || !f)
				continue;
			inside = lull_file_bits(
				lull_reader_string(l->reader, frames[f - 1].file, NULL));
			inside |= lull_name_bits(lull_reader_string(l->reader,
								    frames[f - 1].function, NULL)) &
				  (LULL_IN_LOADER | LULL_IN_STORAGE);
			add(l, LULL_HOST_PYCALL,
			    (struct lull_host_event){
				    .begin_ns = cols.start_ns[i],
				    .end_ns = lull_span_end_ns(cols.start_ns[i], cols.dur_ns[i]),
				    .lane = cols.lane[i],
				    .ref = f,
				    .inside = inside });
		}
	}
	lull_cursor_release(&l->cursor);
}

static void load_oscalls(struct loader *l)
{
	struct lull_oscall_cols cols;
	size_t n;

	begin(l, LULL_TABLE_oscall);
	lull_cursor_want(&l->cursor, "dur_ns");
	lull_cursor_want(&l->cursor, "name");
	while ((n = lull_cursor_next(&l->cursor, &cols)) > 0) {
		l->host->has_os = true;
		for (size_t i = 0; i < n; i++) {
			if (!is_ours(l, cols.lane[i]))
				continue;
			add(l, LULL_HOST_OSCALL,
			    (struct lull_host_event){
				    .begin_ns = cols.start_ns[i],
				    .end_ns = lull_span_end_ns(cols.start_ns[i], cols.dur_ns[i]),
				    .lane = cols.lane[i],
				    .ref = cols.name[i],
				    .inside = lull_oscall_bits(
					    lull_reader_string(l->reader, cols.name[i], NULL)) });
		}
	}
	lull_cursor_release(&l->cursor);
}

static void load_gil(struct loader *l)
{
	struct lull_gil_wait_cols cols;
	size_t n;

	begin(l, LULL_TABLE_gil_wait);
	lull_cursor_want(&l->cursor, "dur_ns");
	lull_cursor_want(&l->cursor, "stack");
	while ((n = lull_cursor_next(&l->cursor, &cols)) > 0) {
		l->host->has_gil = true;
		for (size_t i = 0; i < n; i++) {
			if (!is_ours(l, cols.lane[i]))
				continue;
			*(struct lull_host_pause *)lull_vec_push(&l->host->pauses) =
				(struct lull_host_pause){
					cols.start_ns[i],
					lull_span_end_ns(cols.start_ns[i], cols.dur_ns[i]),
					cols.lane[i], cols.stack[i], LULL_HOST_GIL
				};
		}
	}
	lull_cursor_release(&l->cursor);
}

/* A thread is without a CPU from the end of one stay to the begin of the next. */
static void load_sched(struct loader *l, size_t n_lanes)
{
	struct lull_host_pause *last = lull_alloc(n_lanes + 1, sizeof(*last));
	struct lull_sched_cols cols;
	size_t n;

	begin(l, LULL_TABLE_sched);
	lull_cursor_want(&l->cursor, "dur_ns");
	lull_cursor_want(&l->cursor, "end_reason");
	while ((n = lull_cursor_next(&l->cursor, &cols)) > 0) {
		l->host->has_sched = true;
		for (size_t i = 0; i < n; i++) {
			u32 lane = cols.lane[i];
			u8 why = cols.end_reason[i];

			if (!is_ours(l, lane))
				continue;
			if (last[lane].lane && cols.start_ns[i] > last[lane].begin_ns) {
				last[lane].end_ns = cols.start_ns[i];
				*(struct lull_host_pause *)lull_vec_push(&l->host->pauses) =
					last[lane];
			}
			last[lane] = (struct lull_host_pause){
				.begin_ns = lull_span_end_ns(cols.start_ns[i], cols.dur_ns[i]),
				.lane = why == SCHED_PREEMPTED || why == SCHED_WAITS ? lane : 0,
				.kind = why == SCHED_PREEMPTED ? LULL_HOST_PREEMPTED
							       : LULL_HOST_BLOCKED,
			};
		}
	}
	lull_cursor_release(&l->cursor);
	free(last);
}

static void load_samples(struct loader *l)
{
	struct lull_sample_cols cols;
	size_t n;

	begin(l, LULL_TABLE_sample);
	lull_cursor_want(&l->cursor, "stack");
	while ((n = lull_cursor_next(&l->cursor, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			if (is_ours(l, cols.lane[i]))
				*(struct lull_host_sample *)lull_vec_push(&l->host->samples) =
					(struct lull_host_sample){ cols.start_ns[i], cols.lane[i],
								   cols.stack[i], 0, 0 };
		}
	}
	lull_cursor_release(&l->cursor);
}

static void load_pysamples(struct loader *l)
{
	struct lull_pysample_cols py;
	size_t n;

	begin(l, LULL_TABLE_pysample);
	lull_cursor_want(&l->cursor, "stack");
	lull_cursor_want(&l->cursor, "is_idle");
	while ((n = lull_cursor_next(&l->cursor, &py)) > 0) {
		for (size_t i = 0; i < n; i++) {
			if (is_ours(l, py.lane[i]))
				*(struct lull_host_sample *)lull_vec_push(&l->host->samples) =
					(struct lull_host_sample){ py.start_ns[i], py.lane[i],
								   py.stack[i], 1, py.is_idle[i] };
		}
	}
	lull_cursor_release(&l->cursor);
}

static int by_nest(const void *a, const void *b)
{
	const struct lull_host_event *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	if (x->end_ns != y->end_ns)
		return x->end_ns > y->end_ns ? -1 : 1;
	return (x->kind > y->kind) - (x->kind < y->kind);
}

static int by_pause(const void *a, const void *b)
{
	const struct lull_host_pause *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	return (x->kind > y->kind) - (x->kind < y->kind);
}

static int by_time(const void *a, const void *b)
{
	const struct lull_host_sample *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	return (x->at_ns > y->at_ns) - (x->at_ns < y->at_ns);
}

static void put_leaf(struct lull_host *h, u32 lane, u64 at_ns, u32 event)
{
	struct lull_leaf *last = h->leaves.n ? lull_vec_get(&h->leaves, h->leaves.n - 1) : NULL;

	if (last && last->lane == lane && last->begin_ns >= at_ns)
		last->event = event; /* nothing lies between */
	else
		*(struct lull_leaf *)lull_vec_push(&h->leaves) =
			(struct lull_leaf){ at_ns, event, lane };
}

/* Parents, and the line of time: one walk with the stack as the chain of parents. */
static void flatten(struct lull_host *h)
{
	struct lull_host_event *events = h->events.at;
	u32 open = LULL_NONE;

	for (u32 i = 0; i < h->events.n; i++) {
		struct lull_host_event *e = &events[i];

		while (open != LULL_NONE &&
		       (events[open].lane != e->lane || events[open].end_ns <= e->begin_ns)) {
			u32 parent = events[open].parent;

			put_leaf(h, events[open].lane, events[open].end_ns, parent);
			open = parent;
		}
		e->parent = open;
		/* What outlives its parent does so by rounding. */
		if (open != LULL_NONE && e->end_ns > events[open].end_ns)
			e->end_ns = events[open].end_ns;
		put_leaf(h, e->lane, e->begin_ns, i);
		open = i;
	}
	for (; open != LULL_NONE; open = events[open].parent)
		put_leaf(h, events[open].lane, events[open].end_ns, events[open].parent);
}

static void count(u16 *n)
{
	if (*n < UINT16_MAX)
		(*n)++;
}

/* Each call counts for all events that are open at its begin. */
static void count_calls(struct lull_host *h, const struct lull_chain *c)
{
	struct lull_host_event *events = h->events.at;

	for (u32 i = 0; i < c->n; i++) {
		const struct lull_node *node = &c->nodes[i];

		for (u32 e = lull_host_at(h, node->lane, node->begin_ns); e != LULL_NONE;
		     e = events[e].parent) {
			count(&events[e].n_calls);
			if (node->kind == LULL_KIND_OF_LAUNCH)
				count(&events[e].n_launches);
			else if (node->kind == LULL_KIND_OF_SYNC &&
				 !(node->flags & LULL_NODE_OWNED))
				count(&events[e].n_syncs);
			else if (node->kind == LULL_KIND_OF_ALLOC)
				count(&events[e].n_allocs);
		}
	}
}

/* What an event is part of is what it is, and what its parent is part of. */
static void inherit(struct lull_host *h)
{
	struct lull_host_event *events = h->events.at;

	for (u32 i = 0; i < h->events.n; i++) {
		struct lull_host_event *e = &events[i];

		if (e->kind == LULL_HOST_OP && e->n_calls)
			e->inside |= LULL_IN_CALLS;
		if (e->kind <= LULL_HOST_OP && e->n_syncs && !e->n_launches)
			e->inside |= LULL_IN_SYNC;
		if (e->kind <= LULL_HOST_OP && e->n_allocs && !e->n_launches)
			e->inside |= LULL_IN_ALLOC;
		if (e->parent != LULL_NONE)
			e->inside |= events[e->parent].inside;
	}
}

void lull_host_init(struct lull_host *h, struct lull_reader *r, const struct lull_chain *c,
		    u32 without)
{
	struct loader l = { h, r, c, { 0 } };

	*h = (struct lull_host){ .has_sched = false };
	lull_vec_init(&h->events, sizeof(struct lull_host_event));
	lull_vec_init(&h->leaves, sizeof(struct lull_leaf));
	lull_vec_init(&h->pauses, sizeof(struct lull_host_pause));
	lull_vec_init(&h->samples, sizeof(struct lull_host_sample));
	if (!(without & LULL_WITHOUT_RANGES))
		load_ranges(&l);
	if (!(without & LULL_WITHOUT_OPS))
		load_ops(&l);
	if (!(without & LULL_WITHOUT_PYTHON))
		load_pycalls(&l);
	if (!(without & LULL_WITHOUT_OSRT))
		load_oscalls(&l);
	if (!(without & LULL_WITHOUT_GIL))
		load_gil(&l);
	if (!(without & LULL_WITHOUT_SCHED))
		load_sched(&l, lull_reader_n_dim(r, LULL_TABLE_lane));
	if (!(without & LULL_WITHOUT_SAMPLES))
		load_samples(&l);
	if (!(without & LULL_WITHOUT_PYTHON))
		load_pysamples(&l);
	h->has_samples = h->samples.n > 0;
	if (h->events.n)
		qsort(h->events.at, h->events.n, sizeof(struct lull_host_event), by_nest);
	if (h->pauses.n)
		qsort(h->pauses.at, h->pauses.n, sizeof(struct lull_host_pause), by_pause);
	if (h->samples.n)
		qsort(h->samples.at, h->samples.n, sizeof(struct lull_host_sample), by_time);
	flatten(h);
	count_calls(h, c);
	inherit(h);
}

void lull_host_release(struct lull_host *h)
{
	lull_vec_release(&h->events);
	lull_vec_release(&h->leaves);
	lull_vec_release(&h->pauses);
	lull_vec_release(&h->samples);
}

/* How many leaves lie before or at this moment of the lane, those of earlier lanes included. */
static size_t leaves_until(const struct lull_host *h, u32 lane, u64 at_ns)
{
	const struct lull_leaf *leaves = h->leaves.at;
	size_t low = 0, high = h->leaves.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (leaves[middle].lane < lane ||
		    (leaves[middle].lane == lane && leaves[middle].begin_ns <= at_ns))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

u32 lull_host_leaf(const struct lull_host *h, u32 lane, u64 at_ns)
{
	const struct lull_leaf *leaves = h->leaves.at;
	size_t n = leaves_until(h, lane, at_ns);

	return n && leaves[n - 1].lane == lane ? (u32)(n - 1) : LULL_NONE;
}

u64 lull_host_next_ns(const struct lull_host *h, u32 lane, u64 at_ns)
{
	const struct lull_leaf *leaves = h->leaves.at;
	size_t n = leaves_until(h, lane, at_ns);

	return n < h->leaves.n && leaves[n].lane == lane ? leaves[n].begin_ns : UINT64_MAX;
}

u32 lull_host_at(const struct lull_host *h, u32 lane, u64 at_ns)
{
	u32 leaf = lull_host_leaf(h, lane, at_ns);

	return leaf == LULL_NONE ? LULL_NONE : ((const struct lull_leaf *)h->leaves.at)[leaf].event;
}

size_t lull_host_pause_at(const struct lull_host *h, u32 lane, u64 at_ns)
{
	const struct lull_host_pause *pauses = h->pauses.at;
	size_t low = 0, high = h->pauses.n;

	/* Pauses of a lane may overlap a little; begin is what they are sorted by. */
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (pauses[middle].lane < lane ||
		    (pauses[middle].lane == lane && pauses[middle].begin_ns <= at_ns))
			low = middle + 1;
		else
			high = middle;
	}
	while (low && pauses[low - 1].lane == lane && pauses[low - 1].end_ns > at_ns)
		low--;
	return low;
}

size_t lull_host_sample_at(const struct lull_host *h, u32 lane, u64 at_ns)
{
	const struct lull_host_sample *samples = h->samples.at;
	size_t low = 0, high = h->samples.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (samples[middle].lane < lane ||
		    (samples[middle].lane == lane && samples[middle].at_ns < at_ns))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const char *lull_host_name(const struct lull_host_event *e, struct lull_reader *r)
{
	size_t n;

	switch (e->kind) {
	case LULL_HOST_RANGE: {
		const struct lull_label_row *labels = lull_reader_dim(r, LULL_TABLE_label, &n);

		return e->ref ? lull_reader_string(r, labels[e->ref - 1].name, NULL) : "?";
	}
	case LULL_HOST_OP: {
		const struct lull_op_label_row *ops = lull_reader_dim(r, LULL_TABLE_op_label, &n);

		return e->ref ? lull_reader_string(r, ops[e->ref - 1].name, NULL) : "?";
	}
	case LULL_HOST_PYCALL: {
		const struct lull_frame_row *frames = lull_reader_dim(r, LULL_TABLE_frame, &n);

		return e->ref ? lull_reader_string(r, frames[e->ref - 1].function, NULL) : "?";
	}
	default:
		return lull_reader_string(r, e->ref, NULL);
	}
}
