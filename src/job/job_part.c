/*
 * job_part - one report of a job: lull why by itself, and its collectives taken apart into waiting
 * for the last rank and moving bytes.
 *
 * A collective runs from when this rank came to when it left. Up to the moment the last rank came
 * it waited; then bytes moved. Only what no kernel of its own hides costs time, so the pieces of
 * the step in which a collective runs alone (model/split) are cut at that moment.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"
#include "cause/why.h"
#include "model/window.h"
#include "job/job_int.h"

/* Kinds of exchanges a rank may have; more are added to the last. */
#define MAX_KINDS 64u
/* Steps of a rank; later ones are left out. */
#define MAX_STEPS 20000u

struct part {
	struct lull_job *job;
	struct lull_job_rank *rank;
	struct lull_reader *reader;
	struct lull_str path; /* of the report */
	const struct lull_job_meetings *meetings;
	const struct lull_subject *subject;
	struct lull_exchanges x;
	struct lull_job_step *steps;
	struct lull_job_kind kinds[MAX_KINDS];
	u32 n_kinds;
	struct lull_map kind_of; /* by hash */
	struct lull_vec *comms;	 /* struct lull_job_comm */
};

/* ---- kinds ---- */

static u32 class_of(u64 size_bytes)
{
	u32 class = 0;

	while (class < 63 && size_bytes >> class)
		class ++;
	return class;
}

/* "AllReduce" of a kernel that is called ncclDevKernel_AllReduce_Sum_f32_RING_LL(...). */
static void name_kind(struct lull_job_kind *kind, const char *name)
{
	static const char *const prefixes[] = { "ncclDevKernel_", "ncclKernel_" };

	for (size_t i = 0; i < LULL_COUNT_OF(prefixes); i++) {
		size_t len = strlen(prefixes[i]);

		if (strncmp(name, prefixes[i], len) == 0) {
			snprintf(kind->name, sizeof(kind->name), "%.*s",
				 (int)strcspn(name + len, "_("), name + len);
			return;
		}
	}
	snprintf(kind->name, sizeof(kind->name), "%s", name);
}

static struct lull_job_kind *kind_of(struct part *p, const struct lull_exchange *x)
{
	struct lull_job_kind kind;
	bool is_new;
	u32 *ix;

	memset(&kind, 0, sizeof(kind));
	name_kind(&kind, lull_reader_string(p->reader, x->name, NULL));
	snprintf(kind.comm_name, sizeof(kind.comm_name), "%s",
		 lull_reader_string(p->reader, x->comm_name, NULL));
	kind.n_ranks = x->n_ranks;
	kind.size_class = class_of(x->size_bytes);
	ix = lull_map_add(&p->kind_of, lull_hash(&kind, sizeof(kind)), &is_new);
	if (is_new) {
		*ix = p->n_kinds < MAX_KINDS ? p->n_kinds++ : MAX_KINDS - 1;
		if (!p->kinds[*ix].n)
			p->kinds[*ix] = kind;
	}
	return &p->kinds[*ix];
}

/* How long this rank waited in it, of its whole time there. */
static u64 waited_ns(const struct part *p, const struct lull_exchange *x,
		     const struct lull_job_meeting *m)
{
	i64 came_ns = lull_job_came_ns(p->job, p->rank, x), wait_ns = m->last_ns - came_ns;
	i64 dur_ns = (i64)(x->end_ns - x->start_ns);

	return (u64)(wait_ns < 0 ? 0 : wait_ns > dur_ns ? dur_ns : wait_ns);
}

/* After the mean of the others; positive is late. */
static i64 late_ns(const struct part *p, const struct lull_exchange *x,
		   const struct lull_job_meeting *m)
{
	i64 came_ns = lull_job_came_ns(p->job, p->rank, x);

	return came_ns - (m->sum_ns - came_ns) / (i64)(m->n - 1);
}

/* ---- steps ---- */

static struct lull_job_step *step_of(struct part *p, u32 round)
{
	u32 first = p->subject->rounds.first_steady;

	if (round == LULL_NONE || round < first || round - first >= p->rank->n_steps)
		return NULL;
	return &p->steps[round - first];
}

static void count_exchange(struct part *p, const struct lull_unit *unit)
{
	const struct lull_exchange *x = lull_exchanges_find(&p->x, unit->begin_ns, unit->end_ns);
	struct lull_job_step *step = step_of(p, unit->round);
	const struct lull_job_meeting *m;
	struct lull_job_comm *comm;
	struct lull_job_kind *kind;

	if (!x || !step)
		return;
	comm = lull_job_comm_of(p->comms, p->reader, x);
	if (comm)
		lull_job_comm_add(comm, p->reader, x);
	kind = kind_of(p, x);
	kind->n++;
	kind->dur_ns += x->end_ns - x->start_ns;
	kind->size_bytes += x->size_bytes;
	p->rank->exchange_ns += x->end_ns - x->start_ns;
	m = lull_job_meeting(p->meetings, x->key);
	if (!m)
		return;
	kind->wait_ns += waited_ns(p, x, m);
	kind->transfer_ns += x->end_ns - x->start_ns - waited_ns(p, x, m);
	kind->timed_bytes += x->size_bytes;
	if (!x->is_peer) {
		i64 late = late_ns(p, x, m);

		step->late_ns += late;
		step->n_met++;
		step->most_late_ns = late > step->most_late_ns ? late : step->most_late_ns;
	}
}

/* A piece of a step in which only this collective runs. */
static void cut_collective(struct part *p, const struct lull_split_piece *piece,
			   struct lull_job_step *step)
{
	const struct lull_unit *unit = &p->subject->units.at[piece->unit];
	const struct lull_exchange *x = lull_exchanges_find(&p->x, unit->begin_ns, unit->end_ns);
	const struct lull_job_meeting *m = x ? lull_job_meeting(p->meetings, x->key) : NULL;
	u64 len_ns = piece->to_ns - piece->from_ns, wait_ns = 0, until_ns;
	struct lull_job_kind *kind;
	struct lull_job_comm *comm;

	if (m) {
		until_ns = x->start_ns + waited_ns(p, x, m);
		wait_ns = until_ns <= piece->from_ns ? 0
			  : until_ns >= piece->to_ns ? len_ns
						     : until_ns - piece->from_ns;
	}
	if (x) {
		kind = kind_of(p, x);
		kind->exposed_ns += len_ns;
		kind->exposed_wait_ns += wait_ns;
		comm = lull_job_comm_of(p->comms, p->reader, x);
		if (comm)
			comm->exposed_ns += len_ns;
	}
	if (x && x->is_peer) {
		step->bubble_ns += wait_ns;
		step->transfer_ns += len_ns - wait_ns;
	} else {
		step->wait_ns += wait_ns;
		step->transfer_ns += len_ns - wait_ns;
	}
}

static void visit(void *ctx, const struct lull_split_piece *piece)
{
	struct part *p = ctx;
	struct lull_job_step *step = step_of(p, piece->round);
	u64 len_ns = piece->to_ns - piece->from_ns;

	if (!step)
		return;
	switch (piece->kind) {
	case LULL_SPLIT_COMPUTE:
		step->compute_ns += len_ns;
		break;
	case LULL_SPLIT_COLLECTIVE:
		cut_collective(p, piece, step);
		break;
	case LULL_SPLIT_COPY:
		step->copy_ns += len_ns;
		break;
	default:
		step->idle_ns += len_ns;
	}
}

/* Time in which any collective ran, within the steady steps. */
static u64 communicating_ns(const struct part *p)
{
	const struct lull_rounds *rounds = &p->subject->rounds;
	u32 first = rounds->first_steady;
	u64 sum_ns = 0, until_ns, end_ns;

	if (!p->rank->n_steps)
		return 0;
	until_ns = lull_round_begin_ns(rounds, first);
	end_ns = lull_round_end_ns(rounds, first + p->rank->n_steps - 1);
	for (u32 i = 0; i < p->subject->units.n; i++) {
		const struct lull_unit *u = &p->subject->units.at[i];
		u64 from_ns = u->begin_ns > until_ns ? u->begin_ns : until_ns;
		u64 to_ns = u->end_ns < end_ns ? u->end_ns : end_ns;

		if (u->kind != LULL_UNIT_COLLECTIVE || to_ns <= from_ns)
			continue;
		sum_ns += to_ns - from_ns;
		until_ns = to_ns;
	}
	return sum_ns;
}

/* All steps, or the whole report where there are none. */
static struct lull_span steady_span(const struct part *p)
{
	const struct lull_rounds *rounds = &p->subject->rounds;
	u32 first = rounds->first_steady;
	struct lull_span span = LULL_SPAN_ALL;

	if (p->rank->n_steps) {
		span.from_ns = lull_round_begin_ns(rounds, first);
		span.to_ns = lull_round_end_ns(rounds, first + p->rank->n_steps - 1);
	}
	return span;
}

static void fill_steps(struct part *p)
{
	const struct lull_rounds *rounds = &p->subject->rounds;
	u32 first = rounds->first_steady, n = lull_rounds_n_steady(rounds);

	p->rank->n_steps = n < MAX_STEPS ? n : MAX_STEPS;
	p->rank->first_step = first;
	p->steps = lull_alloc(p->rank->n_steps + 1, sizeof(*p->steps));
	for (u32 i = 0; i < p->rank->n_steps; i++) {
		u64 end_ns = lull_round_end_ns(rounds, first + i);

		p->steps[i].round = first + i;
		p->steps[i].dur_ns = end_ns - lull_round_begin_ns(rounds, first + i);
		p->steps[i].end_ns = lull_job_time(p->rank, end_ns);
	}
	lull_split_run(&p->subject->units, rounds, visit, p);
	for (u32 i = 0; i < p->subject->units.n; i++)
		if (p->subject->units.at[i].kind == LULL_UNIT_COLLECTIVE)
			count_exchange(p, &p->subject->units.at[i]);
}

/*
 * A rank that is late for one collective is late for those after it, too: the largest counts, not
 * the sum. But a rank that itself had to wait before others waited for it has a sum near 0.
 */
static void settle(struct lull_job_step *step)
{
	if (step->late_ns > step->most_late_ns)
		step->late_ns = step->most_late_ns;
}

static void sum_steps(struct lull_job_rank *rank, struct lull_job_step *steps)
{
	for (u32 i = 0; i < rank->n_steps; i++) {
		settle(&steps[i]);
		rank->window_ns += steps[i].dur_ns;
		rank->compute_ns += steps[i].compute_ns;
		rank->wait_ns += steps[i].wait_ns;
		rank->transfer_ns += steps[i].transfer_ns;
		rank->bubble_ns += steps[i].bubble_ns;
		rank->copy_ns += steps[i].copy_ns;
		rank->idle_ns += steps[i].idle_ns;
		rank->late_ns += steps[i].late_ns;
	}
}

/* ---- communication partners ---- */

static void find_peers(struct part *p)
{
	const struct lull_exchange *all = p->x.all.at;
	struct lull_job_rank *rank = p->rank;

	for (size_t i = 0; i < p->x.all.n && rank->n_peers < LULL_JOB_PEERS; i++) {
		struct lull_job_peer peer = { all[i].comm, all[i].rank, (u32)all[i].peer };
		u32 k = 0;

		if (!all[i].is_peer || all[i].peer < 0)
			continue;
		while (k < rank->n_peers &&
		       (rank->peers[k].comm != peer.comm || rank->peers[k].other != peer.other))
			k++;
		if (k == rank->n_peers)
			rank->peers[rank->n_peers++] = peer;
	}
}

/* ---- what lull why says ---- */

static void take_why(struct lull_job_rank *rank, const struct lull_why *why)
{
	const struct lull_finding *all = why->findings.at, *first = lull_why_first(why);
	u32 n = 0;

	rank->has_why = true;
	rank->is_torch = lull_subject_is_torch(why->lead);
	rank->first = first ? (i32)first->cause : -1;
	rank->step_ns = why->step_ns;
	snprintf(rank->cannot, sizeof(rank->cannot), "%.*s", (int)sizeof(rank->cannot) - 1,
		 why->cannot);
	memcpy(rank->cost_ns, why->lead->cost_ns, sizeof(rank->cost_ns));
	for (size_t i = 0; i < why->findings.n && n < LULL_JOB_EVIDENCE; i++) {
		const struct lull_evidence *e = all[i].evidence.at;

		enum lull_among_ranks ranks = lull_causes[all[i].cause]->ranks;

		/* The job says these itself. */
		if (ranks == LULL_RANKS_EXCHANGE || ranks == LULL_RANKS_LATE)
			continue;
		rank->evidence[n].cause = (i32)all[i].cause;
		rank->evidence[n].cost_ns = all[i].cost_ns;
		snprintf(rank->evidence[n].text, sizeof(rank->evidence[n].text), "%.*s",
			 (int)sizeof(rank->evidence[n].text) - 1, all[i].evidence.n ? e->text : "");
		memcpy(rank->evidence[n].fix, all[i].advice.fix, sizeof(rank->evidence[n].fix));
		n++;
	}
	for (; n < LULL_JOB_EVIDENCE; n++)
		rank->evidence[n].cause = -1;
}

/* All of the report: steps of ranks are compared by number, and a part has numbers of its own. */
static int run_why(struct lull_why *why, const struct part *p, struct lull_err *err)
{
	const struct lull_why_options options = { .path = lull_str_text(&p->path) };
	u64 limit_bytes = lull_window_limit_bytes;
	int rc;

	lull_window_limit_bytes = UINT64_MAX;
	rc = lull_why_run(why, p->reader, &options, err);
	lull_window_limit_bytes = limit_bytes;
	return rc;
}

static void set_steps(struct lull_vec *comms, u32 n_steps)
{
	struct lull_job_comm *all = comms->at;

	for (size_t i = 0; i < comms->n; i++)
		all[i].n_steps = n_steps;
}

void lull_job_part(struct lull_job *job, struct lull_job_rank *rank,
		   const struct lull_job_meetings *m, struct lull_job_found *found)
{
	struct part p = { .job = job,
			  .rank = rank,
			  .path = LULL_STR_INIT,
			  .meetings = m,
			  .comms = &found->comms };
	struct lull_err err = { LULL_OK, "" };
	struct lull_why why;

	p.reader = lull_job_reader(job, rank);
	if (!p.reader)
		return;
	lull_exchanges_init(&p.x, p.reader);
	lull_map_init(&p.kind_of);
	lull_job_path(job, rank, &p.path);
	find_peers(&p);
	if (run_why(&why, &p, &err)) {
		snprintf(rank->cannot, sizeof(rank->cannot), "%.*s", (int)sizeof(rank->cannot) - 1,
			 err.msg);
	} else {
		p.subject = why.lead;
		take_why(rank, &why);
		fill_steps(&p);
		sum_steps(rank, p.steps);
		rank->comm_ns = communicating_ns(&p);
		lull_job_find_ranges(p.reader, rank->rank, steady_span(&p), &found->ranges);
		set_steps(&found->comms, rank->n_steps);
		lull_vec_add(&found->steps, p.steps, rank->n_steps);
		lull_vec_add(&found->kinds, p.kinds, p.n_kinds);
	}
	lull_why_release(&why);
	free(p.steps);
	lull_str_release(&p.path);
	lull_map_release(&p.kind_of);
	lull_exchanges_release(&p.x);
	rank->n_damaged = lull_reader_n_damaged(p.reader);
	lull_reader_close(p.reader);
}
