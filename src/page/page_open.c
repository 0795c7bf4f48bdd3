#include "page/page_open.h"

#include <math.h>
#include <string.h>

#include "base/map.h"
#include "base/sort.h"
#include "model/device.h"
#include "page/page_why.h"
#include "page/receipt.h"

/* ---- the part of the run ---- */

/* So that one is seen from its begin to its end, and the next to compare. */
#define FEW_STEPS  3u
#define MOST_STEPS 16u
#define ALIKE	   0.3 /* of their time: as long as steps are on average */

static u64 length_of(const struct lull_rounds *rounds, u32 first, u32 n)
{
	u64 begin_ns = lull_round_begin_ns(rounds, first);
	u64 end_ns = lull_round_end_ns(rounds, first + n - 1);

	return end_ns > begin_ns ? end_ns - begin_ns : 0;
}

/* The n steps in a row whose time is nearest to that of n average ones; how far they are off. */
static f64 nearest(const struct lull_rounds *rounds, f64 mean_ns, u32 n, u32 *first)
{
	f64 least = HUGE_VAL;

	for (u32 i = rounds->first_steady; i + n <= rounds->all.n; i++) {
		f64 off = fabs((f64)length_of(rounds, i, n) / (mean_ns * n) - 1);

		if (off < least) {
			least = off;
			*first = i;
		}
	}
	return least;
}

/*
 * Steps in a row that are together as long as steps are on average: the causes have the shares that
 * the sentence says. As few as possible: if every eighth step waits for data, it takes eight.
 */
static struct lull_span average_steps(const struct lull_rounds *rounds)
{
	u32 n_steady = lull_rounds_n_steady(rounds), first = rounds->first_steady;
	u32 n = n_steady < FEW_STEPS ? n_steady : FEW_STEPS;
	f64 mean_ns = (f64)length_of(rounds, first, n_steady) / n_steady;

	for (u32 k = n; mean_ns > 0 && k <= MOST_STEPS && k <= n_steady; k++) {
		u32 found = first;

		if (nearest(rounds, mean_ns, k, &found) > ALIKE)
			continue;
		first = found;
		n = k;
		break;
	}
	return (struct lull_span){ lull_round_begin_ns(rounds, first),
				   lull_round_end_ns(rounds, first + n - 1) };
}

/* All steady steps; what the device worked in if there are none. */
static struct lull_span steady_of(const struct lull_page_report *report)
{
	const struct lull_subject *lead = report->why->lead;
	struct lull_span span = report->timeline->span;

	if (lull_rounds_n_steady(&lead->rounds))
		return (struct lull_span){
			lull_round_begin_ns(&lead->rounds, lead->rounds.first_steady),
			lull_round_end_ns(&lead->rounds, (u32)lead->rounds.all.n - 1)
		};
	for (u32 i = 0; i < lead->units.n; i++) {
		u64 end_ns = lead->units.at[i].end_ns;

		span.to_ns = i && span.to_ns > end_ns ? span.to_ns : end_ns;
		span.from_ns = lead->units.at[0].begin_ns;
	}
	return span;
}

/* ---- the threads ---- */

struct launcher {
	u32 lane;
	u64 n;	    /* calls that started work */
	u64 weight; /* the same, by which they are sorted */
};

/* People know the main thread best: another one must start many times as much to come first. */
#define MAIN_WEIGHT 8u

static int by_calls(const void *a, const void *b)
{
	const struct launcher *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return (x->lane > y->lane) - (x->lane < y->lane);
}

static bool is_main(struct lull_reader *r, u32 lane)
{
	size_t n_lanes, n;
	const struct lull_lane_row *lanes = lull_reader_dim(r, LULL_TABLE_lane, &n_lanes);
	const struct lull_process_row *all = lull_reader_dim(r, LULL_TABLE_process, &n);
	u32 process = lane && lane <= n_lanes ? lanes[lane - 1].process : 0;

	return process && process <= n && lanes[lane - 1].tid == all[process - 1].pid;
}

/* The threads that start the work in this time, those that start most of it first. */
static void add_launchers(struct lull_vec *to, struct lull_reader *r,
			  const struct lull_chain *chain, struct lull_span span)
{
	struct launcher *l;
	struct lull_map known;

	lull_map_init(&known);
	for (u32 i = 0; i < chain->n; i++) {
		const struct lull_node *node = &chain->nodes[i];
		u32 *ix;

		/* Warm-up is often done by another thread than the work later. */
		if (node->unit == LULL_NONE || node->end_ns <= span.from_ns ||
		    node->begin_ns >= span.to_ns)
			continue;
		ix = lull_map_add(&known, node->lane, NULL);
		if (!*ix) {
			((struct launcher *)lull_vec_push(to))->lane = node->lane;
			*ix = (u32)to->n;
		}
		l = lull_vec_get(to, *ix - 1);
		l->n++;
	}
	lull_map_release(&known);
	l = to->at;
	for (size_t i = 0; i < to->n; i++)
		l[i].weight = l[i].n * (is_main(r, l[i].lane) ? MAIN_WEIGHT : 1);
	if (to->n)
		lull_sort(to->at, to->n, sizeof(struct launcher), by_calls);
}

/* The key of the row of this kind that stands for `id`, NULL if there is none. */
static const char *key_of(const struct lull_timeline *t, const char *kind, u32 id)
{
	const struct lull_row *rows = t->rows.at;

	for (size_t i = 0; i < t->rows.n; i++)
		if (!strcmp(rows[i].kind, kind) && rows[i].id == id)
			return rows[i].key;
	return NULL;
}

static void find_launchers(struct lull_vec *to, const struct lull_page_report *report,
			   struct lull_span span)
{
	add_launchers(to, report->slow, &report->why->lead->chain, span);
	if (!to->n) /* all was launched long before */
		add_launchers(to, report->slow, &report->why->lead->chain, LULL_SPAN_ALL);
}

static void put_launchers(struct lull_json *j, const struct lull_page_report *report,
			  struct lull_span span)
{
	struct lull_vec launchers;

	lull_vec_init(&launchers, sizeof(struct launcher));
	find_launchers(&launchers, report, span);
	lull_json_key(j, "threads");
	lull_json_array(j);
	for (size_t i = 0; i < launchers.n; i++) {
		const struct launcher *l = lull_vec_get(&launchers, i);
		const char *key = key_of(report->timeline, LULL_ROW_THREAD, l->lane);

		if (key)
			lull_json_text(j, key);
	}
	lull_json_end(j);
	lull_vec_release(&launchers);
}

/* Less of a CPU than this, and nothing else, and a thread is idle. */
#define IDLE_SHARE 0.01

/* Whether a thread did something in this time, besides waiting in the C library. */
static bool is_active(struct lull_timeline *t, u32 thread, struct lull_span span)
{
	static const char *const kinds[] = { "cpu",  "range",	   "op",  "pycall",
					     "call", "collective", "gil", "pysample" };
	const struct lull_row *rows = t->rows.at;
	f64 least = IDLE_SHARE * (f64)(span.to_ns - span.from_ns);
	bool is = false;

	for (size_t i = 0; i < t->rows.n && !is; i++) {
		for (size_t k = 0; k < LULL_COUNT_OF(kinds) && rows[i].parent == thread; k++) {
			struct lull_receipt_sums s;

			if (strcmp(rows[i].kind, kinds[k]) != 0)
				continue;
			lull_receipt_init(&s);
			lull_receipt_lane(&s, t, rows[i].first_lane, span);
			is |= k ? s.n > 0 : (f64)s.ns >= least;
			lull_receipt_release(&s);
		}
	}
	return is;
}

static void put_active(struct lull_json *j, struct lull_timeline *t, struct lull_span span)
{
	const struct lull_row *rows = t->rows.at;

	lull_json_key(j, "active");
	lull_json_array(j);
	for (u32 i = 0; i < t->rows.n; i++)
		if (!strcmp(rows[i].kind, LULL_ROW_THREAD) && is_active(t, i, span))
			lull_json_text(j, rows[i].key);
	lull_json_end(j);
}

void lull_page_put_open(struct lull_json *j, struct lull_page_report *report)
{
	const struct lull_subject *lead = report->why->lead;
	struct lull_timeline *t = report->timeline;
	struct lull_span steady = steady_of(report), view = steady;
	const char *key;

	if (lull_rounds_n_steady(&lead->rounds))
		view = average_steps(&lead->rounds);
	lull_json_key(j, "open");
	lull_json_object(j);
	lull_page_pair_u64(j, "from", view.from_ns - t->origin_ns);
	lull_page_pair_u64(j, "to", view.to_ns - t->origin_ns);
	lull_page_pair_u64(j, "n_steps", lull_rounds_n_steady(&lead->rounds));
	lull_page_pair_u64(j, "steady_from", steady.from_ns - t->origin_ns);
	lull_page_pair_u64(j, "steady_to", steady.to_ns - t->origin_ns);
	key = key_of(t, LULL_ROW_DEVICE, lull_device_row_of(report->slow, lead->device));
	lull_page_pair_text(j, "device", key ? key : "");
	put_launchers(j, report, view);
	pthread_mutex_lock(&report->quick_lock);
	put_active(j, t, steady);
	pthread_mutex_unlock(&report->quick_lock);
	lull_json_end(j);
}

const char *lull_page_opening(struct lull_page_report *report, struct lull_span *view)
{
	struct lull_vec launchers;
	const char *key = NULL;

	if (!lull_page_steady(report, view))
		return NULL;
	*view = average_steps(&report->why->lead->rounds);
	lull_vec_init(&launchers, sizeof(struct launcher));
	find_launchers(&launchers, report, *view);
	for (size_t i = 0; i < launchers.n && !key; i++)
		key = key_of(report->timeline, LULL_ROW_THREAD,
			     ((struct launcher *)launchers.at)[i].lane);
	lull_vec_release(&launchers);
	return key;
}

bool lull_page_steady(struct lull_page_report *report, struct lull_span *span)
{
	if (lull_page_why(report, false) != LULL_PAGE_WHY_DONE || !report->why->lead ||
	    !lull_rounds_n_steady(&report->why->lead->rounds))
		return false;
	*span = steady_of(report);
	return true;
}
