/*
 * gpu_gaps: long times in which a process gave a device nothing to do.
 */
#include <stdlib.h>

#include "base/duration.h"
#include "base/time.h"
#include "model/busy.h"
#include "report/rule.h"

static const struct lull_out_column columns[] = {
	{ .name = "Row#", .kind = LULL_OUT_INT, .doc = "number of the row" },
	LULL_RULE_TIME_COLUMNS,
	LULL_RULE_DEVICE_COLUMNS,
};

#define DEFAULT_GAP_NS (LULL_NS_PER_S / 2)

struct gap {
	struct lull_worst_key key;
	u32 lane; /* stream of the work that ended it */
	u32 process;
};

struct gaps {
	u64 least_ns;
	struct lull_worst worst;
	struct lull_vec overheads;
};

/* Whether the process was kept from working by being recorded. */
static bool has_overhead(const struct gaps *g, const struct lull_busy_piece *piece)
{
	const struct lull_rule_overhead *o = g->overheads.at;

	for (size_t i = 0; i < g->overheads.n && o[i].span.from_ns < piece->span.to_ns; i++) {
		if (o[i].process == piece->after->process &&
		    o[i].span.from_ns >= piece->span.from_ns)
			return true;
	}
	return false;
}

static void visit(void *ctx, const struct lull_busy_piece *piece)
{
	struct gaps *g = ctx;
	u64 dur_ns = piece->span.to_ns - piece->span.from_ns;
	struct gap gap = { { dur_ns, piece->span.from_ns }, 0, 0 };

	if (piece->running || dur_ns <= g->least_ns || has_overhead(g, piece))
		return;
	gap.lane = piece->after->lane;
	lull_worst_add(&g->worst, &gap);
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	char *text = lull_report_arg_value(options, "gap");
	struct gaps g = { .least_ns = DEFAULT_GAP_NS };
	int rc = text ? lull_duration_parse(text, &g.least_ns, err) : LULL_OK;
	u32 *tracks = lull_rule_tracks(r);
	const struct gap *gap;

	if (!rc)
		rc = lull_worst_init(&g.worst, sizeof(struct gap), options, err);
	if (!rc) {
		lull_rule_overheads(&g.overheads, r);
		lull_busy_run(r, tracks, lull_report_window(options), visit, &g);
		lull_worst_finish(&g.worst);
	}
	gap = g.worst.all.at;
	for (size_t i = 0; i < g.worst.all.n; i++) {
		lull_out_row(out);
		lull_out_i64(out, (i64)i + 1);
		lull_out_i64(out, (i64)gap[i].key.dur_ns);
		lull_out_i64(out, (i64)gap[i].key.start_ns);
		lull_rule_put_device(out, r, gap[i].lane);
	}
	lull_worst_release(&g.worst);
	lull_vec_release(&g.overheads);
	free(tracks);
	free(text);
	return rc;
}

const struct lull_report lull_rule_gpu_gaps = {
	.name = "gpu_gaps",
	.display = "GPU Gaps",
	.summary = "intervals in which a process had no work on a device",
	.help = "Gaps of more than 500 ms between the first and the last work of a process on a "
		"device, longest first. Gaps in which CUDA or the recording itself was busy are "
		"left out. gap=TIME sets another limit, such as gpu_gaps:gap=10ms; rows=N shows "
		"N of them, -1 all.",
	.finding = "In these intervals the device had no work of the process.",
	.advice = "Suggestion: look at what the host did then: `lull stats -r gpu_idle` names the "
		  "thread that launched next, its range and its longest call.",
	.args = "gap= rows=",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs_any = LULL_NEED(kernel) | LULL_NEED(memcpy) | LULL_NEED(memset) | LULL_NEED(graph),
	.is_default = true,
	.empty = "No problem found: no device was without work for more than 500 ms (gap=TIME "
		 "sets another limit).",
	.run = run,
};
