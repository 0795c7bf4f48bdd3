/*
 * ops: what operators of a framework cost, as PyTorch's key_averages().table() has it.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/convert.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"
#include "text/nearest.h"
#include "base/sort.h"
#include "text/term.h"
#include "model/names.h"
#include "model/nest.h"
#include "model/op_math.h"
#include "model/op_stacks.h"
#include "model/ops.h"
#include "model/work.h"
#include "report/report.h"

static const struct lull_out_column columns[] = {
	{ .name = "Self CPU",
	  .kind = LULL_OUT_PERCENT,
	  .doc = "share of Self CPU in the sum over all operators",
	  .is_spare = true },
	{ .name = "Self CPU",
	  .kind = LULL_OUT_NS,
	  .doc = "time on its thread, without operators and calls inside it" },
	{ .name = "CPU total",
	  .kind = LULL_OUT_PERCENT,
	  .doc = "share of CPU total in the same sum",
	  .is_spare = true },
	{ .name = "CPU total", .kind = LULL_OUT_NS, .doc = "time on its thread" },
	{ .name = "CPU time avg",
	  .kind = LULL_OUT_NS,
	  .doc = "CPU total of one call",
	  .is_spare = true },
	{ .name = "Self CUDA",
	  .kind = LULL_OUT_NS,
	  .doc = "time of the kernels and copies that it launched itself" },
	{ .name = "Self CUDA",
	  .kind = LULL_OUT_PERCENT,
	  .doc = "share of Self CUDA in the time of all kernels and copies",
	  .is_spare = true },
	{ .name = "CUDA total",
	  .kind = LULL_OUT_NS,
	  .doc = "the same, and of those launched inside it" },
	{ .name = "CUDA time avg",
	  .kind = LULL_OUT_NS,
	  .doc = "CUDA total of one call",
	  .is_spare = true },
	{ .name = "CPU Mem",
	  .kind = LULL_OUT_BYTES,
	  .doc = "host memory allocated less released while it ran, on any thread",
	  .is_spare = true },
	{ .name = "Self CPU Mem",
	  .kind = LULL_OUT_BYTES,
	  .doc = "without what it called",
	  .is_spare = true },
	{ .name = "CUDA Mem",
	  .kind = LULL_OUT_BYTES,
	  .doc = "device memory, likewise",
	  .is_spare = true },
	{ .name = "Self CUDA Mem",
	  .kind = LULL_OUT_BYTES,
	  .doc = "without what it called",
	  .is_spare = true },
	{ .name = "# of Calls", .kind = LULL_OUT_INT, .doc = "how often" },
	{ .name = "Input",
	  .kind = LULL_OUT_BYTES,
	  .doc = "of the tensors that went in, all calls together; empty if no shapes were "
		 "recorded",
	  .is_spare = true },
	{ .name = "FLOPs",
	  .kind = LULL_OUT_FLOAT,
	  .doc = "floating-point operations of all calls, where they follow from shapes: "
		 "products of matrices, linear, convolutions and attention, forward and backward; "
		 "add, mul",
	  .is_spare = true },
	{ .name = "Name",
	  .kind = LULL_OUT_TEXT,
	  .doc = "operator, annotation of the program, CUDA call, kernel or copy",
	  .is_kernel = true },
	{ .name = "Input Shapes", .kind = LULL_OUT_TEXT, .doc = "with ops:shape" },
	{ .name = "Line",
	  .kind = LULL_OUT_TEXT,
	  .doc = "with ops:stack, the innermost one that is not of a library",
	  .is_wanted = true },
	{ .name = "Stack",
	  .kind = LULL_OUT_TEXT,
	  .doc = "with ops:stack, innermost first",
	  .is_spare = true },
};

/* Frames of a stack that count, if nothing else is said; torch's examples have 5. */
#define DEFAULT_FRAMES 5

struct group {
	u32 name;      /* string id; 0 for one that has its name in `text` */
	char text[64]; /* of copies, memsets and loose memory */
	u32 shapes;    /* string id */
	u32 stack;     /* number + 1 in op_stacks */
	u32 line;      /* frame of the program's own code, or 0 */
	u64 self_ns, cpu_ns;
	u64 device_ns, device_all_ns;
	i64 bytes[LULL_N_OP_MEMORY], self_bytes[LULL_N_OP_MEMORY];
	u64 n_calls;
	f64 input_bytes, flops;
	f64 key; /* of sort= */
};

struct ops {
	struct lull_reader *reader;
	struct lull_report_options options;
	bool is_by_shape;
	u32 n_frames;	/* of a stack that tell rows apart, 0 for none */
	char *sort_key; /* NULL: as they are sorted anyway */
	struct lull_ops tree;
	struct lull_op_stacks stacks;
	struct lull_vec groups; /* struct group */
	struct lull_map ixs;	/* hash of what tells groups apart to index + 1 */
	u64 self_ns;		/* sum of all */
	u64 device_ns;		/* of kernels and copies */
	u64 from_ns, to_ns;	/* the first operator's start and the last one's end */
	bool has_memory, has_shapes;
};

/* ---- groups ---- */

/* On which side something ran: the same name on both gets two rows. */
enum side { ON_HOST = 1, ON_HOST_ANNOTATION, ON_DEVICE, ON_DEVICE_ANNOTATION, NOWHERE };

static struct group *find_group(struct ops *o, enum side side, u64 name, u64 detail)
{
	u64 key = lull_hash_mix(name ^ (u64)side << 60 ^ 0x9e3779b97f4a7c15ULL,
				detail ^ 0xc2b2ae3d27d4eb4fULL);
	bool is_new;
	u32 *ix = lull_map_add(&o->ixs, key, &is_new);

	if (is_new) {
		lull_vec_push(&o->groups);
		*ix = (u32)o->groups.n - 1;
	}
	return lull_vec_get(&o->groups, *ix);
}

/* The steps of a schedule are one kind of thing: ProfilerStep#4 and #5 are ProfilerStep*. */
static bool is_step(const char *name)
{
	return !strncmp(name, "ProfilerStep#", 13);
}

static struct group *group_of_node(struct ops *o, const struct lull_op_node *node)
{
	size_t n;
	const struct lull_op_label_row *labels =
		lull_reader_dim(o->reader, LULL_TABLE_op_label, &n);
	bool is_annotation = node->kind == LULL_OP_ANNOTATION;
	bool is_numbered =
		is_annotation && is_step(lull_reader_string(o->reader, node->name, NULL));
	u32 shapes = o->is_by_shape && node->label ? labels[node->label - 1].shapes : 0;
	u32 stack = o->n_frames ? lull_op_stacks_find(&o->stacks, node->lane, node->start_ns) : 0;
	struct group *group =
		find_group(o, is_annotation ? ON_HOST_ANNOTATION : ON_HOST,
			   is_numbered ? UINT32_MAX : node->name, (u64)shapes << 32 | stack);

	if (is_numbered)
		strcpy(group->text, "ProfilerStep*");
	else
		group->name = node->name;
	group->shapes = shapes;
	group->stack = stack;
	if (stack && !group->line)
		group->line = lull_op_stacks_own_frame(&o->stacks, node->lane, node->start_ns);
	return group;
}

/* What follows from the shapes of each label; computed once for each. */
struct math {
	bool is_known;
	f64 input_bytes, flops;
};

static struct math *math_of(struct ops *o, struct math *maths, u32 label)
{
	struct math *math = &maths[label];
	size_t n;
	const struct lull_op_label_row *row;
	const char *shapes;

	if (math->is_known)
		return math;
	math->is_known = true;
	row = (const struct lull_op_label_row *)lull_reader_dim(o->reader, LULL_TABLE_op_label,
								&n) +
	      label - 1;
	shapes = lull_reader_string(o->reader, row->shapes, NULL);
	if (*shapes) {
		char *copy = lull_strdup(shapes);

		o->has_shapes = true;
		math->input_bytes = (f64)lull_op_input_bytes(
			copy, lull_reader_string(o->reader, row->types, NULL));
		math->flops = lull_op_flops(lull_reader_string(o->reader, row->name, NULL), copy,
					    lull_reader_string(o->reader, row->inputs, NULL));
		free(copy);
	}
	return math;
}

static void add_node(struct ops *o, const struct lull_op_node *node, struct math *maths)
{
	u64 dur_ns = node->end_ns - node->start_ns;
	struct group *group = group_of_node(o, node);

	o->from_ns = o->to_ns && o->from_ns < node->start_ns ? o->from_ns : node->start_ns;
	o->to_ns = node->end_ns > o->to_ns ? node->end_ns : o->to_ns;
	group->n_calls++;
	group->cpu_ns += dur_ns;
	group->self_ns += dur_ns - node->child_ns;
	o->self_ns += dur_ns - node->child_ns;
	group->device_ns += node->device_ns;
	group->device_all_ns += node->device_all_ns;
	for (int k = 0; k < LULL_N_OP_MEMORY; k++) {
		group->bytes[k] += node->bytes[k];
		group->self_bytes[k] += node->bytes[k] - node->child_bytes[k];
	}
	if (node->label) {
		const struct math *math = math_of(o, maths, node->label);

		group->input_bytes += math->input_bytes;
		group->flops += math->flops;
	}
}

static void add_nodes(struct ops *o)
{
	const struct lull_op_node *nodes = o->tree.nodes.at;
	size_t n_labels;
	struct math *maths;

	lull_reader_dim(o->reader, LULL_TABLE_op_label, &n_labels);
	maths = lull_alloc(n_labels + 1, sizeof(*maths));
	for (size_t i = 0; i < o->tree.nodes.n; i++)
		if (!nodes[i].is_gone)
			add_node(o, &nodes[i], maths);
	free(maths);
}

/* ---- devices ---- */

/* Names as PyTorch writes them. */
static void name_copy(char *to, size_t cap, const struct lull_work *work)
{
	if (work->kind == LULL_WORK_MEMCPY)
		lull_names_put_copy(to, cap, work->what, work->src_kind, work->dst_kind);
	else if (work->kind == LULL_WORK_MEMSET)
		lull_names_put_memset(to, cap, work->dst_kind);
	else
		snprintf(to, cap, "CUDA graph %u", work->what);
}

static void add_work(struct ops *o)
{
	size_t n;
	const struct lull_launch_row *launches = lull_reader_dim(o->reader, LULL_TABLE_launch, &n);
	struct lull_work_cursor c;
	struct lull_work work;

	lull_work_begin(&c, o->reader, LULL_WORK_ALL, LULL_WORK_WANT_BYTES,
			lull_report_window(&o->options));
	while (lull_work_next(&c, &work)) {
		struct group *group;
		u32 name = 0;

		if (!lull_report_covers(&o->options, work.start_ns, work.dur_ns))
			continue;
		if (work.kind == LULL_WORK_KERNEL && work.what)
			name = launches[work.what - 1].name;
		group = find_group(o, ON_DEVICE, name,
				   name ? 0
					: (u64)work.kind << 48 | (u64)work.src_kind << 40 |
						   (u64)work.dst_kind << 32 | work.what);
		group->name = name;
		if (!name && !group->n_calls)
			name_copy(group->text, sizeof(group->text), &work);
		group->n_calls++;
		group->device_ns += work.dur_ns;
		group->device_all_ns += work.dur_ns;
		o->device_ns += work.dur_ns;
	}
	lull_work_end(&c);
}

/* Annotations as the device saw them: from the first to the last work inside. */
static void add_shadows(struct ops *o)
{
	size_t n;
	const struct lull_label_row *labels = lull_reader_dim(o->reader, LULL_TABLE_label, &n);
	struct lull_range_cols cols;
	struct lull_cursor c;

	lull_cursor_init(&c, o->reader, LULL_TABLE_range, o->options.from_ns, o->options.to_ns);
	lull_cursor_want(&c, "start_ns");
	lull_cursor_want(&c, "dur_ns");
	lull_cursor_want(&c, "label");
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			u32 label = cols.label[i];
			struct group *group;

			if (!lull_nest_is_shadow(labels, label) ||
			    !lull_report_covers(&o->options, cols.start_ns[i], cols.dur_ns[i]))
				continue;
			group = find_group(o, ON_DEVICE_ANNOTATION, labels[label - 1].name, 0);
			group->name = labels[label - 1].name;
			group->n_calls++;
			group->device_ns += cols.dur_ns[i];
			group->device_all_ns += cols.dur_ns[i];
		}
	}
	lull_cursor_release(&c);
}

static void add_loose_memory(struct ops *o)
{
	struct group *group;

	if (!o->tree.n_loose)
		return;
	group = find_group(o, NOWHERE, 0, 0);
	strcpy(group->text, "[memory]");
	group->n_calls = o->tree.n_loose;
	for (int k = 0; k < LULL_N_OP_MEMORY; k++)
		group->bytes[k] = group->self_bytes[k] = o->tree.loose_bytes[k];
}

/* ---- rows ---- */

static f64 share(u64 part, u64 all)
{
	return all ? 100.0 * (f64)part / (f64)all : 0;
}

static void put_stack(const struct ops *o, struct lull_out *out, const struct group *g)
{
	struct lull_str line = LULL_STR_INIT;
	size_t n;
	const struct lull_frame_row *frames = lull_reader_dim(o->reader, LULL_TABLE_frame, &n);

	if (g->line && frames[g->line - 1].file)
		lull_str_addf(&line, "%s:%u",
			      lull_reader_string(o->reader, frames[g->line - 1].file, NULL),
			      frames[g->line - 1].line);
	lull_out_text(out, line.len ? lull_str_text(&line) : NULL);
	lull_out_text(out, lull_op_stacks_text(&o->stacks, g->stack));
	lull_str_release(&line);
}

static void put_group(const struct ops *o, struct lull_out *out, const struct group *g)
{
	lull_out_row(out);
	lull_out_f64(out, share(g->self_ns, o->self_ns));
	lull_out_i64(out, (i64)g->self_ns);
	lull_out_f64(out, share(g->cpu_ns, o->self_ns));
	lull_out_i64(out, (i64)g->cpu_ns);
	lull_out_i64(out, (i64)((g->cpu_ns + g->n_calls / 2) / g->n_calls));
	lull_out_i64(out, (i64)g->device_ns);
	lull_out_f64(out, share(g->device_ns, o->device_ns));
	lull_out_i64(out, (i64)g->device_all_ns);
	lull_out_i64(out, (i64)((g->device_all_ns + g->n_calls / 2) / g->n_calls));
	for (int k = 0; k < LULL_N_OP_MEMORY; k++) {
		if (!o->has_memory) {
			lull_out_skip(out);
			lull_out_skip(out);
			continue;
		}
		lull_out_i64(out, g->bytes[k]);
		lull_out_i64(out, g->self_bytes[k]);
	}
	lull_out_i64(out, (i64)g->n_calls);
	if (g->input_bytes > 0)
		lull_out_i64(out, lull_i64_of(g->input_bytes));
	else
		lull_out_skip(out);
	if (g->flops > 0)
		lull_out_f64(out, g->flops);
	else
		lull_out_skip(out);
	lull_out_text(out, *g->text ? g->text : lull_reader_string(o->reader, g->name, NULL));
	if (!o->is_by_shape && !o->n_frames)
		return;
	lull_out_text(out, g->shapes ? lull_reader_string(o->reader, g->shapes, NULL) : NULL);
	if (o->n_frames)
		put_stack(o, out, g);
}

/* By what devices did, then by what threads did; then as they were met. */
static int by_cost(const struct group *x, const struct group *y)
{
	if (x->device_all_ns != y->device_all_ns)
		return x->device_all_ns > y->device_all_ns ? -1 : 1;
	if (x->cpu_ns != y->cpu_ns)
		return x->cpu_ns > y->cpu_ns ? -1 : 1;
	return (x->n_calls < y->n_calls) - (x->n_calls > y->n_calls);
}

/* ---- what is asked for ---- */

static f64 average(u64 sum, const struct group *g)
{
	return (f64)sum / (f64)g->n_calls;
}

/*
 * The words that torch's table(sort_by=...) takes, under the names of all its versions; and the
 * column.
 */
#define SORT_KEYS(KEY)                                                                       \
	KEY("cpu_time_total", "CPU total", (f64)g->cpu_ns)                                   \
	KEY("self_cpu_time_total", "Self CPU", (f64)g->self_ns)                              \
	KEY("cpu_time", "CPU time avg", average(g->cpu_ns, g))                               \
	KEY("cuda_time_total", "CUDA total", (f64)g->device_all_ns)                          \
	KEY("self_cuda_time_total", "Self CUDA", (f64)g->device_ns)                          \
	KEY("cuda_time", "CUDA time avg", average(g->device_all_ns, g))                      \
	KEY("device_time_total", "CUDA total", (f64)g->device_all_ns)                        \
	KEY("self_device_time_total", "Self CUDA", (f64)g->device_ns)                        \
	KEY("device_time", "CUDA time avg", average(g->device_all_ns, g))                    \
	KEY("cpu_memory_usage", "CPU Mem", (f64)g->bytes[LULL_OP_HOST])                      \
	KEY("self_cpu_memory_usage", "Self CPU Mem", (f64)g->self_bytes[LULL_OP_HOST])       \
	KEY("cuda_memory_usage", "CUDA Mem", (f64)g->bytes[LULL_OP_DEVICE])                  \
	KEY("self_cuda_memory_usage", "Self CUDA Mem", (f64)g->self_bytes[LULL_OP_DEVICE])   \
	KEY("device_memory_usage", "CUDA Mem", (f64)g->bytes[LULL_OP_DEVICE])                \
	KEY("self_device_memory_usage", "Self CUDA Mem", (f64)g->self_bytes[LULL_OP_DEVICE]) \
	KEY("count", "# of Calls", (f64)g->n_calls)                                          \
	KEY("flops", "FLOPs", g->flops)                                                      \
	KEY("input", "Input", g->input_bytes)

/* The value that a row is sorted by; false if there is no such key. */
static bool sort_value(const char *key, const struct group *g, f64 *value)
{
#define AS_VALUE(word, column, of_group) \
	if (!strcmp(key, word)) {        \
		*value = (of_group);     \
		return true;             \
	}
	SORT_KEYS(AS_VALUE)
#undef AS_VALUE
	return false;
}

static const char *nearest_key(const char *key)
{
	struct lull_nearest near = { .word = key };

#define AS_GUESS(word, column, of_group) lull_nearest_add(&near, word);
	SORT_KEYS(AS_GUESS)
#undef AS_GUESS
	return near.best ? near.best : "cuda_time_total";
}

/* 1 + the column that shows what rows are sorted by. */
static int sort_column(const char *key)
{
	const char *name = "CUDA total";

#define AS_COLUMN(word, column, of_group) name = !strcmp(key, word) ? (column) : name;
	SORT_KEYS(AS_COLUMN)
#undef AS_COLUMN
	for (size_t i = 0; i < LULL_COUNT_OF(columns); i++)
		if (columns[i].kind != LULL_OUT_PERCENT && !strcmp(columns[i].name, name))
			return (int)i + 1;
	return 0;
}

/* Of the time of operators: a device that works for less is not the limit. */
#define BUSY_SHARE 0.5

/* The two sums below torch's table, and what they mean. */
static void note_sums(const struct ops *o, struct lull_out *out)
{
	f64 share = (f64)o->device_ns / fmax((f64)(o->to_ns - o->from_ns), 1);

	if (!o->self_ns || !o->device_ns)
		return;
	lull_str_addf(&out->note, "Self CPU time total: %s; self CUDA time total: %s.",
		      lull_format_ns(o->self_ns).text, lull_format_ns(o->device_ns).text);
	if (share < BUSY_SHARE)
		lull_str_addf(
			&out->note,
			" From the first operator to the last the device works for %.0f %% of "
			"the time at most: the CPU is the limit, not kernels. `lull why` says "
			"where.",
			100 * share);
}

static int by_key(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	if (x->key != y->key)
		return x->key > y->key ? -1 : 1;
	return by_cost(x, y);
}

static void sort(struct ops *o)
{
	struct group *groups = o->groups.at;

	for (size_t i = 0; o->sort_key && i < o->groups.n; i++)
		sort_value(o->sort_key, &groups[i], &groups[i].key);
	if (o->groups.n)
		lull_sort(groups, o->groups.n, sizeof(*groups), by_key);
}

static int parse_frames(struct ops *o, struct lull_err *err)
{
	char *text = lull_report_arg_value(&o->options, "stack"), *end = NULL;
	unsigned long n = text ? strtoul(text, &end, 10) : DEFAULT_FRAMES;
	int rc = LULL_OK;

	if (text || lull_report_has_arg(&o->options, "stack"))
		o->n_frames = (u32)n;
	if (text && (end == text || *end || !n || n > LULL_OP_STACK_MAX))
		rc = lull_fail(err, LULL_E_USAGE, "stack=%s is not a number of frames, 1 to %d",
			       text, LULL_OP_STACK_MAX);
	free(text);
	return rc;
}

static int parse(struct ops *o, size_t *n_rows, struct lull_err *err)
{
	struct group none = { .n_calls = 1 };
	f64 value;

	o->is_by_shape = lull_report_has_arg(&o->options, "shape");
	o->sort_key = lull_report_arg_value(&o->options, "sort");
	if (o->sort_key && !sort_value(o->sort_key, &none, &value))
		return lull_fail(err, LULL_E_USAGE,
				 "sort=%s is not a sort key; try %s, --help-reports=ops "
				 "lists all",
				 o->sort_key, nearest_key(o->sort_key));
	if (parse_frames(o, err))
		return err->code;
	return lull_report_arg_rows(&o->options, SIZE_MAX, n_rows, err);
}

static void collect(struct ops *o)
{
	struct lull_span window = lull_report_window(&o->options);

	o->has_memory = lull_reader_stats(o->reader, LULL_TABLE_alloc).n_rows > 0;
	lull_op_stacks_init(&o->stacks, o->reader, o->n_frames);
	lull_ops_init(&o->tree, o->reader, window, LULL_OPS_WITH_COSTS);
	add_nodes(o);
	add_work(o);
	add_shadows(o);
	add_loose_memory(o);
	sort(o);
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	struct ops o = { .reader = r, .options = *options };
	size_t n_rows;
	int rc;

	lull_vec_init(&o.groups, sizeof(struct group));
	lull_map_init(&o.ixs);
	rc = parse(&o, &n_rows, err);
	if (!rc) {
		lull_out_drop_last(out, o.n_frames ? 0 : o.is_by_shape ? 2 : 3);
		collect(&o);
		out->kept_ix = sort_column(o.sort_key ? o.sort_key : "");
		note_sums(&o, out);
		for (size_t i = 0; i < o.groups.n && i < n_rows; i++)
			put_group(&o, out, lull_vec_get(&o.groups, i));
		lull_ops_release(&o.tree);
		lull_op_stacks_release(&o.stacks);
	}
	free(o.sort_key);
	lull_map_release(&o.ixs);
	lull_vec_release(&o.groups);
	return rc;
}

const struct lull_report lull_report_ops = {
	.name = "ops",
	.display = "Operator Summary",
	.summary = "what operators cost on the CPU and on devices",
	.help = "What each operator cost, with the columns and the arithmetic of PyTorch's "
		"key_averages().table(): self times leave out what an operator called, calls of "
		"CUDA included; a kernel counts for the innermost operator around the call that "
		"launched it. Annotations have a row for their threads and one for what devices "
		"did in them, which overlaps with all else and is in no sum. An operator that "
		"calls another for its work, as linear calls addmm, has the same FLOPs again. "
		"Sorted by CUDA total, "
		"then CPU total; sort=KEY takes the keys of table(sort_by=KEY): "
		"[self_]cpu_time_total, "
		"[self_]cuda_time_total, cpu_time and cuda_time (averages), "
		"[self_]cpu_memory_usage, [self_]cuda_memory_usage, all of these with device for "
		"cuda, count, flops; and input. rows=N shows N rows. shape has a row for each "
		"combination of input shapes, stack one for each Python stack (its five innermost "
		"frames; stack=N: N), both together for each of both.",
	.args = "shape stack stack= sort= rows=",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(op),
	.is_default = true,
	.page = { .tab = "ops", .label = "operators", .is_join = true },
	.run = run,
};
