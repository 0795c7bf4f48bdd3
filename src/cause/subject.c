#include "cause/subject.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "cause/cause.h"
#include "cause/location.h"
#include "cause/thresholds.h"
#include "model/nest.h"
#include "model/thread/doing.h"
#include "model/window.h"

/* overhead.kind: CUDA itself compiles or loads code. */
static bool is_loading(u32 kind)
{
	return kind == 1 || kind == 262144 || kind == 327680;
}

static int by_from(const void *a, const void *b)
{
	const struct lull_span *x = a, *y = b;

	return (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

static void load_lazy(struct lull_subject *s)
{
	struct lull_overhead_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, s->reader, LULL_TABLE_overhead, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			if (is_loading(cols.kind[i]) &&
			    (cols.process[i] == s->process || !cols.process[i]))
				*(struct lull_span *)lull_vec_push(&s->lazy) =
					(struct lull_span){ cols.start_ns[i],
							    lull_span_end_ns(cols.start_ns[i],
									     cols.dur_ns[i]) };
		}
	}
	lull_cursor_release(&c);
	if (s->lazy.n)
		lull_sort(s->lazy.at, s->lazy.n, sizeof(struct lull_span), by_from);
}

/*
 * Add the rows of a table to a list of spans, if this file has such a table: also one that this
 * version does not declare. Moments are no spans.
 */
static void load_spans(const struct lull_subject *s, const char *name, struct lull_vec *spans)
{
	const struct lull_schema *schema = lull_reader_schema(s->reader);
	const struct lull_table_desc *table = NULL;
	const void *cols[64];
	struct lull_cursor c;
	int start, dur;
	size_t n;

	for (size_t i = 0; i < schema->n; i++) {
		if (!strcmp(schema->tables[i].name, name))
			table = &schema->tables[i];
	}
	if (!table || table->kind != LULL_KIND_FACT || table->n_cols > LULL_COUNT_OF(cols))
		return;
	start = lull_table_column(table, "start_ns");
	dur = lull_table_column(table, "dur_ns");
	if (start < 0 || dur < 0)
		return;
	lull_cursor_init_table(&c, s->reader, table, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, cols)) > 0) {
		const u64 *starts = cols[start], *durs = cols[dur];

		for (size_t i = 0; i < n; i++) {
			if (durs[i])
				*(struct lull_span *)lull_vec_push(spans) =
					(struct lull_span){ starts[i],
							    lull_span_end_ns(starts[i], durs[i]) };
		}
	}
	lull_cursor_release(&c);
	if (spans->n)
		lull_sort(spans->at, spans->n, sizeof(struct lull_span), by_from);
}

/* um_event.kind: a page fault of a CPU. */
#define CPU_FAULT 3

static int by_at(const void *a, const void *b)
{
	const struct lull_fault *x = a, *y = b;

	return (x->at_ns > y->at_ns) - (x->at_ns < y->at_ns);
}

/* Faults of the host, which are moments, and how many there were before each. */
static void load_faults(struct lull_subject *s)
{
	struct lull_um_event_cols cols;
	struct lull_cursor c;
	struct lull_fault *at;
	u64 sum = 0;
	size_t n;

	lull_cursor_init(&c, s->reader, LULL_TABLE_um_event, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			if (cols.kind[i] == CPU_FAULT &&
			    (cols.process[i] == s->process || !cols.process[i]))
				*(struct lull_fault *)lull_vec_push(&s->faults) =
					(struct lull_fault){ cols.start_ns[i],
							     cols.n_faults[i] ? cols.n_faults[i]
									      : 1 };
		}
	}
	lull_cursor_release(&c);
	at = s->faults.at;
	if (s->faults.n)
		lull_sort(at, s->faults.n, sizeof(*at), by_at);
	for (size_t i = 0; i < s->faults.n; i++) {
		sum += at[i].n;
		at[i].n = sum;
	}
}

/* Faults until this moment. */
static u64 faults_until(const struct lull_subject *s, u64 at_ns)
{
	size_t i = lull_vec_upper(&s->faults, offsetof(struct lull_fault, at_ns), at_ns);

	return i ? ((const struct lull_fault *)s->faults.at)[i - 1].n : 0;
}

u64 lull_subject_faults(const struct lull_subject *s, u64 from_ns, u64 to_ns)
{
	return faults_until(s, to_ns) - faults_until(s, from_ns);
}

u64 lull_subject_moves_ns(const struct lull_subject *s, u64 from_ns, u64 to_ns)
{
	const struct lull_span *at = s->moves.at;
	size_t i = lull_vec_upper(&s->moves, offsetof(struct lull_span, from_ns), from_ns);
	u64 sum = 0;

	for (i -= i > 0; i < s->moves.n && at[i].from_ns < to_ns; i++) {
		struct lull_span part = lull_span_cut(at[i], from_ns, to_ns);

		sum += part.to_ns - part.from_ns;
		from_ns = part.to_ns > from_ns ? part.to_ns : from_ns;
	}
	return sum;
}

/* How much of the steady steps the spans cover. */
static u64 covered_ns(const struct lull_subject *s, const struct lull_vec *spans)
{
	const struct lull_span *at = spans->at;
	u64 from_ns, to_ns, sum = 0;

	if (!lull_rounds_n_steady(&s->rounds))
		return 0;
	from_ns = lull_round_begin_ns(&s->rounds, s->rounds.first_steady);
	to_ns = lull_round_end_ns(&s->rounds, (u32)s->rounds.all.n - 1);
	for (size_t i = 0; i < spans->n; i++) {
		struct lull_span part = lull_span_cut(at[i], from_ns, to_ns);

		sum += part.to_ns - part.from_ns;
		from_ns = part.to_ns > from_ns ? part.to_ns : from_ns;
	}
	return sum;
}

static u32 move_round(u32 round, u32 first, u32 last)
{
	return round == LULL_NONE || round < first || round >= last ? LULL_NONE : round - first;
}

/*
 * Where only a part of the recording is looked at: steps outside of it have no work, and the last
 * one in it is cut short. So is the first, which does not count anyway.
 */
static void trim_rounds(struct lull_subject *s)
{
	struct lull_rounds *rounds = &s->rounds;
	struct lull_round *all = rounds->all.at;
	u32 first = LULL_NONE, last = 0;

	for (u32 i = 0; i < s->units.n; i++) {
		u32 round = s->units.at[i].round;

		if (round == LULL_NONE)
			continue;
		first = round < first ? round : first;
		last = round > last ? round : last;
	}
	if (first == LULL_NONE)
		return;
	rounds->last_ns = all[last].mark_ns;
	memmove(all, all + first, (last - first) * sizeof(*all));
	rounds->all.n = last - first;
	rounds->first_steady = rounds->first_steady > first + 1 ? rounds->first_steady - first : 1;
	for (u32 i = 0; i < s->units.n; i++)
		s->units.at[i].round = move_round(s->units.at[i].round, first, last);
	for (u32 i = 0; i < s->chain.n; i++)
		s->chain.nodes[i].round = move_round(s->chain.nodes[i].round, first, last);
}

/* Sums by class of what the steady steps computed. */
static void sum_classes(struct lull_subject *s)
{
	u32 first = s->rounds.first_steady;
	size_t n;
	const struct lull_launch_row *launches = lull_reader_dim(s->reader, LULL_TABLE_launch, &n);

	for (u32 i = 0; i < s->units.n; i++) {
		const struct lull_unit *unit = &s->units.at[i];
		u64 dur_ns = unit->end_ns - unit->begin_ns;

		if (unit->round == LULL_NONE || unit->round < first ||
		    unit->kind > LULL_UNIT_COLLECTIVE)
			continue;
		s->class_ns[unit->class] += dur_ns;
		s->n_kernels++;
		if (unit->kind != LULL_UNIT_COLLECTIVE)
			continue;
		s->collective_ns += dur_ns;
		if (unit->what && lull_kernel_is_peer(lull_reader_string(
					  s->reader, launches[unit->what - 1].name, NULL)))
			s->peer_ns += dur_ns;
	}
}

static bool has_agent(const struct lull_subject *s)
{
	size_t n;
	const struct lull_process_row *processes =
		lull_reader_dim(s->reader, LULL_TABLE_process, &n);

	return processes[s->process - 1].has_agent;
}

static u32 count_cpus(struct lull_reader *r)
{
	return (u32)strtoul(lull_reader_fact(r, "cpu.count"), NULL, 10);
}

/*
 * Data that comes back from the host was not wanted there: it is parked, and how fast it travels
 * matters. What only goes out is a result that somebody waits for.
 */
static void find_parked(struct lull_subject *s)
{
	u64 in_bytes = 0, out_bytes = 0;

	for (u32 i = 0; i < s->units.n; i++) {
		const struct lull_unit *unit = &s->units.at[i];
		const struct lull_copy *copy;

		if (unit->kind != LULL_UNIT_COPY || unit->round == LULL_NONE ||
		    unit->round < s->rounds.first_steady)
			continue;
		copy = lull_units_copy(&s->units, unit);
		if (!lull_copy_is_pageable(copy) || copy->size_bytes < LULL_TN(bulk_bytes))
			continue;
		in_bytes += copy->direction == LULL_COPY_IN ? copy->size_bytes : 0;
		out_bytes += copy->direction == LULL_COPY_OUT ? copy->size_bytes : 0;
	}
	s->is_parking = in_bytes && (f64)in_bytes >= LULL_T(parked) * (f64)out_bytes;
}

/* What other threads do for the steady steps. */
static void find_handover(struct lull_subject *s, u32 without)
{
	struct lull_span steady = { 0, 0 };

	if (lull_rounds_n_steady(&s->rounds)) {
		steady.from_ns = lull_round_begin_ns(&s->rounds, s->rounds.first_steady);
		steady.to_ns = lull_round_end_ns(&s->rounds, (u32)s->rounds.all.n - 1);
	}
	lull_handover_init(&s->handover, s->reader, s->process, &s->chain, steady, without);
}

/* ---- all of it ---- */

/* What slicing and attributing fill in. */
static void init_results(struct lull_subject *s)
{
	lull_vec_init(&s->slices, sizeof(struct lull_slice));
	lull_vec_init(&s->intervals, sizeof(struct lull_interval));
	lull_vec_init(&s->wheres, sizeof(struct lull_where));
	lull_vec_init(&s->visits, sizeof(struct lull_visit));
}

static void release_results(struct lull_subject *s)
{
	lull_vec_release(&s->slices);
	lull_vec_release(&s->intervals);
	lull_vec_release(&s->wheres);
	lull_vec_release(&s->visits);
	free(s->marks);
	free(s->step_cost_ns);
}

void lull_subject_init(struct lull_subject *s, struct lull_reader *r, u32 process, u32 track,
		       const u32 *tracks, u32 without)
{
	memset(s, 0, sizeof(*s));
	s->reader = r;
	s->process = process;
	s->device = track;
	s->n_cpus = count_cpus(r);
	s->frames = lull_location_frames(r);
	s->ranks.last_rank = LULL_NONE;
	lull_causes_by_place(s->by_place);
	init_results(s);
	lull_vec_init(&s->lazy, sizeof(struct lull_span));
	lull_vec_init(&s->moves, sizeof(struct lull_span));
	lull_vec_init(&s->faults, sizeof(struct lull_fault));
	lull_units_init(&s->units, r, process, track, tracks);
	lull_chain_init(&s->chain, r, without & LULL_WITHOUT_CALLS ? 0 : process, &s->units);
	for (u32 i = 0; i < s->chain.n; i++)
		s->chain.nodes[i].cause = LULL_N_CAUSES;
	lull_host_init(&s->host, r, &s->chain, without);
	lull_others_init(&s->others, r, without & LULL_WITHOUT_CALLS ? 0 : process, &s->chain,
			 without);
	lull_others_init_launching(&s->launching, r, &s->chain, without);
	/* Our own recordings hold every wait for the lock: none is none. */
	if (has_agent(s) && !(without & LULL_WITHOUT_GIL))
		s->host.has_gil = true;
	lull_rounds_init(&s->rounds, r, process, &s->chain, &s->units, &s->host, without);
	if (!lull_window_is_all(lull_window_of(r)))
		trim_rounds(s);
	load_lazy(s);
	load_spans(s, "cuda_module", &s->lazy);
	load_spans(s, "um_event", &s->moves);
	load_faults(s);
	s->moved_ns = covered_ns(s, &s->moves);
	sum_classes(s);
	find_parked(s);
	find_handover(s, without);
}

static void *copy_of(const void *at, size_t n, size_t elem_bytes)
{
	void *copy = lull_realloc(NULL, n + 1, elem_bytes);

	if (n)
		memcpy(copy, at, n * elem_bytes);
	return copy;
}

/* All of the work in one round. */
static struct lull_round all_in_one(struct lull_subject *one)
{
	struct lull_round all = { .mark_ns = 0 };

	one->rounds.first_ns = UINT64_MAX;
	for (u32 i = 0; i < one->units.n; i++) {
		struct lull_unit *unit = &one->units.at[i];

		unit->round = 0;
		if (unit->begin_ns < one->rounds.first_ns)
			one->rounds.first_ns = unit->begin_ns;
		all.end_ns = unit->end_ns > all.end_ns ? unit->end_ns : all.end_ns;
	}
	one->rounds.last_ns = all.end_ns;
	return all;
}

/* As lull_chain_init() left them, but for the round. */
static void forget_nodes(struct lull_chain *c)
{
	for (u32 i = 0; i < c->n; i++) {
		c->nodes[i].round = 0;
		c->nodes[i].slice = LULL_NONE;
		c->nodes[i].cause = LULL_N_CAUSES;
	}
}

bool lull_subject_as_one(struct lull_subject *one, const struct lull_subject *s)
{
	struct lull_round all;

	*one = (struct lull_subject){
		.reader = s->reader,
		.process = s->process,
		.device = s->device,
		.n_cpus = s->n_cpus,
		.frames = s->frames,
		.units = s->units,
		.chain = s->chain,
		.host = s->host,
		.others = s->others,
		.launching = s->launching,
		.faults = s->faults,
		.lazy = s->lazy,
		.moves = s->moves,
		.ranks.last_rank = LULL_NONE,
		.is_parking = s->is_parking,
	};
	memcpy(one->by_place, s->by_place, sizeof(one->by_place));
	one->units.at = copy_of(s->units.at, s->units.n, sizeof(*s->units.at));
	one->chain.nodes = copy_of(s->chain.nodes, s->chain.n, sizeof(*s->chain.nodes));
	init_results(one);
	lull_vec_init(&one->rounds.all, sizeof(struct lull_round));
	all = all_in_one(one);
	*(struct lull_round *)lull_vec_push(&one->rounds.all) = all;
	forget_nodes(&one->chain);
	return one->chain.n && all.end_ns > one->rounds.first_ns;
}

void lull_subject_release_one(struct lull_subject *one)
{
	free(one->units.at);
	free(one->chain.nodes);
	lull_rounds_release(&one->rounds);
	release_results(one);
}

bool lull_subject_is_python(const struct lull_subject *s)
{
	size_t n;
	const struct lull_process_row *processes =
		lull_reader_dim(s->reader, LULL_TABLE_process, &n);
	const struct lull_process_row *p = &processes[s->process - 1];

	return s->host.has_ops ||
	       strcasestr(lull_reader_string(s->reader, p->runtime, NULL), "python") ||
	       strcasestr(lull_reader_string(s->reader, p->name, NULL), "python");
}

bool lull_subject_is_xla(const struct lull_subject *s)
{
	size_t n;
	const struct lull_label_row *labels = lull_reader_dim(s->reader, LULL_TABLE_label, &n);

	for (size_t i = 0; i < n; i++) {
		if (lull_name_is_xla_module(lull_reader_string(s->reader, labels[i].name, NULL)))
			return true;
	}
	return false;
}

bool lull_subject_is_cupy(const struct lull_subject *s)
{
	size_t n;
	const struct lull_launch_row *launches = lull_reader_dim(s->reader, LULL_TABLE_launch, &n);

	for (size_t i = 0; i < n; i++) {
		if (strncmp(lull_reader_string(s->reader, launches[i].name, NULL), "cupy_", 5) == 0)
			return true;
	}
	return false;
}

/* Its libraries, the names of its kernels and our hooks are as good a sign as its operators. */
bool lull_subject_is_torch(const struct lull_subject *s)
{
	size_t n;
	const struct lull_module_row *modules = lull_reader_dim(s->reader, LULL_TABLE_module, &n);
	const struct lull_launch_row *launches;
	const struct lull_label_row *labels;

	for (size_t i = 0; i < n; i++) {
		if (strstr(lull_reader_string(s->reader, modules[i].path, NULL), "/libtorch"))
			return true;
	}
	launches = lull_reader_dim(s->reader, LULL_TABLE_launch, &n);
	for (size_t i = 0; i < n; i++) {
		if (strstr(lull_reader_string(s->reader, launches[i].name, NULL), "at::native::"))
			return true;
	}
	labels = lull_reader_dim(s->reader, LULL_TABLE_label, &n);
	for (size_t i = 0; i < n; i++) {
		/* The hook of the garbage collector is in every Python program. */
		if (labels[i].api == LULL_LABEL_API_HOOK &&
		    !lull_doing_range(lull_reader_string(s->reader, labels[i].name, NULL)))
			return true;
	}
	return s->host.has_ops;
}

bool lull_subject_is_during(const struct lull_subject *s, u8 cause, u64 at_ns)
{
	size_t i = lull_vec_upper(&s->intervals, offsetof(struct lull_interval, from_ns), at_ns);
	const struct lull_interval *at = s->intervals.at;

	return i && at[i - 1].to_ns > at_ns && at[i - 1].cause == cause;
}

void lull_subject_release(struct lull_subject *s)
{
	lull_units_release(&s->units);
	lull_chain_release(&s->chain);
	lull_host_release(&s->host);
	lull_others_release(&s->others);
	lull_others_release(&s->launching);
	lull_rounds_release(&s->rounds);
	lull_vec_release(&s->lazy);
	lull_vec_release(&s->moves);
	lull_vec_release(&s->faults);
	lull_location_free_frames(s->frames, s->reader);
	release_results(s);
}
