#include "cause/readings.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cause/thresholds.h"

static bool is_same_device(const struct lull_device_row *a, const struct lull_device_row *b)
{
	return a == b || (a->uuid && a->uuid == b->uuid);
}

f64 lull_readings_highest_hz(const struct lull_subject *s)
{
	size_t n;
	const struct lull_device_row *devices = lull_reader_dim(s->reader, LULL_TABLE_device, &n);
	f64 highest_hz = 0;

	for (size_t i = 0; s->device && s->device <= n && i < n; i++)
		if (is_same_device(&devices[i], &devices[s->device - 1]) &&
		    (f64)devices[i].clock_hz > highest_hz)
			highest_hz = (f64)devices[i].clock_hz;
	return highest_hz;
}

/* A reading without a device is of the only one there is. */
static bool is_of_device(const struct lull_subject *s, u32 device,
			 const struct lull_device_row *devices, size_t n)
{
	return !device || device > n || s->device > n ||
	       is_same_device(&devices[device - 1], &devices[s->device - 1]);
}

void lull_readings_walk(const struct lull_subject *s, lull_readings_visit *visit, void *ctx)
{
	size_t n, n_metrics, n_devices;
	const struct lull_metric_row *metrics =
		lull_reader_dim(s->reader, LULL_TABLE_metric, &n_metrics);
	const struct lull_device_row *devices =
		lull_reader_dim(s->reader, LULL_TABLE_device, &n_devices);
	struct lull_counter_cols cols;
	struct lull_cursor c;
	u64 from_ns, to_ns;

	if (!lull_rounds_n_steady(&s->rounds))
		return;
	from_ns = lull_round_begin_ns(&s->rounds, s->rounds.first_steady);
	to_ns = lull_round_end_ns(&s->rounds, (u32)s->rounds.all.n - 1);
	lull_cursor_init(&c, s->reader, LULL_TABLE_counter, from_ns, to_ns);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			const struct lull_metric_row *metric = &metrics[cols.metric[i] - 1];

			if (!cols.metric[i] || cols.start_ns[i] < from_ns ||
			    cols.start_ns[i] >= to_ns ||
			    !is_of_device(s, cols.device[i], devices, n_devices))
				continue;
			visit(ctx, lull_reader_string(s->reader, metric->name, NULL), cols.value[i],
			      strcasestr(lull_reader_string(s->reader, metric->unit, NULL), "mhz")
				      ? 1e6
				      : 1);
		}
	}
	lull_cursor_release(&c);
}

static void add(struct lull_readings *r, enum lull_reading_ix ix, f64 value)
{
	struct lull_reading *at = &r->at[ix];

	at->mean += (value - at->mean) / (f64)++at->n;
	at->most = at->n == 1 || value > at->most ? value : at->most;
}

static void add_reading(void *ctx, const char *name, f64 value, f64 hz)
{
	static const char *const names[LULL_N_READINGS] = {
		[LULL_READING_UTILIZATION] = "utilization",
		[LULL_READING_SM_ACTIVE] = "sm_active",
		[LULL_READING_TENSOR] = "tensor_active",
		[LULL_READING_DRAM] = "dram_active",
		[LULL_READING_POWER] = "power",
		[LULL_READING_POWER_LIMIT] = "power_limit",
		[LULL_READING_MEMORY] = "memory_used",
		[LULL_READING_CLOCK] = "sm_clock",
		[LULL_READING_HELD_POWER] = "throttled_power",
		[LULL_READING_HELD_HEAT] = "throttled_thermal",
	};
	struct lull_readings *r = ctx;

	for (int i = 0; i < LULL_N_READINGS; i++) {
		if (strcasecmp(name, names[i]) != 0)
			continue;
		if (i != LULL_READING_CLOCK)
			add(r, (enum lull_reading_ix)i, value);
		else if (r->highest_hz > 0)
			add(r, LULL_READING_CLOCK, value * hz / r->highest_hz);
	}
}

void lull_readings_init(struct lull_readings *r, const struct lull_subject *s)
{
	memset(r, 0, sizeof(*r));
	r->highest_hz = lull_readings_highest_hz(s);
	lull_readings_walk(s, add_reading, r);
}

/* A few readings are mostly of what was before. */
static bool has(const struct lull_readings *r, enum lull_reading_ix ix)
{
	return (f64)r->at[ix].n >= LULL_T(readings);
}

/* How busy the parts of the device were, as far as that was recorded. */
static void format_active(const struct lull_readings *r, char *to, size_t size)
{
	static const struct {
		enum lull_reading_ix ix;
		const char *words;
	} parts[] = {
		{ LULL_READING_SM_ACTIVE, "multiprocessors active" },
		{ LULL_READING_TENSOR, "tensor cores" },
		{ LULL_READING_DRAM, "memory bandwidth" },
	};
	size_t len = 0;

	for (size_t i = 0; i < LULL_COUNT_OF(parts); i++) {
		if (has(r, parts[i].ix) && len < size)
			len += (size_t)snprintf(to + len, size - len, "%s%s %.0f %%",
						len ? ", " : "", parts[i].words,
						r->at[parts[i].ix].mean);
	}
}

void lull_readings_format(const struct lull_readings *r, char *to, size_t size)
{
	const struct lull_reading *at = r->at;
	char said[64] = "", active[128] = "", power[64] = "";

	*to = '\0';
	if (has(r, LULL_READING_UTILIZATION))
		snprintf(said, sizeof(said), "nvidia-smi says %.0f %%",
			 at[LULL_READING_UTILIZATION].mean);
	format_active(r, active, sizeof(active));
	if (has(r, LULL_READING_POWER) && has(r, LULL_READING_POWER_LIMIT))
		snprintf(power, sizeof(power), "%.0f of %.0f W", at[LULL_READING_POWER].mean,
			 at[LULL_READING_POWER_LIMIT].mean);
	else if (has(r, LULL_READING_POWER))
		snprintf(power, sizeof(power), "%.0f W", at[LULL_READING_POWER].mean);
	/* NVML does not tell the utilisation of a part of a device (MIG), but its power. */
	if (*power && !*said && !*active) {
		snprintf(to, size, "the device draws %s", power);
		return;
	}
	snprintf(to, size, "%s%s%s%s%s", said, *said && (*active || *power) ? "; " : "", active,
		 *active && *power ? ", " : "", power);
}
