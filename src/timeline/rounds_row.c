#include "timeline/rounds_row.h"

#include "base/mem.h"
#include "timeline/name.h"

#define GROUP 0u /* neither a thread nor a device */
#define LINE  (LULL_LINE_IDLE + 1)

void lull_rounds_row_add(struct lull_timeline *t)
{
	struct lull_row *row = lull_vec_push(&t->rows);
	struct lull_tl_lane *lane = lull_vec_push(&t->lanes);

	*row = (struct lull_row){ .key = lull_strdup(LULL_ROUNDS_KEY),
				  .kind = "step",
				  .title = lull_strdup("Steps"),
				  .parent = LULL_NO_ROW,
				  .first_lane = (u32)t->lanes.n - 1,
				  .n_lanes = 1 };
	*lane = (struct lull_tl_lane){
		.row = (u32)t->rows.n - 1, .line = LINE, .group = GROUP, .source = LULL_NO_ROW
	};
}

static bool do_overlap(const struct lull_tl_round *rounds, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (rounds[i].span.from_ns < rounds[i - 1].span.to_ns)
			return true;
	return false;
}

void lull_rounds_row_set(struct lull_timeline *t, const struct lull_tl_round *rounds, size_t n)
{
	u32 ix = lull_timeline_row_by_key(t, LULL_ROUNDS_KEY);
	struct lull_tl_lane *lane;
	struct lull_fold fold;

	if (ix == LULL_NO_ROW || !n || do_overlap(rounds, n))
		return;
	lane = lull_timeline_lane(t, lull_timeline_row(t, ix)->first_lane);
	lull_fold_init(&fold, 0, true);
	fold.max_log2 = 0; /* kept whole: they are in no table */
	for (size_t i = 0; i < n; i++) {
		struct lull_rec rec = { .start_ns = rounds[i].span.from_ns,
					.end_ns = rounds[i].span.to_ns,
					.busy_ns = rounds[i].span.to_ns - rounds[i].span.from_ns,
					.name = LULL_NAME_STEP |
						((u32)rounds[i].number & LULL_NAME_REST),
					.count = 1 };

		rec.share[0] = 255;
		lull_fold_add(&fold, &rec);
	}
	lane->n_events = lull_timeline_row(t, ix)->n_events = fold.n_events;
	lane->busy_ns = lull_timeline_row(t, ix)->busy_ns = fold.busy_ns;
	lull_lod_release(&lane->lod);
	lull_fold_levels(&fold, &lane->lod);
	lull_fold_release(&fold);
}
