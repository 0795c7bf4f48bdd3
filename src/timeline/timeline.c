#include "timeline/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/device.h"
#include "timeline/build.h"
#include "timeline/curve.h"
#include "timeline/detail.h"
#include "timeline/idle_cause.h"
#include "timeline/store.h"

/*
 * Reports with fewer events are walked again each time: that takes less than a fifth of a second.
 */
#define INDEX_EVENTS 4000000u

/* A multiple of every bucket that is used, so that buckets begin at the same moments. */
#define ORIGIN_LOG2 42

struct lull_row *lull_timeline_row(const struct lull_timeline *t, u32 row)
{
	return lull_vec_get(&t->rows, row);
}

struct lull_tl_lane *lull_timeline_lane(const struct lull_timeline *t, u32 lane)
{
	return lull_vec_get(&t->lanes, lane);
}

static u64 lane_key(u32 source, u32 group, u32 line)
{
	return (u64)(source & 0xff) << 40 | (u64)line << 32 | group;
}

u32 lull_timeline_find(const struct lull_timeline *t, u32 source, u32 group, u32 line)
{
	const u32 *found = lull_map_find(&t->lane_of, lane_key(source, group, line));

	return found ? *found - 1 : LULL_NO_ROW;
}

u32 lull_timeline_row_by_key(const struct lull_timeline *t, const char *key)
{
	const struct lull_row *rows = t->rows.at;

	for (u32 i = 0; i < t->rows.n; i++)
		if (!strcmp(rows[i].key, key))
			return i;
	return LULL_NO_ROW;
}

u32 lull_timeline_device_id(const struct lull_timeline *t, u32 device)
{
	return lull_device_number(t->reader, device);
}

static u64 count_events(const struct lull_reader *r)
{
	u64 n = 0;

	for (size_t s = 0; lull_sources[s].kind; s++)
		n += lull_reader_stats(r, (u16)lull_sources[s].table).n_rows;
	return n;
}

static void map_lanes(struct lull_timeline *t)
{
	const struct lull_tl_lane *lanes = t->lanes.at;

	for (u32 i = 0; i < t->lanes.n; i++)
		*lull_map_add(&t->lane_of, lane_key(lanes[i].source, lanes[i].group, lanes[i].line),
			      NULL) = i + 1;
}

struct lull_timeline *lull_timeline_empty(struct lull_reader *r)
{
	struct lull_timeline *t = lull_alloc(1, sizeof(*t));

	t->reader = r;
	t->span = lull_span_recording(r);
	t->origin_ns = t->span.from_ns & ~((1ull << ORIGIN_LOG2) - 1);
	lull_vec_init(&t->rows, sizeof(struct lull_row));
	lull_vec_init(&t->lanes, sizeof(struct lull_tl_lane));
	lull_vec_init(&t->curves, sizeof(struct lull_curve));
	lull_idle_init_causes(t);
	lull_map_init(&t->lane_of);
	return t;
}

struct lull_timeline *lull_timeline_new(struct lull_reader *r,
					const struct lull_timeline_options *options)
{
	struct lull_timeline *t = lull_timeline_empty(r);
	bool has_index = options->path && !options->has_no_index && lull_reader_is_sealed(r) &&
			 count_events(r) >= INDEX_EVENTS;

	if (!has_index || !lull_store_read(t, options)) {
		lull_timeline_build(t, options);
		if (has_index)
			lull_store_write(t, options);
	}
	map_lanes(t);
	t->detail = lull_detail_new(t);
	return t;
}

void lull_timeline_free(struct lull_timeline *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->rows.n; i++) {
		free(lull_timeline_row(t, (u32)i)->key);
		free(lull_timeline_row(t, (u32)i)->title);
	}
	for (size_t i = 0; i < t->lanes.n; i++)
		lull_lod_release(&lull_timeline_lane(t, (u32)i)->lod);
	for (size_t i = 0; i < t->curves.n; i++)
		lull_curve_release(lull_vec_get(&t->curves, i));
	lull_vec_release(&t->rows);
	lull_vec_release(&t->lanes);
	lull_vec_release(&t->curves);
	lull_idle_release_causes(t);
	lull_map_release(&t->lane_of);
	lull_detail_free(t->detail);
	free(t);
}
