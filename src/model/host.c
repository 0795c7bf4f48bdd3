#include "model/host.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "model/thread/call_names.h"
#include "model/thread/descriptors.h"
#include "model/thread/doing.h"
#include "model/thread/stays.h"
#include "model/nest.h"
#include "model/span.h"
#include "model/window.h"
#include "trace/block.h"
#include "trace/file_frame.h"

/* Events that room is made for at once: 400 MB. */
#define MAX_RESERVED (400000000 / sizeof(struct lull_host_event))
/* Resolution of times in Chrome traces: their unit, which some programs round to. */
#define STAMP_NS 1000

/* Reading one table: which lanes count, and where rows go. */
struct loader {
	struct lull_host *host;
	struct lull_reader *reader;
	const struct lull_chain *chain;
	const struct lull_label_row *labels; /* while ranges are loaded */
	const struct lull_frame_row *frames; /* while Python calls are loaded */
	u32 *bits;			     /* of ranges and operators, by label */
	struct lull_call_names names;	     /* while C library calls are loaded */
};

/* A row of any of them. */
struct row {
	u64 begin_ns, end_ns; /* the same for moments */
	u32 lane;
	u32 ref; /* what it is: a label, a name, a stack */
	u8 extra;
	u32 stack; /* of an operator */
};

typedef void take_row(struct loader *l, const struct row *row);

static const void *column(struct lull_cursor *c, const void *const *cols, const char *name)
{
	int ix = name ? lull_table_column(c->table, name) : -1;

	return ix < 0 ? NULL : cols[ix];
}

/* Take each row of the threads that count; gives whether there are any rows. */
static bool each(struct loader *l, enum lull_table table, const char *ref, const char *extra,
		 take_row *take)
{
	/* Of operators only: other stacks are what the row is about, or nothing of Python's. */
	const char *stack = table == LULL_TABLE_op ? "stack" : NULL;
	const char *const names[] = { "start_ns", "dur_ns", "lane", ref, extra, stack };
	struct lull_span window = lull_window_of(l->reader);
	const void *cols[LULL_MAX_COLS];
	struct lull_cursor c;
	bool has_any = false;
	size_t n;

	lull_cursor_init(&c, l->reader, table, window.from_ns, window.to_ns);
	for (size_t i = 0; i < LULL_COUNT_OF(names); i++)
		if (names[i] && lull_table_column(c.table, names[i]) >= 0)
			lull_cursor_want(&c, names[i]);
	while ((n = lull_cursor_next(&c, cols)) > 0) {
		const u64 *start_ns = column(&c, cols, "start_ns");
		const u64 *dur_ns = column(&c, cols, "dur_ns");
		const u32 *lane = column(&c, cols, "lane"), *refs = column(&c, cols, ref);
		const u8 *extras = column(&c, cols, extra);
		const u32 *stacks = column(&c, cols, stack);

		has_any = true;
		for (size_t i = 0; i < n; i++) {
			struct row row = { start_ns[i],
					   start_ns[i],
					   lane[i],
					   refs ? refs[i] : 0,
					   extras ? extras[i] : 0,
					   stacks ? stacks[i] : 0 };

			if (!l->chain->chain_of_lane[lane[i]])
				continue;
			if (dur_ns)
				row.end_ns = lull_span_end_ns(start_ns[i], dur_ns[i]);
			if (lull_window_meets(window, row.begin_ns, row.end_ns))
				take(l, &row);
		}
	}
	lull_cursor_release(&c);
	return has_any;
}

/* Room for the rows of the window: it grows by no copies, and is touched where it is used. */
static void reserve_events(struct lull_host *h, struct lull_reader *r)
{
	struct lull_span window = lull_window_of(r);
	size_t n_blocks, n = 0;
	const struct lull_entry *blocks = lull_reader_blocks(r, &n_blocks);

	for (size_t i = 0; i < n_blocks; i++) {
		u16 table = blocks[i].table_id;

		if ((table == LULL_TABLE_range || table == LULL_TABLE_op ||
		     table == LULL_TABLE_pycall) &&
		    lull_window_meets(window, blocks[i].min_start, blocks[i].max_end))
			n += blocks[i].n_rows;
	}
	if (n && n <= MAX_RESERVED)
		lull_vec_room(&h->events, n);
}

static struct lull_host_event *add(struct loader *l, enum lull_host_kind kind,
				   const struct row *row, u32 inside)
{
	struct lull_host_event *e;

	if (row->end_ns <= row->begin_ns)
		return NULL;
	e = lull_vec_room(&l->host->events, 1);
	l->host->events.n++;
	*e = (struct lull_host_event){
		.begin_ns = row->begin_ns,
		.end_ns = row->end_ns,
		.lane = row->lane,
		.ref = row->ref,
		.stack = row->stack,
		.inside = inside,
		.kind = (u8)kind,
		.parent = LULL_NONE,
	};
	return e;
}

static void take_range(struct loader *l, const struct row *row)
{
	struct lull_host_event *e;

	if (row->extra & 12) /* start/end ranges are on no stack */
		return;
	e = add(l, LULL_HOST_RANGE, row, l->bits[row->ref]);
	if (e)
		e->is_hook = row->ref && lull_nest_is_hook(&l->labels[row->ref - 1]);
}

static bool has_prefill(const struct loader *l, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcasestr(lull_reader_string(l->reader, l->labels[i].name, NULL), "prefill"))
			return true;
	return false;
}

static void load_ranges(struct loader *l)
{
	bool generates;
	size_t n;

	l->labels = lull_reader_dim(l->reader, LULL_TABLE_label, &n);
	l->bits = lull_alloc(n + 1, sizeof(*l->bits));
	generates = has_prefill(l, n);
	for (size_t i = 0; i < n; i++) {
		const char *name = lull_reader_string(l->reader, l->labels[i].name, NULL);
		u32 *bits = &l->bits[i + 1];

		/* A step names nothing: all of the loop is in it. */
		*bits = lull_name_is_step(name)
				? LULL_IN_PHASE
				: lull_name_bits(name) | lull_doing_range(name) | LULL_IN_NAMED;
		if ((*bits & LULL_IN_NAMED) && !lull_nest_is_hook(&l->labels[i]))
			*bits |= LULL_IN_USER;
		/* No hook unpacks input; those of engines name their steps so. */
		if (lull_name_is_generation(name, generates || lull_nest_is_hook(&l->labels[i])))
			*bits &= ~(u32)LULL_IN_LOADER;
	}
	each(l, LULL_TABLE_range, "label", "flags", take_range);
	free(l->bits);
}

static void take_op(struct loader *l, const struct row *row)
{
	add(l, LULL_HOST_OP, row, l->bits[row->ref]);
}

static void load_ops(struct loader *l)
{
	size_t n;
	const struct lull_op_label_row *labels =
		lull_reader_dim(l->reader, LULL_TABLE_op_label, &n);

	l->bits = lull_alloc(n + 1, sizeof(*l->bits));
	for (size_t i = 0; i < n; i++) {
		l->bits[i + 1] = lull_op_bits(lull_reader_string(l->reader, labels[i].name, NULL));
		if (labels[i].kind == 2)
			l->bits[i + 1] |= LULL_IN_FRAMEWORK;
	}
	l->host->has_ops = each(l, LULL_TABLE_op, "label", NULL, take_op);
	free(l->bits);
}

static void take_pycall(struct loader *l, const struct row *row)
{
	const struct lull_frame_row *frame = l->frames + row->ref - 1;
	u32 inside;

	if (!row->ref)
		return;
	inside = lull_file_bits(lull_reader_string(l->reader, frame->file, NULL));
	inside |= lull_name_bits(lull_reader_string(l->reader, frame->function, NULL)) &
		  (LULL_IN_LOADER | LULL_IN_STORAGE);
	add(l, LULL_HOST_PYCALL, row, inside);
}

static void load_pycalls(struct loader *l)
{
	size_t n;

	l->frames = lull_reader_dim(l->reader, LULL_TABLE_frame, &n);
	each(l, LULL_TABLE_pycall, "frame", NULL, take_pycall);
}

/*
 * What a call does: by its name, its descriptor, and whether its time ran out. `row` is its number
 * among all calls.
 */
static u32 oscall_bits(struct loader *l, const struct lull_descriptors *d,
		       const struct lull_oscall_cols *cols, size_t i, u64 row)
{
	struct lull_call_name call = lull_call_name_of(&l->names, cols->name[i]);
	u32 bits = call.bits, use = 0;

	if (call.effect == LULL_CALL_OPENS || call.effect == LULL_CALL_FOPENS ||
	    call.effect == LULL_CALL_CLOSES)
		use = lull_descriptor_use(d, row);
	if (use)
		return use;
	if ((bits & LULL_IN_FILE) && lull_descriptor_is_pipe(d, cols->lane[i], cols->arg[i]))
		return (bits & ~(u32)LULL_IN_FILE) | LULL_IN_QUEUE;
	if ((bits & LULL_IN_EVENTS) && !cols->ret[i])
		return LULL_IN_SLEEP;
	if ((bits & (LULL_IN_READ | LULL_IN_SOCKET)) && !(bits & LULL_IN_FILE))
		use = lull_descriptor_bits(
			d, &(struct lull_descriptor_call){
				   .name = lull_reader_string(l->reader, cols->name[i], NULL),
				   .row = row,
				   .arg = cols->arg[i],
				   .ret = cols->ret[i],
				   .lane = cols->lane[i] });
	/* To a process of the recording: no network. */
	if (use & LULL_IN_QUEUE)
		bits &= ~(u32)LULL_IN_SOCKET;
	return bits | use;
}

static void load_oscalls(struct loader *l)
{
	static const char *const wanted[] = { "start_ns", "dur_ns", "lane", "name",
					      "arg",	  "ret",    "stack" };
	struct lull_descriptors d;
	struct lull_oscall_cols cols;
	struct lull_cursor c;
	u64 number = 0;
	size_t n;

	lull_descriptors_init(&d, l->reader);
	lull_call_names_init(&l->names, l->reader);
	l->host->is_server = lull_descriptors_accept(&d, l->chain);
	lull_cursor_init(&c, l->reader, LULL_TABLE_oscall, 0, UINT64_MAX);
	for (size_t i = 0; i < LULL_COUNT_OF(wanted); i++)
		lull_cursor_want(&c, wanted[i]);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		l->host->has_os = true;
		for (size_t i = 0; i < n; i++, number++) {
			struct row row = { .begin_ns = cols.start_ns[i],
					   .end_ns = lull_span_end_ns(cols.start_ns[i],
								      cols.dur_ns[i]),
					   .lane = cols.lane[i],
					   .ref = cols.name[i],
					   .stack = cols.stack[i] };

			if (l->chain->chain_of_lane[row.lane])
				add(l, LULL_HOST_OSCALL, &row,
				    oscall_bits(l, &d, &cols, i, number));
		}
	}
	lull_cursor_release(&c);
	lull_call_names_release(&l->names);
	lull_descriptors_release(&d);
}

static void take_gil(struct loader *l, const struct row *row)
{
	*(struct lull_host_pause *)lull_vec_push(&l->host->pauses) =
		(struct lull_host_pause){ row->begin_ns, row->end_ns, row->lane, row->ref,
					  LULL_HOST_GIL };
}

/* A thread is without a CPU from the end of one stay to the start of the next. */
static void take_stay(struct lull_host *h, struct lull_host_pause *last,
		      const struct lull_stay *stay)
{
	bool is_lost = stay->end_reason == LULL_STAY_PREEMPTED;

	if (last->lane && stay->begin_ns > last->begin_ns) {
		last->end_ns = stay->begin_ns;
		if (last->kind == LULL_HOST_PREEMPTED)
			h->preempted_ns += last->end_ns - last->begin_ns;
		*(struct lull_host_pause *)lull_vec_push(&h->pauses) = *last;
	}
	h->ran_ns += stay->end_ns - stay->begin_ns;
	*last = (struct lull_host_pause){
		.begin_ns = stay->end_ns,
		.lane = is_lost || stay->end_reason == LULL_STAY_WAITED ? stay->lane : 0,
		.kind = is_lost ? LULL_HOST_PREEMPTED : LULL_HOST_BLOCKED,
	};
}

static void load_sched(struct loader *l)
{
	size_t n_lanes = lull_reader_n_dim(l->reader, LULL_TABLE_lane);
	struct lull_host_pause *last = lull_alloc(n_lanes + 1, sizeof(*last));
	struct lull_span window = lull_window_of(l->reader);
	struct lull_vec stays;

	lull_vec_init(&stays, sizeof(struct lull_stay));
	l->host->has_sched = lull_stays_collect(&stays, l->reader, window.from_ns, window.to_ns,
						l->chain->chain_of_lane);
	for (size_t i = 0; i < stays.n; i++) {
		const struct lull_stay *stay = lull_vec_get(&stays, i);

		take_stay(l->host, &last[stay->lane], stay);
	}
	lull_vec_release(&stays);
	free(last);
}

static void take_pysample(struct loader *l, const struct row *row)
{
	*(struct lull_host_sample *)lull_vec_push(&l->host->samples) =
		(struct lull_host_sample){ .at_ns = row->begin_ns,
					   .lane = row->lane,
					   .stack = row->ref,
					   .is_python = 1,
					   .is_idle = row->extra };
}

static void load_samples(struct loader *l)
{
	struct lull_sample_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, l->reader, LULL_TABLE_sample, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			u64 ns = cols.weight_ns[i];

			if (!l->chain->chain_of_lane[cols.lane[i]])
				continue;
			*(struct lull_host_sample *)lull_vec_push(&l->host->samples) =
				(struct lull_host_sample){
					.at_ns = cols.start_ns[i],
					.lane = cols.lane[i],
					.stack = cols.stack[i],
					.weight_ns = (u32)(ns < UINT32_MAX ? ns : UINT32_MAX),
				};
		}
	}
	lull_cursor_release(&c);
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
	struct lull_leaf *last =
		h->leaves.n ? (struct lull_leaf *)h->leaves.at + h->leaves.n - 1 : NULL;

	if (last && last->lane == lane && last->begin_ns >= at_ns) {
		last->event = event; /* nothing lies between */
	} else {
		*(struct lull_leaf *)lull_vec_room(&h->leaves, 1) =
			(struct lull_leaf){ at_ns, event, lane };
		h->leaves.n++;
	}
}

/*
 * Whether an event had ended when the next one began, but for the resolution of the clock of traces
 * that were imported: the next one is not inside of it.
 */
static bool touches(const struct lull_host_event *open, const struct lull_host_event *e)
{
	u64 overlap_ns = open->end_ns - e->begin_ns;

	return overlap_ns <= STAMP_NS && e->end_ns > open->end_ns + overlap_ns &&
	       open->end_ns - open->begin_ns > 2 * overlap_ns;
}

/* Parents, and the line of time: one walk with the stack as the chain of parents. */
static void flatten(struct lull_host *h)
{
	struct lull_host_event *events = h->events.at;
	u32 open = LULL_NONE;

	/* Each event begins a leaf, and may end one. */
	if (h->events.n)
		lull_vec_room(&h->leaves, 2 * h->events.n);
	for (u32 i = 0; i < h->events.n; i++) {
		struct lull_host_event *e = &events[i];

		while (open != LULL_NONE &&
		       (events[open].lane != e->lane || events[open].end_ns <= e->begin_ns ||
			touches(&events[open], e))) {
			u32 parent = events[open].parent;

			if (events[open].lane == e->lane && events[open].end_ns > e->begin_ns)
				events[open].end_ns = e->begin_ns;
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

/* Each call counts for all events that are open at its start. */
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
	struct loader l = { .host = h, .reader = r, .chain = c };

	*h = (struct lull_host){ .has_sched = false };
	lull_vec_init(&h->events, sizeof(struct lull_host_event));
	lull_vec_init(&h->leaves, sizeof(struct lull_leaf));
	lull_vec_init(&h->pauses, sizeof(struct lull_host_pause));
	lull_vec_init(&h->samples, sizeof(struct lull_host_sample));
	reserve_events(h, r);
	if (!(without & LULL_WITHOUT_RANGES))
		load_ranges(&l);
	if (!(without & LULL_WITHOUT_OPS))
		load_ops(&l);
	if (!(without & LULL_WITHOUT_PYTHON))
		load_pycalls(&l);
	if (!(without & LULL_WITHOUT_OSRT))
		load_oscalls(&l);
	if (!(without & LULL_WITHOUT_GIL))
		h->has_gil = each(&l, LULL_TABLE_gil_wait, "stack", NULL, take_gil);
	if (!(without & LULL_WITHOUT_SCHED))
		load_sched(&l);
	if (!(without & LULL_WITHOUT_SAMPLES))
		load_samples(&l);
	if (!(without & LULL_WITHOUT_PYTHON))
		each(&l, LULL_TABLE_pysample, "stack", "is_idle", take_pysample);
	h->has_samples = h->samples.n > 0;
	if (h->events.n)
		lull_sort(h->events.at, h->events.n, sizeof(struct lull_host_event), by_nest);
	if (h->pauses.n)
		lull_sort(h->pauses.at, h->pauses.n, sizeof(struct lull_host_pause), by_pause);
	if (h->samples.n)
		lull_sort(h->samples.at, h->samples.n, sizeof(struct lull_host_sample), by_time);
	flatten(h);
	h->near = lull_alloc(1, sizeof(*h->near));
	count_calls(h, c);
	inherit(h);
}

void lull_host_release(struct lull_host *h)
{
	free(h->near);
	lull_vec_release(&h->events);
	lull_vec_release(&h->leaves);
	lull_vec_release(&h->pauses);
	lull_vec_release(&h->samples);
}

static bool is_until(const struct lull_leaf *leaf, u32 lane, u64 at_ns)
{
	return leaf->lane < lane || (leaf->lane == lane && leaf->begin_ns <= at_ns);
}

/* How many leaves lie before or at this moment of the lane, those of earlier lanes included. */
static size_t leaves_until(const struct lull_host *h, u32 lane, u64 at_ns)
{
	const struct lull_leaf *leaves = h->leaves.at;
	size_t low = __atomic_load_n(h->near, __ATOMIC_RELAXED), high = h->leaves.n, step = 1;

	/* Questions come in the order of time: the answer is near the last one. */
	if (low && !is_until(&leaves[low - 1], lane, at_ns)) {
		high = low - 1;
		for (low = 0; step <= high && !low; step *= 2) {
			if (is_until(&leaves[high - step], lane, at_ns))
				low = high - step + 1;
			else
				high -= step;
		}
	} else {
		for (; step <= high - low && is_until(&leaves[low + step - 1], lane, at_ns);
		     step *= 2)
			low += step;
		high = step < high - low ? low + step : high;
	}
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (is_until(&leaves[middle], lane, at_ns))
			low = middle + 1;
		else
			high = middle;
	}
	__atomic_store_n(h->near, low, __ATOMIC_RELAXED);
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
