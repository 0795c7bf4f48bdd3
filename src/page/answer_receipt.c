/*
 * receipt: where the time between two moments went, for whatever span somebody marks.
 *
 *	receipt?from=T&to=T
 *	{"from", "to", "is_folded", "steps": {"n", "top": [name, ...]},
 *	 "devices": [{"key", "title", "ns": of its life, "busy_ns", "causes": [[id, family, ns]],
 *		      "kernels": {"n", "ns", "top": [[name, class, ns, n]]}, "copies": the same}],
 *	 "n_threads", "threads": [{"key", "title", "cpu_ns", "runnable_ns", "has_cpu",
 *		      "calls": [[kind, name, class, ns, n]], "ranges": {...}, "n_samples",
 *		      "samples": [[function, place, n]], "wait": {lane, start, end, name, links}}]}
 */
#include "page/page.h"

#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "base/sort.h"
#include "base/str.h"
#include "page/frames.h"
#include "page/links.h"
#include "page/receipt.h"
#include "timeline/name.h"
#include "timeline/rounds_row.h"

#define TOP	    8u
#define TOP_CALLS   4u
#define MAX_THREADS 24u

struct receipt {
	struct lull_timeline *t;
	struct lull_span span;
	bool is_folded;
};

/* Names as an array: [[name, class, ns, n], ...], the largest. */
static void put_items(struct lull_json *j, const struct receipt *x,
		      const struct lull_receipt_sums *s)
{
	lull_json_object(j);
	lull_page_pair_u64(j, "n", s->n);
	lull_page_pair_u64(j, "ns", s->ns);
	lull_page_pair_u64(j, "n_names", s->items.n);
	lull_receipt_put_top(j, x->t, s, TOP);
	lull_json_end(j);
}

/* Sum the lanes of all rows of a kind below `parent`; of calls only the outermost. */
static void sum_kind(struct receipt *x, u32 parent, const char *kind, u32 max_lanes,
		     struct lull_receipt_sums *s)
{
	const struct lull_row *rows = x->t->rows.at;

	lull_receipt_init(s);
	for (size_t i = 0; i < x->t->rows.n; i++) {
		if (rows[i].parent != parent || strcmp(rows[i].kind, kind) != 0)
			continue;
		for (u32 l = 0; l < rows[i].n_lanes && l < max_lanes; l++)
			lull_receipt_lane(s, x->t, rows[i].first_lane + l, x->span);
	}
	lull_receipt_sort(s);
	x->is_folded |= s->is_folded;
}

/* Those that the answer is about; what the program marked itself only if there are none. */
static void put_steps(struct lull_json *j, struct receipt *x)
{
	u32 ix = lull_timeline_row_by_key(x->t, LULL_ROUNDS_KEY);
	struct lull_receipt_sums s;

	if (ix != LULL_NO_ROW && lull_timeline_row(x->t, ix)->n_events) {
		lull_receipt_init(&s);
		lull_receipt_lane(&s, x->t, lull_timeline_row(x->t, ix)->first_lane, x->span);
		lull_receipt_sort(&s);
	} else {
		sum_kind(x, LULL_NO_ROW, "step", UINT32_MAX, &s);
	}
	put_items(j, x, &s);
	lull_receipt_release(&s);
}

static void put_kind(struct lull_json *j, struct receipt *x, u32 parent, const char *kind)
{
	struct lull_receipt_sums s;

	sum_kind(x, parent, kind, UINT32_MAX, &s);
	put_items(j, x, &s);
	lull_receipt_release(&s);
}

static void put_causes(struct lull_json *j, struct receipt *x, u32 device)
{
	struct lull_receipt_sums s;
	const struct lull_receipt_item *items;

	sum_kind(x, device, LULL_ROW_IDLE, 1, &s);
	items = s.items.at;
	lull_json_key(j, "causes");
	lull_json_array(j);
	for (size_t i = 0; i < s.items.n; i++) {
		struct lull_str text = LULL_STR_INIT;

		lull_name_text(&text, x->t->reader, items[i].name);
		lull_json_array(j);
		lull_json_text(j, lull_str_text(&text));
		lull_json_u64(j, items[i].class);
		lull_json_u64(j, items[i].ns);
		lull_json_end(j);
		lull_str_release(&text);
	}
	lull_json_end(j);
	lull_receipt_release(&s);
}

/* Of the span, from the first work of the device to its last: outside nobody says it is idle. */
static u64 life_ns(const struct receipt *x, u32 lane)
{
	const struct lull_lod *lod = &lull_timeline_lane(x->t, lane)->lod;
	const struct lull_level *level = lod->n_levels ? &lod->levels[0] : NULL;
	struct lull_span cut;

	if (!level || !level->n)
		return 0;
	cut = lull_span_cut(
		(struct lull_span){ level->recs[0].start_ns, level->recs[level->n - 1].end_ns },
		x->span.from_ns, x->span.to_ns);
	return cut.to_ns > cut.from_ns ? cut.to_ns - cut.from_ns : 0;
}

static void put_device(struct lull_json *j, struct receipt *x, u32 ix)
{
	const struct lull_row *row = lull_timeline_row(x->t, ix);
	struct lull_receipt_sums busy;

	lull_receipt_init(&busy);
	if (row->n_lanes)
		lull_receipt_lane(&busy, x->t, row->first_lane, x->span);
	x->is_folded |= busy.is_folded;
	lull_json_object(j);
	lull_page_pair_text(j, "key", row->key);
	lull_page_pair_text(j, "title", row->title);
	lull_page_pair_u64(j, "ns", row->n_lanes ? life_ns(x, row->first_lane) : 0);
	lull_page_pair_u64(j, "busy_ns", busy.ns);
	put_causes(j, x, ix);
	lull_json_key(j, "kernels");
	put_kind(j, x, ix, "kernel");
	lull_json_key(j, "copies");
	put_kind(j, x, ix, "copy");
	lull_json_end(j);
	lull_receipt_release(&busy);
}

/* ---- threads ---- */

static const char *const call_kinds[] = { "call", "os", "gil" };

struct thread {
	u32 row;
	u64 cpu_ns, runnable_ns;
	bool has_cpu;
	struct lull_receipt_sums calls[LULL_COUNT_OF(call_kinds)];
	u64 n_samples;
};

static void sum_cpu(struct receipt *x, struct thread *th)
{
	struct lull_receipt_sums s;
	const struct lull_receipt_item *items;

	sum_kind(x, th->row, "cpu", 1, &s);
	items = s.items.at;
	for (size_t i = 0; i < s.items.n; i++)
		*(items[i].name == (LULL_NAME_FIXED | LULL_FIXED_RUNNABLE) ? &th->runnable_ns
									   : &th->cpu_ns) +=
			items[i].ns;
	th->has_cpu = s.items.n > 0;
	lull_receipt_release(&s);
}

static bool sum_thread(struct receipt *x, struct thread *th)
{
	bool is_any;

	sum_cpu(x, th);
	is_any = th->cpu_ns || th->runnable_ns;
	for (size_t k = 0; k < LULL_COUNT_OF(call_kinds); k++) {
		sum_kind(x, th->row, call_kinds[k], 1, &th->calls[k]);
		is_any |= th->calls[k].n > 0;
	}
	return is_any;
}

/* Those that launch first, then those that use a CPU. */
static int by_work(const void *a, const void *b)
{
	const struct thread *x = a, *y = b;

	if (x->calls[0].n != y->calls[0].n)
		return x->calls[0].n > y->calls[0].n ? -1 : 1;
	if (x->cpu_ns != y->cpu_ns)
		return x->cpu_ns > y->cpu_ns ? -1 : 1;
	return (x->row > y->row) - (x->row < y->row);
}

static void put_calls(struct lull_json *j, const struct receipt *x, const struct thread *th)
{
	lull_json_key(j, "calls");
	lull_json_array(j);
	for (size_t k = 0; k < LULL_COUNT_OF(call_kinds); k++) {
		const struct lull_receipt_item *items = th->calls[k].items.at;

		for (size_t i = 0; i < th->calls[k].items.n && i < TOP_CALLS; i++) {
			lull_json_array(j);
			lull_json_text(j, call_kinds[k]);
			lull_receipt_put_item(j, x->t, &items[i]);
			lull_json_end(j);
		}
	}
	lull_json_end(j);
}

/* The stack of each sample: one block after the other, each decoded once. */
static void count_samples(struct receipt *x, const struct lull_row *row,
			  struct lull_receipt_sums *s)
{
	const struct lull_found *all;
	const void *cols[LULL_MAX_COLS];
	struct lull_cursor c;
	struct lull_vec events;
	size_t block_ix = SIZE_MAX, n = 0;
	int col;

	lull_vec_init(&events, sizeof(struct lull_found));
	lull_detail_events(x->t, row->first_lane, x->span, SIZE_MAX, &events);
	all = events.at;
	lull_cursor_init(&c, x->t->reader, lull_sources[row->source - 1].table, 0, UINT64_MAX);
	col = lull_table_column(c.table, "stack");
	for (size_t i = 0; i < events.n && col >= 0; i++) {
		u64 at_ns = all[i].event.start_ns;
		u32 frame = 0;

		if (at_ns < x->span.from_ns || at_ns >= x->span.to_ns)
			continue;
		if (all[i].block_ix != block_ix)
			n = lull_cursor_read(&c, all[i].block_ix, cols);
		block_ix = all[i].block_ix;
		if (all[i].event.row < n)
			frame = lull_frame_of_stack(x->t->reader,
						    ((const u32 *)cols[col])[all[i].event.row]);
		lull_receipt_add(s, frame, 0, 0, 1);
	}
	lull_cursor_release(&c);
	lull_vec_release(&events);
}

static void frame_text(const struct receipt *x, u32 frame, struct lull_str *function,
		       struct lull_str *place)
{
	size_t n;
	const struct lull_frame_row *frames = lull_reader_dim(x->t->reader, LULL_TABLE_frame, &n);

	if (!frame || frame > n)
		return;
	lull_frame_function(function, x->t->reader, &frames[frame - 1]);
	lull_frame_place(place, x->t->reader, &frames[frame - 1]);
}

/* Addresses of one function have a frame each: those that read the same become one. */
static void join_alike(const struct receipt *x, struct lull_receipt_sums *s)
{
	const struct lull_receipt_item *items = s->items.at;
	struct lull_receipt_sums joined;
	struct lull_intern texts;
	struct lull_vec firsts; /* u32, a frame of each text */

	lull_receipt_init(&joined);
	lull_intern_init(&texts);
	lull_vec_init(&firsts, sizeof(u32));
	for (size_t i = 0; i < s->items.n; i++) {
		struct lull_str text = LULL_STR_INIT, place = LULL_STR_INIT;
		u32 number;

		frame_text(x, items[i].name, &text, &place);
		lull_str_addf(&text, "\n%s", lull_str_text(&place));
		number = lull_intern_add(&texts, lull_str_text(&text), text.len);
		if (number == firsts.n)
			lull_vec_add(&firsts, &items[i].name, 1);
		lull_receipt_add(&joined, *(u32 *)lull_vec_get(&firsts, number), 0, 0, items[i].n);
		lull_str_release(&text);
		lull_str_release(&place);
	}
	lull_intern_release(&texts);
	lull_vec_release(&firsts);
	lull_receipt_release(s);
	*s = joined;
}

/* Python's, or else those of the CPU: where in the program the thread was. */
static void put_samples(struct lull_json *j, struct receipt *x, const struct thread *th)
{
	static const char *const kinds[] = { "pysample", "sample" };
	const struct lull_row *rows = x->t->rows.at;
	const struct lull_receipt_item *items;
	struct lull_receipt_sums s;

	lull_receipt_init(&s);
	for (size_t k = 0; k < LULL_COUNT_OF(kinds) && !s.n; k++)
		for (size_t i = 0; i < x->t->rows.n; i++)
			if (rows[i].parent == th->row && !strcmp(rows[i].kind, kinds[k]))
				count_samples(x, &rows[i], &s);
	join_alike(x, &s);
	lull_receipt_sort(&s);
	items = s.items.at;
	lull_page_pair_u64(j, "n_samples", s.n);
	lull_json_key(j, "samples");
	lull_json_array(j);
	for (size_t i = 0; i < s.items.n && i < TOP_CALLS; i++) {
		struct lull_str function = LULL_STR_INIT, place = LULL_STR_INIT;

		frame_text(x, items[i].name, &function, &place);
		lull_json_array(j);
		lull_json_text(j, lull_str_text(&function));
		lull_json_text(j, lull_str_text(&place));
		lull_json_u64(j, items[i].n);
		lull_json_end(j);
		lull_str_release(&function);
		lull_str_release(&place);
	}
	lull_json_end(j);
	lull_receipt_release(&s);
}

/* The longest wait, and whom it was for. */
static void put_wait(struct lull_json *j, struct receipt *x, const struct thread *th)
{
	const struct lull_receipt_sums *longest = &th->calls[0];
	struct lull_str text = LULL_STR_INIT;
	const struct lull_found *f;

	for (size_t k = 1; k < LULL_COUNT_OF(call_kinds); k++)
		if (th->calls[k].longest_ns > longest->longest_ns)
			longest = &th->calls[k];
	/* A fifth of the span: what is shorter does not explain it. */
	if (longest->longest_ns * 5 < x->span.to_ns - x->span.from_ns || !longest->longest_ns)
		return;
	f = &longest->longest;
	lull_name_text(&text, x->t->reader, f->event.name);
	lull_json_key(j, "wait");
	lull_json_object(j);
	lull_page_pair_u64(j, "lane", f->lane);
	lull_page_pair_u64(j, "start", f->event.start_ns - x->t->origin_ns);
	lull_page_pair_u64(j, "end", f->event.end_ns - x->t->origin_ns);
	lull_page_pair_text(j, "name", lull_str_text(&text));
	lull_links_put(j, x->t, f);
	lull_json_end(j);
	lull_str_release(&text);
}

static void put_thread(struct lull_json *j, struct receipt *x, const struct thread *th)
{
	const struct lull_row *row = lull_timeline_row(x->t, th->row);

	lull_json_object(j);
	lull_page_pair_text(j, "key", row->key);
	lull_page_pair_text(j, "title", row->title);
	lull_page_pair_bool(j, "has_cpu", th->has_cpu);
	lull_page_pair_u64(j, "cpu_ns", th->cpu_ns);
	lull_page_pair_u64(j, "runnable_ns", th->runnable_ns);
	put_calls(j, x, th);
	lull_json_key(j, "ranges");
	put_kind(j, x, th->row, "range");
	put_samples(j, x, th);
	put_wait(j, x, th);
	lull_json_end(j);
}

static void release_thread(struct thread *th)
{
	for (size_t k = 0; k < LULL_COUNT_OF(call_kinds); k++)
		lull_receipt_release(&th->calls[k]);
}

static void put_threads(struct lull_json *j, struct receipt *x)
{
	const struct lull_row *rows = x->t->rows.at;
	struct lull_vec threads;

	lull_vec_init(&threads, sizeof(struct thread));
	for (u32 i = 0; i < x->t->rows.n; i++) {
		struct thread th = { .row = i };

		if (strcmp(rows[i].kind, LULL_ROW_THREAD) != 0)
			continue;
		if (sum_thread(x, &th))
			lull_vec_add(&threads, &th, 1);
		else
			release_thread(&th);
	}
	if (threads.n)
		lull_sort(threads.at, threads.n, sizeof(struct thread), by_work);
	lull_page_pair_u64(j, "n_threads", threads.n);
	lull_json_key(j, "threads");
	lull_json_array(j);
	for (size_t i = 0; i < threads.n && i < MAX_THREADS; i++)
		put_thread(j, x, lull_vec_get(&threads, i));
	lull_json_end(j);
	for (size_t i = 0; i < threads.n; i++)
		release_thread(lull_vec_get(&threads, i));
	lull_vec_release(&threads);
}

static int run(struct lull_question *q, struct lull_err *err)
{
	struct receipt x = { .t = q->report->timeline };
	const struct lull_row *rows = x.t->rows.at;
	struct lull_json j;

	if (lull_args_span(q->args, x.t->origin_ns, &x.span, err))
		return err->code;
	x.span = lull_span_cut(x.span, x.t->span.from_ns, x.t->span.to_ns);
	if (x.span.to_ns <= x.span.from_ns)
		return lull_fail(err, LULL_E_USAGE, "from and to must enclose a time of the run");
	lull_json_init(&j, q->to);
	lull_json_object(&j);
	lull_page_pair_u64(&j, "from", x.span.from_ns - x.t->origin_ns);
	lull_page_pair_u64(&j, "to", x.span.to_ns - x.t->origin_ns);
	lull_json_key(&j, "steps");
	put_steps(&j, &x);
	lull_json_key(&j, "devices");
	lull_json_array(&j);
	for (u32 i = 0; i < x.t->rows.n; i++)
		if (!strcmp(rows[i].kind, LULL_ROW_DEVICE))
			put_device(&j, &x, i);
	lull_json_end(&j);
	put_threads(&j, &x);
	lull_page_pair_bool(&j, "is_folded", x.is_folded);
	lull_json_end(&j);
	return LULL_OK;
}

const struct lull_answer lull_answer_receipt = {
	.name = "receipt",
	.type = "application/json",
	.run = run,
};
