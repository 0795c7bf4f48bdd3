/*
 * viewer_host - what threads did, as events of a timeline.
 */
#include <string.h>

#include "base/hash.h"
#include "base/str.h"
#include "export/viewer_int.h"
#include "model/names.h"
#include "model/nest.h"
#include "model/work.h"

/* Steps that get a name of their own, "step 12"; those after them are "step". */
#define MAX_STEP_NAMES 65536u

/* Annotations are named as PyTorch does, so that those of devices are not taken for threads'. */
static const char *category_of(const struct lull_label_row *label)
{
	switch (label->api) {
	case 2:
		return "lull";
	case LULL_LABEL_API_ANNOTATION:
		return "user_annotation";
	case LULL_LABEL_API_ON_DEVICE:
		return "gpu_user_annotation";
	default:
		return "nvtx";
	}
}

/* ---- ranges and marks ---- */

static u32 name_of_label(struct lull_viewer *t, u32 label)
{
	u32 *name = lull_viewer_name(t, label);
	struct lull_viewer_what what = { 0 };
	struct lull_label_row row = { 0 };
	struct lull_str color = LULL_STR_INIT;
	size_t len;
	const char *text;

	if (*name != 0)
		return *name;
	if (label)
		row = t->labels[label - 1];
	text = lull_reader_string(t->reader, row.name, &len);
	lull_viewer_call(&what, category_of(&row), text, len);
	lull_viewer_text(t, &what, LULL_VIEWER_ARG_domain, row.domain);
	lull_viewer_text(t, &what, LULL_VIEWER_ARG_category, row.category_name);
	if (row.color) {
		lull_str_addf(&color, "#%06x", row.color & 0xffffff);
		lull_viewer_bytes(&what, LULL_VIEWER_ARG_color, color.at, color.len);
	}
	*name = lull_viewer_add(t, &what);
	lull_str_release(&color);
	return *name;
}

/* The number that a range or mark carries, if it is a plain one. */
static void add_payload(struct lull_viewer_record *rec, u8 type, u64 bits)
{
	float f;
	f64 real;

	switch (type) {
	case 1:
		lull_viewer_value(rec, LULL_VIEWER_ARG_payload_u64, bits);
		break;
	case 2:
		lull_viewer_value(rec, LULL_VIEWER_ARG_payload_i64, bits);
		break;
	case 3:
		lull_viewer_value(rec, LULL_VIEWER_ARG_payload_f64, bits);
		break;
	case 4:
		lull_viewer_value(rec, LULL_VIEWER_ARG_payload_u64, (u32)bits);
		break;
	case 5:
		lull_viewer_value(rec, LULL_VIEWER_ARG_payload_i64, (u64)(i64)(i32)bits);
		break;
	case 6:
		memcpy(&f, &(u32){ (u32)bits }, sizeof(f));
		real = (f64)f;
		memcpy(&bits, &real, sizeof(bits));
		lull_viewer_value(rec, LULL_VIEWER_ARG_payload_f64, bits);
		break;
	default:
		break;
	}
}

static bool range_row(struct lull_viewer *t, const void *cols, size_t i,
		      struct lull_viewer_record *rec)
{
	const struct lull_range_cols *c = cols;
	bool is_startend = c->flags[i] & LULL_RANGE_START_END;

	rec->family = lull_viewer_family(t, c->lane[i],
					 is_startend ? LULL_VIEWER_RANGES : LULL_VIEWER_MAIN);
	rec->what = name_of_label(t, c->label[i]);
	add_payload(rec, c->payload_type[i], c->payload[i]);
	return true;
}

const struct lull_viewer_source lull_viewer_range = { LULL_TABLE_range, range_row };

static bool mark_row(struct lull_viewer *t, const void *cols, size_t i,
		     struct lull_viewer_record *rec)
{
	const struct lull_mark_cols *c = cols;

	rec->type = LULL_VIEWER_MOMENT;
	rec->family = lull_viewer_family(t, c->lane[i], LULL_VIEWER_MAIN);
	rec->what = name_of_label(t, c->label[i]);
	add_payload(rec, c->payload_type[i], c->payload[i]);
	return true;
}

const struct lull_viewer_source lull_viewer_mark = { LULL_TABLE_mark, mark_row };

static bool step_row(struct lull_viewer *t, const void *cols, size_t i,
		     struct lull_viewer_record *rec)
{
	const struct lull_step_cols *c = cols;
	bool has_name = c->number[i] < MAX_STEP_NAMES;
	u32 *name = lull_viewer_name(t, has_name ? (u32)c->number[i] : MAX_STEP_NAMES);
	struct lull_str text = LULL_STR_INIT;
	struct lull_viewer_what what = { 0 };

	rec->family = lull_viewer_family(t, c->lane[i], LULL_VIEWER_STEPS);
	lull_viewer_value(rec, LULL_VIEWER_ARG_number, c->number[i]);
	if (!*name) {
		lull_str_puts(&text, "step");
		if (has_name)
			lull_str_addf(&text, " %llu", (unsigned long long)c->number[i]);
		lull_viewer_call(&what, "step", text.at, text.len);
		*name = lull_viewer_add(t, &what);
		lull_str_release(&text);
	}
	rec->what = *name;
	return true;
}

const struct lull_viewer_source lull_viewer_step = { LULL_TABLE_step, step_row };

/* ---- calls ---- */

/* A name that is a text of the report, `len` bytes of it. */
static u32 name_of_text(struct lull_viewer *t, u32 text_id, const char *category, bool is_call)
{
	u32 *name = lull_viewer_name(t, text_id);
	struct lull_viewer_what what = { 0 };
	size_t len;
	const char *text;

	if (*name != 0)
		return *name;
	text = lull_reader_string(t->reader, text_id, &len);
	lull_viewer_call(&what, category, text, is_call ? lull_names_call_len(text, len) : len);
	return *name = lull_viewer_add(t, &what);
}

static bool cuda_call_row(struct lull_viewer *t, const void *cols, size_t i,
			  struct lull_viewer_record *rec)
{
	const struct lull_cuda_call_cols *c = cols;
	u32 process = lull_work_process(t->lanes, 0, c->lane[i]);

	rec->family = lull_viewer_family(t, c->lane[i], LULL_VIEWER_MAIN);
	rec->what = name_of_text(t, c->name[i], "cuda", true);
	lull_viewer_value(rec, LULL_VIEWER_ARG_correlation, c->correlation[i]);
	if (c->ret[i])
		lull_viewer_value(rec, LULL_VIEWER_ARG_ret, c->ret[i]);
	lull_viewer_flow(t, rec, process, c->correlation[i], LULL_VIEWER_FLOW_OUT);
	return true;
}

const struct lull_viewer_source lull_viewer_cuda_call = { LULL_TABLE_cuda_call, cuda_call_row };

static bool oscall_row(struct lull_viewer *t, const void *cols, size_t i,
		       struct lull_viewer_record *rec)
{
	const struct lull_oscall_cols *c = cols;

	rec->family = lull_viewer_family(t, c->lane[i], LULL_VIEWER_MAIN);
	rec->what = name_of_text(t, c->name[i], "osrt", false);
	lull_viewer_value(rec, LULL_VIEWER_ARG_ret, (u64)c->ret[i]);
	if (c->arg[i])
		lull_viewer_value(rec, LULL_VIEWER_ARG_arg, (u64)c->arg[i]);
	return true;
}

const struct lull_viewer_source lull_viewer_oscall = { LULL_TABLE_oscall, oscall_row };

static bool gil_wait_row(struct lull_viewer *t, const void *cols, size_t i,
			 struct lull_viewer_record *rec)
{
	const struct lull_gil_wait_cols *c = cols;

	rec->family = lull_viewer_family(t, c->lane[i], LULL_VIEWER_MAIN);
	rec->what = lull_viewer_word(t, 0, "gil", "waiting for the interpreter lock");
	lull_viewer_value(rec, LULL_VIEWER_ARG_slices, c->n_slices[i]);
	return true;
}

const struct lull_viewer_source lull_viewer_gil_wait = { LULL_TABLE_gil_wait, gil_wait_row };

static bool sched_row(struct lull_viewer *t, const void *cols, size_t i,
		      struct lull_viewer_record *rec)
{
	static const char *const reasons[] = { "", "it waits", "preempted", "ended",
					       "recording ended" };
	const struct lull_sched_cols *c = cols;
	u32 reason = c->end_reason[i] < LULL_COUNT_OF(reasons) ? c->end_reason[i] : 0;
	u32 *name = lull_viewer_name(t, c->cpu[i] * (u32)LULL_COUNT_OF(reasons) + reason);
	struct lull_str text = LULL_STR_INIT;
	struct lull_viewer_what what = { 0 };

	rec->family = lull_viewer_family(t, c->lane[i], LULL_VIEWER_ON_CPU);
	if (!*name) {
		lull_str_addf(&text, "CPU %u", c->cpu[i]);
		lull_viewer_call(&what, "sched", text.at, text.len);
		lull_viewer_bytes(&what, LULL_VIEWER_ARG_end_reason, reasons[reason],
				  strlen(reasons[reason]));
		*name = lull_viewer_add(t, &what);
		lull_str_release(&text);
	}
	rec->what = *name;
	return true;
}

const struct lull_viewer_source lull_viewer_sched = { LULL_TABLE_sched, sched_row };

/* ---- the framework ---- */

static u32 name_of_op(struct lull_viewer *t, u32 label)
{
	static const char *const categories[] = { "op", "op", "backward", "framework" };
	u32 *name = lull_viewer_name(t, label);
	struct lull_viewer_what what = { 0 };
	struct lull_op_label_row row = { 0 };
	size_t len;
	const char *text;

	if (*name != 0)
		return *name;
	if (label)
		row = t->op_labels[label - 1];
	text = lull_reader_string(t->reader, row.name, &len);
	lull_viewer_call(&what, categories[row.kind < LULL_COUNT_OF(categories) ? row.kind : 0],
			 text, len);
	lull_viewer_text(t, &what, LULL_VIEWER_ARG_shapes, row.shapes);
	lull_viewer_text(t, &what, LULL_VIEWER_ARG_types, row.types);
	lull_viewer_text(t, &what, LULL_VIEWER_ARG_inputs, row.inputs);
	lull_viewer_text(t, &what, LULL_VIEWER_ARG_module, row.module);
	return *name = lull_viewer_add(t, &what);
}

static bool op_row(struct lull_viewer *t, const void *cols, size_t i,
		   struct lull_viewer_record *rec)
{
	const struct lull_op_cols *c = cols;

	rec->family = lull_viewer_family(t, c->lane[i], LULL_VIEWER_MAIN);
	rec->what = name_of_op(t, c->label[i]);
	if (c->sequence[i] >= 0)
		lull_viewer_value(rec, LULL_VIEWER_ARG_sequence, (u64)c->sequence[i]);
	if (c->external_id[i])
		lull_viewer_value(rec, LULL_VIEWER_ARG_external, c->external_id[i]);
	return true;
}

const struct lull_viewer_source lull_viewer_op = { LULL_TABLE_op, op_row };

static bool pycall_row(struct lull_viewer *t, const void *cols, size_t i,
		       struct lull_viewer_record *rec)
{
	const struct lull_pycall_cols *c = cols;
	u32 *name = lull_viewer_name(t, c->frame[i]);
	struct lull_frame_row row = { 0 };
	struct lull_viewer_what what = { 0 };
	size_t len;
	const char *text;

	rec->family = lull_viewer_family(t, c->lane[i], LULL_VIEWER_PYTHON);
	if (!*name) {
		if (c->frame[i])
			row = t->frames[c->frame[i] - 1];
		text = lull_reader_string(t->reader, row.function, &len);
		lull_viewer_call(&what, "python", text, len);
		lull_viewer_text(t, &what, LULL_VIEWER_ARG_file, row.file);
		if (row.line)
			lull_viewer_number(&what, LULL_VIEWER_ARG_line, row.line);
		*name = lull_viewer_add(t, &what);
	}
	rec->what = *name;
	return true;
}

const struct lull_viewer_source lull_viewer_pycall = { LULL_TABLE_pycall, pycall_row };

static u32 name_of_collective(struct lull_viewer *t, const struct lull_collective_cols *c, size_t i)
{
	u64 parts[] = { c->name[i], c->comm[i],	    c->comm_name[i], c->n_ranks[i],
			c->rank[i], c->datatype[i], c->op[i],	     (u64)c->peer[i] };
	u32 *name = lull_viewer_hashed(t, lull_hash(parts, sizeof(parts)));
	struct lull_viewer_what what = { 0 };
	struct lull_str comm = LULL_STR_INIT;
	size_t len;
	const char *text;

	if (*name != 0)
		return *name;
	text = lull_reader_string(t->reader, c->name[i], &len);
	lull_viewer_call(&what, "collective", text, len);
	if (c->comm_name[i])
		lull_str_puts(&comm, lull_reader_string(t->reader, c->comm_name[i], NULL));
	else
		lull_str_addf(&comm, "0x%llx", (unsigned long long)c->comm[i]);
	lull_viewer_bytes(&what, LULL_VIEWER_ARG_communicator, comm.at, comm.len);
	if (c->n_ranks[i]) {
		lull_viewer_number(&what, LULL_VIEWER_ARG_ranks, c->n_ranks[i]);
		lull_viewer_number(&what, LULL_VIEWER_ARG_rank, c->rank[i]);
	}
	lull_viewer_text(t, &what, LULL_VIEWER_ARG_datatype, c->datatype[i]);
	lull_viewer_text(t, &what, LULL_VIEWER_ARG_reduction, c->op[i]);
	if (c->peer[i] >= 0)
		lull_viewer_number(&what, LULL_VIEWER_ARG_peer, (u64)c->peer[i]);
	*name = lull_viewer_add(t, &what);
	lull_str_release(&comm);
	return *name;
}

static bool collective_row(struct lull_viewer *t, const void *cols, size_t i,
			   struct lull_viewer_record *rec)
{
	const struct lull_collective_cols *c = cols;

	rec->family = lull_viewer_family(t, c->lane[i], LULL_VIEWER_MAIN);
	rec->what = name_of_collective(t, c, i);
	lull_viewer_value(rec, LULL_VIEWER_ARG_in_bytes, c->in_bytes[i]);
	lull_viewer_value(rec, LULL_VIEWER_ARG_out_bytes, c->out_bytes[i]);
	lull_viewer_value(rec, LULL_VIEWER_ARG_number, c->seq[i]);
	return true;
}

const struct lull_viewer_source lull_viewer_collective = { LULL_TABLE_collective, collective_row };
