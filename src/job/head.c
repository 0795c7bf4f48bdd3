/*
 * head - rank and host of a report, and a sample of its collectives.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "import/import.h"
#include "job/job_int.h"
#include "model/span.h"
#include "trace/issue.h"

static void copy(char *to, size_t cap, const char *text)
{
	snprintf(to, cap, "%.*s", (int)cap - 1, text);
}

void lull_job_path(const struct lull_job *job, const struct lull_job_rank *rank,
		   struct lull_str *to)
{
	lull_str_addf(to, "%s/%s", job->folder, rank->file);
}

struct lull_reader *lull_job_reader(const struct lull_job *job, struct lull_job_rank *rank)
{
	struct lull_str path = LULL_STR_INIT;
	struct lull_reader *r = NULL;
	struct lull_err err;

	lull_job_path(job, rank, &path);
	if (lull_import_open(lull_str_text(&path), &r, &err)) {
		const char *text = err.msg;
		size_t len = path.len;

		/* The file is named before it anyway. */
		if (strncmp(text, lull_str_text(&path), len) == 0 && text[len] == ':')
			text += len + 1 + (text[len + 1] == ' ');
		copy(rank->bad, sizeof(rank->bad), text);
		r = NULL;
	}
	lull_str_release(&path);
	return r;
}

static i64 number_or(const char *text, i64 otherwise)
{
	char *end;
	long long n = strtoll(text, &end, 10);

	return end == text || *end || n < 0 ? otherwise : n;
}

static void read_meta(struct lull_job_rank *rank, struct lull_reader *r)
{
	size_t n;
	const struct lull_meta_row *rows = lull_reader_dim(r, LULL_TABLE_meta, &n);
	bool has_host = false;

	for (size_t i = 0; i < n; i++) {
		const char *key = lull_reader_string(r, rows[i].key, NULL);
		const char *value = lull_reader_string(r, rows[i].value, NULL);

		if (strcmp(key, "rank") == 0) {
			rank->rank = number_or(value, -1);
			copy(rank->rank_from, sizeof(rank->rank_from), "report");
		} else if (strcmp(key, "local_rank") == 0) {
			rank->local_rank = number_or(value, -1);
		} else if (strcmp(key, "world_size") == 0) {
			rank->world_size = number_or(value, -1);
		} else if (strcmp(key, "job") == 0) {
			copy(rank->job, sizeof(rank->job), value);
		} else if (strcmp(key, "recording.version") == 0) {
			copy(rank->version, sizeof(rank->version), value);
		} else if (strcmp(key, "ranks") == 0) {
			snprintf(rank->bad, sizeof(rank->bad),
				 "it has the ranks %.60s, but a job needs one report per rank; "
				 "lull why compares these ranks if you give it only this file",
				 value);
		} else if (strcmp(key, "host") == 0) {
			copy(rank->host, sizeof(rank->host), value);
			has_host = true;
		} else if (strcmp(key, "host.name") == 0 && !has_host) {
			copy(rank->host, sizeof(rank->host), value);
		}
	}
}

/* The digits after "rank" in the name of the file, -1 if there are none. */
static i64 rank_in_name(const char *file)
{
	const char *at = file, *found = NULL;

	while ((at = strstr(at, "rank"))) {
		at += 4;
		if (isdigit((unsigned char)at[*at == '_' || *at == '-']))
			found = at + (*at == '_' || *at == '-');
	}
	return found ? strtoll(found, NULL, 10) : -1;
}

/* Its place in the largest communicator. */
static void rank_of_comm(struct lull_job_rank *rank, const struct lull_exchanges *x)
{
	const struct lull_exchange *all = x->all.at, *best = NULL;

	for (size_t i = 0; i < x->all.n; i++)
		if (all[i].n_ranks > 1 && (!best || all[i].n_ranks > best->n_ranks))
			best = &all[i];
	if (!best)
		return;
	if (rank->rank < 0) {
		rank->rank = best->rank;
		copy(rank->rank_from, sizeof(rank->rank_from), "communicator");
	}
	if (rank->world_size < 0)
		rank->world_size = best->n_ranks;
}

static u64 count_losses(struct lull_reader *r)
{
	size_t n;
	const struct lull_issue_row *rows = lull_reader_dim(r, LULL_TABLE_issue, &n);
	u64 sum = 0;

	for (size_t i = 0; i < n; i++)
		if (rows[i].severity == LULL_SEVERITY_LOSS)
			sum += rows[i].count;
	return sum;
}

/* All ranks leave these together; a root may leave the others early. */
static bool is_even(struct lull_reader *r, const struct lull_exchange *x)
{
	static const char *const names[] = { "AllReduce",      "AllGather", "ReduceScatter",
					     "AlltoAll",       "allreduce", "allgather",
					     "reduce_scatter", "all_to_all" };
	const char *name = lull_reader_string(r, x->name, NULL);

	for (size_t i = 0; !x->is_peer && i < LULL_COUNT_OF(names); i++)
		if (strstr(name, names[i]))
			return true;
	return false;
}

/* The same ones on all ranks: those with the smallest keys. */
static void take_samples(struct lull_job_rank *rank, struct lull_reader *r,
			 const struct lull_exchanges *x, struct lull_vec *samples, u64 max)
{
	const struct lull_exchange *all = x->all.at;
	u64 limit = UINT64_MAX;

	for (u64 n = x->all.n; n > max; n >>= 1)
		limit >>= 1;
	for (size_t i = 0; i < x->all.n; i++) {
		struct lull_job_sample *s;

		if (all[i].key > limit || !is_even(r, &all[i]))
			continue;
		s = lull_vec_push(samples);
		s->key = all[i].key;
		s->start_ns = rank->epoch_ns + all[i].start_ns;
		s->end_ns = rank->epoch_ns + all[i].end_ns;
	}
}

void lull_job_head(struct lull_job *job, struct lull_job_rank *rank, struct lull_vec *samples,
		   u64 max)
{
	struct lull_reader *r = lull_job_reader(job, rank);
	const struct lull_file_info *info;
	struct lull_exchanges x;
	struct lull_span all;

	rank->rank = rank->local_rank = rank->world_size = -1;
	rank->stage = rank->first = -1;
	if (!r)
		return;
	info = lull_reader_info(r);
	memcpy(rank->id, info->id, sizeof(rank->id));
	rank->epoch_ns = info->epoch_ns;
	rank->epoch_utc_ns = info->epoch_utc_ns;
	rank->is_simulated = info->flags & LULL_FILE_SIMULATED;
	if (!lull_reader_is_sealed(r)) {
		copy(rank->bad, sizeof(rank->bad),
		     "cut off or still being written: its end is missing; lull recover makes a "
		     "report of the rest");
		lull_reader_close(r);
		return;
	}
	read_meta(rank, r);
	if (*rank->bad) {
		lull_reader_close(r);
		return;
	}
	if (rank->rank < 0 && (rank->rank = rank_in_name(rank->file)) >= 0)
		copy(rank->rank_from, sizeof(rank->rank_from), "name");
	lull_exchanges_init(&x, r);
	rank_of_comm(rank, &x);
	rank->n_exchanges = x.all.n;
	rank->is_counted = x.is_counted;
	rank->n_lost = count_losses(r);
	all = lull_span_recording(r);
	rank->last_ns = all.to_ns;
	take_samples(rank, r, &x, samples, max);
	lull_exchanges_release(&x);
	lull_reader_close(r);
}
