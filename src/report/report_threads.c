/*
 * threads: what each thread did with its time.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"
#include "model/lane_time.h"
#include "model/span.h"
#include "model/work.h"
#include "report/lanes.h"
#include "report/report.h"

static const struct lull_out_column columns[] = {
	{ .name = "Life", .kind = LULL_OUT_NS, .doc = "how long it existed in the recording" },
	{ .name = "Running",
	  .kind = LULL_OUT_NS,
	  .doc = "on a CPU; empty if scheduling was not recorded" },
	{ .name = "GIL Wait", .kind = LULL_OUT_NS, .doc = "waiting for Python's interpreter lock" },
	{ .name = "Lock", .kind = LULL_OUT_NS, .doc = "waiting for another thread" },
	{ .name = "I/O", .kind = LULL_OUT_NS, .doc = "in calls on files, sockets and pipes" },
	{ .name = "Sleep", .kind = LULL_OUT_NS, .doc = "in calls that wait for the clock" },
	{ .name = "Other Calls",
	  .kind = LULL_OUT_NS,
	  .doc = "in other C library calls",
	  .is_spare = true },
	{ .name = "Unknown",
	  .kind = LULL_OUT_NS,
	  .doc = "the rest of its lifetime",
	  .is_spare = true },
	{ .name = "Samples", .kind = LULL_OUT_INT, .doc = "CPU samples", .is_spare = true },
	LULL_LANES_COLUMNS,
};

struct thread {
	u32 lane;
	u64 life_ns;
};

static u64 *count_samples(struct lull_reader *r, const struct lull_report_options *options,
			  size_t n_lanes)
{
	u64 *counts = lull_alloc(n_lanes + 1, sizeof(*counts));
	struct lull_sample_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, r, LULL_TABLE_sample, options->from_ns, options->to_ns);
	lull_cursor_want(&c, "start_ns");
	lull_cursor_want(&c, "lane");
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++)
			counts[cols.lane[i]] += lull_report_covers(options, cols.start_ns[i], 0);
	}
	lull_cursor_release(&c);
	return counts;
}

static void put_thread(struct lull_out *out, const struct thread *thread,
		       const struct lull_lane_time *times, bool has_sched)
{
	u64 known_ns = 0;

	lull_out_row(out);
	lull_out_i64(out, (i64)thread->life_ns);
	for (unsigned a = 0; a < LULL_N_ACTIVITIES; a++) {
		known_ns += times->ns[a];
		if (a == LULL_ACTIVITY_RUNNING && !has_sched)
			lull_out_skip(out);
		else
			lull_out_i64(out, (i64)times->ns[a]);
	}
	lull_out_i64(out, known_ns < thread->life_ns ? (i64)(thread->life_ns - known_ns) : 0);
}

static int by_life(const void *a, const void *b)
{
	const struct thread *x = a, *y = b;

	if (x->life_ns != y->life_ns)
		return x->life_ns < y->life_ns ? 1 : -1;
	return (x->lane > y->lane) - (x->lane < y->lane);
}

/* The threads that existed in the time asked for, the longest life first. */
static struct thread *find_threads(struct lull_reader *r, const struct lull_report_options *options,
				   size_t n_lanes, size_t *n)
{
	struct thread *threads = lull_alloc(n_lanes, sizeof(*threads));
	const struct lull_lane_row *lanes = lull_reader_dim(r, LULL_TABLE_lane, &n_lanes);

	*n = 0;
	for (u32 lane = 1; lane <= n_lanes; lane++) {
		struct lull_span life =
			lull_span_cut(lull_span_lane(r, lane), options->from_ns, options->to_ns);

		if (life.to_ns > life.from_ns && lanes[lane - 1].kind != LULL_LANE_STREAM)
			threads[(*n)++] = (struct thread){ lane, life.to_ns - life.from_ns };
	}
	if (*n)
		lull_sort(threads, *n, sizeof(*threads), by_life);
	return threads;
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	bool has_sched = lull_reader_stats(r, LULL_TABLE_sched).n_rows;
	struct lull_span window = { options->from_ns, options->to_ns };
	struct lull_lane_time *times;
	struct thread *threads;
	size_t n_lanes, n;
	u64 *samples;

	(void)err;
	lull_reader_dim(r, LULL_TABLE_lane, &n_lanes);
	times = lull_alloc(n_lanes + 1, sizeof(*times));
	lull_lane_time_add(r, window, times);
	samples = count_samples(r, options, n_lanes);
	threads = find_threads(r, options, n_lanes, &n);
	for (size_t i = 0; i < n; i++) {
		put_thread(out, &threads[i], &times[threads[i].lane], has_sched);
		lull_out_i64(out, (i64)samples[threads[i].lane]);
		lull_lanes_put(out, r, threads[i].lane);
	}
	free(threads);
	free(samples);
	free(times);
	return LULL_OK;
}

const struct lull_report lull_report_threads = {
	.name = "threads",
	.display = "Thread Time",
	.summary = "what each thread did with its time",
	.help = "Each nanosecond of a thread's life is counted once, in the first column that "
		"holds: "
		"running on a CPU, waiting for Python's interpreter lock, waiting inside a call of "
		"the C "
		"library by kind. The rest is unknown: ready but not running, or waiting in a call "
		"that "
		"is not recorded. A filter cuts what crosses its edges.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs_any = LULL_NEED(sched) | LULL_NEED(oscall) | LULL_NEED(gil_wait),
	.page = { .tab = "calls", .label = "threads", .place = 3 },
	.run = run,
};
