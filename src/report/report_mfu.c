/*
 * mfu: what a step computes, as a share of what the device could compute in that time.
 *
 * FLOPs follow from the shapes of operators (model/op_math.h). An operator that calls another for
 * its work has the same FLOPs again, so those count that have no product inside: their types are
 * also the ones that are multiplied, after autocast.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/busy.h"
#include "model/device.h"
#include "model/op_math.h"
#include "model/ops.h"
#include "report/lanes.h"
#include "report/peak.h"
#include "report/report.h"
#include "report/step_kernels.h"

static const struct lull_out_column columns[] = {
	{ .name = "MFU",
	  .kind = LULL_OUT_PERCENT,
	  .doc = "share of the peak over the whole step; empty if the peak is not known" },
	{ .name = "In Products",
	  .kind = LULL_OUT_PERCENT,
	  .doc = "the same over the time in which kernels of products run" },
	{ .name = "Step Avg",
	  .kind = LULL_OUT_NS,
	  .decimals = 1,
	  .doc = "mean time of a step, on the device as `lull why` counts" },
	{ .name = "FLOPs",
	  .kind = LULL_OUT_FLOAT,
	  .unit = "GFLOP",
	  .decimals = 3,
	  .doc = "products, convolutions and attention of a step" },
	{ .name = "Rate",
	  .kind = LULL_OUT_FLOAT,
	  .unit = "TFLOP/s",
	  .decimals = 2,
	  .doc = "FLOPs by Step Avg" },
	{ .name = "Peak",
	  .kind = LULL_OUT_FLOAT,
	  .unit = "TFLOP/s",
	  .decimals = 1,
	  .doc = "what the devices of the process can do in these precisions, weighted by their "
		 "FLOPs" },
	{ .name = "Precision", .kind = LULL_OUT_TEXT, .doc = "of most FLOPs" },
	{ .name = "Steps", .kind = LULL_OUT_INT, .doc = "steady steps" },
	LULL_LANES_COLUMNS,
	{ .name = "Device", .kind = LULL_OUT_TEXT, .is_spare = true, .doc = "its model" },
};

struct mfu {
	struct lull_reader *reader;
	struct lull_out *out;
	const struct lull_report_options *options;
	struct lull_tensor_names tensor;
	struct lull_ops tree;
	f64 *flops; /* of each node of the tree that counts; else 0 */
	f64 peak;   /* as the user says it, operations a second; 0: by the device's name */
};

/* ---- operators ---- */

/* Additions and multiplications of single elements are not what a model is said to compute. */
static f64 flops_of(struct mfu *m, const struct lull_op_label_row *label)
{
	const char *name = lull_reader_string(m->reader, label->name, NULL);
	const char *shapes = lull_reader_string(m->reader, label->shapes, NULL);
	char *copy;
	f64 flops;

	if (!*shapes || !strcmp(name, "aten::add") || !strcmp(name, "aten::mul"))
		return 0;
	copy = lull_strdup(shapes);
	flops = lull_op_flops(name, copy, lull_reader_string(m->reader, label->inputs, NULL));
	free(copy);
	return flops;
}

/* By label, at its id; 0 for 0. */
static f64 *flops_of_labels(struct mfu *m)
{
	size_t n;
	const struct lull_op_label_row *labels =
		lull_reader_dim(m->reader, LULL_TABLE_op_label, &n);
	f64 *flops = lull_alloc(n + 1, sizeof(*flops));

	for (size_t i = 0; i < n; i++)
		flops[i + 1] = flops_of(m, &labels[i]);
	return flops;
}

/* Inner ones come after those around them. What ran on the CPU does not count. */
static void choose_nodes(struct mfu *m)
{
	const struct lull_op_node *nodes = m->tree.nodes.at;
	size_t n = m->tree.nodes.n;
	u8 *has_inner = lull_alloc(n + 1, sizeof(*has_inner));
	f64 *by_label = flops_of_labels(m);

	m->flops = lull_alloc(n + 1, sizeof(*m->flops));
	for (size_t i = n; i-- > 0;) {
		f64 flops = nodes[i].kind == LULL_OP_OPERATOR ? by_label[nodes[i].label] : 0;

		if (!has_inner[i + 1] && flops > 0 && nodes[i].device_all_ns)
			m->flops[i] = flops;
		if (has_inner[i + 1] || m->flops[i] > 0)
			has_inner[nodes[i].parent] = 1;
	}
	free(by_label);
	free(has_inner);
}

/* ---- steps ---- */

struct sums {
	f64 of[LULL_N_PRECISIONS + 1]; /* the last: precision not known */
	f64 all;
};

/* What the process computes in the steps. float32 is tf32 if tensor cores do most products. */
static void sum_steps(struct mfu *m, const struct lull_process_rounds *p,
		      const struct lull_step_kernels *k, struct sums *sums)
{
	const struct lull_op_node *nodes = m->tree.nodes.at;
	size_t n;
	const struct lull_lane_row *lanes = lull_reader_dim(m->reader, LULL_TABLE_lane, &n);
	const struct lull_op_label_row *labels =
		lull_reader_dim(m->reader, LULL_TABLE_op_label, &n);

	for (size_t i = 0; i < m->tree.nodes.n; i++) {
		enum lull_precision precision;

		if (m->flops[i] <= 0 || !nodes[i].lane || nodes[i].start_ns < k->host.from_ns ||
		    nodes[i].start_ns >= k->host.to_ns ||
		    lanes[nodes[i].lane - 1].process != p->process)
			continue;
		precision = lull_precision_of(
			lull_reader_string(m->reader, labels[nodes[i].label - 1].types, NULL));
		if (precision == LULL_PRECISION_FP32 && k->tensor_ns > k->other_ns)
			precision = LULL_PRECISION_TF32;
		sums->of[precision] += m->flops[i];
		sums->all += m->flops[i];
	}
}

/* How long the device takes for it at its peak, in seconds; 0 if that is not known. */
static f64 least_seconds(const struct mfu *m, const struct sums *sums, const char *device)
{
	f64 seconds = 0;

	if (m->peak > 0)
		return sums->all / m->peak;
	for (int i = 0; i <= LULL_N_PRECISIONS; i++) {
		f64 peak =
			i < LULL_N_PRECISIONS ? lull_peak_flops(device, (enum lull_precision)i) : 0;

		if (sums->of[i] > 0 && peak <= 0)
			return 0;
		if (sums->of[i] > 0)
			seconds += sums->of[i] / peak;
	}
	return seconds;
}

static const char *main_precision(const struct sums *sums)
{
	int best = 0;

	for (int i = 1; i < LULL_N_PRECISIONS; i++)
		if (sums->of[i] > sums->of[best])
			best = i;
	return sums->of[best] > 0 ? lull_precision_names[best] : "";
}

/* A model may be spread over several: their peaks add up. */
static u32 n_devices_of(struct lull_reader *r, u32 process)
{
	u32 *tracks = lull_busy_devices(r), n = 0;
	struct lull_vec pairs;
	const struct lull_unit_pair *pair;

	lull_vec_init(&pairs, sizeof(struct lull_unit_pair));
	lull_units_pairs(&pairs, r, tracks);
	pair = pairs.at;
	for (size_t i = 0; i < pairs.n; i++)
		n += pair[i].process == process;
	lull_vec_release(&pairs);
	free(tracks);
	return n ? n : 1;
}

static void put_process(void *ctx, const struct lull_process_rounds *p)
{
	struct mfu *m = ctx;
	u32 n_devices = n_devices_of(m->reader, p->process);
	struct lull_step_kernels k;
	struct sums sums = { 0 };
	struct lull_device_row device = lull_device_joined(m->reader, p->track);
	const char *name = lull_reader_string(m->reader, device.name, NULL);
	f64 step_s, least_s, products_s;

	if (!lull_step_kernels_of(&k, p, m->options, &m->tensor))
		return;
	sum_steps(m, p, &k, &sums);
	if (sums.all <= 0 || k.span.to_ns <= k.span.from_ns)
		return;
	step_s = (f64)(k.span.to_ns - k.span.from_ns) / 1e9;
	products_s = (f64)(k.tensor_ns + k.other_ns) / 1e9;
	least_s = least_seconds(m, &sums, name) / n_devices;
	lull_out_row(m->out);
	lull_out_f64(m->out, least_s > 0 ? 100 * least_s / step_s : NAN);
	/* Kernels are counted on one device. */
	lull_out_f64(m->out, least_s > 0 && products_s > 0 && n_devices == 1
				     ? 100 * least_s / products_s
				     : NAN);
	lull_out_f64(m->out, step_s * 1e9 / k.n_steps);
	lull_out_f64(m->out, sums.all / k.n_steps / 1e9);
	lull_out_f64(m->out, sums.all / step_s / 1e12);
	lull_out_f64(m->out, least_s > 0 ? sums.all / least_s / 1e12 : NAN);
	lull_out_text(m->out, main_precision(&sums));
	lull_out_i64(m->out, k.n_steps);
	lull_lanes_put(m->out, m->reader, p->lane);
	lull_out_text(m->out, name);
}

static int parse_peak(struct mfu *m, struct lull_err *err)
{
	char *text = lull_report_arg_value(m->options, "peak"), *end = NULL;
	f64 tflops = text ? strtod(text, &end) : 0;
	int rc = LULL_OK;

	if (text && (end == text || *end || !(tflops > 0) || !isfinite(tflops)))
		rc = lull_fail(err, LULL_E_USAGE,
			       "peak=%s is not a number of TFLOP/s above 0, such as 989", text);
	m->peak = tflops * 1e12;
	free(text);
	return rc;
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	struct mfu m = { .reader = r, .out = out, .options = options };

	if (parse_peak(&m, err))
		return err->code;
	lull_tensor_names_init(&m.tensor, r);
	lull_ops_init(&m.tree, r, lull_report_window(options), LULL_OPS_WITH_COSTS);
	choose_nodes(&m);
	lull_process_rounds_each(r, false, put_process, &m);
	free(m.flops);
	lull_ops_release(&m.tree);
	lull_tensor_names_release(&m.tensor);
	return LULL_OK;
}

const struct lull_report lull_report_mfu = {
	.name = "mfu",
	.display = "Model FLOPs Utilisation",
	.summary = "what a step computes, as a share of the peak of the device",
	.help = "For the steady steps of each process (those of `lull why`, without warm-up): the "
		"floating-point operations of matrix products, convolutions and attention, forward "
		"and backward, which follow from the shapes of operators (record with "
		"--pytorch=ops); how long the device would take for them at the peak of its data "
		"sheet, without sparsity, in the precision of the operators; and the share of the "
		"step that this is (MFU). `In Products` is the share of the time of their kernels: "
		"if it is high and MFU low, the rest of the step is to blame. Types are those that "
		"operators get: float32 counts as tf32 if tensor cores do most of the products, "
		"by their names. A process that works on several devices is measured by the peak "
		"of "
		"all of them. What is computed twice, as activation checkpointing does, counts "
		"twice. Kernels that torch.compile writes and custom operators count nothing. "
		"peak=TFLOPS gives the peak, for devices that lull does not know.",
	.args = "peak=",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(op) | LULL_NEED(kernel),
	.empty = "no steps with operators whose shapes were recorded (--pytorch=ops)",
	.run = run,
};
