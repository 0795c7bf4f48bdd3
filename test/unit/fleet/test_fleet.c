/*
 * Many reports: jobs and causes, since when, and the index.
 */
#include "unit/unit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "fleet/fleet.h"

#define S 1000000000ull

static struct lull_fleet_entry *add(struct lull_fleet *f, const char *file, const char *job,
				    u64 start_s, int first, u64 lost_ns)
{
	struct lull_fleet_entry *e = lull_vec_push(&f->entries);

	*e = (struct lull_fleet_entry){
		.file = lull_strdup(file),
		.size_bytes = 100,
		.mtime_ns = start_s * S,
		.trouble = lull_strdup(""),
		.job = lull_strdup(job),
		.host = lull_strdup("a"),
		.rank = -1,
		.start_utc_ns = start_s * S,
		.n_gpus = 1,
		.gpu_ns = 10 * S,
		.n_steps = 5,
		.step_ns = 2 * S,
		.first = first,
	};
	if (first >= 0)
		e->lost_ns[first] = lost_ns;
	return e;
}

static void begin(struct lull_fleet *f)
{
	*f = (struct lull_fleet){ .folder = lull_strdup("x") };
	lull_vec_init(&f->entries, sizeof(struct lull_fleet_entry));
	lull_vec_init(&f->jobs, sizeof(struct lull_fleet_job));
	lull_vec_init(&f->causes, sizeof(struct lull_fleet_cause));
}

static void jobs_that_lost_most_come_first_and_sums_add_up(void **state)
{
	const struct lull_fleet_job *jobs;
	const struct lull_fleet_cause *causes;
	struct lull_fleet f;

	(void)state;
	begin(&f);
	add(&f, "1", "small", 1, LULL_CAUSE_IX_gil, S);
	add(&f, "2", "large", 2, LULL_CAUSE_IX_host_sync, 4 * S);
	add(&f, "3", "large", 3, LULL_CAUSE_IX_gil, 2 * S);
	lull_fleet_sum(&f);
	jobs = f.jobs.at;
	causes = f.causes.at;
	assert_int_equal(f.jobs.n, 2);
	assert_string_equal(jobs[0].name, "large");
	assert_int_equal(jobs[0].lost_ns, 6 * S);
	assert_int_equal(jobs[0].cause, LULL_CAUSE_IX_host_sync);
	assert_int_equal(jobs[0].worst, 1);
	assert_int_equal(f.gpu_ns, 30 * S);
	assert_int_equal(f.lost_ns, 7 * S);
	assert_int_equal(f.causes.n, 2);
	assert_int_equal(causes[0].cause, LULL_CAUSE_IX_host_sync);
	assert_int_equal(causes[1].lost_ns, 3 * S);
	assert_int_equal(causes[1].n_jobs, 2);
	lull_fleet_release(&f);
}

static void since_is_the_start_of_the_latest_reports_with_that_cause(void **state)
{
	const struct lull_fleet_job *job;
	struct lull_fleet f;

	(void)state;
	begin(&f);
	add(&f, "1", "j", 10, LULL_CAUSE_IX_gil, S);
	add(&f, "2", "j", 20, LULL_CAUSE_IX_host_sync, S);
	add(&f, "3", "j", 30, LULL_CAUSE_IX_gil, S);
	add(&f, "4", "j", 40, -1, 0)->state = LULL_FLEET_NO_ANSWER;
	add(&f, "5", "j", 50, LULL_CAUSE_IX_gil, 3 * S);
	lull_fleet_sum(&f);
	job = f.jobs.at;
	assert_int_equal(job->cause, LULL_CAUSE_IX_gil);
	assert_int_equal(job->since_utc_ns, 30 * S);
	assert_int_equal(job->worst, 4);
	lull_fleet_release(&f);
}

static void hosts_are_counted_once(void **state)
{
	struct lull_fleet f;
	struct lull_fleet_entry *e;

	(void)state;
	begin(&f);
	for (int i = 0; i < 6; i++) {
		char name[2] = { (char)('1' + i), 0 };

		e = add(&f, name, "j", 1, -1, 0);
		e->host[0] = (char)('a' + i % 3);
	}
	lull_fleet_sum(&f);
	assert_int_equal(f.n_hosts, 3);
	assert_int_equal(((struct lull_fleet_job *)f.jobs.at)->n_hosts, 3);
	lull_fleet_release(&f);
}

/* ---- the index ---- */

static void remove_folder(const char *folder)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/" LULL_FLEET_INDEX, folder);
	unlink(path);
	rmdir(folder);
}

static void cut(const char *path, off_t at)
{
	assert_int_equal(truncate(path, at), 0);
}

/* What a fresh list of the same files learns from the index. */
static u32 load(const char *folder, const struct lull_fleet *as, u64 later_ns, bool *is_known)
{
	struct lull_fleet f;
	u32 n;

	begin(&f);
	for (size_t i = 0; i < as->entries.n; i++) {
		const struct lull_fleet_entry *from = lull_vec_get(&as->entries, i);
		struct lull_fleet_entry *e = lull_vec_push(&f.entries);

		e->file = lull_strdup(from->file);
		e->size_bytes = from->size_bytes;
		e->mtime_ns = from->mtime_ns + later_ns;
		is_known[i] = false;
	}
	n = lull_fleet_index_load(folder, &f.entries, is_known);
	for (size_t i = 0; i < as->entries.n; i++) {
		const struct lull_fleet_entry *a = lull_vec_get(&as->entries, i);
		const struct lull_fleet_entry *b = lull_vec_get(&f.entries, i);

		if (!is_known[i])
			continue;
		assert_string_equal(a->job, b->job);
		assert_string_equal(a->host, b->host);
		assert_string_equal(a->trouble, b->trouble);
		assert_int_equal(a->first, b->first);
		assert_int_equal(a->state, b->state);
		assert_int_equal(a->rank, b->rank);
		assert_int_equal(a->gpu_ns, b->gpu_ns);
		assert_memory_equal(a->lost_ns, b->lost_ns, sizeof(a->lost_ns));
	}
	lull_fleet_release(&f);
	return n;
}

static void an_index_gives_back_what_was_stored(void **state)
{
	char folder[] = "/tmp/lull-fleet-XXXXXX";
	struct lull_fleet f;
	struct lull_fleet_entry *e;
	bool is_known[3];

	(void)state;
	assert_non_null(mkdtemp(folder));
	begin(&f);
	add(&f, "a.lull", "train.py --x 1", 1, LULL_CAUSE_IX_gil, S);
	e = add(&f, "b/c.lull", "j", 2, -1, 0);
	e->state = LULL_FLEET_DAMAGED;
	free(e->trouble);
	e->trouble = lull_strdup("bad magic");
	e->rank = 7;
	e = add(&f, "d.lull", "k", 3, LULL_CAUSE_IX_host_sync, 5);
	e->lost_ns[LULL_CAUSE_IX_gil] = 9;
	lull_fleet_index_store(folder, &f.entries);
	assert_int_equal(load(folder, &f, 0, is_known), 3);
	/* A file that changed is not known. */
	assert_int_equal(load(folder, &f, 1, is_known), 0);
	lull_fleet_release(&f);
	remove_folder(folder);
}

/* Wherever it is cut, and whatever byte is wrong, lines are right or not there. */
static void a_damaged_index_is_no_trouble(void **state)
{
	char folder[] = "/tmp/lull-fleet-XXXXXX";
	char path[64];
	struct lull_fleet f;
	struct stat st;
	bool is_known[2];

	(void)state;
	assert_non_null(mkdtemp(folder));
	begin(&f);
	add(&f, "a.lull", "j", 1, LULL_CAUSE_IX_gil, S);
	add(&f, "b.lull", "k", 2, LULL_CAUSE_IX_host_sync, S);
	lull_fleet_index_store(folder, &f.entries);
	snprintf(path, sizeof(path), "%s/" LULL_FLEET_INDEX, folder);
	assert_int_equal(stat(path, &st), 0);
	for (off_t at = st.st_size - 1; at >= 0; at--) {
		cut(path, at);
		assert_true(load(folder, &f, 0, is_known) <= 1);
	}
	lull_fleet_index_store(folder, &f.entries);
	assert_int_equal(load(folder, &f, 0, is_known), 2);
	lull_fleet_release(&f);
	remove_folder(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(jobs_that_lost_most_come_first_and_sums_add_up),
		cmocka_unit_test(since_is_the_start_of_the_latest_reports_with_that_cause),
		cmocka_unit_test(hosts_are_counted_once),
		cmocka_unit_test(an_index_gives_back_what_was_stored),
		cmocka_unit_test(a_damaged_index_is_no_trouble),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
