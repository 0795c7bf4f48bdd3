/*
 * nsys: the SQLite file that `nsys export -t sqlite` or `lull export -t sqlite` makes.
 *
 * Every table that a report has a place for is read; rows of others are counted by table. A file
 * that is damaged in the middle gives what can be read.
 */
#include "import/nsys.h"

#include <string.h>

static int sniff(const u8 *head, size_t len)
{
	static const char magic[] = "SQLite format 3";

	return len >= sizeof(magic) && !memcmp(head, magic, sizeof(magic)) ? 90 : 0;
}

static void init(struct lull_nsys *n, struct lull_import_job *job)
{
	struct lull_map *maps[] = { &n->strings, &n->processes.heads, &n->threads.heads,
				    &n->devices, &n->streams,	      &n->contexts,
				    &n->modules, &n->domains,	      &n->categories,
				    &n->chains };
	struct lull_intern *interns[] = { &n->launches, &n->labels, &n->frames, &n->stacks };

	n->job = job;
	for (size_t i = 0; i < LULL_COUNT_OF(maps); i++)
		lull_map_init(maps[i]);
	for (size_t i = 0; i < LULL_COUNT_OF(interns); i++)
		lull_intern_init(interns[i]);
	lull_vec_init(&n->processes.all, sizeof(struct lull_nsys_candidate));
	lull_vec_init(&n->threads.all, sizeof(struct lull_nsys_candidate));
	lull_vec_init(&n->read, sizeof(char *));
}

static void release(struct lull_nsys *n)
{
	struct lull_map *maps[] = { &n->strings, &n->processes.heads, &n->threads.heads,
				    &n->devices, &n->streams,	      &n->contexts,
				    &n->modules, &n->domains,	      &n->categories,
				    &n->chains };
	struct lull_intern *interns[] = { &n->launches, &n->labels, &n->frames, &n->stacks };

	lull_nsys_close(n);
	for (size_t i = 0; i < LULL_COUNT_OF(maps); i++)
		lull_map_release(maps[i]);
	for (size_t i = 0; i < LULL_COUNT_OF(interns); i++)
		lull_intern_release(interns[i]);
	lull_vec_release(&n->processes.all);
	lull_vec_release(&n->threads.all);
}

/* ---- the clock ---- */

static void read_clock(struct lull_nsys *n, struct lull_file_info *info)
{
	sqlite3_stmt *stmt = NULL;

	if (sqlite3_prepare_v2(n->db,
			       "SELECT utcEpochNs, systemClockNs FROM "
			       "TARGET_INFO_SESSION_START_TIME LIMIT 1",
			       -1, &stmt, NULL) == SQLITE_OK &&
	    sqlite3_step(stmt) == SQLITE_ROW) {
		info->epoch_utc_ns = lull_nsys_u64(stmt, 0);
		info->epoch_ns = lull_nsys_u64(stmt, 1);
	}
	sqlite3_finalize(stmt);
	stmt = NULL;
	if (sqlite3_prepare_v2(n->db,
			       "SELECT value FROM META_DATA_EXPORT WHERE name = 'LULL_FILE_FLAGS'",
			       -1, &stmt, NULL) == SQLITE_OK &&
	    sqlite3_step(stmt) == SQLITE_ROW)
		info->flags |= lull_nsys_u64(stmt, 0) & LULL_FILE_SIMULATED;
	sqlite3_finalize(stmt);
}

static void tell_of_damage(struct lull_nsys *n)
{
	if (!n->n_damaged)
		return;
	n->job->result->is_cut = true;
	lull_issue_write(n->writer, LULL_ISSUE_import_cut, 0, n->n_damaged, n->damage);
}

static int run(struct lull_import_job *job, struct lull_err *err)
{
	struct lull_file_info info = { 0 };
	struct lull_nsys n = { 0 };
	int rc;

	init(&n, job);
	rc = lull_nsys_open(&n, err);
	if (!rc) {
		read_clock(&n, &info);
		rc = lull_import_begin(job, &info, err);
	}
	if (!rc) {
		n.writer = job->writer;
		n.is_ours = lull_nsys_read_own(&n);
		lull_nsys_read_target(&n);
		lull_nsys_read_gpu(&n);
		lull_nsys_read_nvtx(&n);
		lull_nsys_read_os(&n);
		lull_nsys_read_more(&n);
		lull_nsys_count_rest(&n);
		tell_of_damage(&n);
	}
	release(&n);
	return rc;
}

const struct lull_import lull_import_nsys = {
	.name = "nsys",
	.summary = "SQLite export of Nsight Systems, or of lull",
	.sniff = sniff,
	.run = run,
};
