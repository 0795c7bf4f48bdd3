/*
 * phases: what the time of a step goes to, by phase.
 *
 * The time of the step's thread is cut into phases (report/phase_pieces.h) and the rest between
 * them, so the shares add up to the step.
 */
#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/sort.h"
#include "report/lanes.h"
#include "report/loading.h"
#include "report/nvtx.h"
#include "report/phase_pieces.h"
#include "report/process_rounds.h"
#include "report/report.h"
#include "report/waiting.h"
#include "text/term.h"

static const struct lull_out_column columns[] = {
	{ .name = "Share",
	  .kind = LULL_OUT_PERCENT,
	  .doc = "of the step, on the CPU; the shares of a process add up to 100" },
	{ .name = "CPU Avg",
	  .kind = LULL_OUT_NS,
	  .decimals = 1,
	  .doc = "mean time that the step's thread is in it, of all steps" },
	{ .name = "CPU Min",
	  .kind = LULL_OUT_NS,
	  .doc = "shortest; 0 if a step has none",
	  .is_spare = true },
	{ .name = "CPU Med", .kind = LULL_OUT_NS, .decimals = 1, .doc = "median" },
	{ .name = "CPU P90", .kind = LULL_OUT_NS, .doc = "9 of 10 steps take at most this" },
	{ .name = "GPU Time",
	  .kind = LULL_OUT_NS,
	  .decimals = 1,
	  .doc = "mean time with work on the device that was launched in it" },
	{ .name = "GPU Idle",
	  .kind = LULL_OUT_NS,
	  .decimals = 1,
	  .doc = "mean time in it without any work of the process on the device" },
	{ .name = "Steps", .kind = LULL_OUT_INT, .doc = "steps that have it", .is_spare = true },
	{ .name = "PID", .kind = LULL_OUT_ID, .doc = "process id", .is_spare = true },
	{ .name = "Phase",
	  .kind = LULL_OUT_TEXT,
	  .doc = "<domain>:<name> of the range; `rest`: the part of the step in no range" },
};

/* A phase in one step. */
struct cell {
	u32 round, group;
	u64 cpu_ns, gpu_ns, idle_ns;
};

/* Work on the device, without gaps between the spans of one. */
struct busy {
	struct lull_span span;
	u64 before_ns; /* busy time before it */
};

struct phases {
	struct lull_reader *reader;
	struct lull_out *out;
	const struct lull_report_options *options;
	const struct lull_process_rounds *p;
	struct lull_phase_pieces pieces;
	struct lull_vec busy;	  /* struct busy, by time */
	struct lull_vec cells;	  /* struct cell */
	struct lull_map by_place; /* round and group to cell + 1 */
	u32 first, end;		  /* rounds that count */
	u64 total_ns;		  /* of them */
};

/* ---- what they take ---- */

static struct cell *cell_of(struct phases *s, u32 round, u32 group)
{
	u32 *place = lull_map_add(&s->by_place, (u64)round << 32 | group, NULL);

	if (!*place) {
		*(struct cell *)lull_vec_push(&s->cells) =
			(struct cell){ .round = round, .group = group };
		*place = (u32)s->cells.n;
	}
	return lull_vec_get(&s->cells, *place - 1);
}

static void read_busy(struct phases *s)
{
	const struct lull_units *units = &s->p->units;
	u64 sum_ns = 0;

	for (u32 i = 0; i < units->n; i++) {
		const struct lull_unit *unit = &units->at[i];
		struct busy *last = s->busy.n ? lull_vec_get(&s->busy, s->busy.n - 1) : NULL;

		if (last && unit->begin_ns <= last->span.to_ns) {
			if (unit->end_ns > last->span.to_ns)
				last->span.to_ns = unit->end_ns;
			continue;
		}
		sum_ns += last ? last->span.to_ns - last->span.from_ns : 0;
		*(struct busy *)lull_vec_push(&s->busy) =
			(struct busy){ { unit->begin_ns, unit->end_ns }, sum_ns };
	}
}

/* How long the device was busy before at_ns. */
static u64 busy_before(const struct phases *s, u64 at_ns)
{
	const struct busy *at = s->busy.at;
	size_t low = 0, high = s->busy.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (at[middle].span.from_ns < at_ns)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return 0;
	at += low - 1;
	return at->before_ns + (at_ns < at->span.to_ns ? at_ns : at->span.to_ns) - at->span.from_ns;
}

static u64 idle_in(const struct phases *s, struct lull_span span)
{
	u64 busy_ns = busy_before(s, span.to_ns) - busy_before(s, span.from_ns);

	return span.to_ns - span.from_ns - busy_ns;
}

static void add_time(struct phases *s, u32 round, u32 group, struct lull_span span)
{
	struct cell *cell = cell_of(s, round, group);

	cell->cpu_ns += span.to_ns - span.from_ns;
	cell->idle_ns += idle_in(s, span);
}

/* Cut a step into its phases and the rest between them. */
static size_t add_round(struct phases *s, u32 round, size_t first)
{
	struct lull_span span = lull_process_round_span(s->p, round);
	const struct lull_phase_piece *at = s->pieces.all.at;
	u64 from_ns = span.from_ns;

	while (first < s->pieces.all.n && at[first].span.to_ns <= span.from_ns)
		first++;
	for (size_t i = first; i < s->pieces.all.n && at[i].span.from_ns < span.to_ns; i++) {
		struct lull_span part = lull_span_cut(at[i].span, span.from_ns, span.to_ns);

		add_time(s, round, LULL_PHASE_REST, (struct lull_span){ from_ns, part.from_ns });
		add_time(s, round, at[i].group, part);
		from_ns = part.to_ns;
	}
	add_time(s, round, LULL_PHASE_REST, (struct lull_span){ from_ns, span.to_ns });
	s->total_ns += span.to_ns - span.from_ns;
	return first;
}

/*
 * The device's time by the phase that launched the work. What the autograd threads launch is the
 * phase in which the step's thread waits for it; what others launch is in none.
 */
static void add_work(struct phases *s)
{
	u64 *last_ns = lull_alloc(s->pieces.names.offsets.n + 1, sizeof(*last_ns));
	size_t n_lanes;
	u8 *is_ours;

	lull_reader_dim(s->reader, LULL_TABLE_lane, &n_lanes);
	is_ours = lull_alloc(n_lanes + 1, sizeof(*is_ours));
	for (u32 i = 1; i <= n_lanes; i++)
		is_ours[i] = i == s->p->lane || lull_lane_is_autograd(s->reader, i);
	for (u32 i = 0; i < s->p->units.n; i++) {
		const struct lull_unit *unit = &s->p->units.at[i];
		const struct lull_node *node;
		u64 from_ns;
		u32 group;

		if (unit->round == LULL_NONE || unit->round < s->first || unit->round >= s->end)
			continue;
		node = &s->p->chain.nodes[unit->node];
		group = is_ours[node->lane] ? lull_phase_at(&s->pieces, node->begin_ns)
					    : LULL_PHASE_REST;
		/* Work that runs side by side counts once. */
		from_ns = unit->begin_ns > last_ns[group] ? unit->begin_ns : last_ns[group];
		if (unit->end_ns <= from_ns)
			continue;
		cell_of(s, unit->round, group)->gpu_ns += unit->end_ns - from_ns;
		last_ns[group] = unit->end_ns;
	}
	free(is_ours);
	free(last_ns);
}

/* ---- rows ---- */

/* Fill mean, least, median and P90 of values of which those that are missing are 0. */
static void put_spread(struct lull_out *out, u64 *sorted_ns, u32 n, u64 sum_ns)
{
	lull_sort_u64(sorted_ns, n);
	lull_out_f64(out, (f64)sum_ns / n);
	lull_out_i64(out, (i64)sorted_ns[0]);
	lull_out_f64(out, ((f64)sorted_ns[(n - 1) / 2] + (f64)sorted_ns[n / 2]) / 2);
	lull_out_i64(out, (i64)sorted_ns[(9 * (u64)n + 9) / 10 - 1]);
}

static void put_name(struct phases *s, u32 group)
{
	const struct lull_phase_name *name = lull_intern_get(&s->pieces.names, group);
	struct lull_str *text = lull_out_text_begin(s->out);

	if (group == LULL_PHASE_REST)
		lull_str_puts(text, "rest");
	else
		lull_nvtx_name(text, s->reader, name->name, name->domain);
	lull_out_text_end(s->out);
}

struct total {
	u32 group;
	u64 cpu_ns;
};

static int by_time(const void *a, const void *b)
{
	const struct total *x = a, *y = b;

	if (x->cpu_ns != y->cpu_ns)
		return x->cpu_ns > y->cpu_ns ? -1 : 1;
	return (x->group > y->group) - (x->group < y->group);
}

static void put_group(struct phases *s, const struct total *total, u64 *values_ns)
{
	u32 n = s->end - s->first, n_has = 0;
	u64 gpu_ns = 0, idle_ns = 0;

	for (u32 round = s->first; round < s->end; round++) {
		const u32 *place = lull_map_find(&s->by_place, (u64)round << 32 | total->group);
		const struct cell *cell = place ? lull_vec_get(&s->cells, *place - 1) : NULL;

		values_ns[round - s->first] = cell ? cell->cpu_ns : 0;
		n_has += cell && cell->cpu_ns;
		gpu_ns += cell ? cell->gpu_ns : 0;
		idle_ns += cell ? cell->idle_ns : 0;
	}
	lull_out_row(s->out);
	lull_out_f64(s->out, 100 * (f64)total->cpu_ns / (f64)s->total_ns);
	put_spread(s->out, values_ns, n, total->cpu_ns);
	lull_out_f64(s->out, (f64)gpu_ns / n);
	lull_out_f64(s->out, (f64)idle_ns / n);
	lull_out_i64(s->out, n_has);
	lull_out_i64(s->out, lull_lanes_ids(s->reader, s->p->lane).pid);
	put_name(s, total->group);
}

static void put_groups(struct phases *s)
{
	u32 n = (u32)s->pieces.names.offsets.n;
	u64 *values_ns = lull_alloc((size_t)(s->end - s->first) + 1, sizeof(*values_ns));
	struct total *totals = lull_alloc(n, sizeof(*totals));
	const struct cell *cells = s->cells.at;

	for (u32 i = 0; i < n; i++)
		totals[i].group = i;
	for (size_t i = 0; i < s->cells.n; i++)
		totals[cells[i].group].cpu_ns += cells[i].cpu_ns;
	lull_sort(totals, n, sizeof(*totals), by_time);
	for (u32 i = 0; i < n && totals[i].cpu_ns; i++)
		put_group(s, &totals[i], values_ns);
	free(totals);
	free(values_ns);
}

/* Say how much of the loading the device's work hides: with workers that keep up, all of it. */
static void note_loading(struct phases *s)
{
	struct lull_span first = lull_process_round_span(s->p, s->first);
	struct lull_span last = lull_process_round_span(s->p, s->end - 1);
	struct lull_loading loading;
	const struct lull_span *span;
	u64 all_ns = 0, idle_ns = 0;

	lull_loading_init(&loading, s->reader, s->p->lane,
			  (struct lull_span){ first.from_ns, last.to_ns });
	span = loading.spans.at;
	for (size_t i = 0; i < loading.spans.n; i++) {
		all_ns += span[i].to_ns - span[i].from_ns;
		idle_ns += idle_in(s, span[i]);
	}
	if (all_ns) {
		lull_str_addf(&s->out->note, "%sBatches are loaded for %s of each step, by ",
			      lull_str_text(&s->out->note)[0] ? " " : "",
			      lull_format_ns(all_ns / (s->end - s->first)).text);
		if (loading.n_others)
			lull_str_addf(&s->out->note, "%u other thread%s", loading.n_others,
				      loading.n_others == 1 ? "" : "s");
		else
			lull_str_puts(&s->out->note, "the thread of the steps");
		lull_str_addf(&s->out->note, "; the device works in %.0f %% of that time.",
			      100 * (f64)(all_ns - idle_ns) / (f64)all_ns);
	}
	lull_loading_release(&loading);
}

/* ---- all of it ---- */

/* Whether all of the round lies in the time that is asked for. */
static bool is_asked(const struct phases *s, u32 round)
{
	struct lull_span span = lull_process_round_window(s->p, round);

	return lull_report_covers(s->options, span.from_ns, span.to_ns - span.from_ns);
}

/* The rounds that count: the steady ones; all if only warm-up is asked for. */
static void choose_rounds(struct phases *s)
{
	u32 n = (u32)s->p->rounds.all.n, from = s->p->rounds.first_steady;

	for (int i = 0; i < 2 && s->first == s->end; i++, from = 0) {
		for (s->first = from; s->first < n && !is_asked(s, s->first); s->first++)
			continue;
		for (s->end = s->first; s->end < n && is_asked(s, s->end); s->end++)
			continue;
	}
}

static void release(struct phases *s)
{
	lull_phase_pieces_release(&s->pieces);
	lull_vec_release(&s->busy);
	lull_vec_release(&s->cells);
	lull_map_release(&s->by_place);
}

static void run_process(void *ctx, const struct lull_process_rounds *p)
{
	struct phases s = *(const struct phases *)ctx;
	size_t next = 0;

	s.p = p;
	lull_phase_pieces_init(&s.pieces, p);
	lull_vec_init(&s.busy, sizeof(struct busy));
	lull_vec_init(&s.cells, sizeof(struct cell));
	lull_map_init(&s.by_place);
	choose_rounds(&s);
	read_busy(&s);
	for (u32 i = s.first; i < s.end; i++)
		next = add_round(&s, i, next);
	/* A step that is nothing but rest says nothing. */
	if (s.total_ns && s.pieces.all.n) {
		add_work(&s);
		put_groups(&s);
		note_loading(&s);
	}
	release(&s);
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	struct phases s = { .reader = r, .out = out, .options = options };

	(void)err;
	lull_process_rounds_each(r, false, run_process, &s);
	return LULL_OK;
}

const struct lull_report lull_report_phases = {
	.name = "phases",
	.display = "Phases of a Step",
	.summary = "what the time of a step goes to: data, forward, backward, optimizer",
	.help = "For each phase of a steady step (those of `lull why`, without warm-up): how long "
		"the step's thread is in it, how long the work that it launches takes on the "
		"device, and how long the device has nothing to do meanwhile. Phases are the "
		"outermost ranges inside the step on its thread: those that lull finds in "
		"PyTorch (data_load, forward, backward, optimizer, ...) and the program's own of "
		"NVTX and lull.h. A range around whole steps, or around several phases of "
		"PyTorch, is not one. `rest` is the part of the step in no phase, so the shares "
		"add up to 100 %. Work on the device belongs to the phase that launched it; what "
		"PyTorch's autograd threads launch belongs to the phase in which the step's thread "
		"waits for them, and what other threads launch to `rest`. A device often runs the "
		"work of a phase after the phase: its time on the device may be longer than the "
		"phase. If all steps that are asked for are warm-up, these count. A sentence below "
		"the table says how long batches are loaded, by ranges of loading on other threads "
		"and in child processes, or else on the step's own thread, and in how much of that "
		"time the device works: with workers that keep up, loading overlaps with compute.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs_any = LULL_NEED(kernel) | LULL_NEED(graph),
	.needs_quick = LULL_NEED_FEW,
	.empty = "no phases: there are no steps, or no ranges of NVTX, lull.h or PyTorch's hooks "
		 "inside them",
	.is_default = true,
	.sorted_by = 1,
	.run = run,
};
