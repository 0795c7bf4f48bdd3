/*
 * gpu_metrics: what was measured of devices over time, over all of the run and while they worked.
 *
 * Two walks over the values: one for count, mean and extremes, one that counts values in equal
 * steps between the extremes, from which the percentile follows. So memory does not grow with the
 * run.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/convert.h"
#include "base/mem.h"
#include "base/sort.h"
#include "model/busy.h"
#include "model/device.h"
#include "report/gpu.h"
#include "report/report.h"

static const struct lull_out_column columns[] = {
	{ .name = "Device", .kind = LULL_OUT_TEXT, .doc = "which device" },
	{ .name = "Metric", .kind = LULL_OUT_TEXT, .doc = "what was measured" },
	{ .name = "Unit", .kind = LULL_OUT_TEXT, .doc = "unit of the values" },
	{ .name = "Avg", .kind = LULL_OUT_FLOAT, .decimals = 1, .doc = "mean" },
	{ .name = "Min", .kind = LULL_OUT_FLOAT, .decimals = 1, .doc = "least", .is_spare = true },
	{ .name = "Max", .kind = LULL_OUT_FLOAT, .decimals = 1, .doc = "greatest" },
	{ .name = "P95",
	  .kind = LULL_OUT_FLOAT,
	  .decimals = 1,
	  .doc = "19 of 20 values are at most this, to a 4096th of the range" },
	{ .name = "Busy Avg",
	  .kind = LULL_OUT_FLOAT,
	  .decimals = 1,
	  .doc = "mean of the values taken while the device worked" },
	{ .name = "Samples", .kind = LULL_OUT_INT, .doc = "values", .is_spare = true },
	{ .name = "Busy Samples",
	  .kind = LULL_OUT_INT,
	  .doc = "values taken while the device worked",
	  .is_spare = true },
	{ .name = "Source",
	  .kind = LULL_OUT_TEXT,
	  .doc = "source of the values",
	  .is_spare = true },
};

#define N_STEPS 4096u

/* Pauses shorter than this between kernels do not make a device idle. */
#define PAUSE_NS 100000u

struct series {
	u32 metric, device;
	u64 n, n_busy;
	f64 sum, busy_sum, min, max;
	u32 *steps; /* N_STEPS counts */
};

struct spans {
	struct lull_vec list; /* struct lull_span, by time */
};

struct metrics {
	struct lull_reader *reader;
	const struct lull_report_options *options;
	struct lull_vec series; /* struct series */
	struct spans *busy;	/* by track: the id of a device's first row */
	const u32 *first_rows;	/* of the device with the same uuid, by row id */
	u32 n_devices;
};

static void on_piece(void *ctx, const struct lull_busy_piece *piece)
{
	struct metrics *m = ctx;
	struct lull_vec *list;
	struct lull_span *last;

	if (!piece->running || !piece->track || piece->track > m->n_devices)
		return;
	list = &m->busy[piece->track].list;
	last = list->n ? lull_vec_get(list, list->n - 1) : NULL;
	if (last && piece->span.from_ns <= last->to_ns + PAUSE_NS)
		last->to_ns = piece->span.to_ns;
	else
		*(struct lull_span *)lull_vec_push(list) = piece->span;
}

static bool is_busy(const struct metrics *m, u32 device, u64 time_ns)
{
	const struct lull_vec *list;
	const struct lull_span *spans;
	size_t lo = 0, hi;

	if (!device || device > m->n_devices)
		return false;
	list = &m->busy[m->first_rows[device]].list;
	spans = list->at;
	hi = list->n;
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (spans[mid].to_ns < time_ns)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < list->n && spans[lo].from_ns <= time_ns;
}

static struct series *series_of(struct metrics *m, u32 metric, u32 device)
{
	struct series *all = m->series.at, *s;

	for (size_t i = 0; i < m->series.n; i++)
		if (all[i].metric == metric && all[i].device == device)
			return &all[i];
	s = lull_vec_push(&m->series);
	s->metric = metric;
	s->device = device;
	return s;
}

static void add_value(struct metrics *m, struct series *s, u64 time_ns, f64 value)
{
	if (!s->n || value < s->min)
		s->min = value;
	if (!s->n || value > s->max)
		s->max = value;
	s->n++;
	s->sum += value;
	if (is_busy(m, s->device, time_ns)) {
		s->n_busy++;
		s->busy_sum += value;
	}
}

static void count_value(struct series *s, f64 value)
{
	f64 range = s->max - s->min;
	u64 step = range > 0 ? lull_u64_of((value - s->min) / range * (N_STEPS - 1)) : 0;

	if (!s->steps)
		s->steps = lull_alloc(N_STEPS, sizeof(*s->steps));
	s->steps[step < N_STEPS ? step : N_STEPS - 1]++;
}

static void walk(struct metrics *m, bool is_counting)
{
	struct lull_counter_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, m->reader, LULL_TABLE_counter, m->options->from_ns, m->options->to_ns);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			struct series *s;

			if (!cols.device[i] || !isfinite(cols.value[i]) ||
			    !lull_report_covers(m->options, cols.start_ns[i], 0))
				continue;
			s = series_of(m, cols.metric[i], cols.device[i]);
			if (is_counting)
				count_value(s, cols.value[i]);
			else
				add_value(m, s, cols.start_ns[i], cols.value[i]);
		}
	}
	lull_cursor_release(&c);
}

/* The upper edge of the step in which the value lies that 95 % do not exceed. */
static f64 percentile(const struct series *s)
{
	u64 want = s->n - s->n / 20, seen = 0;
	u32 step = 0;

	for (; step < N_STEPS - 1; step++) {
		seen += s->steps[step];
		if (seen >= want)
			break;
	}
	return s->min + (s->max - s->min) * step / (N_STEPS - 1);
}

static int by_device(const void *a, const void *b)
{
	const struct series *x = a, *y = b;

	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	return (x->metric > y->metric) - (x->metric < y->metric);
}

/* Units that give long numbers are shown in millions; bits have no mean and are left out. */
static const struct {
	const char *unit, *shown;
	f64 divisor;
} units[] = {
	{ "B", "MB", 1e6 },
	{ "B/s", "MB/s", 1e6 },
	{ "Hz", "MHz", 1e6 },
	{ "bits", NULL, 1 },
};

static const char *shown_unit(const char *unit, f64 *divisor)
{
	*divisor = 1;
	for (size_t i = 0; i < LULL_COUNT_OF(units); i++)
		if (strcmp(units[i].unit, unit) == 0) {
			*divisor = units[i].divisor;
			return units[i].shown;
		}
	return unit;
}

static void put_series(struct metrics *m, struct lull_out *out, const struct series *s)
{
	size_t n;
	const struct lull_metric_row *rows = lull_reader_dim(m->reader, LULL_TABLE_metric, &n);
	const struct lull_metric_row *row =
		s->metric && s->metric <= n ? &rows[s->metric - 1] : NULL;
	const char *unit = row && row->unit ? lull_reader_string(m->reader, row->unit, NULL) : "";
	struct lull_str device = LULL_STR_INIT;
	f64 divisor;

	unit = shown_unit(unit, &divisor);
	if (!unit)
		return;
	lull_gpu_device_name(&device, m->reader, s->device);
	lull_out_row(out);
	lull_out_text(out, lull_str_text(&device));
	lull_out_text(out, row ? lull_reader_string(m->reader, row->name, NULL) : NULL);
	lull_out_text(out, unit);
	lull_out_f64(out, s->sum / (f64)s->n / divisor);
	lull_out_f64(out, s->min / divisor);
	lull_out_f64(out, s->max / divisor);
	lull_out_f64(out, percentile(s) / divisor);
	if (s->n_busy)
		lull_out_f64(out, s->busy_sum / (f64)s->n_busy / divisor);
	else
		lull_out_skip(out);
	lull_out_i64(out, (i64)s->n);
	lull_out_i64(out, (i64)s->n_busy);
	lull_out_text(out, row ? lull_reader_string(m->reader, row->source, NULL) : NULL);
	lull_str_release(&device);
}

static void release(struct metrics *m)
{
	struct series *s = m->series.at;

	for (size_t i = 0; i < m->series.n; i++)
		free(s[i].steps);
	for (u32 i = 0; i <= m->n_devices; i++)
		lull_vec_release(&m->busy[i].list);
	lull_vec_release(&m->series);
	free(m->busy);
	free((void *)m->first_rows);
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	struct metrics m = { .reader = r, .options = options };
	const struct series *s;
	u32 *tracks;

	(void)err;
	m.n_devices = lull_reader_n_dim(r, LULL_TABLE_device);
	m.first_rows = lull_device_rows(r);
	m.busy = lull_alloc(m.n_devices + 1, sizeof(*m.busy));
	for (u32 i = 0; i <= m.n_devices; i++)
		lull_vec_init(&m.busy[i].list, sizeof(struct lull_span));
	lull_vec_init(&m.series, sizeof(struct series));
	tracks = lull_busy_devices(r);
	lull_busy_run(r, tracks, lull_report_window(options), on_piece, &m);
	free(tracks);
	walk(&m, false);
	walk(&m, true);
	if (m.series.n)
		lull_sort(m.series.at, m.series.n, sizeof(struct series), by_device);
	s = m.series.at;
	for (size_t i = 0; i < m.series.n; i++)
		put_series(&m, out, &s[i]);
	release(&m);
	return LULL_OK;
}

const struct lull_report lull_report_gpu_metrics = {
	.name = "gpu_metrics",
	.display = "GPU Metrics",
	.summary = "power, clocks, memory and counters of devices",
	.help = "Measured values of each device: from NVML (power, clocks, temperature, memory, "
		"throttling), from GPM and from sampled counters. Busy Avg uses only values "
		"taken while the recorded programs had work on the device (pauses under 100 us "
		"count as work): a device that is 100 % utilised at a fraction of its power is "
		"mostly waiting. Throttled shares above 0 mean that clocks were reduced.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(counter),
	.is_default = true,
	.run = run,
};
