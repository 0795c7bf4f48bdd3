#include "record/session/salvage.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/time.h"
#include "record/perf/callstack.h"
#include "record/collector_int.h"
#include "record/process/image.h"
#include "record/session/leftover.h"
#include "record/session/machine.h"
#include "trace/reader.h"

/* lane.kind of a stream. */
#define LANE_STREAM 2

/* What the unfinished file says. */
struct left {
	struct lull_reader *reader;
	struct lull_vec places; /* struct lull_checkpoint_row of the last checkpoint */
	struct lull_vec open;	/* struct lull_open_range_row of the last checkpoint */
	u64 checkpoint_ns;
	struct lull_vec tasks; /* struct lull_task *, by lane id - 1 */
};

/* The real path of a file, which need not be there; false if its folder is not. */
static bool find_full(const char *path, char full[PATH_MAX])
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char *folder;
	size_t n;
	bool is_found;

	if (realpath(path, full))
		return true;
	folder = slash ? lull_strndup(path, (size_t)(name - path)) : lull_strdup(".");
	is_found = realpath(folder, full) != NULL;
	free(folder);
	n = is_found ? strlen(full) : 0;
	return is_found && snprintf(full + n, PATH_MAX - n, "/%s", name) < (int)(PATH_MAX - n);
}

bool lull_salvage_find(const char *report_path, struct lull_session_entry *entry)
{
	char full[PATH_MAX];
	struct lull_vec all;
	bool is_found = false;
	size_t n;

	if (!find_full(report_path, full))
		return false;
	n = strlen(full);
	if (n > 5 && strcmp(full + n - 5, ".part") == 0)
		full[n - 5] = '\0';
	lull_vec_init(&all, sizeof(*entry));
	lull_session_list(&all);
	for (size_t i = 0; i < all.n && !is_found; i++) {
		const struct lull_session_entry *e = lull_vec_get(&all, i);

		if (!e->is_alive && strcmp(e->report_path, full) == 0) {
			*entry = *e;
			is_found = true;
		}
	}
	lull_vec_release(&all);
	return is_found;
}

/* Rows of the last checkpoint, and the ranges that were open then. */
static void read_checkpoint(struct left *left)
{
	struct lull_checkpoint_cols p;
	struct lull_open_range_cols o;
	struct lull_cursor c;
	size_t n;

	left->checkpoint_ns = lull_reader_stats(left->reader, LULL_TABLE_checkpoint).last_ns;
	lull_cursor_init(&c, left->reader, LULL_TABLE_checkpoint, left->checkpoint_ns, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &p)) > 0)
		for (size_t i = 0; i < n; i++)
			if (p.start_ns[i] == left->checkpoint_ns && p.image_id[i])
				*(struct lull_checkpoint_row *)lull_vec_push(&left->places) =
					(struct lull_checkpoint_row){
						.image_id = p.image_id[i],
						.chunk_seq = p.chunk_seq[i],
						.offset_bytes = p.offset_bytes[i],
					};
	lull_cursor_release(&c);
	lull_cursor_init(&c, left->reader, LULL_TABLE_open_range, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &o)) > 0)
		for (size_t i = 0; i < n; i++)
			if (o.checkpoint_ns[i] == left->checkpoint_ns)
				*(struct lull_open_range_row *)lull_vec_push(&left->open) =
					(struct lull_open_range_row){
						.start_ns = o.start_ns[i],
						.lane = o.lane[i],
						.place = o.place[i],
						.label = o.label[i],
						.range_id = o.range_id[i],
						.payload_type = o.payload_type[i],
						.payload = o.payload[i],
						.data = o.data[i],
					};
	lull_cursor_release(&c);
}

/*
 * Rows of a dimension that stand before the last checkpoint; later ones were cut off and will come
 * again.
 */
static const void *kept_rows(const struct lull_collector *c, struct left *left,
			     enum lull_table table, size_t *n)
{
	const void *rows = lull_reader_dim(left->reader, table, n);
	u32 n_kept = lull_writer_n_dim(c->recording.writer, table);

	if (*n > n_kept)
		*n = n_kept;
	return rows;
}

static char *text_or_null(struct left *left, u32 id)
{
	return id ? lull_strdup(lull_reader_string(left->reader, id, NULL)) : NULL;
}

static struct lull_process *load_process(struct lull_collector *c, struct left *left,
					 const struct lull_process_row *row, u32 id)
{
	u64 epoch_ns = c->session.control->epoch_ns;
	struct lull_process *p = lull_tree_find(&c->tree, row->pid);

	/* An earlier program of the same pid: end it, so that this one is a new entry. */
	if (p && !p->end_ns)
		p->end_ns = epoch_ns + row->start_ns;
	p = lull_tree_get(&c->tree, row->pid, row->parent_pid, epoch_ns + row->start_ns);
	p->row = id;
	p->exe = text_or_null(left, row->exe);
	p->cmdline = text_or_null(left, row->cmdline);
	snprintf(p->name, sizeof(p->name), "%s", lull_reader_string(left->reader, row->name, NULL));
	p->exit_kind = row->exit_kind;
	p->exit_code = row->exit_code;
	p->end_ns = row->end_ns ? epoch_ns + row->end_ns : 0;
	if (row->has_rank)
		p->rank = (struct lull_rank){ row->rank, row->local_rank, row->world_size, NULL };
	p->had_agent = row->has_agent;
	p->is_loaded = true;
	p->is_ours = true;
	return p;
}

static void load_device(struct left *left, struct lull_process *p,
			const struct lull_device_row *row, u32 id)
{
	struct lull_gpu *gpu = lull_vec_push(&p->gpus);
	struct lull_reader *r = left->reader;

	*gpu = (struct lull_gpu){
		.device_id = row->device_id,
		.capability = row->capability,
		.n_sms = row->n_sms,
		.memory_bytes = row->memory_bytes,
		.l2_bytes = row->l2_bytes,
		.clock_hz = row->clock_hz,
		.bandwidth_bytes = row->bandwidth_bytes,
		.row = id,
	};
	snprintf(gpu->name, sizeof(gpu->name), "%s", lull_reader_string(r, row->name, NULL));
	snprintf(gpu->uuid, sizeof(gpu->uuid), "%s", lull_reader_string(r, row->uuid, NULL));
	snprintf(gpu->given_name, sizeof(gpu->given_name), "%s",
		 lull_reader_string(r, row->given_name, NULL));
}

/* A stream is no thread: its work that is yet to be read belongs to the same lane. */
static void load_stream(struct left *left, struct lull_process *p, const struct lull_lane_row *row,
			u32 id)
{
	const struct lull_gpu *gpus = p->gpus.at;
	struct lull_gpu_stream *stream = lull_vec_push(&p->streams);
	struct lull_stream_facts *facts = lull_vec_push(&p->stream_facts);

	*stream = (struct lull_gpu_stream){ .context_id = row->context_id,
					    .stream_id = row->stream_id,
					    .lane = id };
	for (size_t i = 0; i < p->gpus.n; i++)
		if (gpus[i].row == row->device)
			stream->device_id = gpus[i].device_id;
	*facts = (struct lull_stream_facts){ .stream_id = row->stream_id,
					     .priority = row->priority,
					     .kind = row->stream_kind };
	snprintf(facts->name, sizeof(facts->name), "%s",
		 lull_reader_string(left->reader, row->name, NULL));
}

static struct lull_task *load_thread(struct lull_collector *c, struct left *left,
				     struct lull_process *p, const struct lull_lane_row *row,
				     u32 id)
{
	struct lull_task *task =
		lull_tree_task(p, row->tid, c->session.control->epoch_ns + row->start_ns);

	task->lane = id;
	snprintf(task->name, sizeof(task->name), "%s",
		 lull_reader_string(left->reader, row->name, NULL));
	return task;
}

/* Processes, devices, threads and streams as the file knows them, with their row ids. */
static void load_tree(struct lull_collector *c, struct left *left)
{
	size_t n_processes, n_lanes, n_devices;
	const struct lull_process_row *processes =
		kept_rows(c, left, LULL_TABLE_process, &n_processes);
	const struct lull_lane_row *lanes = kept_rows(c, left, LULL_TABLE_lane, &n_lanes);
	const struct lull_device_row *devices = kept_rows(c, left, LULL_TABLE_device, &n_devices);
	struct lull_process **by_row = lull_alloc(n_processes + 1, sizeof(*by_row));

	for (size_t i = 0; i < n_processes; i++)
		by_row[i + 1] = load_process(c, left, &processes[i], (u32)i + 1);
	for (size_t i = 0; i < n_devices; i++)
		if (devices[i].process && devices[i].process <= n_processes)
			load_device(left, by_row[devices[i].process], &devices[i], (u32)i + 1);
	for (size_t i = 0; i < n_lanes; i++) {
		struct lull_process *p =
			lanes[i].process <= n_processes ? by_row[lanes[i].process] : NULL;
		struct lull_task *task = NULL;

		if (p && lanes[i].kind == LANE_STREAM)
			load_stream(left, p, &lanes[i], (u32)i + 1);
		else if (p)
			task = load_thread(c, left, p, &lanes[i], (u32)i + 1);
		*(struct lull_task **)lull_vec_push(&left->tasks) = task;
	}
	free(by_row);
}

static u64 hash_of(struct left *left, u32 id)
{
	size_t len;
	const char *text = lull_reader_string(left->reader, id, &len);

	return id ? lull_hash(text, len) : 0;
}

/*
 * Events name labels by hash; their definitions are in the file, so the hashes are computed again.
 */
static void load_labels(struct lull_collector *c, struct left *left)
{
	struct lull_recording *r = &c->recording;
	size_t n;
	const struct lull_label_row *rows = kept_rows(c, left, LULL_TABLE_label, &n);

	for (size_t i = 0; i < n; i++) {
		u64 name = hash_of(left, rows[i].name), domain = hash_of(left, rows[i].domain);
		u64 label =
			lull_label_hash(name, domain, rows[i].category, rows[i].color, rows[i].api);

		*lull_map_add(&r->labels, label, NULL) = (u32)i + 1;
		*lull_map_add(&r->strings, name, NULL) = rows[i].name;
		if (domain)
			*lull_map_add(&r->strings, domain, NULL) = rows[i].domain;
	}
}

/* Where the module of a row lies now; LULL_FILE_NONE if it is gone or was no file. */
static u32 file_of(struct lull_recording *r, struct left *left, const struct lull_module_row *row)
{
	struct lull_build_id id =
		lull_build_id_parse(lull_reader_string(left->reader, row->build_id, NULL));

	return lull_files_add(&r->files,
			      &(struct lull_elf_name){
				      .path = lull_reader_string(left->reader, row->path, NULL),
				      .build_id = id.n_bytes ? &id : NULL,
			      });
}

/* Addresses that the dead recorder had not named yet. */
static void load_frames(struct lull_collector *c, struct left *left)
{
	struct lull_recording *r = &c->recording;
	size_t n_modules, n_frames;
	const struct lull_module_row *modules = kept_rows(c, left, LULL_TABLE_module, &n_modules);
	const struct lull_frame_row *frames = kept_rows(c, left, LULL_TABLE_frame, &n_frames);
	u32 *files = lull_alloc(n_modules + 1, sizeof(*files));

	for (size_t i = 0; i < n_modules; i++)
		files[i + 1] = file_of(r, left, &modules[i]);
	for (size_t i = 0; i < n_frames; i++) {
		struct lull_pc pc = { .vaddr = frames[i].addr, .kind = frames[i].kind };

		if (frames[i].function || frames[i].module > n_modules)
			continue;
		pc.file_ix = files[frames[i].module];
		if (pc.kind == LULL_PC_KERNEL)
			r->stacks.kernel_module = frames[i].module;
		if (pc.kind == LULL_PC_KERNEL || pc.file_ix != LULL_FILE_NONE)
			lull_stacks_adopt(&r->stacks, (u32)i + 1, &pc);
	}
	free(files);
}

static void load_open_ranges(const struct left *left)
{
	const struct lull_open_range_row *rows = left->open.at;
	struct lull_task **tasks = left->tasks.at;

	for (size_t i = 0; i < left->open.n; i++) {
		struct lull_task *task = rows[i].lane && rows[i].lane <= left->tasks.n
						 ? tasks[rows[i].lane - 1]
						 : NULL;
		struct lull_open_range range = {
			.start_ns = rows[i].start_ns,
			.range_id = rows[i].range_id,
			.payload = rows[i].payload,
			.place = rows[i].place,
			.label = rows[i].label,
			.data = rows[i].data,
			.payload_type = rows[i].payload_type,
		};

		if (!task)
			continue;
		if (range.range_id) {
			*(struct lull_shared_range *)lull_vec_push(&task->process->shared_ranges) =
				(struct lull_shared_range){ .range = range, .task = task };
		} else {
			range.depth = task->open.n < 255 ? (u8)task->open.n : 255;
			*(struct lull_open_range *)lull_vec_push(&task->open) = range;
		}
	}
}

/* Each image goes on where the last checkpoint says the file ends. */
static void resume_images(struct lull_collector *c, const struct left *left)
{
	const struct lull_checkpoint_row *places = left->places.at;
	struct lull_process **all = c->tree.processes.at;

	for (size_t i = 0; i < c->tree.processes.n; i++)
		for (size_t j = 0; all[i]->file && j < left->places.n; j++)
			if (places[j].image_id == all[i]->file->head->start_counter)
				lull_image_resume(all[i]->file, places[j].chunk_seq,
						  places[j].offset_bytes);
}

static void count_processes(const struct lull_collector *c, struct lull_salvage_result *result)
{
	struct lull_process **all = c->tree.processes.at;

	for (size_t i = 0; i < c->tree.processes.n; i++) {
		if (!all[i]->file)
			continue;
		result->n_processes++;
		if (!all[i]->is_drained) {
			all[i]->exit_kind = LULL_EXIT_RUNNING;
			result->n_alive++;
		}
	}
}

/* Go on with the unfinished file. */
static int resume(struct lull_collector *c, struct left *left, const char *report_path,
		  struct lull_err *err)
{
	char part[PATH_MAX + 8];
	int rc;

	snprintf(part, sizeof(part), "%s.part", report_path);
	rc = lull_reader_open(&left->reader, part, err);
	if (rc)
		return rc;
	read_checkpoint(left);
	/* Of a recording in windows the times of the last one are known; the others are read. */
	rc = lull_recording_resume(&c->recording, report_path,
				   c->session.control->epoch_ns + c->session.control->left_out_ns,
				   err);
	if (rc)
		return rc;
	/* The file was cut: what the reader knows of its end lies in memory that is gone. */
	lull_reader_close(left->reader);
	left->reader = NULL;
	rc = lull_reader_open(&left->reader, part, err);
	if (rc)
		return rc;
	load_tree(c, left);
	load_labels(c, left);
	load_frames(c, left);
	load_open_ranges(left);
	return 0;
}

static void on_fact(void *ctx, const char *key, const char *value)
{
	lull_recording_meta(ctx, key, value);
}

/*
 * The recorder died between the start of a capture range and the first checkpoint of its report:
 * all there is lies in shared memory.
 */
static int begin(struct lull_collector *c, const char *report_path, struct lull_err *err)
{
	struct lull_control *control = c->session.control;
	u64 counter = atomic_load(&control->start_counter);
	struct lull_recording *r = &c->recording;
	struct lull_str kept = LULL_STR_INIT, part = LULL_STR_INIT;
	int rc;

	/* Its own file holds nothing yet; somebody else's is kept. */
	lull_str_addf(&part, "%s.part", report_path);
	if (strcmp(control->report_path, report_path) == 0)
		unlink(part.at);
	rc = lull_leftover_move(report_path, &kept, err);
	lull_str_release(&part);
	lull_str_release(&kept);
	if (rc)
		return rc;
	rc = lull_recording_begin(r, report_path, lull_clock_ns_of(&c->clock, counter), err);
	if (rc)
		return rc;
	c->salvage_counter = counter;
	lull_recording_meta(r, "recording.version", LULL_VERSION);
	lull_recording_meta(r, "recording.session", control->session_name);
	lull_machine_read(on_fact, r);
	return 0;
}

/* Everything but opening and closing. */
static int finish(struct lull_collector *c, struct left *left,
		  const struct lull_session_entry *entry, struct lull_salvage_result *result,
		  struct lull_err *err)
{
	struct lull_recording *r = &c->recording;
	int rc = entry->is_unfiled ? begin(c, entry->report_path, err)
				   : resume(c, left, entry->report_path, err);

	if (rc)
		return rc;
	/*
	 * The recorder is dead, so nobody else reads; the agents, if alive, must not go on writing.
	 */
	atomic_store(&c->session.control->record, 0);
	lull_clock_tick(&c->clock, c->session.control);
	lull_feed_agents_scan(c);
	resume_images(c, left);
	lull_feed_agents(c);
	lull_feed_agents_issues(c);
	count_processes(c, result);
	result->n_recovered = r->n_events;
	lull_recording_issue(r, LULL_ISSUE_recovered, NULL, 1, NULL);
	lull_recording_issue(r, LULL_ISSUE_still_running, NULL, result->n_alive, NULL);
	result->n_rows = lull_writer_stats(r->writer).n_rows + r->n_events;
	return lull_recording_finish(r, lull_now_ns(), err);
}

int lull_salvage(const struct lull_session_entry *entry, struct lull_salvage_result *result,
		 struct lull_err *err)
{
	struct lull_collector_options options = { 0 };
	struct lull_collector c = { .options = &options, .is_salvaging = true };
	struct left left = { 0 };
	int rc;

	memset(result, 0, sizeof(*result));
	lull_vec_init(&left.places, sizeof(struct lull_checkpoint_row));
	lull_vec_init(&left.open, sizeof(struct lull_open_range_row));
	lull_vec_init(&left.tasks, sizeof(struct lull_task *));
	rc = lull_session_open(&c.session, entry->path, err);
	if (rc)
		return rc;
	lull_clock_load(&c.clock, c.session.control);
	lull_tree_init(&c.tree);
	c.tree.on_free = lull_callstack_free;
	lull_recording_init(&c.recording, &c.clock, &c.tree);
	rc = finish(&c, &left, entry, result, err);
	lull_reader_close(left.reader);
	lull_recording_release(&c.recording);
	lull_tree_release(&c.tree);
	lull_clock_release(&c.clock);
	lull_vec_release(&left.places);
	lull_vec_release(&left.open);
	lull_vec_release(&left.tasks);
	if (rc)
		lull_session_close(&c.session);
	else
		lull_session_remove(&c.session);
	return rc;
}
