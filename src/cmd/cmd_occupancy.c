/*
 * lull occupancy - how many warps of a kernel fit on a multiprocessor, and what limits them.
 */
#include "cmd/cmd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "text/opt.h"
#include "text/out.h"
#include "text/term.h"
#include "cmd/losses.h"
#include "counter/occupancy.h"
#include "import/import.h"
#include "trace/reader.h"

struct options {
	const char *capability;
	const char *shared;
	u64 n_threads;
	u64 n_registers;
	const char *format;
	struct lull_out_options out;
};

/* ---- one shape ---- */

/* The chip of "9.0"; NULL, with a sentence, if there is none. */
static const struct lull_chip *parse_capability(const char *text, struct lull_err *err)
{
	const struct lull_chip *chip;
	unsigned major, minor;
	char rest;

	if (sscanf(text, "%u.%u%c", &major, &minor, &rest) != 2 || major > 99 || minor > 9) {
		lull_fail(err, LULL_E_USAGE,
			  "--capability: '%s' is not a compute capability such as 9.0", text);
		return NULL;
	}
	chip = lull_chip_find(major * 10 + minor);
	if (!chip)
		lull_fail(err, LULL_E_UNSUPPORTED,
			  "compute capability %s is not known; 5.0 to 12.1 are", text);
	return chip;
}

/* "48KiB", "48k", "49152". */
static int parse_bytes(const char *text, u32 *bytes, struct lull_err *err)
{
	char *end;
	unsigned long long value;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (strncasecmp(end, "k", 1) == 0)
		value *= 1024;
	if (errno || end == text || *text == '-' || value > (1ULL << 30) ||
	    (*end && strcasecmp(end, "k") != 0 && strcasecmp(end, "kib") != 0 &&
	     strcasecmp(end, "b") != 0))
		return lull_fail(err, LULL_E_USAGE,
				 "--shared: '%s' is not a size such as 49152 or 48KiB", text);
	*bytes = (u32)value;
	return LULL_OK;
}

static const char *percent(f64 share, char to[16])
{
	snprintf(to, 16, "%.1f %%", 100 * share);
	return to;
}

static void print_shape(const struct lull_chip *chip, const struct lull_launch_shape *shape)
{
	struct lull_occupancy o;
	char text[16];

	lull_occupancy(chip, shape, &o);
	printf("%u threads, %u registers, %s shared on compute capability %u.%u:\n",
	       shape->n_threads, shape->n_registers, lull_format_bytes(shape->shared_bytes).text,
	       chip->capability / 10, chip->capability % 10);
	if (!o.n_blocks) {
		printf("cannot run: a block needs more %s than a multiprocessor has\n",
		       shape->n_threads > LULL_MAX_BLOCK_THREADS ? "threads"
								 : lull_occupancy_limit_name(o.by));
		return;
	}
	printf("%u blocks, %u of %u warps at once: %s, limited by %s\n", o.n_blocks, o.n_warps,
	       chip->n_warps, percent(o.share, text), lull_occupancy_limit_name(o.by));
	printf("blocks that would fit by warps %u, blocks %u, registers %u, shared memory %u\n",
	       o.limit[LULL_LIMIT_WARPS], o.limit[LULL_LIMIT_BLOCKS], o.limit[LULL_LIMIT_REGISTERS],
	       o.limit[LULL_LIMIT_SHARED]);
}

/* The same kernel with other sizes of block. */
static void print_sizes(const struct lull_chip *chip, struct lull_launch_shape shape)
{
	static const char bar[] = "########################################";

	printf("\n%7s  %6s  %5s  %9s\n", "threads", "blocks", "warps", "occupancy");
	for (u32 n = LULL_WARP_THREADS * 2; n <= LULL_MAX_BLOCK_THREADS; n += 64) {
		struct lull_occupancy o;
		char text[16];

		shape.n_threads = n;
		lull_occupancy(chip, &shape, &o);
		printf("%7u  %6u  %5u  %9s  %.*s%s%s\n", n, o.n_blocks, o.n_warps,
		       percent(o.share, text), (int)(o.share * 40 + 0.5), bar,
		       o.n_blocks ? " " : "cannot run: ", lull_occupancy_limit_name(o.by));
	}
}

static int run_shape(const struct options *options, struct lull_err *err)
{
	struct lull_launch_shape shape = { (u32)options->n_threads, (u32)options->n_registers, 0 };
	const struct lull_chip *chip;

	if (!options->capability)
		return lull_fail(err, LULL_E_USAGE,
				 "give a report, or the compute capability of a device, such as "
				 "--capability 9.0");
	chip = parse_capability(options->capability, err);
	if (!chip || (options->shared && parse_bytes(options->shared, &shape.shared_bytes, err)))
		return err->code;
	if (options->n_threads > LULL_MAX_BLOCK_THREADS || !options->n_threads)
		return lull_fail(err, LULL_E_USAGE, "--threads is between 1 and %d",
				 LULL_MAX_BLOCK_THREADS);
	if (options->n_registers > LULL_MAX_REGISTERS || !options->n_registers)
		return lull_fail(err, LULL_E_USAGE, "--registers is between 1 and %d",
				 LULL_MAX_REGISTERS);
	print_shape(chip, &shape);
	print_sizes(chip, shape);
	return LULL_OK;
}

/* ---- the kernels of a report ---- */

static const struct lull_out_column columns[] = {
	{ .name = "Time", .kind = LULL_OUT_PERCENT },
	{ .name = "Occupancy", .kind = LULL_OUT_PERCENT },
	{ .name = "Limited By", .kind = LULL_OUT_TEXT },
	{ .name = "Waves", .kind = LULL_OUT_FLOAT, .decimals = 2 },
	{ .name = "Grid", .kind = LULL_OUT_INT },
	{ .name = "Block", .kind = LULL_OUT_INT },
	{ .name = "Regs", .kind = LULL_OUT_INT },
	{ .name = "Shared", .kind = LULL_OUT_BYTES },
	{ .name = "Name", .kind = LULL_OUT_TEXT },
};

/* Time of each way to launch a kernel, and the device of one launch of it. */
struct launches {
	u64 *total_ns;
	u32 *device;
	u64 all_ns;
};

static void sum_launches(struct lull_reader *r, size_t n_launches, struct launches *to)
{
	size_t n, n_lanes;
	const struct lull_lane_row *lanes = lull_reader_dim(r, LULL_TABLE_lane, &n_lanes);
	struct lull_kernel_cols cols;
	struct lull_cursor c;

	to->total_ns = lull_alloc(n_launches + 1, sizeof(u64));
	to->device = lull_alloc(n_launches + 1, sizeof(u32));
	memset(to->total_ns, 0, (n_launches + 1) * sizeof(u64));
	memset(to->device, 0, (n_launches + 1) * sizeof(u32));
	lull_cursor_init(&c, r, LULL_TABLE_kernel, 0, UINT64_MAX);
	lull_cursor_want(&c, "dur_ns");
	lull_cursor_want(&c, "lane");
	lull_cursor_want(&c, "launch");
	while ((n = lull_cursor_next(&c, &cols)) > 0)
		for (size_t i = 0; i < n; i++) {
			to->total_ns[cols.launch[i]] += cols.dur_ns[i];
			to->all_ns += cols.dur_ns[i];
			if (cols.lane[i])
				to->device[cols.launch[i]] = lanes[cols.lane[i] - 1].device;
		}
	lull_cursor_release(&c);
}

static void put_launch(struct lull_out *out, struct lull_reader *r,
		       const struct lull_launch_row *launch, const struct lull_device_row *device,
		       f64 share)
{
	const struct lull_chip *chip = lull_chip_find(device->capability);
	struct lull_launch_shape shape = { launch->block_x * launch->block_y * launch->block_z,
					   launch->registers,
					   launch->static_shared_bytes +
						   launch->dynamic_shared_bytes };
	u64 n_blocks = (u64)launch->grid_x * launch->grid_y * launch->grid_z;
	struct lull_occupancy o;

	if (!chip)
		return;
	lull_occupancy(chip, &shape, &o);
	lull_out_row(out);
	lull_out_f64(out, 100 * share);
	lull_out_f64(out, 100 * o.share);
	lull_out_text(out, lull_occupancy_limit_name(o.by));
	if (o.n_blocks && device->n_sms)
		lull_out_f64(out, (f64)n_blocks / ((f64)o.n_blocks * device->n_sms));
	else
		lull_out_skip(out);
	lull_out_i64(out, (i64)n_blocks);
	lull_out_i64(out, shape.n_threads);
	lull_out_i64(out, shape.n_registers);
	lull_out_i64(out, shape.shared_bytes);
	lull_out_text(out, lull_reader_string(r, launch->name, NULL));
}

static int print_report(struct lull_reader *r, const struct options *options, struct lull_err *err)
{
	size_t n, n_devices;
	const struct lull_launch_row *launches = lull_reader_dim(r, LULL_TABLE_launch, &n);
	const struct lull_device_row *devices = lull_reader_dim(r, LULL_TABLE_device, &n_devices);
	struct launches sums = { NULL, NULL, 0 };
	struct lull_out out;
	int rc;

	lull_out_init(&out, columns, LULL_COUNT_OF(columns));
	sum_launches(r, n, &sums);
	for (size_t i = 1; i <= n; i++)
		if (sums.total_ns[i] && sums.device[i])
			put_launch(&out, r, &launches[i - 1], &devices[sums.device[i] - 1],
				   (f64)sums.total_ns[i] / (f64)sums.all_ns);
	if (lull_out_len(&out))
		rc = lull_out_write(&out, &options->out, stdout, err);
	else
		rc = lull_fail(err, LULL_E_NOT_FOUND,
			       "the report has no kernels of a known device; record a CUDA program "
			       "with -t cuda");
	free(sums.total_ns);
	free(sums.device);
	lull_out_release(&out);
	return rc;
}

static int run_report(const char *path, const struct options *options, struct lull_err *err)
{
	struct lull_reader *r;
	int rc;

	if (lull_import_open(path, &r, err))
		return err->code;
	lull_losses_warn(r, path);
	rc = print_report(r, options, err);
	lull_losses_close(r, path);
	return rc;
}

int cmd_occupancy(int argc, char **argv, struct lull_err *err)
{
	struct options o = { .n_threads = 256,
			     .n_registers = 32,
			     .out = { .sort_ix = 0, .is_human = true, .top = 20 } };
	const struct lull_opt opts[] = {
		OPT_USAGE(
			"lull occupancy [OPTIONS] [REPORT]",
			"Say how many warps of a kernel fit on a multiprocessor at once, and what "
			"limits them: for one launch shape, or for all kernels of a report."),
		OPT_STR('c', "capability", "X.Y", &o.capability,
			"compute capability of the device, such as 9.0"),
		OPT_U64('t', "threads", "N", &o.n_threads, "threads of a block (default: 256)"),
		OPT_U64('r', "registers", "N", &o.n_registers,
			"registers of a thread (default: 32)"),
		OPT_STR('s', "shared", "SIZE", &o.shared,
			"shared memory of a block, static and dynamic (default: 0)"),
		OPT_STR('f', "format", "NAME", &o.format,
			"format of the table of a report, as for lull stats"),
		OPT_U64(0, "top", "N", &o.out.top, "rows of that table, 0 for all (default: 20)"),
		OPT_END(),
	};
	int first = lull_opt_parse(argc, argv, opts, err);

	if (first < 0)
		return first;
	if (o.format && lull_out_options_parse(&o.out, o.format, err))
		return err->code;
	if (argc - first > 1)
		return lull_fail(err, LULL_E_USAGE, "give at most one report");
	return argc - first ? run_report(argv[first], &o, err) : run_shape(&o, err);
}
