#include "record/gpu/join_samples.h"

#include <string.h>

#include "record/decode/decode_kernel.h"
#include "trace/reader.h"

/* More launches than anybody samples. */
#define MAX_JOINED 1000000u

/* A launch of the other run. */
struct other {
	u32 process_ix; /* among those with launches, as they first come */
	u64 ordinal;
};

struct join {
	struct lull_recording *r;
	struct lull_reader *reader;
	struct lull_vec others;	   /* struct other, by profiled_id - 1 */
	struct lull_vec processes; /* const struct lull_process *, of this run, in the same order */
	u64 n_lost;
};

/* The place of a process among those that were seen, added if it is new. */
static u32 place_of(struct lull_vec *seen, u64 process)
{
	const u64 *all = seen->at;

	for (size_t i = 0; i < seen->n; i++)
		if (all[i] == process)
			return (u32)i;
	*(u64 *)lull_vec_push(seen) = process;
	return (u32)seen->n - 1;
}

static void read_others(struct join *j)
{
	struct lull_profiled_cols cols;
	struct lull_vec seen;
	struct lull_cursor c;
	size_t n;

	lull_vec_init(&seen, sizeof(u64));
	lull_cursor_init(&c, j->reader, LULL_TABLE_profiled, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			/* Ids are dense, but a hostile file may say anything. */
			if (!cols.profiled_id[i] || cols.profiled_id[i] > MAX_JOINED)
				continue;
			while (j->others.n < cols.profiled_id[i])
				*(struct other *)lull_vec_push(&j->others) = (struct other){ 0, 0 };
			((struct other *)j->others.at)[cols.profiled_id[i] - 1] =
				(struct other){ place_of(&seen, cols.process[i]), cols.ordinal[i] };
		}
	}
	lull_cursor_release(&c);
	lull_vec_release(&seen);
}

static void read_processes(struct join *j)
{
	const struct lull_profiled_known *known = j->r->profiled.at;

	for (size_t i = 0; i < j->r->profiled.n; i++) {
		const struct lull_process **all = j->processes.at;
		bool is_known = false;

		for (size_t k = 0; k < j->processes.n; k++)
			is_known = is_known || all[k] == known[i].process;
		if (!is_known)
			*(const struct lull_process **)lull_vec_push(&j->processes) =
				known[i].process;
	}
}

static u32 text_of(const struct join *j, u32 string)
{
	const char *text = string ? lull_reader_string(j->reader, string, NULL) : "";

	return text && *text ? lull_recording_text(j->r, text) : 0;
}

static void take(struct join *j, const struct lull_pcsample_cols *cols, size_t i)
{
	const struct lull_process **processes = j->processes.at;
	const struct other *others = j->others.at;
	u64 id = cols->profiled_id[i];
	struct lull_held_pcsample *held;

	if (!id || id > j->others.n || others[id - 1].process_ix >= j->processes.n) {
		j->n_lost += cols->n_samples[i];
		return;
	}
	held = lull_vec_push(&j->r->held_pcsamples);
	*held = (struct lull_held_pcsample){
		.process = processes[others[id - 1].process_ix],
		.ordinal = others[id - 1].ordinal,
		.row = {
			.start_ns = cols->start_ns[i],
			.function = text_of(j, cols->function[i]),
			.pc_offset_bytes = cols->pc_offset_bytes[i],
			.stall = text_of(j, cols->stall[i]),
			.n_samples = cols->n_samples[i],
			.file = text_of(j, cols->file[i]),
			.line = cols->line[i],
		},
	};
}

static void read_samples(struct join *j)
{
	struct lull_pcsample_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, j->reader, LULL_TABLE_pcsample, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0)
		for (size_t i = 0; i < n; i++)
			take(j, &cols, i);
	lull_cursor_release(&c);
}

int lull_join_samples(struct lull_recording *r, const char *path, struct lull_err *err)
{
	struct join j = { .r = r };

	if (lull_reader_open(&j.reader, path, err))
		return err->code;
	lull_vec_init(&j.others, sizeof(struct other));
	lull_vec_init(&j.processes, sizeof(struct lull_process *));
	read_others(&j);
	read_processes(&j);
	read_samples(&j);
	lull_recording_issue(r, LULL_ISSUE_samples_unmatched, NULL, j.n_lost, NULL);
	lull_vec_release(&j.others);
	lull_vec_release(&j.processes);
	lull_reader_close(j.reader);
	return 0;
}
