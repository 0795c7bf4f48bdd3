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
#define ALIKE	   0.3 /* of their time may be spent in another way than that of average steps */

/* What the time of steps in a row went to, by cause; the last one is what no cause claims. */
struct spent {
	f64 ns[LULL_SUBJECT_CAUSES + 1];
};

/* Steps in a row, and what their time went to. */
struct row_of_steps {
	const struct lull_rounds *rounds;
	const struct lull_interval *intervals; /* sorted by round */
	size_t n_intervals;
	size_t from, to; /* intervals of the steps that are in it */
	struct spent sum;
};

static f64 round_ns(const struct lull_rounds *rounds, u32 round)
{
	u64 begin_ns = lull_round_begin_ns(rounds, round),
	    end_ns = lull_round_end_ns(rounds, round);

	return end_ns > begin_ns ? (f64)(end_ns - begin_ns) : 0;
}

/* Count the next intervals from `*at` on, as long as they are of this step, `sign` times. */
static void count_step(struct row_of_steps *row, size_t *at, u32 round, f64 sign)
{
	f64 left_ns = round_ns(row->rounds, round);

	for (; *at < row->n_intervals && row->intervals[*at].round <= round; ++*at) {
		const struct lull_interval *p = &row->intervals[*at];

		if (p->round != round || p->cause >= LULL_SUBJECT_CAUSES)
			continue;
		row->sum.ns[p->cause] += sign * (f64)(p->to_ns - p->from_ns);
		left_ns -= (f64)(p->to_ns - p->from_ns);
	}
	row->sum.ns[LULL_SUBJECT_CAUSES] += sign * left_ns;
}

static struct row_of_steps row_of(const struct lull_subject *lead, u32 n)
{
	struct row_of_steps row = {
		.rounds = &lead->rounds,
		.intervals = lead->intervals.at,
		.n_intervals = lead->intervals.n,
	};

	for (u32 i = 0; i < n; i++)
		count_step(&row, &row.to, lead->rounds.first_steady + i, 1);
	return row;
}

/* How far this time is from that of as many average steps, as a share of it, cause by cause. */
static f64 distance(const struct spent *sum, const struct spent *all, f64 share)
{
	f64 off_ns = 0, all_ns = 0;

	for (size_t c = 0; c <= LULL_SUBJECT_CAUSES; c++) {
		off_ns += fabs(sum->ns[c] - share * all->ns[c]);
		all_ns += share * all->ns[c];
	}
	return all_ns > 0 ? off_ns / all_ns : 0;
}

/* The n steps in a row that are nearest to n average ones; how far they are off. */
static f64 nearest(const struct lull_subject *lead, const struct spent *all, u32 n, u32 *first)
{
	u32 begin = lead->rounds.first_steady, n_steady = lull_rounds_n_steady(&lead->rounds);
	struct row_of_steps row = row_of(lead, n);
	f64 least = HUGE_VAL;

	for (u32 i = 0;; i++) {
		f64 off = distance(&row.sum, all, (f64)n / n_steady);

		if (off < least) {
			least = off;
			*first = begin + i;
		}
		if (i + n >= n_steady)
			return least;
		count_step(&row, &row.from, begin + i, -1);
		count_step(&row, &row.to, begin + i + n, 1);
	}
}

/*
 * Steps in a row whose time went to the same as that of the average step: what is seen has the
 * shares that the sentence says. As few as possible: if every eighth step waits for data, it takes
 * eight.
 */
static struct lull_span average_steps(const struct lull_subject *lead)
{
	u32 n_steady = lull_rounds_n_steady(&lead->rounds);
	u32 few = n_steady < FEW_STEPS ? n_steady : FEW_STEPS;
	u32 n = few, first = lead->rounds.first_steady;
	struct row_of_steps all = row_of(lead, n_steady);
	f64 least = HUGE_VAL;

	for (u32 k = few; least > ALIKE && k <= MOST_STEPS && k <= n_steady; k++) {
		u32 found = first;
		f64 off = nearest(lead, &all.sum, k, &found);

		if (off > ALIKE && off > least - ALIKE)
			continue;
		least = off;
		first = found;
		n = k;
	}
	return (struct lull_span){ lull_round_begin_ns(&lead->rounds, first),
				   lull_round_end_ns(&lead->rounds, first + n - 1) };
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
		view = average_steps(lead);
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
	*view = average_steps(report->why->lead);
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
