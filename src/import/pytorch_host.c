#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "import/pytorch_int.h"

enum { OP_OPERATOR = 1, OP_BACKWARD = 2, OP_OTHER = 3 };
enum { FRAME_PYTHON = 2 };
enum { API_DRIVER = 1, API_RUNTIME = 2 };

/*
 * Inputs such as a step's number make every call of an operator one of its own; after this many
 * labels inputs are left out, so that there is room for shapes; and later shapes, for names.
 */
#define MAX_LABELS_WITH_INPUTS (96u << 10)
#define MAX_LABELS_WITH_SHAPES (160u << 10)

/* ---- operators ---- */

static bool has_suffix_backward(const struct lull_jtext *name)
{
	size_t len = name->len;

	while (len && name->at[len - 1] >= '0' && name->at[len - 1] <= '9')
		len--;
	return len >= 8 && !memcmp(name->at + len - 8, "Backward", 8);
}

static u8 op_kind(const struct lull_jtext *name)
{
	static const char evaluate[] = "autograd::engine::evaluate_function";

	if (name->len >= sizeof(evaluate) - 1 && !memcmp(name->at, evaluate, sizeof(evaluate) - 1))
		return OP_BACKWARD;
	if (has_suffix_backward(name))
		return OP_BACKWARD;
	return memmem(name->at, name->len, "::", 2) ? OP_OPERATOR : OP_OTHER;
}

static u64 mix(u64 hash, const struct lull_jtext *text)
{
	return text->len ? lull_hash_mix(hash ^ 0x2545f4914f6cdd1dULL, lull_mapper_hash(text))
			 : hash * 0x9e3779b97f4a7c15ULL;
}

static u32 op_label(struct lull_chrome *c, const struct lull_jevent *e)
{
	struct lull_pytorch *pt = lull_pytorch(c);
	struct lull_jtext shapes = lull_jevent_text(e, LULL_ARG_dims);
	struct lull_jtext types = lull_jevent_text(e, LULL_ARG_types);
	struct lull_jtext inputs = lull_jevent_text(e, LULL_ARG_inputs);
	u32 *id;

	if (!shapes.len)
		shapes = lull_jevent_text(e, LULL_ARG_old_dims);
	if (inputs.len && pt->n_labels >= MAX_LABELS_WITH_INPUTS) {
		lull_mapper_gap(&c->map, LULL_ISSUE_import_args, "too many different",
				&(struct lull_jtext){ "inputs", 6, false });
		inputs.len = 0;
	}
	if (shapes.len && pt->n_labels >= MAX_LABELS_WITH_SHAPES) {
		lull_mapper_gap(&c->map, LULL_ISSUE_import_args, "too many different",
				&(struct lull_jtext){ "shapes", 6, false });
		shapes.len = types.len = 0;
	}
	id = lull_mapper_thing(&c->map, LULL_PYTORCH_LABEL,
			       mix(mix(mix(lull_mapper_hash(&e->name), &shapes), &types), &inputs));
	if (!*id) {
		struct lull_op_label_row row = {
			.name = lull_mapper_text(&c->map, &e->name),
			.kind = op_kind(&e->name),
			.shapes = lull_mapper_text(&c->map, &shapes),
			.types = lull_mapper_text(&c->map, &types),
			.inputs = lull_mapper_text(&c->map, &inputs),
		};

		*id = lull_writer_add_dim(c->map.writer, LULL_TABLE_op_label, &row);
		pt->n_labels++;
	}
	return *id;
}

/* torch.profiler names the steps of its schedule so. */
static const char step_prefix[] = "ProfilerStep#";

static bool has_step_name(const struct lull_jevent *e)
{
	return e->name.len >= sizeof(step_prefix) &&
	       !memcmp(e->name.at, step_prefix, sizeof(step_prefix) - 1);
}

bool lull_pytorch_op(struct lull_chrome *c, const struct lull_jevent *e)
{
	struct lull_op_row row = { 0 };

	/* Until 1.11 ranges are operators, too; steps are told by their name. */
	if (has_step_name(e))
		return lull_pytorch_annotation(c, e);

	if (!lull_chrome_span(c, e, &row.start_ns, &row.dur_ns))
		return true;
	row.lane = lull_mapper_thread(&c->map, &e->pid, &e->tid);
	row.label = op_label(c, e);
	row.sequence = lull_jevent_int(e, LULL_ARG_sequence, -1);
	row.forward_tid = (u64)lull_jevent_int(e, LULL_ARG_forward_tid, 0);
	row.external_id = (u64)lull_jevent_int(e, LULL_ARG_external_id,
					       lull_jevent_int(e, LULL_ARG_old_external_id, 0));
	lull_mapper_nest(&c->map, LULL_NESTING_OP, &row);
	return true;
}

/* ---- annotations ---- */

static void add_step(struct lull_chrome *c, const struct lull_jevent *e,
		     const struct lull_range_row *range)
{
	size_t len = sizeof(step_prefix) - 1;
	struct lull_jtext digits = { e->name.at + len, e->name.len - len, false };
	struct lull_step_row row = {
		.start_ns = range->start_ns,
		.dur_ns = range->dur_ns,
		.lane = range->lane,
	};
	i64 number;

	if (!has_step_name(e) || !lull_jtext_i64(&digits, &number))
		return;
	row.number = (u64)number;
	lull_writer_add(c->map.writer, LULL_TABLE_step, &row);
}

bool lull_pytorch_annotation(struct lull_chrome *c, const struct lull_jevent *e)
{
	struct lull_jtext none = { "", 0, false };
	struct lull_range_row row = { 0 };

	if (!lull_chrome_span(c, e, &row.start_ns, &row.dur_ns))
		return true;
	row.lane = lull_mapper_thread(&c->map, &e->pid, &e->tid);
	row.label = lull_mapper_label(&c->map, &e->name, &none, LULL_LABEL_ANNOTATION);
	lull_mapper_nest(&c->map, LULL_NESTING_RANGE, &row);
	add_step(c, e, &row);
	return true;
}

/* ---- Python ---- */

/* Take "file.py(41): step" apart; a name that is not so is a function alone. */
static void fill_frame(struct lull_chrome *c, const struct lull_jtext *name,
		       struct lull_frame_row *row)
{
	const char *at = name->at, *end = at + name->len;
	const char *colon = memmem(at, name->len, "): ", 3), *open = colon;
	struct lull_jtext part = { at, 0, name->has_escapes };
	i64 line;

	while (open && open > at && *open != '(')
		open--;
	if (open && open > at) {
		part = (struct lull_jtext){ open + 1, (size_t)(colon - open - 1), false };
		if (lull_jtext_i64(&part, &line)) {
			row->line = (u32)line;
			part = (struct lull_jtext){ at, (size_t)(open - at), name->has_escapes };
			row->file = lull_mapper_text(&c->map, &part);
			at = colon + 3;
		}
	}
	part = (struct lull_jtext){ at, (size_t)(end - at), name->has_escapes };
	row->function = lull_mapper_text(&c->map, &part);
}

bool lull_pytorch_python(struct lull_chrome *c, const struct lull_jevent *e)
{
	struct lull_pycall_row row = { 0 };
	u32 *frame;

	if (!lull_chrome_span(c, e, &row.start_ns, &row.dur_ns))
		return true;
	row.lane = lull_mapper_thread(&c->map, &e->pid, &e->tid);
	frame = lull_mapper_thing(&c->map, LULL_PYTORCH_FRAME, lull_mapper_hash(&e->name));
	if (!*frame) {
		struct lull_frame_row place = { .kind = FRAME_PYTHON };

		fill_frame(c, &e->name, &place);
		*frame = lull_writer_add_dim(c->map.writer, LULL_TABLE_frame, &place);
	}
	row.frame = *frame;
	lull_mapper_nest(&c->map, LULL_NESTING_PYCALL, &row);
	return true;
}

/* ---- calls of CUDA ---- */

static bool add_call(struct lull_chrome *c, const struct lull_jevent *e, u8 api)
{
	struct lull_cuda_call_row row = { .api = api };

	if (!lull_chrome_span(c, e, &row.start_ns, &row.dur_ns))
		return true;
	row.lane = lull_mapper_thread(&c->map, &e->pid, &e->tid);
	row.name = lull_mapper_text(&c->map, &e->name);
	row.correlation = (u32)lull_jevent_int(e, LULL_ARG_correlation, 0);
	lull_mapper_saw(&c->map, row.lane, row.start_ns);
	lull_writer_add(c->map.writer, LULL_TABLE_cuda_call, &row);
	lull_pytorch_give(c, e);
	return true;
}

bool lull_pytorch_runtime(struct lull_chrome *c, const struct lull_jevent *e)
{
	return add_call(c, e, API_RUNTIME);
}

bool lull_pytorch_driver(struct lull_chrome *c, const struct lull_jevent *e)
{
	return add_call(c, e, API_DRIVER);
}

/* ---- the allocator, and costs of recording ---- */

bool lull_pytorch_instant(struct lull_chrome *c, const struct lull_jevent *e)
{
	struct lull_alloc_row row = { 0 };
	i64 device = lull_jevent_int(e, LULL_ARG_alloc_device_id, 0);
	u64 dur_ns;

	if (!lull_jtext_is(&e->name, "[memory]") || !lull_jevent_has(e, LULL_ARG_alloc_bytes))
		return false;
	if (!lull_chrome_span(c, e, &row.start_ns, &dur_ns))
		return true;
	row.lane = lull_mapper_thread(&c->map, &e->pid, &e->tid);
	row.device_kind = (u8)lull_jevent_int(e, LULL_ARG_alloc_device_type, 0);
	row.device_id = device > 0 ? (u32)device : 0;
	row.address = (u64)lull_jevent_int(e, LULL_ARG_alloc_address, 0);
	row.size_bytes = lull_jevent_int(e, LULL_ARG_alloc_bytes, 0);
	row.allocated_bytes = (u64)lull_jevent_int(e, LULL_ARG_alloc_total, 0);
	row.reserved_bytes = (u64)lull_jevent_int(e, LULL_ARG_alloc_reserved, 0);
	lull_mapper_saw(&c->map, row.lane, row.start_ns);
	lull_writer_add(c->map.writer, LULL_TABLE_alloc, &row);
	return true;
}

bool lull_pytorch_overhead(struct lull_chrome *c, const struct lull_jevent *e)
{
	/* Names that Kineto gives the kinds of CUPTI's activity records. */
	static const struct {
		const char *name;
		u32 kind;
	} kinds[] = {
		{ "Driver Compiler", 1 },
		{ "Buffer Flush", 65536 },
		{ "Instrumentation", 131072 },
		{ "Resource", 196608 },
		{ "Runtime Triggered Module Loading", 262144 },
		{ "Lazy Function Loading", 327680 },
		{ "Command Buffer Full", 393216 },
		{ "Activity Buffer Request", 458752 },
	};
	struct lull_overhead_row row = { 0 };

	if (!lull_chrome_span(c, e, &row.start_ns, &row.dur_ns))
		return true;
	for (size_t i = 0; i < LULL_COUNT_OF(kinds); i++)
		if (lull_jtext_is(&e->name, kinds[i].name))
			row.kind = kinds[i].kind;
	if (!row.kind)
		return false;
	/* The overhead of all threads has the process -1. */
	row.tid = e->tid.number > 0 ? (u32)e->tid.number : 0;
	row.process = c->map.main_process;
	lull_writer_add(c->map.writer, LULL_TABLE_overhead, &row);
	return true;
}
