#include "page/page_open.h"

#include <math.h>
#include <string.h>

#include "base/map.h"
#include "base/sort.h"
#include "model/device.h"
#include "page/page_why.h"

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
	u64 n; /* calls that started work */
};

static int by_calls(const void *a, const void *b)
{
	const struct launcher *x = a, *y = b;

	if (x->n != y->n)
		return x->n > y->n ? -1 : 1;
	return (x->lane > y->lane) - (x->lane < y->lane);
}

/* The threads that start the work, those that start most of it first. */
static void add_launchers(struct lull_vec *to, const struct lull_chain *chain)
{
	struct launcher *l;
	struct lull_map known;

	lull_map_init(&known);
	for (u32 i = 0; i < chain->n; i++) {
		const struct lull_node *node = &chain->nodes[i];
		u32 *ix = lull_map_add(&known, node->lane, NULL);

		if (!*ix) {
			((struct launcher *)lull_vec_push(to))->lane = node->lane;
			*ix = (u32)to->n;
		}
		l = lull_vec_get(to, *ix - 1);
		l->n += node->unit != LULL_NONE;
	}
	lull_map_release(&known);
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

void lull_page_put_open(struct lull_json *j, const struct lull_page_report *report)
{
	const struct lull_timeline *t = report->timeline;
	const struct lull_subject *lead = report->why->lead;
	struct lull_span steady = steady_of(report), view = steady;
	struct lull_vec launchers;
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
	lull_vec_init(&launchers, sizeof(struct launcher));
	add_launchers(&launchers, &lead->chain);
	lull_json_key(j, "threads");
	lull_json_array(j);
	for (size_t i = 0; i < launchers.n; i++) {
		const struct launcher *l = lull_vec_get(&launchers, i);

		key = key_of(t, LULL_ROW_THREAD, l->lane);
		if (key && l->n)
			lull_json_text(j, key);
	}
	lull_json_end(j);
	lull_json_end(j);
	lull_vec_release(&launchers);
}
