#include "page/pack_int.h"

#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "base/str.h"
#include "page/page_open.h"
#include "report/report.h"
#include "timeline/detail.h"

/* Events in a report whose calls are joined with their work; tens of millions take minutes. */
#define MAX_JOINED 2000000u

#define TABLE_ROWS "300"

/* As many as the page asks for: ui/src/keys.ts, ui/src/panels/selection.ts. */
#define IDLE_GAPS    "500"
#define BETWEEN_GAPS "12"
#define SOURCE_FILES 40u /* as many as the list of answer_source.c has */

/*
 * Threads that have a flame graph of their own, and bytes of critical paths: a file is for a mail.
 */
#define MAX_FLAMES 24u
#define MAX_PATHS  (768L << 10)

/* The window of the plan is a part of the report. */
static bool is_cut(const struct lull_pack *p)
{
	return p->plan->window.to_ns != UINT64_MAX || p->plan->window.from_ns;
}

bool lull_pack_is_too_much(const struct lull_pack *p)
{
	return !is_cut(p) && p->t->n_events > MAX_JOINED;
}

/* Write "key": answer of this question; questions that have none are left out. */
static void put_answer(struct lull_pack *p, const char *key, const char *name, const char *text)
{
	struct lull_err err = { LULL_OK, "" };
	struct lull_args args = { 0 };
	char *bytes = NULL;
	size_t len = 0;
	FILE *to = open_memstream(&bytes, &len);
	int rc = lull_args_parse(&args, text, &err);

	if (!rc)
		rc = lull_page_answer(p->page, lull_answer_find(name), &args, to, &err);
	fclose(to);
	if (!rc) {
		fprintf(p->to, "%s\"%s\":", p->is_first ? "" : ",", key);
		fwrite(bytes, 1, len, p->to);
		p->is_first = false;
	}
	lull_args_release(&args);
	free(bytes);
}

/*
 * The gaps of each row: all that panels and keys ask for. Times of the idle row are its pieces, of
 * others what lies between.
 */
static void put_gaps(struct lull_pack *p, const char *window)
{
	const struct lull_row *rows = p->t->rows.at;
	struct lull_str key = LULL_STR_INIT, text = LULL_STR_INIT;

	for (size_t i = 0; i < p->t->rows.n; i++) {
		bool is_idle = !strcmp(rows[i].kind, "idle");

		if (!rows[i].n_lanes)
			continue;
		lull_str_clear(&key);
		lull_str_clear(&text);
		lull_str_addf(&key, "gaps:%u%s", rows[i].first_lane, is_idle ? "" : ":between");
		lull_str_addf(&text, "lane=%u&n=%s%s", rows[i].first_lane,
			      is_idle ? IDLE_GAPS : BETWEEN_GAPS "&between=1", window);
		put_answer(p, lull_str_text(&key), "gaps", lull_str_text(&text));
	}
	lull_str_release(&key);
	lull_str_release(&text);
}

static void put_tables(struct lull_pack *p, const char *window)
{
	struct lull_str key = LULL_STR_INIT, text = LULL_STR_INIT;

	for (const struct lull_report *const *r = lull_reports; *r; r++) {
		if (!(*r)->page.tab || ((*r)->page.is_join && lull_pack_is_too_much(p)))
			continue;
		lull_str_clear(&key);
		lull_str_clear(&text);
		lull_str_addf(&key, "table:%s", (*r)->name);
		lull_str_addf(&text, "name=%s&n=" TABLE_ROWS "%s", (*r)->name, window);
		put_answer(p, lull_str_text(&key), "table", lull_str_text(&text));
	}
	lull_str_release(&key);
	lull_str_release(&text);
}

/* ---- flame graphs ---- */

/* A thread with samples of a kind. */
struct sampled {
	const char *thread;
	u64 n;
};

static int by_samples(const void *a, const void *b)
{
	const struct sampled *x = a, *y = b;

	if (x->n != y->n)
		return x->n > y->n ? -1 : 1;
	return strcmp(x->thread, y->thread);
}

static void list_sampled(const struct lull_pack *p, const char *row_kind, struct lull_vec *to)
{
	const struct lull_row *rows = p->t->rows.at;

	for (size_t i = 0; i < p->t->rows.n; i++)
		if (!strcmp(rows[i].kind, row_kind) && rows[i].parent != LULL_NO_ROW)
			*(struct sampled *)lull_vec_push(to) =
				(struct sampled){ rows[rows[i].parent].key, rows[i].n_events };
	if (to->n)
		lull_sort(to->at, to->n, sizeof(struct sampled), by_samples);
}

/* All that the panel can choose: steady steps or the whole run, all threads or one. */
static void put_flames(struct lull_pack *p, const char *kind, const char *row_kind,
		       const char *window)
{
	static const char *const scopes[][2] = { { "", "" }, { ":whole", "&whole=1" } };
	struct lull_str key = LULL_STR_INIT, text = LULL_STR_INIT;
	struct lull_vec threads;

	lull_vec_init(&threads, sizeof(struct sampled));
	*(struct sampled *)lull_vec_push(&threads) = (struct sampled){ NULL, UINT64_MAX };
	list_sampled(p, row_kind, &threads);
	for (size_t i = 0; i < threads.n && i <= MAX_FLAMES; i++) {
		const char *thread = ((struct sampled *)threads.at)[i].thread;

		for (int k = 0; k < (is_cut(p) ? 1 : 2); k++) {
			lull_str_clear(&key);
			lull_str_clear(&text);
			lull_str_addf(&key, "flame:%s%s%s%s", kind, scopes[k][0], thread ? "@" : "",
				      thread ? thread : "");
			lull_str_addf(&text, "kind=%s%s%s%s%s", kind, scopes[k][1],
				      thread ? "&thread=" : "", thread ? thread : "", window);
			put_answer(p, lull_str_text(&key), "flame", lull_str_text(&text));
		}
	}
	lull_vec_release(&threads);
	lull_str_release(&key);
	lull_str_release(&text);
}

/* ---- critical paths ---- */

/* A step, and how far it is from what the page opens on. */
struct near_step {
	struct lull_span span;
	u64 far_ns;
};

static int by_distance(const void *a, const void *b)
{
	const struct near_step *x = a, *y = b;

	if (x->far_ns != y->far_ns)
		return x->far_ns < y->far_ns ? -1 : 1;
	return (x->span.from_ns > y->span.from_ns) - (x->span.from_ns < y->span.from_ns);
}

static void list_steps(struct lull_pack *p, struct lull_span view, struct lull_vec *to)
{
	const struct lull_row *rows = p->t->rows.at;
	struct lull_vec events;

	lull_vec_init(&events, sizeof(struct lull_found));
	for (size_t i = 0; i < p->t->rows.n; i++)
		if (!strcmp(rows[i].kind, "step") && rows[i].n_lanes)
			lull_detail_events(p->t, rows[i].first_lane, p->plan->window, SIZE_MAX,
					   &events);
	for (size_t i = 0; i < events.n; i++) {
		const struct lull_tl_event *e = &((const struct lull_found *)events.at)[i].event;
		struct near_step *s = lull_vec_push(to);

		s->span = (struct lull_span){ e->start_ns, e->end_ns };
		if (e->end_ns <= view.from_ns)
			s->far_ns = view.from_ns - e->end_ns + 1;
		else if (e->start_ns >= view.to_ns)
			s->far_ns = e->start_ns - view.to_ns + 1;
	}
	lull_vec_release(&events);
	if (to->n)
		lull_sort(to->at, to->n, sizeof(struct near_step), by_distance);
}

/* Those of the steps that the page opens on, then of their neighbours, as many as have room. */
static void put_paths(struct lull_pack *p)
{
	struct lull_str key = LULL_STR_INIT, text = LULL_STR_INIT;
	struct lull_span view;
	const char *thread = lull_page_opening(&p->page->reports[0], &view);
	const struct near_step *all;
	struct lull_vec steps;
	long begin = ftell(p->to);

	lull_vec_init(&steps, sizeof(struct near_step));
	if (thread)
		list_steps(p, view, &steps);
	all = steps.at;
	for (size_t i = 0; i < steps.n && ftell(p->to) - begin < MAX_PATHS; i++) {
		lull_str_clear(&key);
		lull_str_clear(&text);
		lull_str_addf(&key, "path:%zu", i);
		lull_str_addf(&text, "from=%llu&to=%llu&thread=%s",
			      (unsigned long long)lull_pack_moment(p, all[i].span.from_ns),
			      (unsigned long long)lull_pack_moment(p, all[i].span.to_ns), thread);
		put_answer(p, lull_str_text(&key), "path", lull_str_text(&text));
	}
	lull_vec_release(&steps);
	lull_str_release(&key);
	lull_str_release(&text);
}

void lull_pack_answers(struct lull_pack *p)
{
	struct lull_str text = LULL_STR_INIT, window = LULL_STR_INIT;

	if (is_cut(p)) /* what is summed is what is shown */
		lull_str_addf(&window, "&from=%llu&to=%llu",
			      (unsigned long long)lull_pack_moment(p, p->plan->window.from_ns),
			      (unsigned long long)lull_pack_moment(p, p->plan->window.to_ns));
	fputs("\"answers\":{", p->to);
	p->is_first = true;
	for (const struct lull_answer *const *a = lull_answers; *a; a++)
		if ((*a)->is_packed)
			put_answer(p, (*a)->name, (*a)->name,
				   is_cut(p) ? lull_str_text(&window) + 1 : "");
	put_flames(p, "native", "sample", lull_str_text(&window));
	put_flames(p, "python", "pysample", lull_str_text(&window));
	put_paths(p);
	for (unsigned i = 0; p->page->source_dir && i < SOURCE_FILES; i++) {
		struct lull_str key = LULL_STR_INIT;

		lull_str_clear(&text);
		lull_str_addf(&key, "source:%u", i);
		lull_str_addf(&text, "n=%u%s", i, lull_str_text(&window));
		put_answer(p, lull_str_text(&key), "source", lull_str_text(&text));
		lull_str_release(&key);
	}
	put_tables(p, lull_str_text(&window));
	put_gaps(p, lull_str_text(&window));
	fputs("},", p->to);
	lull_str_release(&window);
	lull_str_release(&text);
}
