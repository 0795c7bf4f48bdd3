/*
 * step_use: what a step costs and uses: energy, and the tensor cores.
 *
 * Power is sampled a few times a second and steps may be shorter, so the energy of all steady steps
 * is summed and divided by their number.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "model/device.h"
#include "report/lanes.h"
#include "report/process_rounds.h"
#include "report/report.h"
#include "report/step_kernels.h"

static const struct lull_out_column columns[] = {
	{ .name = "Steps", .kind = LULL_OUT_INT, .doc = "steady steps" },
	{ .name = "Step Avg",
	  .kind = LULL_OUT_NS,
	  .decimals = 1,
	  .doc = "mean time of a step, on the device as `lull why` counts" },
	{ .name = "Kernel Time",
	  .kind = LULL_OUT_NS,
	  .decimals = 1,
	  .doc = "sum of the kernels of a step, on average" },
	{ .name = "Tensor Time",
	  .kind = LULL_OUT_NS,
	  .decimals = 1,
	  .doc = "of that, kernels on tensor cores, by their names" },
	{ .name = "Tensor", .kind = LULL_OUT_PERCENT, .doc = "the same as a share of Kernel Time" },
	{ .name = "Other Products",
	  .kind = LULL_OUT_PERCENT,
	  .doc = "share of other matrix products, convolutions and attention: without tensor "
		 "cores, "
		 "or their names do not say" },
	LULL_LANES_COLUMNS,
	{ .name = "Power",
	  .kind = LULL_OUT_FLOAT,
	  .unit = "W",
	  .decimals = 1,
	  .doc = "mean power of the device in these steps" },
	{ .name = "Energy",
	  .kind = LULL_OUT_FLOAT,
	  .unit = "J",
	  .decimals = 3,
	  .doc = "energy of the device for a step" },
};

/* Those that are there only if power was sampled. */
#define N_POWER_COLUMNS 2

struct use {
	struct lull_reader *reader;
	struct lull_out *out;
	const struct lull_report_options *options;
	struct lull_tensor_names tensor;
	bool has_power;
};

/* ---- power ---- */

struct sample {
	u64 at_ns;
	f64 watts;
};

static int by_time(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;

	return (x->at_ns > y->at_ns) - (x->at_ns < y->at_ns);
}

/* One byte for each metric: whether it is the power drawn. */
static u8 *power_metrics(struct lull_reader *r)
{
	size_t n;
	const struct lull_metric_row *rows = lull_reader_dim(r, LULL_TABLE_metric, &n);
	u8 *is_power = lull_alloc(n + 1, sizeof(*is_power));

	for (size_t i = 0; i < n; i++)
		is_power[i + 1] = !strcmp(lull_reader_string(r, rows[i].name, NULL), "power") &&
				  !strcmp(lull_reader_string(r, rows[i].unit, NULL), "W");
	return is_power;
}

static void read_power(struct lull_vec *samples, struct lull_reader *r, u32 track)
{
	u32 *rows = lull_device_rows(r), n_devices = lull_reader_n_dim(r, LULL_TABLE_device);
	u8 *is_power = power_metrics(r);
	struct lull_counter_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, r, LULL_TABLE_counter, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			if (is_power[cols.metric[i]] && cols.device[i] <= n_devices &&
			    rows[cols.device[i]] == track && isfinite(cols.value[i]))
				*(struct sample *)lull_vec_push(samples) =
					(struct sample){ cols.start_ns[i], cols.value[i] };
		}
	}
	lull_cursor_release(&c);
	if (samples->n)
		lull_sort(samples->at, samples->n, sizeof(struct sample), by_time);
	free(is_power);
	free(rows);
}

/* The power at a moment: between two samples a straight line, before and after them the nearest. */
static f64 power_at(const struct sample *s, size_t n, u64 at_ns)
{
	size_t i = 0;

	while (i < n && s[i].at_ns < at_ns)
		i++;
	if (!i || i == n)
		return s[i ? n - 1 : 0].watts;
	return s[i - 1].watts + (s[i].watts - s[i - 1].watts) * (f64)(at_ns - s[i - 1].at_ns) /
					(f64)(s[i].at_ns - s[i - 1].at_ns);
}

/* The energy of a span in joules, by trapezoids between the samples. */
static f64 energy_of(const struct sample *s, size_t n, struct lull_span span)
{
	f64 sum = 0, watts = power_at(s, n, span.from_ns);
	u64 at_ns = span.from_ns;

	for (size_t i = 0; i <= n; i++) {
		u64 next_ns = i < n && s[i].at_ns < span.to_ns ? s[i].at_ns : span.to_ns;
		f64 next_watts;

		if (next_ns <= at_ns)
			continue;
		next_watts = power_at(s, n, next_ns);
		sum += (watts + next_watts) / 2 * (f64)(next_ns - at_ns) / 1e9;
		at_ns = next_ns;
		watts = next_watts;
	}
	return sum;
}

/* ---- rows ---- */

static void put_kernels(struct use *s, const struct lull_step_kernels *k)
{
	f64 kernel_ns = (f64)k->kernel_ns, n = k->n_steps;

	lull_out_f64(s->out, kernel_ns / n);
	lull_out_f64(s->out, (f64)k->tensor_ns / n);
	lull_out_f64(s->out, 100 * (f64)k->tensor_ns / kernel_ns);
	lull_out_f64(s->out, 100 * (f64)k->other_ns / kernel_ns);
}

static void put_power(struct use *s, const struct lull_process_rounds *p, struct lull_span span,
		      u32 n)
{
	struct lull_vec samples;

	lull_vec_init(&samples, sizeof(struct sample));
	read_power(&samples, s->reader, p->track);
	if (samples.n && span.to_ns > span.from_ns) {
		f64 joules = energy_of(samples.at, samples.n, span);

		lull_out_f64(s->out, joules * 1e9 / (f64)(span.to_ns - span.from_ns));
		lull_out_f64(s->out, joules / n);
	}
	lull_vec_release(&samples);
}

static void put_process(void *ctx, const struct lull_process_rounds *p)
{
	struct use *s = ctx;
	struct lull_step_kernels k;

	if (!lull_step_kernels_of(&k, p, s->options, &s->tensor))
		return;
	lull_out_row(s->out);
	lull_out_i64(s->out, k.n_steps);
	lull_out_f64(s->out, (f64)(k.span.to_ns - k.span.from_ns) / k.n_steps);
	put_kernels(s, &k);
	lull_lanes_put(s->out, s->reader, p->lane);
	if (s->has_power)
		put_power(s, p, k.span, k.n_steps);
}

static bool has_power(struct lull_reader *r)
{
	u8 *is_power = power_metrics(r);
	u32 n = lull_reader_n_dim(r, LULL_TABLE_metric);
	bool has = false;

	for (u32 i = 1; i <= n; i++)
		has |= is_power[i];
	free(is_power);
	return has && lull_reader_stats(r, LULL_TABLE_counter).n_rows;
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	struct use s = { .reader = r, .out = out, .options = options };

	(void)err;
	s.has_power = has_power(r);
	lull_tensor_names_init(&s.tensor, r);
	if (!s.has_power)
		lull_out_drop_last(out, N_POWER_COLUMNS);
	lull_process_rounds_each(r, false, put_process, &s);
	lull_tensor_names_release(&s.tensor);
	return LULL_OK;
}

const struct lull_report lull_report_step_use = {
	.name = "step_use",
	.display = "Energy and Tensor Cores of a Step",
	.summary = "energy of a step, and how much of its kernels' time is on tensor cores",
	.help = "For the steady steps of each process (those of `lull why`, without warm-up), on "
		"the "
		"device where it has most work: how long the kernels of a step take, and the share "
		"of those that run on tensor cores, as their names say. A high share of `Other "
		"Products` means matrix products that could use them in another precision. If the "
		"power of the device was sampled (--gpu-metrics=nvml), the last columns are its "
		"mean power in these steps and the energy of one: the sum over all of them divided "
		"by their number, since a step may be shorter than the time between two samples. "
		"It includes what the device draws when idle.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.n_optional = N_POWER_COLUMNS,
	.needs_any = LULL_NEED(kernel),
	.empty = LULL_STEPS_NONE,
	.run = run,
};
