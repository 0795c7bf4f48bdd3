/*
 * windows: sums over the windows of --duty, for the whole run, and how sure they are.
 */
#include <math.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/sort.h"
#include "model/busy.h"
#include "report/duty_windows.h"
#include "report/report.h"

/* Kernels with most time that get a row each. */
#define N_KERNELS 5

static const struct lull_out_column columns[] = {
	{ .name = "What", .kind = LULL_OUT_TEXT, .doc = "what is summed" },
	{ .name = "Unit", .kind = LULL_OUT_TEXT, .doc = "ns, bytes or a count" },
	{ .name = "Recorded", .kind = LULL_OUT_INT, .doc = "the sum in the windows" },
	{ .name = "Whole Run",
	  .kind = LULL_OUT_INT,
	  .doc = "the same for the whole run: measured, or estimated from the windows" },
	{ .name = "+-",
	  .kind = LULL_OUT_INT,
	  .doc = "the whole run's sum is within this of it, 19 times of 20; 0: it was measured" },
	{ .name = "Error", .kind = LULL_OUT_PERCENT, .doc = "the same as a share of it" },
};

/* What is summed besides kernels by name. */
enum { BUSY, IDLE, KERNELS, KERNEL_NS, COPIES, COPIED, N_SUMS };

static const struct {
	const char *what, *unit;
} sums[N_SUMS] = {
	[BUSY] = { "device busy", "ns" },   [IDLE] = { "device idle", "ns" },
	[KERNELS] = { "kernels", "count" }, [KERNEL_NS] = { "kernel time", "ns" },
	[COPIES] = { "copies", "count" },   [COPIED] = { "copied", "bytes" },
};

struct sheet {
	struct lull_duty_windows windows;
	f64 *at[N_SUMS];	 /* by window */
	struct lull_map names;	 /* string id of a kernel's name -> index + 1 */
	struct lull_vec kernels; /* struct kernel */
	const struct lull_launch_row *launches;
	size_t n_launches;
};

struct kernel {
	u32 name;
	f64 sum_ns;
	f64 *by_window; /* of those that get a row */
};

static void see_piece(void *ctx, const struct lull_busy_piece *piece)
{
	struct sheet *s = ctx;
	size_t i = lull_duty_windows_find(&s->windows, piece->span.from_ns);

	s->at[piece->running ? BUSY : IDLE][i] += (f64)(piece->span.to_ns - piece->span.from_ns);
}

static u32 name_of(const struct sheet *s, const struct lull_work *w)
{
	return w->what && w->what <= s->n_launches ? s->launches[w->what - 1].name : 0;
}

static void see_kernel(struct sheet *s, const struct lull_work *w, size_t i, u32 name)
{
	bool is_new;
	u32 *ix = lull_map_add(&s->names, name, &is_new);
	struct kernel *k;

	if (is_new) {
		k = lull_vec_push(&s->kernels);
		*ix = (u32)s->kernels.n;
		k->name = name;
	}
	k = lull_vec_get(&s->kernels, *ix - 1);
	k->sum_ns += (f64)w->dur_ns;
	s->at[KERNELS][i]++;
	s->at[KERNEL_NS][i] += (f64)w->dur_ns;
}

static void see_work(struct sheet *s, struct lull_reader *r)
{
	struct lull_span all = LULL_SPAN_ALL;
	struct lull_work_cursor c;
	struct lull_work w;

	lull_work_begin(&c, r, LULL_WORK_KERNEL | LULL_WORK_MEMCPY, LULL_WORK_WANT_BYTES, all);
	while (lull_work_next(&c, &w)) {
		size_t i = lull_duty_windows_find(&s->windows, w.start_ns);

		if (w.kind == LULL_WORK_KERNEL) {
			see_kernel(s, &w, i, name_of(s, &w));
		} else {
			s->at[COPIES][i]++;
			s->at[COPIED][i] += (f64)w.size_bytes;
		}
	}
	lull_work_end(&c);
}

static int by_time(const void *a, const void *b)
{
	const struct kernel *x = a, *y = b;

	return x->sum_ns > y->sum_ns ? -1 : x->sum_ns < y->sum_ns;
}

/* The kernels with most time by window: for all of them that would be much memory. */
static void choose_kernels(struct sheet *s, struct lull_reader *r)
{
	struct lull_span all = LULL_SPAN_ALL;
	struct kernel *k = s->kernels.at;
	struct lull_work_cursor c;
	struct lull_work w;

	lull_sort(k, s->kernels.n, sizeof(*k), by_time);
	if (s->kernels.n > N_KERNELS)
		s->kernels.n = N_KERNELS;
	for (size_t i = 0; i < s->kernels.n; i++)
		k[i].by_window = lull_alloc(s->windows.all.n, sizeof(f64));
	lull_work_begin(&c, r, LULL_WORK_KERNEL, 0, all);
	while (lull_work_next(&c, &w)) {
		u32 name = name_of(s, &w);

		for (size_t i = 0; i < s->kernels.n; i++)
			if (k[i].name == name)
				k[i].by_window[lull_duty_windows_find(&s->windows, w.start_ns)] +=
					(f64)w.dur_ns;
	}
	lull_work_end(&c);
}

static void put_measured(struct lull_out *out, const char *what, const char *unit, u64 recorded,
			 u64 whole)
{
	lull_out_row(out);
	lull_out_text(out, what);
	lull_out_text(out, unit);
	lull_out_i64(out, (i64)recorded);
	lull_out_i64(out, (i64)whole);
	lull_out_i64(out, 0);
	lull_out_f64(out, 0);
}

static void put(const struct sheet *s, struct lull_out *out, const char *what, const char *unit,
		const f64 *by_window)
{
	struct lull_duty_estimate e = lull_duty_windows_estimate(&s->windows, by_window);
	f64 sum = 0;

	for (size_t i = 0; i < s->windows.all.n; i++)
		sum += by_window[i];
	if (sum <= 0)
		return;
	lull_out_row(out);
	lull_out_text(out, what);
	lull_out_text(out, unit);
	lull_out_i64(out, (i64)llround(sum));
	lull_out_i64(out, (i64)llround(e.value));
	if (isnan(e.error)) {
		lull_out_skip(out);
		lull_out_skip(out);
		return;
	}
	lull_out_i64(out, (i64)llround(e.error));
	lull_out_f64(out, 100 * e.error / e.value);
}

static void put_all(struct sheet *s, struct lull_reader *r, struct lull_out *out)
{
	const struct lull_duty_windows *w = &s->windows;
	const struct kernel *k = s->kernels.at;

	put_measured(out, "windows", "count", w->all.n, w->all.n);
	put_measured(out, "time", "ns", w->recorded_ns, w->elapsed_ns);
	if (w->n_all_steps)
		put_measured(out, "steps", "count", w->n_steps, w->n_all_steps);
	for (int i = 0; i < N_SUMS; i++)
		put(s, out, sums[i].what, sums[i].unit, s->at[i]);
	for (size_t i = 0; i < s->kernels.n; i++)
		put(s, out, lull_reader_string(r, k[i].name, NULL), "ns", k[i].by_window);
}

static void release(struct sheet *s)
{
	struct kernel *k = s->kernels.at;

	for (size_t i = 0; i < s->kernels.n; i++)
		free(k[i].by_window);
	for (int i = 0; i < N_SUMS; i++)
		free(s->at[i]);
	lull_vec_release(&s->kernels);
	lull_map_release(&s->names);
	lull_duty_windows_release(&s->windows);
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	struct lull_span all = LULL_SPAN_ALL;
	struct sheet s = { .names = { 0 } };
	u32 *tracks;

	(void)options;
	(void)err;
	lull_map_init(&s.names);
	lull_vec_init(&s.kernels, sizeof(struct kernel));
	if (lull_duty_windows_read(&s.windows, r)) {
		for (int i = 0; i < N_SUMS; i++)
			s.at[i] = lull_alloc(s.windows.all.n, sizeof(f64));
		s.launches = lull_reader_dim(r, LULL_TABLE_launch, &s.n_launches);
		tracks = lull_busy_devices(r);
		lull_busy_run(r, tracks, all, see_piece, &s);
		free(tracks);
		see_work(&s, r);
		choose_kernels(&s, r);
		put_all(&s, r, out);
	}
	release(&s);
	return LULL_OK;
}

const struct lull_report lull_report_windows = {
	.name = "windows",
	.display = "Windows and the Whole Run",
	.summary = "sums for the whole run, of a recording in windows",
	.help = "What a recording with --duty or --budget says about the whole run: how much of it "
		"was recorded, and sums for all of it, each with how sure it is. A sum is what a "
		"step had on average in the windows, times all steps of the run, which are "
		"counted; of a program without steps, what a second had. The interval comes from "
		"the differences between windows, so it needs two of them. The kernels with most "
		"time have a row each. All other reports and commands show the windows alone, one "
		"after the other.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(window),
	.is_default = true,
	.run = run,
};
