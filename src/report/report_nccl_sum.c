/*
 * nccl_sum: time of collective operations by kind, each operation once.
 *
 * An operation may be seen three times: by the call that enqueued it, by NCCL's plugin, and as the
 * kernel that ran. Its time is the kernel's; where no kernel belongs to it (inside a CUDA graph, or
 * after the end of the recording) that of the plugin, else of the call. If the operations
 * themselves were not recorded, the kernels of NCCL are used instead, else its ranges.
 */
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/sort.h"
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
	  .doc = "bytes divided by the time on the device, where that is known",
	  .is_spare = true },
	{ .name = "Enqueue",
	  .kind = LULL_OUT_FLOAT,
	  .unit = "ns",
	  .decimals = 1,
	  .doc = "mean time of the call, or of the plugin's event, that enqueued it",
	  .is_spare = true },
	{ .name = "Ranks", .kind = LULL_OUT_ID, .doc = "ranks of the communicator" },
	{ .name = "Type",
	  .kind = LULL_OUT_TEXT,
	  .doc = "type of an element, if all have the same",
	  .is_spare = true },
	{ .name = "Source",
	  .kind = LULL_OUT_TEXT,
	  .doc = "whose time it is: call, plugin, kernel or range",
	  .is_spare = true },
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

/* What the rows of `collective` say about operations whose time is that of a kernel. */
struct told {
	u32 datatype; /* 0 if they differ */
	u64 n, dur_ns;
};

struct operations {
	struct lull_reader *reader;
	const struct lull_report_options *options;
	struct lull_intern groups; /* struct group; its number is the key */
	struct lull_vec moved;	   /* u64 bytes by number of the group */
	bool is_counted;	   /* later scans must not count bytes again */

	struct lull_map by_plugin; /* names that the plugin has told of: calls are skipped */
	struct lull_exchanges exchanges;
	bool *is_nccl; /* by launch: a kernel of NCCL */
	bool has_kernels;
	u32 joined;	    /* source of the rows that have a kernel, 0 = none */
	u64 joined_ns;	    /* they start before this */
	struct lull_map of; /* name and ranks to an index in told */
	struct lull_vec told;
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

/* True if another row, or a kernel, stands for the same operation. */
static bool is_other_view(const struct operations *o, const struct lull_collective_cols *cols,
			  size_t i)
{
	if (cols->source[i] == CALL && lull_map_find(&o->by_plugin, cols->name[i]))
		return true;
	return cols->source[i] == o->joined && cols->start_ns[i] < o->joined_ns;
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

			if (!is_other_view(o, &cols, i) &&
			    lull_report_covers(o->options, cols.start_ns[i], cols.dur_ns[i]))
				add(o, sum, &group, cols.dur_ns[i], moved_bytes);
		}
	}
	lull_cursor_release(&c);
}

/* The operations with the times of their kernels. */
static void scan_exchanges(struct operations *o, struct lull_sum *sum)
{
	const struct lull_exchange *all = o->exchanges.all.at;

	for (size_t i = 0; i < o->exchanges.all.n; i++) {
		struct group group = { all[i].name, KERNEL, all[i].n_ranks, 0 };
		u64 dur_ns = all[i].end_ns - all[i].start_ns;

		if (lull_report_covers(o->options, all[i].start_ns, dur_ns))
			add(o, sum, &group, dur_ns, all[i].size_bytes);
	}
}

static u64 told_key(u32 name, u32 n_ranks)
{
	return (u64)name << 32 | n_ranks;
}

static void note_told(struct operations *o, const struct lull_collective_cols *cols, size_t i)
{
	bool is_new;
	u32 *ix = lull_map_add(&o->of, told_key(cols->name[i], cols->n_ranks[i]), &is_new);
	struct told *t;

	if (is_new) {
		*ix = (u32)o->told.n;
		t = lull_vec_push(&o->told);
		*t = (struct told){ .datatype = cols->datatype[i] };
	}
	t = lull_vec_get(&o->told, *ix);
	if (t->datatype != cols->datatype[i])
		t->datatype = 0;
	t->n++;
	t->dur_ns += cols->dur_ns[i];
}

/*
 * Which rows have a kernel: all but the last n_unpaired, since an operation belongs to the next
 * kernel that is launched (model/exchange.h). `starts` are those of the best source.
 */
static void join(struct operations *o, u32 source, struct lull_vec *starts)
{
	const u64 *at;

	if (!source || !o->has_kernels)
		return;
	lull_exchanges_init(&o->exchanges, o->reader);
	if (o->exchanges.n_unpaired >= starts->n)
		return;
	lull_sort_u64(starts->at, starts->n);
	at = starts->at;
	o->joined = source;
	o->joined_ns =
		o->exchanges.n_unpaired ? at[starts->n - o->exchanges.n_unpaired] : UINT64_MAX;
}

/* Which rows are views of the same operations; once, before the scans. */
static void survey(struct operations *o)
{
	struct lull_collective_cols cols;
	struct lull_vec starts[RANGE];
	struct lull_cursor c;
	u32 source;
	size_t n;

	for (u32 i = 0; i < RANGE; i++)
		lull_vec_init(&starts[i], sizeof(u64));
	lull_cursor_init(&c, o->reader, LULL_TABLE_collective, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			if (cols.source[i] == PLUGIN)
				*lull_map_add(&o->by_plugin, cols.name[i], NULL) = 1;
			if (cols.source[i] < RANGE)
				lull_vec_add(&starts[cols.source[i]], &cols.start_ns[i], 1);
		}
	}
	lull_cursor_release(&c);
	source = starts[KERNEL].n ? 0 : starts[PLUGIN].n ? PLUGIN : starts[CALL].n ? CALL : 0;
	join(o, source, &starts[source]);
	lull_cursor_init(&c, o->reader, LULL_TABLE_collective, 0, UINT64_MAX);
	while (o->joined && (n = lull_cursor_next(&c, &cols)) > 0)
		for (size_t i = 0; i < n; i++)
			if (cols.source[i] == o->joined && cols.start_ns[i] < o->joined_ns)
				note_told(o, &cols, i);
	lull_cursor_release(&c);
	for (u32 i = 0; i < RANGE; i++)
		lull_vec_release(&starts[i]);
}

static void find_nccl(struct operations *o)
{
	size_t n;

	lull_reader_dim(o->reader, LULL_TABLE_launch, &n);
	o->is_nccl = lull_work_nccl(o->reader);
	for (size_t i = 1; i <= n; i++)
		o->has_kernels |= o->is_nccl[i];
}

static void scan_kernels(struct operations *o, struct lull_sum *sum)
{
	size_t n;
	const struct lull_launch_row *launches = lull_reader_dim(o->reader, LULL_TABLE_launch, &n);
	struct lull_kernel_cols cols;
	struct lull_cursor c;

	lull_cursor_init(&c, o->reader, LULL_TABLE_kernel, o->options->from_ns, o->options->to_ns);
	lull_cursor_want(&c, "start_ns");
	lull_cursor_want(&c, "dur_ns");
	lull_cursor_want(&c, "launch");
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			struct group group = { .source = KERNEL };

			if (!o->is_nccl[cols.launch[i]] ||
			    !lull_report_covers(o->options, cols.start_ns[i], cols.dur_ns[i]))
				continue;
			group.name = launches[cols.launch[i] - 1].name;
			add(o, sum, &group, cols.dur_ns[i], 0);
		}
	}
	lull_cursor_release(&c);
}

/* Labels of NCCL's own domain, by id; those that only repeat what a device did are none. */
static bool *find_labels(struct lull_reader *r, const struct lull_label_row *labels, size_t n)
{
	bool *is_nccl = lull_alloc(n + 1, sizeof(*is_nccl));

	for (u32 label = 1; label <= n; label++)
		is_nccl[label] =
			!lull_nest_is_shadow(labels, label) &&
			strcmp(lull_reader_string(r, labels[label - 1].domain, NULL), "NCCL") == 0;
	return is_nccl;
}

static void scan_ranges(struct operations *o, struct lull_sum *sum)
{
	size_t n_labels, n;
	const struct lull_label_row *labels =
		lull_reader_dim(o->reader, LULL_TABLE_label, &n_labels);
	bool *is_nccl = find_labels(o->reader, labels, n_labels);
	struct lull_range_cols cols;
	struct lull_cursor c;

	lull_cursor_init(&c, o->reader, LULL_TABLE_range, o->options->from_ns, o->options->to_ns);
	lull_cursor_want(&c, "start_ns");
	lull_cursor_want(&c, "dur_ns");
	lull_cursor_want(&c, "label");
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			struct group group = { .source = RANGE };

			if (!is_nccl[cols.label[i]] ||
			    !lull_report_covers(o->options, cols.start_ns[i], cols.dur_ns[i]))
				continue;
			group.name = labels[cols.label[i] - 1].name;
			add(o, sum, &group, cols.dur_ns[i], 0);
		}
	}
	lull_cursor_release(&c);
	free(is_nccl);
}

static void scan(void *ctx, struct lull_sum *sum)
{
	struct operations *o = ctx;

	if (lull_reader_stats(o->reader, LULL_TABLE_collective).n_rows) {
		scan_collectives(o, sum);
		if (o->joined)
			scan_exchanges(o, sum);
	} else if (o->has_kernels) {
		scan_kernels(o, sum);
	} else {
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
	const u32 *ix = lull_map_find(&o->of, told_key(group->name, group->n_ranks));
	const struct told *told =
		ix && group->source == KERNEL ? lull_vec_get(&o->told, *ix) : NULL;
	u32 datatype = told ? told->datatype : group->datatype;

	if (moved_bytes)
		lull_out_f64(out, (f64)moved_bytes / MB_BYTES);
	else
		lull_out_skip(out);
	if (moved_bytes && group->source == KERNEL)
		lull_out_f64(out, (f64)moved_bytes / (f64)sums->total_ns);
	else
		lull_out_skip(out);
	if (told)
		lull_out_f64(out, (f64)told->dur_ns / (f64)told->n);
	else
		lull_out_skip(out);
	if (group->n_ranks)
		lull_out_i64(out, group->n_ranks);
	else
		lull_out_skip(out);
	lull_out_text(out, datatype ? lull_reader_string(o->reader, datatype, NULL) : NULL);
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
	lull_vec_init(&o.told, sizeof(struct told));
	lull_map_init(&o.by_plugin);
	lull_map_init(&o.of);
	find_nccl(&o);
	survey(&o);
	lull_sum_init(&sum);
	lull_sum_run(&sum, scan, &o);
	lull_sum_write(&sum, out, put_names, &o);
	lull_sum_release(&sum);
	lull_exchanges_release(&o.exchanges);
	lull_map_release(&o.by_plugin);
	lull_map_release(&o.of);
	lull_vec_release(&o.told);
	lull_vec_release(&o.moved);
	lull_intern_release(&o.groups);
	free(o.is_nccl);
	return LULL_OK;
}

const struct lull_report lull_report_nccl_sum = {
	.name = "nccl_sum",
	.display = "NCCL Summary",
	.summary = "time of collective operations",
	.help = "How long operations between ranks took, by name, number of ranks and type, and "
		"how much they moved. Each operation counts once, although its call, NCCL's plugin "
		"and its kernel may all have been recorded: the time is that of the kernel if "
		"there is one, else of the plugin, else of the call, and Source says which. Where "
		"the operations were not recorded as such, the kernels whose names begin with "
		"nccl stand for them, else the ranges of NCCL's own domain.",
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
