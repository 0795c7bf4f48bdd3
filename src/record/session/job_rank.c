#include "record/session/job_rank.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sort.h"
#include "base/vec.h"

static const char *get(void *ctx, const char *name)
{
	(void)ctx;
	return getenv(name);
}

struct lull_rank lull_job_rank(void)
{
	return lull_rank_read(get, NULL);
}

/* A pod of an indexed job has the host name JOB-INDEX. */
static void name_by_pod(const struct lull_rank *rank, struct lull_str *to)
{
	char host[256] = "", end[24];
	size_t n, n_end;

	gethostname(host, sizeof(host) - 1);
	snprintf(end, sizeof(end), "-%" PRId64, rank->rank);
	n = strlen(host);
	n_end = strlen(end);
	if (n > n_end && strcmp(host + n - n_end, end) == 0)
		lull_str_add(to, host, n - n_end);
}

void lull_job_name(const struct lull_rank *rank, struct lull_str *to)
{
	char name[LULL_JOB_BYTES];

	lull_rank_job(get, NULL, name, sizeof(name));
	lull_str_puts(to, name);
	if (!to->len && rank->launcher && strcmp(rank->launcher, "kubernetes") == 0)
		name_by_pod(rank, to);
}

static void note_number(struct lull_recording *r, const char *key, i64 value)
{
	char text[24];

	if (value < 0)
		return;
	snprintf(text, sizeof(text), "%" PRId64, value);
	lull_recording_meta(r, key, text);
}

static void note_rank(struct lull_recording *r, const struct lull_rank *rank)
{
	note_number(r, "rank", rank->rank);
	r->rank_row = rank->rank < 0 ? 0 : lull_writer_n_dim(r->writer, LULL_TABLE_meta);
	note_number(r, "local_rank", rank->local_rank);
	note_number(r, "world_size", rank->n_ranks);
}

void lull_job_begin(struct lull_recording *r)
{
	struct lull_rank rank = lull_job_rank();
	struct lull_str name = LULL_STR_INIT;
	char host[256] = "";

	gethostname(host, sizeof(host) - 1);
	lull_recording_meta(r, "host", host);
	r->own_rank = rank.rank;
	note_rank(r, &rank);
	if (rank.launcher)
		lull_recording_meta(r, "launcher", rank.launcher);
	lull_job_name(&rank, &name);
	r->has_job = name.len > 0;
	if (r->has_job)
		lull_recording_meta(r, "job", name.at);
	lull_str_release(&name);
}

static int by_number(const void *a, const void *b)
{
	i64 x = *(const i64 *)a, y = *(const i64 *)b;

	return x < y ? -1 : x > y;
}

/* Numbers as a list with FROM-TO where they follow each other; they are sorted. */
static void list_numbers(const struct lull_vec *numbers, struct lull_str *to)
{
	const i64 *n = numbers->at;

	for (size_t i = 0, j; i < numbers->n; i = j) {
		for (j = i + 1; j < numbers->n && n[j] == n[j - 1] + 1; j++)
			;
		lull_str_addf(to, "%s%" PRId64, i ? "," : "", n[i]);
		if (j - i > 1)
			lull_str_addf(to, "-%" PRId64, n[j - 1]);
	}
}

/* The ranks of the recorded processes, each once and sorted; the last one that has it in *of. */
static void collect(const struct lull_recording *r, struct lull_vec *ranks, struct lull_rank *of)
{
	struct lull_process **all = r->tree->processes.at;
	i64 *n;
	size_t kept = 0;

	lull_vec_init(ranks, sizeof(i64));
	for (size_t i = 0; i < r->tree->processes.n; i++) {
		if (!all[i]->row || all[i]->rank.rank < 0)
			continue;
		*(i64 *)lull_vec_push(ranks) = all[i]->rank.rank;
		*of = all[i]->rank;
	}
	if (ranks->n)
		lull_sort(ranks->at, ranks->n, sizeof(i64), by_number);
	n = ranks->at;
	for (size_t i = 0; i < ranks->n; i++)
		if (!i || n[i] != n[i - 1])
			n[kept++] = n[i];
	ranks->n = kept;
}

/* Several ranks are in this report: what our own environment called a rank is the node's. */
static void rename_rank(struct lull_recording *r)
{
	struct lull_meta_row row;

	if (!r->rank_row)
		return;
	row = *(const struct lull_meta_row *)lull_writer_dim(r->writer, LULL_TABLE_meta,
							     r->rank_row);
	row.key = lull_recording_text(r, "node_rank");
	lull_writer_set_dim(r->writer, LULL_TABLE_meta, r->rank_row, &row);
}

void lull_job_end(struct lull_recording *r)
{
	struct lull_str list = LULL_STR_INIT;
	struct lull_rank of = { -1, -1, -1, NULL };
	struct lull_vec ranks;

	collect(r, &ranks, &of);
	if (ranks.n > 1) {
		rename_rank(r);
		list_numbers(&ranks, &list);
		lull_recording_meta(r, "ranks", list.at);
		if (r->own_rank < 0)
			note_number(r, "world_size", of.n_ranks);
	} else if (ranks.n == 1 && of.rank != r->own_rank) {
		rename_rank(r);
		note_rank(r, &of);
	}
	if (!r->has_job && r->job[0])
		lull_recording_meta(r, "job", r->job);
	lull_str_release(&list);
	lull_vec_release(&ranks);
}

/* How many stages the pipeline has: an option of the program, or a variable; -1 if nobody says. */
static i64 find_stages(char *const *argv)
{
	static const char *const options[] = { "--pipeline-model-parallel-size",
					       "--pipeline-parallel-size", "--pp-size" };
	static const char *const variables[] = { "PIPELINE_PARALLEL_SIZE", "PP_SIZE" };

	for (size_t o = 0; o < LULL_COUNT_OF(options); o++) {
		size_t n = strlen(options[o]);

		for (char *const *a = argv; *a; a++) {
			if (strncmp(*a, options[o], n) != 0)
				continue;
			if ((*a)[n] == '=')
				return lull_rank_number(*a + n + 1);
			if (!(*a)[n] && a[1])
				return lull_rank_number(a[1]);
		}
	}
	for (size_t v = 0; v < LULL_COUNT_OF(variables); v++)
		if (getenv(variables[v]))
			return lull_rank_number(getenv(variables[v]));
	return -1;
}

/* True if the text is numbers and FROM-TO, between commas. */
static bool is_list(const char *text)
{
	for (;; text++) {
		i64 from = lull_ranks_digits(&text), to = from;

		if (*text == '-') {
			text++;
			to = lull_ranks_digits(&text);
		}
		if (from < 0 || to < from)
			return false;
		if (*text != ',')
			return !*text;
	}
}

int lull_job_ranks(const char *text, char *const *argv, struct lull_str *list, struct lull_err *err)
{
	static const char heads[] = "stage-heads";
	size_t n = sizeof(heads) - 1;
	i64 n_stages;

	if (strncmp(text, heads, n) == 0 && (!text[n] || text[n] == ':')) {
		n_stages = text[n] ? lull_rank_number(text + n + 1) : find_stages(argv);
		if (n_stages < 1)
			return lull_fail(err, LULL_E_USAGE,
					 "--ranks=stage-heads: the number of pipeline stages is "
					 "not known; give it, as in stage-heads:4");
		lull_str_addf(list, LULL_RANKS_HEADS "%" PRId64, n_stages);
		return 0;
	}
	if (strcmp(text, "all") != 0 && !is_list(text))
		return lull_fail(err, LULL_E_USAGE,
				 "--ranks: '%s' is not a list such as 0,8,16-23, nor all or "
				 "stage-heads[:STAGES]",
				 text);
	lull_str_puts(list, text);
	return 0;
}
