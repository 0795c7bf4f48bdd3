#include "model/lane_time.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/vec.h"
#include "model/order.h"
#include "model/wait.h"

/* 1 M rows are 2 M edges of 16 bytes. */
#define SLICE_ROWS (1u << 20)

/* An activity begins or ends on a lane. */
struct edge {
	u64 at_ns;
	u32 lane;
	u8 activity;
	bool is_end;
};

struct sweep {
	struct lull_reader *reader;
	struct lull_span slice;
	struct lull_vec edges;
	struct lull_vec spare;	    /* for sorting them */
	struct lull_vec activities; /* u8 by string id, + 1; 0 if not looked up yet */
};

static const enum lull_activity activity_of_wait[] = {
	[LULL_WAIT_LOCK] = LULL_ACTIVITY_LOCK,
	[LULL_WAIT_IO] = LULL_ACTIVITY_IO,
	[LULL_WAIT_SLEEP] = LULL_ACTIVITY_SLEEP,
	[LULL_WAIT_OTHER] = LULL_ACTIVITY_OTHER,
};

/* The activity that a function of the C library is. */
static u8 activity_of_call(struct sweep *s, u32 name)
{
	u8 *known;

	if (name >= s->activities.n)
		lull_vec_extend(&s->activities, name + 1 - s->activities.n);
	known = lull_vec_get(&s->activities, name);
	if (!*known)
		*known = (u8)(activity_of_wait[lull_wait_of(
				      lull_reader_string(s->reader, name, NULL))] +
			      1);
	return *known - 1;
}

static void add_edges(struct sweep *s, u64 start_ns, u64 dur_ns, u32 lane, u8 activity)
{
	u64 end_ns = lull_span_end_ns(start_ns, dur_ns);
	struct lull_span cut = lull_span_cut((struct lull_span){ start_ns, end_ns },
					     s->slice.from_ns, s->slice.to_ns);
	struct edge *edges;

	if (cut.from_ns >= cut.to_ns)
		return;
	edges = lull_vec_extend(&s->edges, 2);
	edges[0] = (struct edge){ cut.from_ns, lane, activity, false };
	edges[1] = (struct edge){ cut.to_ns, lane, activity, true };
}

/* The rows of a table with start_ns, dur_ns and lane; `activity` of all, or by their name. */
static void add_table(struct sweep *s, enum lull_table table, u8 activity)
{
	const struct lull_table_desc *t = lull_table_find((u16)table);
	const void **cols = lull_alloc(t->n_cols, sizeof(*cols));
	bool has_name = table == LULL_TABLE_oscall;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, s->reader, table, s->slice.from_ns, s->slice.to_ns);
	lull_cursor_want(&c, "start_ns");
	lull_cursor_want(&c, "dur_ns");
	lull_cursor_want(&c, "lane");
	if (has_name)
		lull_cursor_want(&c, "name");
	while ((n = lull_cursor_next(&c, cols)) > 0) {
		const u64 *start_ns = cols[lull_table_column(t, "start_ns")];
		const u64 *dur_ns = cols[lull_table_column(t, "dur_ns")];
		const u32 *lane = cols[lull_table_column(t, "lane")];
		const u32 *name = has_name ? cols[lull_table_column(t, "name")] : NULL;

		for (size_t i = 0; i < n; i++)
			add_edges(s, start_ns[i], dur_ns[i], lane[i],
				  name ? activity_of_call(s, name[i]) : activity);
	}
	lull_cursor_release(&c);
	free(cols);
}

static int by_lane(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	return (x->at_ns > y->at_ns) - (x->at_ns < y->at_ns);
}

/* The activity that gets the time, LULL_N_ACTIVITIES if there is none. */
static unsigned first_active(const i64 *counts)
{
	unsigned a = 0;

	while (a < LULL_N_ACTIVITIES && counts[a] <= 0)
		a++;
	return a;
}

/* Every edge that begins also ends, so the counts are back at zero where a lane ends. */
static void share_out(const struct sweep *s, struct lull_lane_time *times)
{
	const struct edge *edges = s->edges.at;
	i64 counts[LULL_N_ACTIVITIES] = { 0 };

	for (size_t i = 0; i < s->edges.n; i++) {
		unsigned activity = first_active(counts);

		if (activity < LULL_N_ACTIVITIES)
			times[edges[i].lane].ns[activity] += edges[i].at_ns - edges[i - 1].at_ns;
		counts[edges[i].activity] += edges[i].is_end ? -1 : 1;
	}
	assert(first_active(counts) == LULL_N_ACTIVITIES);
}

void lull_lane_time_add(struct lull_reader *r, struct lull_span window,
			struct lull_lane_time *times)
{
	struct lull_span span = lull_span_cut(lull_span_recording(r), window.from_ns, window.to_ns);
	struct sweep s = { .reader = r };
	u64 n_rows = lull_reader_stats(r, LULL_TABLE_sched).n_rows +
		     lull_reader_stats(r, LULL_TABLE_oscall).n_rows +
		     lull_reader_stats(r, LULL_TABLE_gil_wait).n_rows;
	u64 slice_ns = (span.to_ns - span.from_ns) / (n_rows / SLICE_ROWS + 1) + 1;

	lull_vec_init(&s.edges, sizeof(struct edge));
	lull_vec_init(&s.spare, sizeof(struct edge));
	lull_vec_init(&s.activities, sizeof(u8));
	for (u64 at_ns = span.from_ns; at_ns < span.to_ns; at_ns = s.slice.to_ns) {
		u64 left_ns = span.to_ns - at_ns;

		s.slice.from_ns = at_ns;
		s.slice.to_ns = at_ns + (slice_ns < left_ns ? slice_ns : left_ns);
		s.edges.n = 0;
		add_table(&s, LULL_TABLE_sched, LULL_ACTIVITY_RUNNING);
		add_table(&s, LULL_TABLE_gil_wait, LULL_ACTIVITY_GIL);
		add_table(&s, LULL_TABLE_oscall, 0);
		lull_order_sort(&s.edges, &s.spare, by_lane);
		share_out(&s, times);
	}
	lull_vec_release(&s.edges);
	lull_vec_release(&s.spare);
	lull_vec_release(&s.activities);
}
