#include "job/job.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "job/job_int.h"

/* Collectives that clocks are fitted on: over all ranks, and of one. */
#define MAX_SAMPLES	 2000000u
#define MAX_RANK_SAMPLES 4096u
#define MIN_RANK_SAMPLES 64u

/* ---- the first walk ---- */

static u64 samples_of_rank(size_t n_ranks)
{
	u64 n = MAX_SAMPLES / (n_ranks ? n_ranks : 1);

	return n > MAX_RANK_SAMPLES   ? MAX_RANK_SAMPLES
	       : n < MIN_RANK_SAMPLES ? MIN_RANK_SAMPLES
				      : n;
}

static void put(struct lull_str *to, const void *bytes, size_t len)
{
	if (len)
		lull_str_add(to, bytes, len);
}

/* Read the heads of own files into bytes that travel. */
static void read_heads(struct lull_job *job, struct lull_vec *files, struct lull_str *bytes)
{
	struct lull_job_rank *all = files->at;

	for (size_t i = 0; i < files->n; i++) {
		struct lull_vec samples;

		if (all[i].owner != job->team.rank)
			continue;
		lull_vec_init(&samples, sizeof(struct lull_job_sample));
		lull_job_head(job, &all[i], &samples, samples_of_rank(files->n));
		all[i].n_samples = (u32)samples.n;
		put(bytes, &all[i], sizeof(all[i]));
		put(bytes, samples.at, samples.n * sizeof(struct lull_job_sample));
		lull_vec_release(&samples);
	}
}

/* Take apart what travelled: ranks, and by file name where their samples lie. */
struct travelled {
	const char *file;
	const void *samples;
	u32 n;
};

static int by_file(const void *a, const void *b)
{
	const struct travelled *x = a, *y = b;

	return strcmp(x->file, y->file);
}

static void unpack_heads(const struct lull_team_parts *parts, u32 n_parts, struct lull_vec *files,
			 struct lull_vec *where)
{
	files->n = 0;
	for (u32 i = 0; i < n_parts; i++) {
		const char *at = parts->at[i], *end = at + parts->len[i];

		while (at + sizeof(struct lull_job_rank) <= end) {
			const struct lull_job_rank *rank = (const void *)at;
			struct travelled *t = lull_vec_push(where);

			t->file = rank->file;
			t->samples = at + sizeof(*rank);
			t->n = rank->n_samples;
			lull_vec_add(files, rank, 1);
			at += sizeof(*rank) + (u64)rank->n_samples * sizeof(struct lull_job_sample);
		}
	}
	if (where->n)
		lull_sort(where->at, where->n, sizeof(struct travelled), by_file);
}

static void fit(struct lull_job *job, const struct lull_vec *where)
{
	struct lull_vec *samples = lull_alloc(job->ranks.n, sizeof(*samples));
	struct lull_job_rank *all = job->ranks.at;

	for (size_t i = 0; i < job->ranks.n; i++) {
		struct travelled key = { .file = all[i].file };
		const struct travelled *t =
			bsearch(&key, where->at, where->n, sizeof(key), by_file);

		lull_vec_init(&samples[i], sizeof(struct lull_job_sample));
		lull_vec_add(&samples[i], t->samples, t->n);
	}
	lull_job_fit(job, samples);
	for (size_t i = 0; i < job->ranks.n; i++)
		lull_vec_release(&samples[i]);
	free(samples);
}

static int by_file_of_rank(const void *a, const void *b)
{
	const struct lull_job_rank *x = a, *y = b;

	return strcmp(x->file, y->file);
}

int lull_job_open(struct lull_job *job, const char *folder, const struct lull_job_options *options,
		  struct lull_err *err)
{
	struct lull_team_parts parts = { NULL, NULL, NULL };
	struct lull_str bytes = LULL_STR_INIT;
	struct lull_vec files, where;
	int rc;

	memset(job, 0, sizeof(*job));
	job->folder = folder;
	job->world_size = -1;
	if (options)
		job->options = *options;
	lull_vec_init(&job->ranks, sizeof(struct lull_job_rank));
	lull_vec_init(&job->skipped, sizeof(struct lull_job_rank));
	lull_vec_init(&job->notes, sizeof(char *));
	lull_vec_init(&job->steps, sizeof(struct lull_job_step));
	lull_vec_init(&job->kinds, sizeof(struct lull_job_kind));
	lull_vec_init(&job->stragglers, sizeof(struct lull_job_straggler));
	lull_vec_init(&job->groups, sizeof(struct lull_job_group));
	lull_vec_init(&job->stages, sizeof(struct lull_job_stage));
	lull_vec_init(&job->comms, sizeof(struct lull_job_comm_kind));
	lull_vec_init(&job->ranges, sizeof(struct lull_job_range));
	lull_vec_init(&files, sizeof(struct lull_job_rank));
	lull_vec_init(&where, sizeof(struct travelled));
	rc = lull_team_open(&job->team, err);
	job->has_team = !rc;
	if (!rc)
		rc = lull_job_list(job, &files, err);
	if (!rc) {
		read_heads(job, &files, &bytes);
		rc = lull_team_gather(&job->team, bytes.at, bytes.len, &parts, err);
	}
	if (!rc) {
		unpack_heads(&parts, job->team.size, &files, &where);
		lull_sort(files.at, files.n, sizeof(struct lull_job_rank), by_file_of_rank);
		rc = lull_job_check(job, &files, err);
	}
	if (!rc)
		fit(job, &where);
	lull_team_parts_release(&parts);
	lull_str_release(&bytes);
	lull_vec_release(&files);
	lull_vec_release(&where);
	return rc;
}

/* ---- the third walk ---- */

static int by_time(const void *a, const void *b)
{
	const struct lull_job_kind *x = a, *y = b;
	int order;

	if (x->dur_ns != y->dur_ns)
		return x->dur_ns < y->dur_ns ? 1 : -1;
	order = strcmp(x->name, y->name);
	if (!order)
		order = strcmp(x->comm_name, y->comm_name);
	if (!order)
		order = (x->n_ranks > y->n_ranks) - (x->n_ranks < y->n_ranks);
	return order ? order : (x->size_class > y->size_class) - (x->size_class < y->size_class);
}

static void add_kinds(struct lull_job *job, const struct lull_job_kind *at, u32 n)
{
	for (u32 i = 0; i < n; i++) {
		struct lull_job_kind *all = job->kinds.at, *to = NULL;

		for (size_t k = 0; k < job->kinds.n && !to; k++)
			if (strcmp(all[k].name, at[i].name) == 0 &&
			    strcmp(all[k].comm_name, at[i].comm_name) == 0 &&
			    all[k].n_ranks == at[i].n_ranks &&
			    all[k].size_class == at[i].size_class)
				to = &all[k];
		if (!to) {
			lull_vec_add(&job->kinds, &at[i], 1);
			continue;
		}
		to->n += at[i].n;
		to->dur_ns += at[i].dur_ns;
		to->wait_ns += at[i].wait_ns;
		to->transfer_ns += at[i].transfer_ns;
		to->exposed_ns += at[i].exposed_ns;
		to->exposed_wait_ns += at[i].exposed_wait_ns;
		to->size_bytes += at[i].size_bytes;
		to->timed_bytes += at[i].timed_bytes;
	}
}

static void found_init(struct lull_job_found *f)
{
	lull_vec_init(&f->steps, sizeof(struct lull_job_step));
	lull_vec_init(&f->kinds, sizeof(struct lull_job_kind));
	lull_vec_init(&f->comms, sizeof(struct lull_job_comm));
	lull_vec_init(&f->ranges, sizeof(struct lull_job_range));
}

static void found_release(struct lull_job_found *f)
{
	lull_vec_release(&f->steps);
	lull_vec_release(&f->kinds);
	lull_vec_release(&f->comms);
	lull_vec_release(&f->ranges);
}

static void put_all(struct lull_str *to, const struct lull_vec *v)
{
	put(to, v->at, v->n * v->elem_bytes);
}

static void read_parts(struct lull_job *job, const struct lull_job_meetings *m,
		       struct lull_str *bytes)
{
	struct lull_job_rank *all = job->ranks.at;

	for (size_t i = 0; i < job->ranks.n; i++) {
		struct lull_job_found found;

		if (all[i].owner != job->team.rank)
			continue;
		found_init(&found);
		lull_job_part(job, &all[i], m, &found);
		all[i].n_steps = (u32)found.steps.n;
		all[i].n_kinds = (u32)found.kinds.n;
		all[i].n_comms = (u32)found.comms.n;
		all[i].n_ranges = (u32)found.ranges.n;
		put(bytes, &all[i], sizeof(all[i]));
		put_all(bytes, &found.steps);
		put_all(bytes, &found.kinds);
		put_all(bytes, &found.comms);
		put_all(bytes, &found.ranges);
		found_release(&found);
	}
}

/* Append n elements from what travelled, which then begins after them. */
static void take(struct lull_vec *to, const char **from, u32 n)
{
	lull_vec_add(to, *from, n);
	*from += n * to->elem_bytes;
}

static void unpack_parts(struct lull_job *job, const struct lull_team_parts *parts)
{
	struct lull_job_rank *all = job->ranks.at;
	const char **at = lull_alloc(job->team.size, sizeof(*at));
	struct lull_vec comms, rank_of;

	lull_vec_init(&comms, sizeof(struct lull_job_comm));
	lull_vec_init(&rank_of, sizeof(i64));
	/* Ranks travel in their order; each process has a part of them. */
	memcpy(at, parts->at, job->team.size * sizeof(*at));
	for (size_t i = 0; i < job->ranks.n; i++) {
		const char **from = &at[all[i].owner];

		memcpy(&all[i], *from, sizeof(all[i]));
		*from += sizeof(all[i]);
		all[i].first_ix = job->steps.n;
		take(&job->steps, from, all[i].n_steps);
		add_kinds(job, (const void *)*from, all[i].n_kinds);
		*from += all[i].n_kinds * sizeof(struct lull_job_kind);
		take(&comms, from, all[i].n_comms);
		for (u32 k = 0; k < all[i].n_comms; k++)
			lull_vec_add(&rank_of, &all[i].rank, 1);
		take(&job->ranges, from, all[i].n_ranges);
	}
	if (job->kinds.n)
		lull_sort(job->kinds.at, job->kinds.n, sizeof(struct lull_job_kind), by_time);
	lull_job_find_comms(job, &comms, rank_of.at);
	lull_vec_release(&comms);
	lull_vec_release(&rank_of);
	free(at);
}

static void note_damage(struct lull_job *job)
{
	const struct lull_job_rank *all = job->ranks.at;

	for (size_t i = 0; i < job->ranks.n; i++) {
		if (!all[i].n_damaged)
			continue;
		job->n_damaged++;
		lull_job_note(job,
			      "%s is damaged: the answer lacks the rows of %llu block%s that could "
			      "not be read; copy the file again, or record again.",
			      all[i].file, (unsigned long long)all[i].n_damaged,
			      all[i].n_damaged == 1 ? "" : "s");
	}
}

int lull_job_run(struct lull_job *job, struct lull_err *err)
{
	struct lull_team_parts parts = { NULL, NULL, NULL };
	struct lull_str bytes = LULL_STR_INIT;
	struct lull_job_meetings meetings;
	int rc = lull_job_meet(job, &meetings, err);

	if (!rc) {
		read_parts(job, &meetings, &bytes);
		lull_job_meetings_release(&meetings);
		rc = lull_team_gather(&job->team, bytes.at, bytes.len, &parts, err);
	} else {
		lull_job_meetings_release(&meetings);
	}
	lull_str_release(&bytes);
	if (!rc) {
		unpack_parts(job, &parts);
		note_damage(job);
		lull_job_number_steps(job);
		lull_job_find_stages(job);
		lull_job_find_stragglers(job);
		lull_job_group(job);
		lull_job_judge(job);
	}
	lull_team_parts_release(&parts);
	return rc;
}

void lull_job_release(struct lull_job *job)
{
	char **notes = job->notes.at;

	for (size_t i = 0; i < job->notes.n; i++)
		free(notes[i]);
	lull_vec_release(&job->notes);
	lull_vec_release(&job->ranks);
	lull_vec_release(&job->skipped);
	lull_vec_release(&job->steps);
	lull_vec_release(&job->kinds);
	lull_vec_release(&job->stragglers);
	lull_vec_release(&job->groups);
	lull_vec_release(&job->stages);
	lull_vec_release(&job->comms);
	lull_vec_release(&job->ranges);
	if (job->has_team)
		lull_team_close(&job->team);
	job->has_team = false;
}

const struct lull_job_step *lull_job_steps(const struct lull_job *job,
					   const struct lull_job_rank *rank, u32 *n)
{
	*n = rank->n_steps;
	return (const struct lull_job_step *)job->steps.at + rank->first_ix;
}

u64 lull_job_exposed_ns(const struct lull_job_rank *rank)
{
	return rank->wait_ns + rank->transfer_ns + rank->bubble_ns;
}

u64 lull_job_overlapped_ns(const struct lull_job_rank *rank)
{
	u64 exposed_ns = lull_job_exposed_ns(rank);

	return rank->comm_ns > exposed_ns ? rank->comm_ns - exposed_ns : 0;
}

f64 lull_job_algorithm_bandwidth(const struct lull_job_kind *kind)
{
	return kind->transfer_ns ? (f64)kind->timed_bytes / (f64)kind->transfer_ns : 0;
}

f64 lull_job_bus_bandwidth(const struct lull_job_kind *kind)
{
	f64 n = kind->n_ranks, part = 1;

	if (!kind->n_ranks)
		return 0;
	if (strncmp(kind->name, "AllReduce", 9) == 0 || strcmp(kind->name, "allreduce") == 0)
		part = 2 * (n - 1) / n;
	else if (strncmp(kind->name, "AllGather", 9) == 0 ||
		 strncmp(kind->name, "ReduceScatter", 13) == 0 ||
		 strncmp(kind->name, "AlltoAll", 8) == 0)
		part = (n - 1) / n;
	return part * lull_job_algorithm_bandwidth(kind);
}
