/*
 * energy: what the devices drew in a step, in joules.
 *
 * Power is read 10 times a second; between two readings it changes evenly. A step that is shorter
 * than that has the power of the readings around it, so that short steps differ by their length
 * more than by what they do.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "compare/metric.h"
#include "model/device.h"
#include "model/span.h"

struct reading {
	u64 at_ns;
	f64 watts;
};

/* Readings of one device, by time. */
struct meter {
	struct lull_vec readings; /* struct reading */
};

static bool is_power(struct lull_reader *r, const struct lull_metric_row *metric)
{
	return strcmp(lull_reader_string(r, metric->name, NULL), "power") == 0 &&
	       strcmp(lull_reader_string(r, metric->unit, NULL), "W") == 0;
}

static int by_time(const void *a, const void *b)
{
	const struct reading *x = a, *y = b;

	return (x->at_ns > y->at_ns) - (x->at_ns < y->at_ns);
}

/* The meters of all devices, by device row; element 0 is of readings that name none. */
static struct meter *read_meters(struct lull_reader *r, size_t *n_meters)
{
	size_t n, n_metrics;
	const struct lull_metric_row *metrics = lull_reader_dim(r, LULL_TABLE_metric, &n_metrics);
	u32 *device_of = lull_device_rows(r);
	struct meter *meters;
	struct lull_counter_cols cols;
	struct lull_cursor c;

	*n_meters = lull_reader_n_dim(r, LULL_TABLE_device) + 1;
	meters = lull_alloc(*n_meters, sizeof(*meters));
	for (size_t i = 0; i < *n_meters; i++)
		lull_vec_init(&meters[i].readings, sizeof(struct reading));
	lull_cursor_init(&c, r, LULL_TABLE_counter, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0)
		for (size_t i = 0; i < n; i++)
			if (cols.metric[i] && is_power(r, &metrics[cols.metric[i] - 1]))
				*(struct reading *)lull_vec_push(
					&meters[device_of[cols.device[i]]].readings) =
					(struct reading){ cols.start_ns[i], cols.value[i] };
	lull_cursor_release(&c);
	free(device_of);
	for (size_t i = 0; i < *n_meters; i++)
		if (meters[i].readings.n)
			lull_sort(meters[i].readings.at, meters[i].readings.n,
				  sizeof(struct reading), by_time);
	return meters;
}

/* Power at a moment: between the readings around it, or the nearest one. */
static f64 watts_at(const struct lull_vec *readings, u64 at_ns)
{
	const struct reading *at = readings->at;
	size_t next = lull_vec_upper(readings, offsetof(struct reading, at_ns), at_ns);
	f64 part;

	if (!next)
		return at[0].watts;
	if (next == readings->n)
		return at[next - 1].watts;
	part = (f64)(at_ns - at[next - 1].at_ns) / (f64)(at[next].at_ns - at[next - 1].at_ns);
	return at[next - 1].watts + part * (at[next].watts - at[next - 1].watts);
}

/* The area under the line through the readings, in joules. */
static f64 joules(const struct lull_vec *readings, const struct lull_span *span)
{
	const struct reading *at = readings->at;
	size_t i = lull_vec_upper(readings, offsetof(struct reading, at_ns), span->from_ns);
	u64 last_ns = span->from_ns;
	f64 last = watts_at(readings, last_ns), sum = 0;

	for (; i < readings->n && at[i].at_ns < span->to_ns; i++) {
		sum += (last + at[i].watts) / 2 * (f64)(at[i].at_ns - last_ns);
		last_ns = at[i].at_ns;
		last = at[i].watts;
	}
	sum += (last + watts_at(readings, span->to_ns)) / 2 * (f64)(span->to_ns - last_ns);
	return sum / 1e9;
}

static int measure(struct lull_reader *r, const struct lull_vec *windows, const char *arg,
		   f64 *value, struct lull_err *err)
{
	size_t n_meters, n_readings = 0;
	struct meter *meters = read_meters(r, &n_meters);
	const struct lull_span *at = windows->at;

	(void)arg;
	for (size_t k = 0; k < n_meters; k++) {
		/* Others on the machine draw power for somebody else. */
		bool is_used = !k || lull_device_process(r, (u32)k);

		for (size_t i = 0; is_used && meters[k].readings.n && i < windows->n; i++)
			value[i] += joules(&meters[k].readings, &at[i]);
		n_readings += is_used ? meters[k].readings.n : 0;
		lull_vec_release(&meters[k].readings);
	}
	free(meters);
	if (!n_readings)
		return lull_fail(err, LULL_E_NOT_FOUND,
				 "no power was recorded of the devices that the program uses");
	return LULL_OK;
}

const struct lull_metric lull_metric_energy = {
	.name = "energy",
	.summary = "what the devices drew in a step, from their power",
	.kind = LULL_OUT_FLOAT,
	.unit = "J",
	.measure = measure,
};
