#include "timeline/curve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/device.h"
#include "model/runsort.h"
#include "base/str.h"

#define MAX_POINTS    32768u
#define MEMORY_DEVICE 3u /* cuda_memory.memory_kind */

struct curves {
	struct lull_timeline *t;
	struct lull_tl_rows *rows;
	struct lull_map known; /* key to curve + 1 */
};

void lull_curve_release(struct lull_curve *curve)
{
	free(curve->name);
	free(curve->unit);
	lull_vec_release(&curve->points);
}

static void join(struct lull_point *to, const struct lull_point *from)
{
	to->min = from->min < to->min ? from->min : to->min;
	to->max = from->max > to->max ? from->max : to->max;
	to->last = from->last;
}

static void halve(struct lull_curve *curve)
{
	struct lull_point *p = curve->points.at;
	size_t n = curve->points.n / 2;

	for (size_t i = 0; i < n; i++) {
		p[i] = p[2 * i];
		join(&p[i], &p[2 * i + 1]);
	}
	curve->step_ns = n > 1 ? (p[n - 1].at_ns - p[0].at_ns) / n : 0;
	curve->points.n = n;
}

void lull_curve_add(struct lull_curve *curve, u64 at_ns, f64 value)
{
	struct lull_point point = { at_ns, value, value, value }, *last = NULL;

	if (curve->points.n)
		last = lull_vec_get(&curve->points, curve->points.n - 1);
	if (last && (at_ns <= last->at_ns || at_ns - last->at_ns < curve->step_ns)) {
		join(last, &point);
		return;
	}
	lull_vec_add(&curve->points, &point, 1);
	if (curve->points.n == MAX_POINTS)
		halve(curve);
}

f64 lull_curve_max(const struct lull_curve *curve)
{
	const struct lull_point *points = curve->points.at;
	f64 max = 0;

	for (size_t i = 0; i < curve->points.n; i++)
		max = points[i].max > max ? points[i].max : max;
	return max;
}

/* The largest value of the curve of this name beside `curve`, 0 if there is none. */
static f64 max_beside(const struct lull_timeline *t, const struct lull_curve *curve,
		      const char *name)
{
	const struct lull_curve *all = t->curves.at;
	u32 parent = lull_timeline_row(t, curve->row)->parent;

	for (size_t i = 0; i < t->curves.n; i++)
		if (!strcmp(all[i].name, name) &&
		    lull_timeline_row(t, all[i].row)->parent == parent)
			return lull_curve_max(&all[i]);
	return 0;
}

/* What the device of a curve can do at most: memory or clock; 0 if that is not known. */
static f64 most_of_device(const struct lull_timeline *t, const struct lull_curve *curve)
{
	u32 parent = lull_timeline_row(t, curve->row)->parent;
	struct lull_device_row device;

	if (parent == LULL_NO_ROW ||
	    strcmp(lull_timeline_row(t, parent)->kind, LULL_ROW_DEVICE) != 0)
		return 0;
	device = lull_device_joined(t->reader, lull_timeline_row(t, parent)->id);
	if (!strcmp(curve->unit, "B"))
		return (f64)device.memory_bytes;
	return strcmp(curve->name, "sm_clock") ? 0 : (f64)device.clock_hz / 1e6;
}

f64 lull_curve_top(const struct lull_timeline *t, const struct lull_curve *curve)
{
	f64 max = lull_curve_max(curve), top;

	if (!strcmp(curve->unit, "%") || !strcmp(curve->unit, "C"))
		top = 100 * ceil(max / 100 > 1 ? max / 100 : 1);
	else if (!strcmp(curve->name, "power"))
		top = max_beside(t, curve, "power_limit");
	else
		top = most_of_device(t, curve);
	return top > max ? top : max;
}

#define OF_PROCESS 0x40000000u /* in what a curve shows: of one process of several */

/* What distinguishes curves: where they belong, and what they show. */
struct which {
	u32 parent; /* row */
	u32 what;
	const char *key, *title, *unit;
};

static struct lull_curve *curve_of(struct curves *c, const struct which *which)
{
	u64 id = (u64)which->what << 32 | which->parent;
	u32 *known = lull_map_add(&c->known, id, NULL);
	struct lull_str key = LULL_STR_INIT;
	struct lull_curve *curve;
	u32 row;

	if (*known)
		return lull_vec_get(&c->t->curves, *known - 1);
	row = lull_tl_rows_add(c->rows, LULL_ROW_CURVE, which->parent, 1ULL << 50 | which->what);
	curve = lull_vec_push(&c->t->curves);
	*known = (u32)c->t->curves.n;
	*curve = (struct lull_curve){ .row = row,
				      .name = lull_strdup(which->title),
				      .unit = lull_strdup(which->unit) };
	lull_vec_init(&curve->points, sizeof(struct lull_point));
	if (which->parent != LULL_NO_ROW)
		lull_str_addf(&key, "%s/", lull_timeline_row(c->t, which->parent)->key);
	lull_str_puts(&key, which->key);
	lull_timeline_row(c->t, row)->key = key.at;
	lull_timeline_row(c->t, row)->title = lull_strdup(which->title);
	/* A row with a source is a leaf for the sorter; curves have none and no children. */
	return curve;
}

/*
 * What a thread says of something that others change, too. A table is sorted thread by thread, so
 * these are sorted before they become points of a curve.
 */
struct sample {
	u64 at_ns;
	u64 curve; /* index */
	f64 value;
};

static void add_sample(struct curves *c, struct lull_vec *samples, const struct which *which,
		       u64 at_ns, f64 value)
{
	const struct lull_curve *curve = curve_of(c, which), *all = c->t->curves.at;
	struct sample sample = { at_ns, (u64)(curve - all), value };

	lull_vec_add(samples, &sample, 1);
}

/* Add them to their curves: values, or changes of a sum. */
static void add_sorted(struct curves *c, struct lull_vec *samples, bool are_changes)
{
	const struct sample *s = samples->at;

	lull_runsort(samples->at, samples->n, sizeof(*s));
	for (size_t i = 0; i < samples->n; i++) {
		struct lull_curve *curve = lull_vec_get(&c->t->curves, s[i].curve);
		const struct lull_point *points = curve->points.at;
		f64 value = s[i].value;

		if (are_changes && curve->points.n)
			value += points[curve->points.n - 1].last;
		/* Less than nothing: it was allocated before the recording began. */
		lull_curve_add(curve, s[i].at_ns, value < 0 ? 0 : value);
	}
	lull_vec_release(samples);
}

static void add_usage(struct curves *c)
{
	struct lull_cursor cursor;
	struct lull_usage_cols cols;
	size_t n, n_processes;
	struct point {
		u64 at_ns, cpu_ns;
	} * before;

	lull_reader_dim(c->t->reader, LULL_TABLE_process, &n_processes);
	before = lull_alloc(n_processes + 1, sizeof(*before));
	lull_cursor_init(&cursor, c->t->reader, LULL_TABLE_usage, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&cursor, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			u32 row = lull_tl_rows_process(c->rows, cols.process[i]);
			struct which rss = { row, 1, "rss", "Memory", "B" };
			struct which cpu = { row, 2, "cpu", "CPU use", "%" };
			struct point *p = &before[cols.process[i]];
			u64 cpu_ns = cols.user_ns[i] + cols.system_ns[i];

			lull_curve_add(curve_of(c, &rss), cols.start_ns[i], (f64)cols.rss_bytes[i]);
			if (p->at_ns && cols.start_ns[i] > p->at_ns && cpu_ns >= p->cpu_ns)
				lull_curve_add(curve_of(c, &cpu), cols.start_ns[i],
					       100.0 * (f64)(cpu_ns - p->cpu_ns) /
						       (f64)(cols.start_ns[i] - p->at_ns));
			*p = (struct point){ cols.start_ns[i], cpu_ns };
		}
	}
	lull_cursor_release(&cursor);
	free(before);
}

static void add_counters(struct curves *c)
{
	struct lull_cursor cursor;
	struct lull_counter_cols cols;
	size_t n, n_metrics;
	const struct lull_metric_row *metrics =
		lull_reader_dim(c->t->reader, LULL_TABLE_metric, &n_metrics);

	lull_cursor_init(&cursor, c->t->reader, LULL_TABLE_counter, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&cursor, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			struct which which = { LULL_NO_ROW, 16 + cols.metric[i], "", "", "" };

			if (!cols.metric[i])
				continue;
			if (cols.device[i])
				which.parent = lull_tl_rows_device(c->rows, cols.device[i]);
			else if (cols.process[i])
				which.parent = lull_tl_rows_process(c->rows, cols.process[i]);
			which.title = which.key = lull_reader_string(
				c->t->reader, metrics[cols.metric[i] - 1].name, NULL);
			which.unit = lull_reader_string(c->t->reader,
							metrics[cols.metric[i] - 1].unit, NULL);
			lull_curve_add(curve_of(c, &which), cols.start_ns[i], cols.value[i]);
		}
	}
	lull_cursor_release(&cursor);
}

/* What the driver's allocations of a device sum up to. */
static void add_device_memory(struct curves *c)
{
	struct lull_cursor cursor;
	struct lull_cuda_memory_cols cols;
	struct lull_vec changes;
	size_t n;

	lull_vec_init(&changes, sizeof(struct sample));
	lull_cursor_init(&cursor, c->t->reader, LULL_TABLE_cuda_memory, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&cursor, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			struct which which = { LULL_NO_ROW, 3, "memory", "Device memory", "B" };
			f64 size_bytes = (f64)cols.size_bytes[i];

			if (cols.memory_kind[i] != MEMORY_DEVICE || !cols.device[i])
				continue;
			which.parent = lull_tl_rows_device(c->rows, cols.device[i]);
			add_sample(c, &changes, &which, cols.start_ns[i],
				   cols.operation[i] == 2 ? -size_bytes : size_bytes);
		}
	}
	lull_cursor_release(&cursor);
	add_sorted(c, &changes, true);
}

/* The device row of the process of a lane with this number, 0 if there is none; whose it is. */
static u32 device_by_id(struct curves *c, u32 lane, u32 device_id, u32 *owner)
{
	size_t n, n_lanes;
	const struct lull_device_row *devices =
		lull_reader_dim(c->t->reader, LULL_TABLE_device, &n);
	const struct lull_lane_row *lanes =
		lull_reader_dim(c->t->reader, LULL_TABLE_lane, &n_lanes);
	u32 process = lane ? lanes[lane - 1].process : 0, any = 0;

	*owner = process;
	for (u32 id = 1; id <= n; id++) {
		if (devices[id - 1].device_id != device_id)
			continue;
		if (devices[id - 1].process == process)
			return id;
		any = any ? any : id;
	}
	return any;
}

/* One of the two curves of a process' allocator on a device. */
struct held {
	struct which which;
	u32 process;
	u64 at_ns, size_bytes;
};

/*
 * Each process has an allocator: on a device of several, all but the first have curves of their
 * own.
 */
static void add_held(struct curves *c, struct lull_vec *samples, struct held held)
{
	struct lull_str key = LULL_STR_INIT, title = LULL_STR_INIT;
	struct which which = held.which;
	size_t n;
	const struct lull_process_row *all = lull_reader_dim(c->t->reader, LULL_TABLE_process, &n);
	u32 process = held.process, device = lull_timeline_row(c->t, which.parent)->id;

	if (process && process <= n && process != lull_device_process(c->t->reader, device)) {
		lull_str_addf(&key, "p%u/%s", process, which.key);
		lull_str_addf(&title, "%s by %u", which.title, all[process - 1].pid);
		which.what = OF_PROCESS | process * 16 | which.what;
		which.key = lull_str_text(&key);
		which.title = lull_str_text(&title);
	}
	add_sample(c, samples, &which, held.at_ns, (f64)held.size_bytes);
	lull_str_release(&key);
	lull_str_release(&title);
}

/* What the framework's own allocator holds. */
static void add_allocator(struct curves *c)
{
	struct lull_cursor cursor;
	struct lull_alloc_cols cols;
	struct lull_vec samples;
	size_t n;

	lull_vec_init(&samples, sizeof(struct sample));
	lull_cursor_init(&cursor, c->t->reader, LULL_TABLE_alloc, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&cursor, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			u32 process,
				device = device_by_id(c, cols.lane[i], cols.device_id[i], &process);
			struct held used = { { LULL_NO_ROW, 4, "allocated", "Memory in use", "B" },
					     process,
					     cols.start_ns[i],
					     cols.allocated_bytes[i] };
			struct held held = { { LULL_NO_ROW, 5, "reserved", "Memory reserved", "B" },
					     process,
					     cols.start_ns[i],
					     cols.reserved_bytes[i] };

			if (cols.device_kind[i] != 1 || !device)
				continue;
			used.which.parent = lull_tl_rows_device(c->rows, device);
			held.which.parent = used.which.parent;
			add_held(c, &samples, used);
			add_held(c, &samples, held);
		}
	}
	lull_cursor_release(&cursor);
	add_sorted(c, &samples, false);
}

void lull_curves_build(struct lull_timeline *t, struct lull_tl_rows *rows)
{
	struct curves c = { .t = t, .rows = rows };

	lull_map_init(&c.known);
	add_usage(&c);
	add_counters(&c);
	add_device_memory(&c);
	add_allocator(&c);
	lull_map_release(&c.known);
}
