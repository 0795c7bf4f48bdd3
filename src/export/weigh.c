#include "export/weigh.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/sort.h"

/* Whether the samples of Python are meant. */
static bool wants_python(const struct lull_reader *r, const struct lull_export_options *options)
{
	if (!options->tables.n)
		return !lull_reader_stats(r, LULL_TABLE_sample).n_rows &&
		       lull_reader_stats(r, LULL_TABLE_pysample).n_rows;
	return !lull_export_wants(options, "sample") && lull_export_wants(options, "pysample");
}

struct count {
	struct lull_weigh *stacks;
	struct lull_map by_key; /* lane and stack to index in entries + 1 */
};

static void add(struct count *c, u32 lane, u32 stack, u64 weight_ns)
{
	u32 *ix = lull_map_add(&c->by_key, (u64)lane << 32 | stack, NULL);
	struct lull_weigh_entry *entry;

	if (!*ix) {
		entry = lull_vec_push(&c->stacks->entries);
		entry->lane = lane;
		entry->stack = stack;
		*ix = (u32)c->stacks->entries.n;
	}
	entry = lull_vec_get(&c->stacks->entries, *ix - 1);
	entry->n_samples++;
	entry->weight_ns += weight_ns;
}

static void count_cpu(struct count *c, struct lull_span window)
{
	struct lull_sample_cols cols;
	struct lull_cursor cursor;
	size_t n;

	lull_cursor_init(&cursor, c->stacks->reader, LULL_TABLE_sample, window.from_ns,
			 window.to_ns);
	while ((n = lull_cursor_next(&cursor, &cols)) > 0)
		for (size_t i = 0; i < n; i++)
			if (lull_span_holds(window, cols.start_ns[i], 0))
				add(c, cols.lane[i], cols.stack[i], cols.weight_ns[i]);
	lull_cursor_release(&cursor);
}

static void count_python(struct count *c, struct lull_span window)
{
	struct lull_pysample_cols cols;
	struct lull_cursor cursor;
	size_t n;

	lull_cursor_init(&cursor, c->stacks->reader, LULL_TABLE_pysample, window.from_ns,
			 window.to_ns);
	while ((n = lull_cursor_next(&cursor, &cols)) > 0)
		for (size_t i = 0; i < n; i++)
			if (!cols.is_idle[i] && lull_span_holds(window, cols.start_ns[i], 0))
				add(c, cols.lane[i], cols.stack[i], 0);
	lull_cursor_release(&cursor);
}

static int compare(const void *a, const void *b)
{
	const struct lull_weigh_entry *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	return (x->stack > y->stack) - (x->stack < y->stack);
}

int lull_weigh_init(struct lull_weigh *s, struct lull_reader *r,
		    const struct lull_export_options *options, struct lull_err *err)
{
	struct count c = { .stacks = s };

	*s = (struct lull_weigh){ .reader = r, .is_python = wants_python(r, options) };
	lull_vec_init(&s->entries, sizeof(struct lull_weigh_entry));
	if (!lull_reader_stats(r, s->is_python ? LULL_TABLE_pysample : LULL_TABLE_sample).n_rows)
		return lull_fail(err, LULL_E_NOT_FOUND,
				 "the report has no %s samples; record with --sample=process-tree "
				 "or --python-sampling=true",
				 s->is_python ? "Python" : "CPU");
	s->nodes = lull_reader_dim(r, LULL_TABLE_stack, &s->n_nodes);
	s->frames = lull_reader_dim(r, LULL_TABLE_frame, &s->n_frames);
	s->modules = lull_reader_dim(r, LULL_TABLE_module, &s->n_modules);
	lull_map_init(&c.by_key);
	if (s->is_python)
		count_python(&c, lull_export_window(options));
	else
		count_cpu(&c, lull_export_window(options));
	lull_map_release(&c.by_key);
	if (s->entries.n)
		lull_sort(s->entries.at, s->entries.n, s->entries.elem_bytes, compare);
	return LULL_OK;
}

void lull_weigh_release(struct lull_weigh *s)
{
	lull_vec_release(&s->entries);
}

size_t lull_weigh_frames(const struct lull_weigh *s, u32 stack, u32 frames[LULL_WEIGH_DEPTH],
			 bool *is_cut)
{
	size_t n = 0;

	/* Parents have smaller ids, so this ends. */
	for (; stack && n < LULL_WEIGH_DEPTH; stack = s->nodes[stack - 1].parent)
		frames[n++] = s->nodes[stack - 1].frame;
	*is_cut = stack;
	return n;
}

void lull_weigh_name(const struct lull_weigh *s, u32 frame, struct lull_str *to)
{
	const struct lull_frame_row *row = frame ? &s->frames[frame - 1] : NULL;
	const char *path, *slash;

	if (!row) {
		lull_str_puts(to, "[unknown]");
	} else if (row->function) {
		lull_str_puts(to, lull_reader_string(s->reader, row->function, NULL));
	} else if (row->module) {
		path = lull_reader_string(s->reader, s->modules[row->module - 1].path, NULL);
		slash = strrchr(path, '/');
		lull_str_addf(to, "%s+0x%" PRIx64, slash ? slash + 1 : path, row->addr);
	} else {
		lull_str_addf(to, "0x%" PRIx64, row->addr);
	}
}

void lull_weigh_process(const struct lull_weigh *s, u32 lane, struct lull_str *to)
{
	size_t n_lanes, n_processes;
	const struct lull_lane_row *lanes = lull_reader_dim(s->reader, LULL_TABLE_lane, &n_lanes);
	const struct lull_process_row *processes =
		lull_reader_dim(s->reader, LULL_TABLE_process, &n_processes);
	u32 process = lane ? lanes[lane - 1].process : 0;

	if (!process)
		lull_str_puts(to, "unknown process");
	else
		lull_str_addf(to, "%s %u",
			      lull_reader_string(s->reader, processes[process - 1].name, NULL),
			      processes[process - 1].pid);
}

void lull_weigh_thread(const struct lull_weigh *s, u32 lane, struct lull_str *to)
{
	size_t n;
	const struct lull_lane_row *lanes = lull_reader_dim(s->reader, LULL_TABLE_lane, &n);

	if (!lane)
		lull_str_puts(to, "unknown thread");
	else
		lull_str_addf(to, "%s %u",
			      lanes[lane - 1].name
				      ? lull_reader_string(s->reader, lanes[lane - 1].name, NULL)
				      : "thread",
			      lanes[lane - 1].tid);
}
