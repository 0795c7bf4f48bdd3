#include "model/names.h"
#include "report/rule.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "report/gpu.h"
#include "report/lanes.h"

#define RULE(name) extern const struct lull_report lull_rule_##name;
#include "report/rules.def"
#undef RULE

const struct lull_report *const lull_rules[] = {
#define RULE(name) &lull_rule_##name,
#include "report/rules.def"
#undef RULE
	NULL,
};

/* ---- the worst rows ---- */

#define DEFAULT_ROWS 50

/* What is kept beyond the wanted ones before it is sorted out. */
#define SLACK_ROWS 4096

int lull_worst_init(struct lull_worst *w, size_t elem_bytes,
		    const struct lull_report_options *options, struct lull_err *err)
{
	lull_vec_init(&w->all, elem_bytes);
	return lull_report_arg_rows(options, DEFAULT_ROWS, &w->n_wanted, err);
}

static int by_length(const void *a, const void *b)
{
	const struct lull_worst_key *x = a, *y = b;

	if (x->dur_ns != y->dur_ns)
		return x->dur_ns < y->dur_ns ? 1 : -1;
	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

void lull_worst_finish(struct lull_worst *w)
{
	if (w->all.n)
		lull_sort(w->all.at, w->all.n, w->all.elem_bytes, by_length);
	if (w->all.n > w->n_wanted)
		w->all.n = w->n_wanted;
}

void lull_worst_add(struct lull_worst *w, const void *element)
{
	lull_vec_add(&w->all, element, 1);
	if (w->n_wanted < SIZE_MAX - SLACK_ROWS && w->all.n >= w->n_wanted + SLACK_ROWS)
		lull_worst_finish(w);
}

void lull_worst_release(struct lull_worst *w)
{
	lull_vec_release(&w->all);
}

/* ---- copies and memsets ---- */

bool lull_rule_is_async(const struct lull_work *work, const char *name)
{
	return name ? strstr(name, "Async") != NULL : work->is_async;
}

static u32 pid_of(struct lull_reader *r, u32 process)
{
	size_t n;
	const struct lull_process_row *processes = lull_reader_dim(r, LULL_TABLE_process, &n);

	return process ? processes[process - 1].pid : 0;
}

static void put_op(struct lull_out *out, struct lull_reader *r, const struct lull_memory_op *op)
{
	struct lull_lane_row stream = lull_gpu_lane(r, op->work.lane);

	lull_out_row(out);
	lull_out_i64(out, (i64)op->key.dur_ns);
	lull_out_i64(out, (i64)op->key.start_ns);
	if (op->work.kind == LULL_WORK_MEMCPY)
		lull_out_text(out, lull_names_memory(op->work.src_kind));
	lull_out_text(out, lull_names_memory(op->work.dst_kind));
	lull_out_f64(out, (f64)op->work.size_bytes / LULL_GPU_MB);
	lull_out_i64(out, pid_of(r, op->work.process));
	lull_out_i64(out, lull_gpu_device_id(r, op->work.lane));
	lull_out_i64(out, stream.context_id);
	lull_gpu_put_green(out, r, &stream);
	lull_out_i64(out, stream.stream_id);
	lull_out_text(out, op->call ? lull_reader_string(r, op->call, NULL) : NULL);
}

static void find_ops(struct lull_worst *worst, struct lull_reader *r,
		     const struct lull_report_options *options, unsigned kind,
		     lull_memory_test *test)
{
	struct lull_memory_op op = { 0 };
	struct lull_work_cursor c;
	struct lull_link link;

	lull_link_init(&link, r);
	lull_work_begin(&c, r, kind, LULL_WORK_WANT_CALL | LULL_WORK_WANT_BYTES,
			lull_report_window(options));
	while (lull_work_next(&c, &op.work)) {
		const struct lull_call *call = lull_link_find(&link, &op.work);

		op.call = call ? call->name : 0;
		op.key = (struct lull_worst_key){ op.work.dur_ns, op.work.start_ns };
		if (lull_report_covers(options, op.work.start_ns, op.work.dur_ns) &&
		    test(&op.work, op.call ? lull_reader_string(r, op.call, NULL) : NULL))
			lull_worst_add(worst, &op);
	}
	lull_work_end(&c);
	lull_link_release(&link);
}

int lull_rule_memory(struct lull_reader *r, struct lull_out *out,
		     const struct lull_report_options *options, unsigned kind,
		     lull_memory_test *test, struct lull_err *err)
{
	const struct lull_memory_op *op;
	struct lull_worst worst;
	int rc = lull_worst_init(&worst, sizeof(*op), options, err);

	if (!rc)
		find_ops(&worst, r, options, kind, test);
	lull_worst_finish(&worst);
	op = worst.all.at;
	for (size_t i = 0; i < worst.all.n; i++)
		put_op(out, r, &op[i]);
	lull_worst_release(&worst);
	return rc;
}

/* ---- devices ---- */

u32 *lull_rule_tracks(struct lull_reader *r)
{
	size_t n;
	const struct lull_lane_row *lanes = lull_reader_dim(r, LULL_TABLE_lane, &n);
	u32 *tracks = lull_alloc(n + 1, sizeof(*tracks));

	for (size_t i = 0; i < n; i++)
		tracks[i + 1] = lanes[i].device;
	return tracks;
}

void lull_rule_put_device(struct lull_out *out, struct lull_reader *r, u32 stream_lane)
{
	struct lull_lane_row stream = lull_gpu_lane(r, stream_lane);

	lull_out_i64(out, pid_of(r, stream.process));
	lull_out_i64(out, lull_gpu_device_id(r, stream_lane));
	lull_out_i64(out, stream.context_id);
}

static int by_start(const void *a, const void *b)
{
	const struct lull_rule_overhead *x = a, *y = b;

	return (x->span.from_ns > y->span.from_ns) - (x->span.from_ns < y->span.from_ns);
}

void lull_rule_overheads(struct lull_vec *to, struct lull_reader *r)
{
	struct lull_overhead_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_vec_init(to, sizeof(struct lull_rule_overhead));
	lull_cursor_init(&c, r, LULL_TABLE_overhead, 0, UINT64_MAX);
	lull_cursor_want(&c, "start_ns");
	lull_cursor_want(&c, "dur_ns");
	lull_cursor_want(&c, "process");
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			struct lull_rule_overhead *o = lull_vec_push(to);

			o->span.from_ns = cols.start_ns[i];
			o->span.to_ns = lull_span_end_ns(cols.start_ns[i], cols.dur_ns[i]);
			o->process = cols.process[i];
		}
	}
	lull_cursor_release(&c);
	if (to->n)
		lull_sort(to->at, to->n, sizeof(struct lull_rule_overhead), by_start);
}
