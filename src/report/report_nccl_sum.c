/*
 * nccl_sum: time of collective operations by kind.
 *
 * A call or the plugin says when an operation was enqueued, its kernel when it ran: both are shown,
 * and the bandwidth is the kernel's. If the operations themselves were not recorded, the ranges and
 * kernels of NCCL are used instead.
 */
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "model/exchange.h"
#include "model/nest.h"
#include "model/work.h"
#include "report/report.h"
#include "report/sum.h"

static const struct lull_out_column columns[] = {
	LULL_SUM_COLUMNS("Instances"),
	{ .name = "Moved",
	  .kind = LULL_OUT_FLOAT,
	  .unit = "MB",
	  .decimals = 3,
	  .doc = "the larger of the bytes sent and received; empty if not recorded" },
	{ .name = "Bandwidth",
	  .kind = LULL_OUT_FLOAT,
	  .unit = "GB/s",
	  .decimals = 3,
	  .doc = "bytes divided by the time on the device, where that is known" },
	{ .name = "Ranks", .kind = LULL_OUT_ID, .doc = "ranks of the communicator" },
	{ .name = "Type", .kind = LULL_OUT_TEXT, .doc = "type of an element", .is_spare = true },
	{ .name = "Source",
	  .kind = LULL_OUT_TEXT,
	  .doc = "what was measured: call, plugin, kernel or range" },
	{ .name = "Name", .kind = LULL_OUT_TEXT, .doc = "operation" },
};

#define MB_BYTES 1e6

/* collective.source, and two more for what stands for it. */
enum source { CALL = 1, PLUGIN = 2, KERNEL = 3, RANGE = 4 };

struct group {
	u32 name;
	u32 source;
	u32 n_ranks;
	u32 datatype;
};

struct operations {
	struct lull_reader *reader;
	const struct lull_report_options *options;
	struct lull_intern groups; /* struct group; its number is the key */
	struct lull_vec moved;	   /* u64 bytes by number of the group */
	bool is_counted;	   /* later scans must not count bytes again */
};

static void add(struct operations *o, struct lull_sum *sum, const struct group *group, u64 dur_ns,
		u64 moved_bytes)
{
	u32 number = lull_intern_add(&o->groups, group, sizeof(*group));

	lull_sum_add(sum, lull_sum_group(sum, number), dur_ns);
	if (o->is_counted)
		return;
	if (number >= o->moved.n)
		lull_vec_extend(&o->moved, number + 1 - o->moved.n);
	*(u64 *)lull_vec_get(&o->moved, number) += moved_bytes;
}

static void scan_collectives(struct operations *o, struct lull_sum *sum)
{
	struct lull_collective_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, o->reader, LULL_TABLE_collective, o->options->from_ns,
			 o->options->to_ns);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			struct group group = { cols.name[i], cols.source[i], cols.n_ranks[i],
					       cols.datatype[i] };
			u64 moved_bytes = cols.in_bytes[i] > cols.out_bytes[i] ? cols.in_bytes[i]
									       : cols.out_bytes[i];

			if (lull_report_covers(o->options, cols.start_ns[i], cols.dur_ns[i]))
				add(o, sum, &group, cols.dur_ns[i], moved_bytes);
		}
	}
	lull_cursor_release(&c);
}

/* The operations with the times of their kernels. */
static void scan_exchanges(struct operations *o, struct lull_sum *sum)
{
	struct lull_exchanges exchanges;
	const struct lull_exchange *all;

	lull_exchanges_init(&exchanges, o->reader);
	all = exchanges.all.at;
	for (size_t i = 0; i < exchanges.all.n; i++) {
		struct group group = { all[i].name, KERNEL, all[i].n_ranks, 0 };
		u64 dur_ns = all[i].end_ns - all[i].start_ns;

		if (lull_report_covers(o->options, all[i].start_ns, dur_ns))
			add(o, sum, &group, dur_ns, all[i].size_bytes);
	}
	lull_exchanges_release(&exchanges);
}

/* True if threads told of operations, and kernels of NCCL ran. */
static bool has_both(struct lull_reader *r)
{
	size_t n, n_launches;
	bool *is_nccl = lull_work_nccl(r), has_kernel = false, has_told = false;
	struct lull_collective_cols cols;
	struct lull_cursor c;

	lull_reader_dim(r, LULL_TABLE_launch, &n_launches);
	for (size_t i = 1; i <= n_launches; i++)
		has_kernel |= is_nccl[i];
	free(is_nccl);
	lull_cursor_init(&c, r, LULL_TABLE_collective, 0, UINT64_MAX);
	lull_cursor_want(&c, "source");
	while (has_kernel && !has_told && (n = lull_cursor_next(&c, &cols)) > 0)
		for (size_t i = 0; i < n; i++)
			has_told |= cols.source[i] == CALL || cols.source[i] == PLUGIN;
	lull_cursor_release(&c);
	return has_told;
}

static void scan_kernels(struct operations *o, struct lull_sum *sum)
{
	size_t n;
	const struct lull_launch_row *launches = lull_reader_dim(o->reader, LULL_TABLE_launch, &n);
	bool *is_nccl = lull_work_nccl(o->reader);
	struct lull_work_cursor c;
	struct lull_work work;

	lull_work_begin(&c, o->reader, LULL_WORK_KERNEL, 0, lull_report_window(o->options));
	while (lull_work_next(&c, &work)) {
		struct group group = { .source = KERNEL };

		if (!is_nccl[work.what] ||
		    !lull_report_covers(o->options, work.start_ns, work.dur_ns))
			continue;
		group.name = launches[work.what - 1].name;
		add(o, sum, &group, work.dur_ns, 0);
	}
	lull_work_end(&c);
	free(is_nccl);
}

static void scan_ranges(struct operations *o, struct lull_sum *sum)
{
	size_t n_labels, n;
	const struct lull_label_row *labels =
		lull_reader_dim(o->reader, LULL_TABLE_label, &n_labels);
	struct lull_range_cols cols;
	struct lull_cursor c;

	lull_cursor_init(&c, o->reader, LULL_TABLE_range, o->options->from_ns, o->options->to_ns);
	lull_cursor_want(&c, "start_ns");
	lull_cursor_want(&c, "dur_ns");
	lull_cursor_want(&c, "label");
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			u32 label = cols.label[i];
			struct group group = { .source = RANGE };

			if (!label || lull_nest_is_shadow(labels, label) ||
			    strcmp(lull_reader_string(o->reader, labels[label - 1].domain, NULL),
				   "NCCL") != 0 ||
			    !lull_report_covers(o->options, cols.start_ns[i], cols.dur_ns[i]))
				continue;
			group.name = labels[label - 1].name;
			add(o, sum, &group, cols.dur_ns[i], 0);
		}
	}
	lull_cursor_release(&c);
}

static void scan(void *ctx, struct lull_sum *sum)
{
	struct operations *o = ctx;

	if (lull_reader_stats(o->reader, LULL_TABLE_collective).n_rows) {
		scan_collectives(o, sum);
		if (has_both(o->reader))
			scan_exchanges(o, sum);
	} else {
		scan_kernels(o, sum);
		scan_ranges(o, sum);
	}
	o->is_counted = true;
}

static void put_names(void *ctx, struct lull_out *out, const struct lull_sum_group *sums)
{
	static const char *const sources[] = {
		[CALL] = "call", [PLUGIN] = "plugin", [KERNEL] = "kernel", [RANGE] = "range"
	};
	const struct operations *o = ctx;
	const struct group *group = lull_intern_get(&o->groups, (u32)sums->key);
	u64 moved_bytes = *(u64 *)lull_vec_get(&o->moved, sums->key);

	if (moved_bytes)
		lull_out_f64(out, (f64)moved_bytes / MB_BYTES);
	else
		lull_out_skip(out);
	if (moved_bytes && group->source == KERNEL)
		lull_out_f64(out, (f64)moved_bytes / (f64)sums->total_ns);
	else
		lull_out_skip(out);
	if (group->n_ranks)
		lull_out_i64(out, group->n_ranks);
	else
		lull_out_skip(out);
	lull_out_text(out, group->datatype ? lull_reader_string(o->reader, group->datatype, NULL)
					   : NULL);
	lull_out_text(out, group->source && group->source < LULL_COUNT_OF(sources)
				   ? sources[group->source]
				   : NULL);
	lull_out_text(out, lull_reader_string(o->reader, group->name, NULL));
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	struct operations o = { .reader = r, .options = options };
	struct lull_sum sum;

	(void)err;
	lull_intern_init(&o.groups);
	lull_vec_init(&o.moved, sizeof(u64));
	lull_sum_init(&sum);
	lull_sum_run(&sum, scan, &o);
	lull_sum_write(&sum, out, put_names, &o);
	lull_sum_release(&sum);
	lull_vec_release(&o.moved);
	lull_intern_release(&o.groups);
	return LULL_OK;
}

const struct lull_report lull_report_nccl_sum = {
	.name = "nccl_sum",
	.display = "NCCL Summary",
	.summary = "time of collective operations",
	.help = "How long operations between ranks took, by name, number of ranks and type, and "
		"how much they moved. A call and NCCL's plugin say how long it took to put an "
		"operation "
		"in line, its kernel how long it ran. Where the operations were not recorded as "
		"such, the ranges "
		"of NCCL's own domain and the kernels whose names begin with nccl stand for them.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs_any = LULL_NEED(collective) | LULL_NEED(kernel) | LULL_NEED(range),
	.sorted_by = 2,
	.empty = "there is no operation of NCCL: no rows in `collective`, no kernel of that name, "
		 "no "
		 "range in its domain",
	.page = { .tab = "collectives", .label = "by operation" },
	.run = run,
};
