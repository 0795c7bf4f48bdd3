/*
 * check - whether the reports of a folder make one job.
 *
 * What cannot be used is skipped and said. What would make a wrong answer (two jobs, a rank twice)
 * is refused.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "job/job_int.h"

/* Recordings of one job overlap; hosts may disagree about the time by this much. */
#define APART_NS 120000000000ULL
/* Missing ranks that are named. */
#define MAX_NAMED 8

void lull_job_note(struct lull_job *job, const char *fmt, ...)
{
	struct lull_str text = LULL_STR_INIT;
	va_list ap;

	va_start(ap, fmt);
	lull_str_vaddf(&text, fmt, ap);
	va_end(ap);
	*(char **)lull_vec_push(&job->notes) = lull_strdup(lull_str_text(&text));
	lull_str_release(&text);
}

static int by_rank(const void *a, const void *b)
{
	const struct lull_job_rank *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return strcmp(x->file, y->file);
}

/* Reports of unknown rank get the free numbers, in the order of their names. */
static void number_rest(struct lull_job *job)
{
	struct lull_job_rank *all = job->ranks.at;
	i64 next = 0;
	u32 n = 0;

	for (size_t i = 0; i < job->ranks.n; i++) {
		bool is_taken = all[i].rank < 0;

		if (!is_taken)
			continue;
		while (is_taken) {
			is_taken = false;
			for (size_t k = 0; k < job->ranks.n; k++)
				is_taken |= all[k].rank == next;
			next += is_taken;
		}
		all[i].rank = next++;
		snprintf(all[i].rank_from, sizeof(all[i].rank_from), "order");
		n++;
	}
	if (n)
		lull_job_note(
			job,
			"%u report%s not say which rank wrote %s: numbered by name. Name them "
			"rank0.lull, rank1.lull, ... or record with a launcher.",
			n, n == 1 ? " does" : "s do", n == 1 ? "it" : "them");
}

static int check_jobs(struct lull_job *job, struct lull_err *err)
{
	const struct lull_job_rank *all = job->ranks.at, *first = NULL, *other = NULL;
	size_t n_first = 0, n_other = 0;

	for (size_t i = 0; i < job->ranks.n; i++) {
		if (!*all[i].job)
			continue;
		if (!first)
			first = &all[i];
		if (strcmp(all[i].job, first->job) == 0) {
			n_first++;
		} else {
			other = other ? other : &all[i];
			n_other++;
		}
	}
	if (!other)
		return LULL_OK;
	return lull_fail(err, LULL_E_FORMAT,
			 "two jobs in the folder %s: %zu report%s of job %s (such as %s) and %zu "
			 "of job %s (such as %s); put each job into its own folder",
			 job->folder, n_first, n_first == 1 ? "" : "s", first->job, first->file,
			 n_other, other->job, other->file);
}

/* Runs of one program may have no job id; then their times distinguish them. */
static int check_times(struct lull_job *job, struct lull_err *err)
{
	const struct lull_job_rank *all = job->ranks.at, *early = all, *late = all;

	for (size_t i = 0; i < job->ranks.n; i++) {
		early = all[i].epoch_utc_ns + all[i].last_ns < early->epoch_utc_ns + early->last_ns
				? &all[i]
				: early;
		late = all[i].epoch_utc_ns > late->epoch_utc_ns ? &all[i] : late;
	}
	if (!early->epoch_utc_ns ||
	    early->epoch_utc_ns + early->last_ns + APART_NS >= late->epoch_utc_ns)
		return LULL_OK;
	return lull_fail(err, LULL_E_FORMAT,
			 "two jobs in the folder %s: %s ended %.0f minutes before %s started; put "
			 "each run into its own folder",
			 job->folder, early->file,
			 (f64)(late->epoch_utc_ns - early->epoch_utc_ns - early->last_ns) / 6e10,
			 late->file);
}

static int check_duplicates(const struct lull_job *job, struct lull_err *err)
{
	const struct lull_job_rank *all = job->ranks.at;

	for (size_t i = 1; i < job->ranks.n; i++) {
		if (all[i].rank != all[i - 1].rank)
			continue;
		if (memcmp(all[i].id, all[i - 1].id, sizeof(all[i].id)) == 0)
			return lull_fail(
				err, LULL_E_FORMAT,
				"rank %lld is in the folder %s twice: %s and %s are the same "
				"recording; remove one of them",
				(long long)all[i].rank, job->folder, all[i - 1].file, all[i].file);
		return lull_fail(err, LULL_E_FORMAT,
				 "rank %lld is in the folder %s twice: in %s and %s; keep only the "
				 "reports of one run",
				 (long long)all[i].rank, job->folder, all[i - 1].file, all[i].file);
	}
	return LULL_OK;
}

static int check_world(struct lull_job *job, struct lull_err *err)
{
	const struct lull_job_rank *all = job->ranks.at, *known = NULL;

	for (size_t i = 0; i < job->ranks.n; i++) {
		if (all[i].world_size < 0)
			continue;
		if (known && all[i].world_size != known->world_size)
			return lull_fail(
				err, LULL_E_FORMAT,
				"two jobs in the folder %s: %s is of a job with %lld ranks, %s of "
				"one with %lld; put each job into its own folder",
				job->folder, known->file, (long long)known->world_size, all[i].file,
				(long long)all[i].world_size);
		known = &all[i];
	}
	job->world_size = known ? known->world_size : -1;
	return LULL_OK;
}

static void note_versions(struct lull_job *job)
{
	const struct lull_job_rank *all = job->ranks.at, *first = NULL;

	for (size_t i = 0; i < job->ranks.n; i++) {
		if (!*all[i].version)
			continue;
		first = first ? first : &all[i];
		if (strcmp(all[i].version, first->version) != 0) {
			lull_job_note(
				job,
				"recorded by different versions of lull: %s by %s, %s by %s. Data "
				"that only one of them records is missing for the other ranks.",
				first->file, first->version, all[i].file, all[i].version);
			return;
		}
	}
}

static void note_missing(struct lull_job *job)
{
	const struct lull_job_rank *all = job->ranks.at;
	struct lull_str names = LULL_STR_INIT;
	i64 next = 0;
	u64 n = 0;

	for (size_t i = 0; i <= job->ranks.n; i++) {
		i64 upto = i < job->ranks.n ? all[i].rank : job->world_size;

		for (; next < upto; next++)
			if (n++ < MAX_NAMED)
				lull_str_addf(&names, "%s%lld", n > 1 ? ", " : "", (long long)next);
		next = upto + 1;
	}
	if (n)
		lull_job_note(job, "%llu of %lld ranks %s missing: %s%s.", (unsigned long long)n,
			      (long long)job->world_size, n == 1 ? "is" : "are",
			      lull_str_text(&names), n > MAX_NAMED ? ", ..." : "");
	lull_str_release(&names);
}

static void note_losses(struct lull_job *job)
{
	const struct lull_job_rank *all = job->ranks.at, *worst = all;
	size_t n = 0;

	for (size_t i = 0; i < job->ranks.n; i++) {
		n += all[i].n_lost > 0;
		worst = all[i].n_lost > worst->n_lost ? &all[i] : worst;
	}
	if (n)
		lull_job_note(job, "%zu report%s lost events, most of them %s (%llu).", n,
			      n == 1 ? "" : "s", worst->file, (unsigned long long)worst->n_lost);
	for (size_t i = 0; i < job->ranks.n; i++) {
		if (all[i].is_simulated) {
			lull_job_note(job, "Simulated device: no GPU did this work, and its times "
					   "are made up.");
			return;
		}
	}
}

static void note_skipped(struct lull_job *job)
{
	const struct lull_job_rank *all = job->skipped.at;

	for (size_t i = 0; i < job->skipped.n && i < MAX_NAMED; i++)
		lull_job_note(job, "%s skipped: %s.", all[i].file, all[i].bad);
	if (job->skipped.n > MAX_NAMED)
		lull_job_note(job, "%zu more reports skipped.", job->skipped.n - MAX_NAMED);
}

int lull_job_check(struct lull_job *job, struct lull_vec *files, struct lull_err *err)
{
	const struct lull_job_rank *all = files->at;

	for (size_t i = 0; i < files->n; i++)
		lull_vec_add(*all[i].bad ? &job->skipped : &job->ranks, &all[i], 1);
	if (!job->ranks.n) {
		const struct lull_job_rank *bad = job->skipped.at;

		return lull_fail(err, LULL_E_FORMAT,
				 "none of the %zu reports in the folder %s can be used: %s is %s",
				 job->skipped.n, job->folder, bad->file, bad->bad);
	}
	if (check_jobs(job, err) || check_world(job, err) || check_times(job, err))
		return err->code;
	number_rest(job);
	lull_sort(job->ranks.at, job->ranks.n, sizeof(struct lull_job_rank), by_rank);
	if (check_duplicates(job, err))
		return err->code;
	note_losses(job);
	note_skipped(job);
	note_versions(job);
	if (job->world_size > 0)
		note_missing(job);
	return LULL_OK;
}
