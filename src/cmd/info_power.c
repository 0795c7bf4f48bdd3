/*
 * info_power - the power that devices drew, and their limit.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cmd/info.h"
#include "model/device.h"

/* NVML alone gives 600,000 values an hour for eight devices; with more, info would not be quick. */
#define MAX_ROWS 2000000u

struct sums {
	const u32 *rows; /* the row that stands for a device, by row */
	size_t n_devices;
	const u8 *is_power; /* by row of `metric`: 1 power, 2 its limit */
	size_t n_metrics;
	struct lull_info_power *power;
	u64 *n; /* values of power, by device */
};

static u8 *find_metrics(struct lull_reader *r, size_t *n)
{
	const struct lull_metric_row *metrics = lull_reader_dim(r, LULL_TABLE_metric, n);
	u8 *is_power = lull_alloc(*n + 1, 1);

	for (size_t i = 0; i < *n; i++) {
		const char *name = lull_reader_string(r, metrics[i].name, NULL);

		is_power[i + 1] = strcmp(name, "power") == 0	     ? 1
				  : strcmp(name, "power_limit") == 0 ? 2
								     : 0;
	}
	return is_power;
}

static void add(struct sums *s, u32 metric, u32 device, f64 value)
{
	struct lull_info_power *to;

	if (!metric || metric > s->n_metrics || !device || device > s->n_devices)
		return;
	device = s->rows[device];
	to = &s->power[device];
	if (s->is_power[metric] == 1)
		to->mean_w += (value - to->mean_w) / (f64)++s->n[device];
	else if (s->is_power[metric] == 2)
		to->limit_w = value; /* the last: it may be changed while the program runs */
}

struct lull_info_power *lull_info_powers(struct lull_reader *r, const u32 *rows)
{
	struct sums s = { .rows = rows };
	struct lull_counter_cols cols;
	struct lull_cursor c;
	u8 *is_power;
	size_t n;

	lull_reader_dim(r, LULL_TABLE_device, &s.n_devices);
	s.power = lull_alloc(s.n_devices + 1, sizeof(*s.power));
	if (lull_reader_stats(r, LULL_TABLE_counter).n_rows > MAX_ROWS)
		return s.power;
	s.is_power = is_power = find_metrics(r, &s.n_metrics);
	s.n = lull_alloc(s.n_devices + 1, sizeof(*s.n));
	lull_cursor_init(&c, r, LULL_TABLE_counter, 0, UINT64_MAX);
	lull_cursor_want(&c, "metric");
	lull_cursor_want(&c, "device");
	lull_cursor_want(&c, "value");
	while ((n = lull_cursor_next(&c, &cols)) > 0)
		for (size_t i = 0; i < n; i++)
			add(&s, cols.metric[i], cols.device[i], cols.value[i]);
	lull_cursor_release(&c);
	free(is_power);
	free(s.n);
	return s.power;
}

void lull_info_power_format(const struct lull_info_power *p, char *text, size_t cap_bytes)
{
	*text = '\0';
	if (p->mean_w > 0 && p->limit_w > 0)
		snprintf(text, cap_bytes, "%.0f of %.0f W", p->mean_w, p->limit_w);
	else if (p->mean_w > 0)
		snprintf(text, cap_bytes, "%.0f W", p->mean_w);
}
