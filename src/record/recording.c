#include "record/decode/decode_nccl.h"
#include "record/recording.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/mem.h"
#include "base/time.h"
#include "record/decode/decode_event.h"
#include "record/decode/decode_kernel.h"
#include "record/decode/device_clock.h"
#include "record/process/image.h"
#include "record/session/job_rank.h"
#include "record/live/pulse.h"
#include "trace/issue.h"

void lull_recording_init(struct lull_recording *r, struct lull_clock *clock, struct lull_tree *tree)
{
	*r = (struct lull_recording){ .clock = clock, .tree = tree };
	lull_files_init(&r->files);
	lull_unwind_init(&r->unwind);
	lull_vec_init(&r->troubles, sizeof(struct lull_trouble));
	lull_vec_init(&r->text_list, sizeof(char *));
	lull_vec_init(&r->categories, sizeof(struct lull_category));
	lull_intern_init(&r->schema_texts);
	lull_vec_init(&r->held_work, sizeof(struct lull_device_work));
	lull_profiled_init(r);
	lull_nccl_init(r);
}

static void clear_troubles(struct lull_recording *r)
{
	struct lull_trouble *t = r->troubles.at;

	for (size_t i = 0; i < r->troubles.n; i++)
		free(t[i].detail);
	r->troubles.n = 0;
}

/* Forget what belongs to one report. */
static void end_report(struct lull_recording *r)
{
	r->writer = NULL;
	lull_map_release(&r->strings);
	lull_map_release(&r->labels);
	lull_map_release(&r->op_labels);
	lull_map_release(&r->op_names);
	lull_map_release(&r->op_ranges);
	lull_map_release(&r->op_data);
	lull_vec_release(&r->op_name_list);
	lull_map_release(&r->py_frames);
	lull_map_release(&r->py_stacks);
	lull_map_release(&r->nccl_labels);
	lull_map_release(&r->launches);
	lull_stacks_release(&r->stacks);
	clear_troubles(r);
	r->device_clock = (struct lull_device_fit){ 0 };
	r->held_work.n = 0;
	lull_profiled_clear(r);
}

void lull_recording_release(struct lull_recording *r)
{
	char **texts = r->text_list.at;
	struct lull_category *categories = r->categories.at;

	lull_recording_discard(r);
	for (size_t i = 0; i < r->text_list.n; i++)
		free(texts[i]);
	for (size_t i = 0; i < r->categories.n; i++)
		free(categories[i].name);
	lull_vec_release(&r->troubles);
	lull_vec_release(&r->text_list);
	lull_vec_release(&r->categories);
	lull_intern_release(&r->schema_texts);
	lull_vec_release(&r->held_work);
	lull_profiled_release(r);
	lull_nccl_release(r);
	lull_map_release(&r->texts);
	lull_unwind_release(&r->unwind);
	lull_files_release(&r->files);
}

static void begin_report(struct lull_recording *r, u64 epoch_ns)
{
	r->epoch_ns = epoch_ns;
	r->n_events = 0;
	r->own_rank = -1;
	r->rank_row = 0;
	lull_map_init(&r->strings);
	lull_map_init(&r->labels);
	lull_map_init(&r->op_labels);
	lull_map_init(&r->op_names);
	lull_map_init(&r->op_ranges);
	lull_map_init(&r->op_data);
	lull_vec_init(&r->op_name_list, sizeof(struct lull_op_name));
	lull_map_init(&r->py_frames);
	lull_map_init(&r->py_stacks);
	lull_map_init(&r->launches);
	lull_stacks_init(&r->stacks, &r->files);
	lull_tree_new_report(r->tree);
	if (r->pulse)
		lull_pulse_new_report(r->pulse);
}

int lull_recording_begin(struct lull_recording *r, const char *path, u64 epoch_ns,
			 struct lull_err *err)
{
	struct lull_file_info info = { .epoch_ns = epoch_ns };
	int rc;

	info.epoch_utc_ns = lull_clock_ns(CLOCK_REALTIME) - (lull_now_ns() - epoch_ns);
	if (getrandom(info.id, sizeof(info.id), 0) != sizeof(info.id))
		memcpy(info.id, &info.epoch_utc_ns, sizeof(info.epoch_utc_ns));
	rc = lull_writer_open(&r->writer, path, &info, err);
	if (rc) {
		r->writer = NULL;
		return rc;
	}
	begin_report(r, epoch_ns);
	return 0;
}

int lull_recording_resume(struct lull_recording *r, const char *path, u64 epoch_ns,
			  struct lull_err *err)
{
	int rc = lull_writer_reopen(&r->writer, path, err);

	if (rc) {
		r->writer = NULL;
		return rc;
	}
	begin_report(r, epoch_ns);
	return 0;
}

u32 lull_recording_text(struct lull_recording *r, const char *text)
{
	return text ? lull_writer_string(r->writer, text, strlen(text)) : 0;
}

u32 lull_recording_name(const struct lull_recording *r, u64 hash)
{
	u32 *id = hash ? lull_map_find(&r->strings, hash) : NULL;

	return id ? *id : 0;
}

const char *lull_recording_kept(const struct lull_recording *r, u64 hash)
{
	u32 *ix = hash ? lull_map_find(&r->texts, hash) : NULL;

	return ix ? ((char **)r->text_list.at)[*ix - 1] : "";
}

void lull_recording_watch(struct lull_recording *r, struct lull_pulse *pulse)
{
	char **texts = r->text_list.at;
	struct lull_map by_string; /* id of a string to index + 1 in text_list */

	r->pulse = pulse;
	if (!r->writer)
		return;
	lull_map_init(&by_string);
	for (size_t i = 0; i < r->text_list.n; i++)
		*lull_map_add(&by_string, lull_writer_string(r->writer, texts[i], strlen(texts[i])),
			      NULL) = (u32)i + 1;
	for (u32 id = 1; id <= lull_writer_n_dim(r->writer, LULL_TABLE_label); id++) {
		const struct lull_label_row *row = lull_writer_dim(r->writer, LULL_TABLE_label, id);
		const u32 *ix = lull_map_find(&by_string, row->name);

		if (ix)
			lull_pulse_label(pulse, id, texts[*ix - 1]);
	}
	lull_map_release(&by_string);
}

static struct lull_process_row process_row(struct lull_recording *r, const struct lull_process *p)
{
	return (struct lull_process_row){
		.pid = p->pid,
		.parent_pid = p->parent_pid,
		.image = lull_tree_image(p),
		.name = lull_recording_text(r, p->name),
		.exe = lull_recording_text(r, p->exe),
		.cmdline = lull_recording_text(r, p->cmdline),
		.start_ns = lull_recording_ns(r, p->start_ns),
		.end_ns = p->end_ns ? lull_recording_ns(r, p->end_ns) : 0,
		.exit_kind = p->exit_kind,
		.exit_code = p->exit_code,
		.user_ns = p->user_ns,
		.system_ns = p->system_ns,
		.max_rss_bytes = p->max_rss_bytes,
		.has_agent = p->had_agent,
		.runtime = lull_recording_text(r, p->runtime),
		.has_rank = p->rank.rank >= 0,
		.rank = p->rank.rank >= 0 ? (u32)p->rank.rank : 0,
		.local_rank = p->rank.rank >= 0 ? p->rank.local_rank : 0,
		.world_size = p->rank.n_ranks > 0 ? (u32)p->rank.n_ranks : 0,
		.is_server = p->is_server,
	};
}

u32 lull_recording_process(struct lull_recording *r, struct lull_process *p)
{
	if (!p->row) {
		struct lull_process_row row = process_row(r, p);

		p->row = lull_writer_add_dim(r->writer, LULL_TABLE_process, &row);
	}
	return p->row;
}

static struct lull_lane_row lane_row(struct lull_recording *r, const struct lull_task *task)
{
	return (struct lull_lane_row){
		.kind = 1,
		.process = task->process->row,
		.tid = task->tid,
		.name = lull_recording_text(r, task->name),
		.start_ns = lull_recording_ns(r, task->start_ns),
		.end_ns = task->end_ns ? lull_recording_ns(r, task->end_ns) : 0,
		.n_dropped = task->n_dropped,
	};
}

u32 lull_recording_lane(struct lull_recording *r, struct lull_task *task)
{
	if (!task->lane) {
		struct lull_lane_row row;

		lull_recording_process(r, task->process);
		row = lane_row(r, task);
		task->lane = lull_writer_add_dim(r->writer, LULL_TABLE_lane, &row);
	}
	return task->lane;
}

void lull_recording_add(struct lull_recording *r, enum lull_table table, const void *row)
{
	lull_writer_add(r->writer, table, row);
	r->n_events++;
	if (r->pulse)
		lull_pulse_add(r->pulse, r, table, row);
}

void lull_recording_issue(struct lull_recording *r, enum lull_issue issue,
			  struct lull_process *process, u64 n, const char *detail)
{
	struct lull_trouble *t = r->troubles.at;

	if (!n)
		return;
	for (size_t i = 0; i < r->troubles.n; i++) {
		if (t[i].issue == issue && t[i].process == process) {
			t[i].count += n;
			return;
		}
	}
	t = lull_vec_push(&r->troubles);
	t->issue = (u16)issue;
	t->process = process;
	t->count = n;
	t->detail = detail ? lull_strdup(detail) : NULL;
}

void lull_recording_meta(struct lull_recording *r, const char *key, const char *value)
{
	struct lull_meta_row row = {
		.key = lull_recording_text(r, key),
		.value = lull_recording_text(r, value),
	};

	lull_writer_add_dim(r->writer, LULL_TABLE_meta, &row);
}

static void write_open(struct lull_recording *r, struct lull_task *task,
		       const struct lull_open_range *open, u64 checkpoint_ns)
{
	struct lull_open_range_row row = {
		.start_ns = open->start_ns,
		.lane = lull_recording_lane(r, task),
		.place = open->place,
		.label = open->label,
		.range_id = open->range_id,
		.payload_type = open->payload_type,
		.payload = open->payload,
		.data = open->data,
		.checkpoint_ns = checkpoint_ns,
	};

	lull_writer_add(r->writer, LULL_TABLE_open_range, &row);
}

/* Ranges that are open now: a recovery goes on from here. */
static void write_open_ranges(struct lull_recording *r, u64 checkpoint_ns)
{
	struct lull_process **all = r->tree->processes.at;

	for (size_t i = 0; i < r->tree->processes.n; i++) {
		struct lull_task **tasks = all[i]->tasks.at;
		const struct lull_shared_range *shared = all[i]->shared_ranges.at;

		for (size_t j = 0; j < all[i]->shared_ranges.n; j++)
			write_open(r, shared[j].task, &shared[j].range, checkpoint_ns);
		for (size_t j = 0; j < all[i]->tasks.n; j++)
			for (size_t k = 0; k < tasks[j]->open.n; k++)
				write_open(r, tasks[j], lull_vec_get(&tasks[j]->open, k),
					   checkpoint_ns);
	}
}

static void write_places(struct lull_recording *r, u64 now_ns)
{
	struct lull_process **all = r->tree->processes.at;
	struct lull_checkpoint_row row = { .start_ns = lull_recording_ns(r, now_ns) };

	/*
	 * One row that belongs to no image, so that a checkpoint exists even when nothing is held.
	 */
	lull_writer_add(r->writer, LULL_TABLE_checkpoint, &row);
	for (size_t i = 0; i < r->tree->processes.n; i++) {
		const struct lull_image_file *f = all[i]->file;

		for (u32 j = 0; f && j < f->n_chunks; j++) {
			if (!f->places[j].seq)
				continue;
			row.image_id = f->head->start_counter;
			row.pid = all[i]->pid;
			row.chunk_seq = f->places[j].seq;
			row.offset_bytes = f->places[j].read_bytes;
			lull_writer_add(r->writer, LULL_TABLE_checkpoint, &row);
		}
	}
}

int lull_recording_checkpoint(struct lull_recording *r, u64 now_ns, struct lull_err *err)
{
	int rc = lull_writer_flush(r->writer, err);

	if (rc)
		return rc;
	write_open_ranges(r, lull_recording_ns(r, now_ns));
	rc = lull_writer_flush(r->writer, err);
	if (rc)
		return rc;
	/* Last of all: what stands before a checkpoint in the file is complete. */
	write_places(r, now_ns);
	return lull_writer_flush(r->writer, err);
}

static void write_troubles(struct lull_recording *r)
{
	const struct lull_trouble *t = r->troubles.at;

	for (size_t i = 0; i < r->troubles.n; i++) {
		u32 process = t[i].process ? lull_recording_process(r, t[i].process) : 0;

		lull_issue_write(r->writer, t[i].issue, process, t[i].count, t[i].detail);
	}
}

static u32 schema_text(struct lull_recording *r, u32 number)
{
	return lull_recording_text(r, lull_intern_get(&r->schema_texts, number));
}

static void write_schemas_of(struct lull_recording *r, const struct lull_process *p)
{
	const struct lull_schema_text *s = p->schemas.at;

	for (size_t i = 0; i < p->schemas.n; i++) {
		struct lull_payload_schema_row row = {
			.process = p->row,
			.schema_id = s[i].schema_id,
			.domain = schema_text(r, s[i].domain),
			.name = schema_text(r, s[i].name),
			.kind = (u8)s[i].kind,
			.entries = schema_text(r, s[i].entries),
			.size_bytes = s[i].size_bytes,
		};

		lull_writer_add_dim(r->writer, LULL_TABLE_payload_schema, &row);
	}
}

/* Those of processes that are in the report. */
static void write_schemas(struct lull_recording *r)
{
	struct lull_process **all = r->tree->processes.at;

	for (size_t i = 0; i < r->tree->processes.n; i++)
		if (all[i]->row)
			write_schemas_of(r, all[i]);
}

/* Write processes and threads again, with all that was learned since they were first seen. */
static void write_tree(struct lull_recording *r, u64 now_ns)
{
	struct lull_process **all = r->tree->processes.at;

	for (size_t i = 0; i < r->tree->processes.n; i++) {
		struct lull_process *p = all[i];
		struct lull_task **tasks = p->tasks.at;
		struct lull_process_row row;

		/* Gone before this report began: not part of it. */
		if (!p->row && p->end_ns && p->end_ns < r->epoch_ns)
			continue;
		lull_decode_close_shared(r, p, lull_recording_ns(r, now_ns));
		lull_decode_devices(r, p);
		lull_recording_process(r, p);
		row = process_row(r, p);
		lull_writer_set_dim(r->writer, LULL_TABLE_process, p->row, &row);
		for (size_t j = 0; j < p->tasks.n; j++) {
			struct lull_lane_row lane;
			u64 end_ns = p->end_ns ? p->end_ns : now_ns;

			lull_decode_close(r, tasks[j], lull_recording_ns(r, end_ns));
			if (tasks[j]->n_dropped) {
				lull_recording_lane(r, tasks[j]);
				lull_recording_issue(r, LULL_ISSUE_buffer_full, p,
						     tasks[j]->n_dropped, NULL);
			}
			if (!tasks[j]->lane)
				continue;
			lane = lane_row(r, tasks[j]);
			lull_writer_set_dim(r->writer, LULL_TABLE_lane, tasks[j]->lane, &lane);
		}
	}
}

void lull_recording_close_open(struct lull_recording *r, u64 now_ns)
{
	struct lull_process **all = r->tree->processes.at;
	u64 end_ns = lull_recording_ns(r, now_ns);

	for (size_t i = 0; i < r->tree->processes.n; i++) {
		struct lull_task **tasks = all[i]->tasks.at;

		lull_decode_close_shared(r, all[i], end_ns);
		for (size_t j = 0; j < all[i]->tasks.n; j++)
			lull_decode_close(r, tasks[j], end_ns);
	}
}

int lull_recording_finish(struct lull_recording *r, u64 now_ns, struct lull_err *err)
{
	struct lull_writer *w = r->writer;
	u64 n_lost;

	lull_device_clock_release(r);
	lull_profiled_finish(r);
	write_tree(r, now_ns);
	lull_job_end(r);
	write_schemas(r);
	lull_device_clock_note(r);
	if (!r->is_unresolved)
		lull_recording_resolve(r);
	n_lost = lull_writer_stats(w).n_lost;
	if (n_lost)
		lull_recording_issue(r, LULL_ISSUE_disk_full, NULL, n_lost, NULL);
	write_troubles(r);
	end_report(r);
	return lull_writer_seal(w, err);
}

void lull_recording_abandon(struct lull_recording *r)
{
	lull_writer_abandon(r->writer);
	end_report(r);
}

void lull_recording_discard(struct lull_recording *r)
{
	if (!r->writer)
		return;
	lull_writer_discard(r->writer);
	end_report(r);
}
