/*
 * warm_up: why the first steps took longer than the others.
 *
 * What a step before the steady ones spent more than these do on average, by what its thread did:
 * CUDA calls by their kind, and the code between them.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "report/lanes.h"
#include "report/process_rounds.h"
#include "report/report.h"

/* What a thread does, in the order of the columns. */
enum part { PART_LOAD, PART_LAUNCH, PART_ALLOC, PART_WAIT, PART_OTHER, PART_CODE, N_PARTS };

#define PART_COLUMN(text, meaning)                                               \
	{                                                                        \
		.name = text, .kind = LULL_OUT_NS, .decimals = 1, .doc = meaning \
	}

static const struct lull_out_column columns[] = {
	{ .name = "Step", .kind = LULL_OUT_ID, .doc = "its number, as in the report steps" },
	{ .name = "Duration", .kind = LULL_OUT_NS, .doc = "from its mark to the next" },
	PART_COLUMN("Longer", "than a steady step on average; the next columns are parts of it"),
	PART_COLUMN("Load Code", "calls that load kernels: cuLibraryLoadData and the like"),
	PART_COLUMN("Launch", "calls that launch; CUDA may load a kernel at its first launch"),
	PART_COLUMN("Allocate", "calls that allocate or free memory"),
	PART_COLUMN("Wait", "copies, and calls that wait for the device"),
	PART_COLUMN("Other Calls", "all other CUDA calls: contexts, streams, events"),
	PART_COLUMN("Code", "between CUDA calls: Python, torch.compile, data loading"),
	LULL_LANES_COLUMNS,
};

struct warm_up {
	struct lull_reader *reader;
	struct lull_out *out;
	const struct lull_report_options *options;
};

static enum part part_of(const struct lull_node *node)
{
	switch ((enum lull_call_kind)node->kind) {
	case LULL_KIND_OF_MODULE:
		return PART_LOAD;
	case LULL_KIND_OF_LAUNCH:
		return PART_LAUNCH;
	case LULL_KIND_OF_ALLOC:
		return PART_ALLOC;
	case LULL_KIND_OF_COPY:
	case LULL_KIND_OF_SYNC:
		return PART_WAIT;
	case LULL_KIND_OF_EVENT:
	case LULL_KIND_OF_QUERY:
	case LULL_KIND_OF_OTHER:
		break;
	}
	return PART_OTHER;
}

static u64 overlap_ns(const struct lull_node *node, struct lull_span span)
{
	u64 from = node->begin_ns > span.from_ns ? node->begin_ns : span.from_ns;
	u64 to = node->end_ns < span.to_ns ? node->end_ns : span.to_ns;

	return to > from ? to - from : 0;
}

/* What the chain of the step's thread did in each round: N_PARTS numbers for each. */
static u64 *divide(const struct lull_process_rounds *p)
{
	size_t n = p->rounds.all.n;
	u64 *parts = lull_alloc(n * N_PARTS + 1, sizeof(*parts));
	u8 chain = p->chain.chain_of_lane[p->lane];
	u32 node = chain ? p->chain.first[chain - 1] : 0, end = chain ? p->chain.first[chain] : 0;

	for (u32 i = 0; i < n; i++) {
		struct lull_span span = lull_process_round_span(p, i);
		u64 *of = &parts[i * N_PARTS], calls_ns = 0;

		while (node < end && p->chain.nodes[node].end_ns <= span.from_ns)
			node++;
		for (u32 k = node; k < end && p->chain.nodes[k].begin_ns < span.to_ns; k++) {
			u64 ns = overlap_ns(&p->chain.nodes[k], span);

			of[part_of(&p->chain.nodes[k])] += ns;
			calls_ns += ns;
		}
		of[PART_CODE] = span.to_ns - span.from_ns - calls_ns;
	}
	return parts;
}

static void put_step(struct warm_up *w, const struct lull_process_rounds *p, u32 round,
		     const u64 *parts, const f64 *usual)
{
	struct lull_span span = lull_process_round_span(p, round);
	f64 longer = (f64)(span.to_ns - span.from_ns);

	for (int k = 0; k < N_PARTS; k++)
		longer -= usual[k];
	lull_out_row(w->out);
	lull_out_i64(w->out, (i64)p->numbers[round]);
	lull_out_i64(w->out, (i64)(span.to_ns - span.from_ns));
	lull_out_f64(w->out, longer);
	for (int k = 0; k < N_PARTS; k++)
		lull_out_f64(w->out, (f64)parts[round * N_PARTS + (u32)k] - usual[k]);
	lull_lanes_put(w->out, w->reader, p->lane);
}

static void put_process(void *ctx, const struct lull_process_rounds *p)
{
	struct warm_up *w = ctx;
	u32 n = (u32)p->rounds.all.n, first = p->rounds.first_steady;
	f64 usual[N_PARTS] = { 0 };
	u64 *parts;

	if (first >= n)
		return;
	parts = divide(p);
	for (u32 i = first; i < n; i++)
		for (int k = 0; k < N_PARTS; k++)
			usual[k] += (f64)parts[i * N_PARTS + (u32)k] / (n - first);
	for (u32 i = 0; i < first; i++) {
		struct lull_span span = lull_process_round_window(p, i);

		if (lull_report_covers(w->options, span.from_ns, span.to_ns - span.from_ns))
			put_step(w, p, i, parts, usual);
	}
	free(parts);
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	struct warm_up w = { .reader = r, .out = out, .options = options };

	(void)err;
	lull_process_rounds_each(r, false, put_process, &w);
	return LULL_OK;
}

const struct lull_report lull_report_warm_up = {
	.name = "warm_up",
	.display = "Warm-Up Steps",
	.summary = "why the first steps took longer than the others",
	.help = "The steps that `lull why` leaves out as warm-up, and what their thread did in "
		"them "
		"more than it does in a steady step on average: in CUDA calls by kind, and in the "
		"code between them. First steps load kernels (Load Code, and with lazy loading "
		"also "
		"Launch), allocate, and let libraries choose algorithms or compile (Code). A part "
		"below zero took less than usual. What happened before the first step is not in "
		"it.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs_any = LULL_NEED_STEPS,
	.empty = "no step was left out as warm-up, or there are no steps",
	.run = run,
};
