#include "cause/subject.h"

#include <stdlib.h>
#include <string.h>

#include "cause/cause.h"

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
				*(struct lull_span *)lull_vec_push(&s->lazy) = (struct lull_span){
					cols.start_ns[i],
					lull_span_end_ns(cols.start_ns[i], cols.dur_ns[i])
				};
		}
	}
	lull_cursor_release(&c);
	if (s->lazy.n)
		qsort(s->lazy.at, s->lazy.n, sizeof(struct lull_span), by_from);
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

void lull_subject_init(struct lull_subject *s, struct lull_reader *r, u32 process, u32 track,
		       const u32 *tracks, u32 without)
{
	memset(s, 0, sizeof(*s));
	s->reader = r;
	s->process = process;
	s->device = track;
	s->ranks.last_rank = LULL_NONE;
	lull_vec_init(&s->slices, sizeof(struct lull_slice));
	lull_vec_init(&s->intervals, sizeof(struct lull_interval));
	lull_vec_init(&s->wheres, sizeof(struct lull_where));
	lull_vec_init(&s->lazy, sizeof(struct lull_span));
	lull_units_init(&s->units, r, process, track, tracks);
	lull_chain_init(&s->chain, r, without & LULL_WITHOUT_CALLS ? 0 : process, &s->units);
	for (u32 i = 0; i < s->chain.n; i++)
		s->chain.nodes[i].cause = LULL_N_CAUSES;
	lull_host_init(&s->host, r, &s->chain, without);
	lull_rounds_init(&s->rounds, r, process, &s->chain, &s->units, &s->host, without);
	load_lazy(s);
	sum_classes(s);
}

void lull_subject_release(struct lull_subject *s)
{
	lull_units_release(&s->units);
	lull_chain_release(&s->chain);
	lull_host_release(&s->host);
	lull_rounds_release(&s->rounds);
	lull_vec_release(&s->slices);
	lull_vec_release(&s->intervals);
	lull_vec_release(&s->wheres);
	lull_vec_release(&s->lazy);
	free(s->step_cost_ns);
}
