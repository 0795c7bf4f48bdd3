/*
 * decode_range - names, ranges, marks and steps.
 *
 * A range row is written when the range ends. Push and pop are matched by domain and level, not by
 * counting: when events in between were dropped, what is left still pairs up.
 */
#include "record/decode/decode_event.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "record/decode/decode_nccl.h"
#include "record/live/duty.h"
#include "record/live/pulse.h"
#include "text/op_name.h"

/* Kernels, categories and schemas have their names among these; a program has some thousands. */
#define KEPT_TEXTS 65536

/* What a label has in the column api while its definition has not been seen. */
#define API_UNKNOWN 0

#define PAYLOAD_JSON 10

#define FLAG_NOT_ENDED	  1
#define FLAG_START_END	  4
#define FLAG_OTHER_THREAD 8

/* Keep the text of a name for (always) events of later reports, too. */
static void keep_text(struct lull_recording *r, u64 hash, const char *text, size_t len)
{
	bool is_new;
	u32 *ix = lull_map_add(&r->texts, hash, &is_new);

	if (!is_new)
		return;
	*(char **)lull_vec_push(&r->text_list) = lull_strndup(text, len);
	*ix = (u32)r->text_list.n;
}

/* Remember a name that has numbers of one range in it, so that its label can do without them. */
static void keep_op_name(struct lull_recording *r, u64 hash, const char *text, size_t len)
{
	struct lull_str json = LULL_STR_INIT;
	struct lull_op_name *op;

	if (lull_op_name_split(text, len, &len, &json)) {
		op = lull_vec_push(&r->op_name_list);
		op->name = lull_writer_string(r->writer, text, len);
		op->data = lull_writer_string(r->writer, json.at, json.len);
		*lull_map_add(&r->op_names, hash, NULL) = (u32)r->op_name_list.n;
	}
	lull_str_release(&json);
}

void lull_decode_string(struct lull_recording *r, struct lull_task *task, u32 level,
			const struct lull_event *event)
{
	const struct lull_wire_string *e = (const void *)event;
	size_t room = event->size_bytes - sizeof(*e);
	size_t len = event->a < room ? event->a : room;
	bool is_new;
	u32 *id;

	(void)task;
	(void)level;
	/* Names that never repeat (they carry a number) are not worth keeping beyond the report. */
	if (!r->writer || r->text_list.n < KEPT_TEXTS)
		keep_text(r, e->hash, (const char *)(e + 1), len);
	if (!r->writer)
		return;
	id = lull_map_add(&r->strings, e->hash, &is_new);
	if (is_new) {
		*id = lull_writer_string(r->writer, (const char *)(e + 1), len);
		keep_op_name(r, e->hash, (const char *)(e + 1), len);
	}
}

static u32 category_name(struct lull_recording *r, u64 domain, u32 number)
{
	const struct lull_category *all = r->categories.at;

	for (size_t i = r->categories.n; number && i-- > 0;)
		if (all[i].number == number && all[i].domain == domain)
			return lull_recording_text(r, all[i].name);
	return 0;
}

static bool is_unknown(struct lull_recording *r, u32 label)
{
	const struct lull_label_row *row = lull_writer_dim(r->writer, LULL_TABLE_label, label);

	return row && row->api == API_UNKNOWN;
}

/* Labels that differ in such numbers only are one: its place in the map of labels gets its id. */
static bool take_op_label(struct lull_recording *r, const struct lull_wire_label *e, u32 *id,
			  struct lull_label_row *row)
{
	const u32 *ix = lull_map_find(&r->op_names, e->name);
	const struct lull_op_name *op = ix ? lull_vec_get(&r->op_name_list, *ix - 1) : NULL;
	u64 key[5];
	u32 *known;

	if (!op)
		return false;
	row->name = op->name;
	key[0] = row->name;
	key[1] = row->domain;
	key[2] = (u64)row->category << 32 | row->category_name;
	key[3] = row->color;
	key[4] = row->api;
	known = lull_map_add(&r->op_ranges, lull_hash(key, sizeof(key)), NULL);
	if (!*known)
		*known = lull_writer_add_dim(r->writer, LULL_TABLE_label, row);
	*id = *known;
	*lull_map_add(&r->op_data, e->hash, NULL) = op->data;
	return true;
}

void lull_decode_label(struct lull_recording *r, struct lull_task *task, u32 level,
		       const struct lull_event *event)
{
	const struct lull_wire_label *e = (const void *)event;
	struct lull_label_row row;
	const u32 *kept;
	bool is_new;
	u32 *id;

	(void)task;
	(void)level;
	if (!r->writer)
		return;
	id = lull_map_add(&r->labels, e->hash, &is_new);
	if (!is_new && !is_unknown(r, *id))
		return;
	row = (struct lull_label_row){
		.name = lull_recording_name(r, e->name),
		.domain = lull_recording_name(r, e->domain),
		.category = event->a,
		.category_name = category_name(r, e->domain, event->a),
		.color = e->color,
		.api = (u8)e->api,
	};
	if (is_new && take_op_label(r, e, id, &row))
		return;
	if (is_new)
		*id = lull_writer_add_dim(r->writer, LULL_TABLE_label, &row);
	else
		lull_writer_set_dim(r->writer, LULL_TABLE_label, *id, &row);
	kept = lull_map_find(&r->texts, e->name);
	if (r->pulse)
		lull_pulse_label(r->pulse, *id, lull_recording_kept(r, e->name));
	lull_nccl_label(r, *id, lull_recording_kept(r, e->domain), kept ? *kept : 0);
}

/*
 * Row id of a label; one whose definition was dropped is shown as "(unknown)", until a later use
 * brings it: the agent tries again each time.
 */
static u32 label_of(struct lull_recording *r, u64 hash)
{
	bool is_new;
	u32 *id = lull_map_add(&r->labels, hash, &is_new);

	if (is_new) {
		struct lull_label_row row = { .name = lull_recording_text(r, "(unknown)"),
					      .api = API_UNKNOWN };

		*id = lull_writer_add_dim(r->writer, LULL_TABLE_label, &row);
	}
	return *id;
}

/* The payload after an event whose fixed part has `fixed_bytes`; of several the first is kept. */
static void read_payload(struct lull_recording *r, const struct lull_event *event,
			 size_t fixed_bytes, struct lull_open_range *to)
{
	const struct lull_wire_payload *p = (const void *)((const u8 *)event + fixed_bytes);
	size_t room;

	if (event->size_bytes < fixed_bytes + sizeof(*p))
		return;
	room = event->size_bytes - fixed_bytes - sizeof(*p);
	to->payload_type = (u8)p->type;
	to->payload = p->value;
	to->n_head = (u8)(p->n_bytes < room ? p->n_bytes : room);
	if (p->n_bytes > sizeof(to->head))
		to->n_head = 0; /* NCCL's are smaller, and nobody else looks at it */
	memcpy(to->head, p + 1, to->n_head);
	if (p->n_bytes)
		to->data = lull_writer_string(r->writer, (const char *)(p + 1),
					      p->n_bytes < room ? p->n_bytes : room);
}

/* What was in its name. */
static void take_op_data(struct lull_recording *r, u64 label, struct lull_open_range *to)
{
	const u32 *data = to->payload_type ? NULL : lull_map_find(&r->op_data, label);

	if (!data)
		return;
	to->payload_type = PAYLOAD_JSON;
	to->data = *data;
}

static void write_range(struct lull_recording *r, struct lull_task *task,
			const struct lull_open_range *open, u64 end_ns, u8 flags)
{
	struct lull_range_row row = {
		.start_ns = open->start_ns,
		.dur_ns = end_ns > open->start_ns ? end_ns - open->start_ns : 0,
		.depth = open->depth,
		.lane = lull_recording_lane(r, task),
		.label = open->label,
		.flags = flags,
		.payload_type = open->payload_type,
		.payload = open->payload,
		.data = open->data,
	};

	lull_recording_add(r, LULL_TABLE_range, &row);
	lull_nccl_range(r, task, open, end_ns);
}

/* Drop open ranges of the domain at `level` or above: their ends were lost. */
static void forget_above(struct lull_recording *r, struct lull_task *task, u32 place)
{
	struct lull_open_range *open = task->open.at;
	size_t n = 0;

	for (size_t i = 0; i < task->open.n; i++) {
		if (open[i].place >> 16 == place >> 16 &&
		    (open[i].place & 0xffff) >= (place & 0xffff))
			lull_recording_issue(r, LULL_ISSUE_range_mismatch, task->process, 1, NULL);
		else
			open[n++] = open[i];
	}
	task->open.n = n;
}

/* The last open range is usually the one; else search. Index, or -1. */
static long find_open(const struct lull_task *task, u32 place)
{
	const struct lull_open_range *open = task->open.at;

	for (size_t i = task->open.n; i-- > 0;)
		if (open[i].place == place)
			return (long)i;
	return -1;
}

void lull_decode_push(struct lull_recording *r, struct lull_task *task, u32 level,
		      const struct lull_event *event)
{
	const struct lull_wire_range *e = (const void *)event;
	const struct lull_open_range *last;
	struct lull_open_range *open;
	size_t n = task->open.n;

	(void)level;
	if (!r->writer)
		return;
	last = n ? lull_vec_get(&task->open, n - 1) : NULL;
	if (last && last->place >> 16 == event->a >> 16 &&
	    (last->place & 0xffff) >= (event->a & 0xffff))
		forget_above(r, task, event->a);
	n = task->open.n;
	open = lull_vec_push(&task->open);
	open->start_ns = lull_decode_time(r, event);
	open->place = event->a;
	open->label = label_of(r, e->label);
	open->depth = n < 255 ? (u8)n : 255;
	read_payload(r, event, sizeof(*e), open);
	take_op_data(r, e->label, open);
}

void lull_decode_pop(struct lull_recording *r, struct lull_task *task, u32 level,
		     const struct lull_event *event)
{
	struct lull_open_range *open;
	long ix;

	(void)level;
	if (!r->writer)
		return;
	ix = find_open(task, event->a);
	if (ix < 0) {
		lull_recording_issue(r, LULL_ISSUE_range_mismatch, task->process, 1, NULL);
		return;
	}
	open = lull_vec_get(&task->open, (size_t)ix);
	if (!open->payload_type)
		read_payload(r, event, sizeof(*event), open);
	write_range(r, task, open, lull_decode_time(r, event), 0);
	memmove(open, open + 1, (task->open.n - (size_t)ix - 1) * sizeof(*open));
	task->open.n--;
}

void lull_decode_start(struct lull_recording *r, struct lull_task *task, u32 level,
		       const struct lull_event *event)
{
	const struct lull_wire_start *e = (const void *)event;
	struct lull_shared_range *shared;

	(void)level;
	if (!r->writer)
		return;
	shared = lull_vec_push(&task->process->shared_ranges);
	shared->task = task;
	shared->range.start_ns = lull_decode_time(r, event);
	shared->range.range_id = e->range_id;
	shared->range.place = event->a;
	shared->range.label = label_of(r, e->label);
	read_payload(r, event, sizeof(*e), &shared->range);
	take_op_data(r, e->label, &shared->range);
}

void lull_decode_end(struct lull_recording *r, struct lull_task *task, u32 level,
		     const struct lull_event *event)
{
	const struct lull_wire_end *e = (const void *)event;
	struct lull_vec *all = &task->process->shared_ranges;
	struct lull_shared_range *s = all->at;

	(void)level;
	if (!r->writer)
		return;
	for (size_t i = all->n; i-- > 0;) {
		if (s[i].range.range_id != e->range_id)
			continue;
		if (!s[i].range.payload_type)
			read_payload(r, event, sizeof(*e), &s[i].range);
		write_range(r, s[i].task, &s[i].range, lull_decode_time(r, event),
			    FLAG_START_END | (s[i].task == task ? 0 : FLAG_OTHER_THREAD));
		s[i] = s[--all->n];
		return;
	}
	lull_recording_issue(r, LULL_ISSUE_range_mismatch, task->process, 1, NULL);
}

void lull_decode_mark(struct lull_recording *r, struct lull_task *task, u32 level,
		      const struct lull_event *event)
{
	const struct lull_wire_range *e = (const void *)event;
	struct lull_open_range payload = { 0 };
	struct lull_mark_row row;

	(void)level;
	if (!r->writer)
		return;
	read_payload(r, event, sizeof(*e), &payload);
	take_op_data(r, e->label, &payload);
	row = (struct lull_mark_row){
		.start_ns = lull_decode_time(r, event),
		.lane = lull_recording_lane(r, task),
		.label = label_of(r, e->label),
		.payload_type = payload.payload_type,
		.payload = payload.payload,
		.data = payload.data,
	};
	lull_recording_add(r, LULL_TABLE_mark, &row);
}

static void end_step(struct lull_recording *r, struct lull_task *task, u64 now_ns)
{
	struct lull_step_row row = {
		.start_ns = task->step_start_ns - 1,
		.dur_ns = now_ns - (task->step_start_ns - 1),
		.number = task->step_number,
		.source = task->is_step_hooked,
	};

	if (!task->step_start_ns)
		return;
	row.lane = lull_recording_lane(r, task);
	lull_recording_add(r, LULL_TABLE_step, &row);
	task->step_start_ns = 0;
}

void lull_decode_step(struct lull_recording *r, struct lull_task *task, u32 level,
		      const struct lull_event *event)
{
	const struct lull_wire_step *e = (const void *)event;

	(void)level;
	if (!r->writer)
		return;
	if (r->duty)
		lull_duty_step(r->duty, r, task, e);
	if (event->a & LULL_STEP_OUTSIDE)
		return;
	if (event->a & LULL_STEP_NONE)
		task->step_start_ns = 0;
	end_step(r, task, lull_decode_time(r, event));
	if (event->a & LULL_STEP_END)
		return;
	task->is_step_hooked = event->a & LULL_STEP_HOOKED ? 1 : 0;
	task->step_number = e->number;
	task->step_start_ns = lull_decode_time(r, event) + 1; /* + 1: 0 means none is open */
}

void lull_decode_category(struct lull_recording *r, struct lull_task *task, u32 level,
			  const struct lull_event *event)
{
	const struct lull_wire_category *e = (const void *)event;
	const char *name = lull_recording_kept(r, e->name);
	struct lull_category *all = r->categories.at, *c = NULL;

	(void)task;
	(void)level;
	/* A forked child says again what its parent said; and names may change. */
	for (size_t i = 0; i < r->categories.n && !c; i++)
		if (all[i].number == event->a && all[i].domain == e->domain)
			c = &all[i];
	if (!c)
		c = lull_vec_push(&r->categories);
	free(c->name);
	c->domain = e->domain;
	c->number = event->a;
	c->name = lull_strdup(name);
}

static u32 keep_schema_text(struct lull_recording *r, const char *text, size_t len)
{
	return lull_intern_add(&r->schema_texts, text, len);
}

void lull_decode_schema(struct lull_recording *r, struct lull_task *task, u32 level,
			const struct lull_event *event)
{
	const struct lull_wire_schema *e = (const void *)event;
	struct lull_schema_text *s = lull_vec_push(&task->process->schemas);
	const char *domain = lull_recording_kept(r, e->domain);
	const char *name = lull_recording_kept(r, e->name);
	size_t room = event->size_bytes - sizeof(*e);

	(void)level;
	s->schema_id = e->schema_id;
	s->size_bytes = e->size_bytes;
	s->kind = e->kind;
	s->domain = keep_schema_text(r, domain, strlen(domain));
	s->name = keep_schema_text(r, name, strlen(name));
	s->entries = keep_schema_text(r, (const char *)(e + 1), event->a < room ? event->a : room);
}

void lull_decode_close(struct lull_recording *r, struct lull_task *task, u64 now_ns)
{
	const struct lull_open_range *open = task->open.at;

	for (size_t i = 0; i < task->open.n; i++)
		write_range(r, task, &open[i], now_ns, FLAG_NOT_ENDED);
	task->open.n = 0;
	end_step(r, task, now_ns);
}

void lull_decode_close_shared(struct lull_recording *r, struct lull_process *process, u64 now_ns)
{
	const struct lull_shared_range *s = process->shared_ranges.at;

	for (size_t i = 0; i < process->shared_ranges.n; i++)
		write_range(r, s[i].task, &s[i].range, now_ns, FLAG_NOT_ENDED | FLAG_START_END);
	process->shared_ranges.n = 0;
}
