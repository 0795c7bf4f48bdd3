/*
 * The tail of a file is a file: names and dimensions as ever, facts from a moment on.
 */
#include "unit/report.h"

#include <errno.h>
#include <unistd.h>

#include "base/io.h"
#include "trace/recover.h"

static const char early[] = "process pid=10 name=train\n"
			    "lane process=1 tid=10 name=main\n"
			    "label name=forward\n"
			    "range start=100us dur=20us lane=1 label=1\n"
			    "cuda_call start=200ms dur=2us lane=1 name=cuInit\n";
static const char across[] = "range start=1s dur=2s lane=1 label=1\n"
			     "mark start=1s lane=1 label=1\n";
static const char late[] = "lane#1 name=renamed\n"
			   "label name=backward\n"
			   "range start=2500ms dur=20us lane=1 label=2\n";
static const char last[] = "range start=2600ms dur=1us lane=1 label=1\n";

/* Three flushes, as three checkpoints make them. */
static struct lull_writer *record(const struct report_dir *d)
{
	struct lull_file_info info = { .epoch_ns = 5, .epoch_utc_ns = 6, .id = { 7 } };
	const char *const parts[] = { early, across, late };
	struct lull_writer *w;
	struct lull_err err;

	report_ok(lull_writer_open(&w, d->file, &info, &err), &err);
	for (size_t i = 0; i < 3; i++) {
		report_ok(lull_text_add(w, parts[i], &err), &err);
		report_ok(lull_writer_flush(w, &err), &err);
	}
	return w;
}

/* What is left when all before 2 s is forgotten; the long range reaches into it. */
static const char *const kept[] = { "renamed", "backward", "\"start_ns\":1000000000,",
				    "\"start_ns\":2500000000,", "\"start_ns\":2600000000,",
				    /* calls are kept for the work they asked for */
				    "cuInit" };
static const char *const dropped[] = { "\"dur_ns\":20000,\"depth\":0,\"lane\":1,\"label\":1",
				       "\"table\":\"mark\"" };

static void expect_tail(const char *path)
{
	char *dump = report_dump_file(path, NULL);

	for (size_t i = 0; i < LULL_COUNT_OF(kept); i++)
		if (!strstr(dump, kept[i]))
			fail_msg("'%s' is missing in:\n%s", kept[i], dump);
	for (size_t i = 0; i < LULL_COUNT_OF(dropped); i++)
		if (strstr(dump, dropped[i]))
			fail_msg("'%s' is still in:\n%s", dropped[i], dump);
	free(dump);
}

static void expect_whole(const char *path)
{
	struct lull_reader *r;
	struct lull_err err;

	report_ok(lull_reader_open(&r, path, &err), &err);
	assert_int_equal(lull_reader_verify(r), 0);
	lull_reader_close(r);
}

static void a_trimmed_file_goes_on(void **state)
{
	struct report_dir *d = *state;
	struct lull_writer *w = record(d);
	struct lull_err err;

	report_ok(lull_writer_trim(w, 1600000000, &err), &err);
	report_ok(lull_text_add(w, last, &err), &err);
	/* Again and again: nothing comes back, nothing is lost. */
	for (int i = 0; i < 3; i++)
		report_ok(lull_writer_trim(w, 1600000000, &err), &err);
	assert_int_equal(lull_writer_stats(w).n_rows, 3);
	report_ok(lull_writer_seal(w, &err), &err);
	expect_whole(d->file);
	expect_tail(d->file);
}

static void a_fork_leaves_the_old_file(void **state)
{
	struct report_dir *d = *state;
	struct lull_writer *w = record(d);
	struct lull_str copy = LULL_STR_INIT, part = LULL_STR_INIT;
	struct lull_recover_stats stats;
	struct lull_err err;

	lull_str_addf(&copy, "%s-copy", d->file);
	lull_str_addf(&part, "%s.part", d->file);
	report_ok(lull_writer_fork(w, copy.at, 1600000000, &err), &err);
	report_ok(lull_text_add(w, last, &err), &err);
	report_ok(lull_writer_seal(w, &err), &err);
	expect_whole(copy.at);
	expect_tail(copy.at);
	report_ok(lull_recover_file(part.at, NULL, &stats, &err), &err);
	assert_int_equal(stats.n_rows, 5);
	unlink(copy.at);
	lull_str_release(&copy);
	lull_str_release(&part);
}

/* Each write fails once: the writer is as it was, and nothing half-made lies around. */
static void a_failure_leaves_everything_as_it_was(void **state)
{
	struct report_dir *d = *state;
	struct lull_str next = LULL_STR_INIT;
	struct lull_err err;
	u64 n_failed = 0;

	lull_str_addf(&next, "%s.next.part", d->file);
	for (u64 n = 1; n < 40; n++) {
		struct lull_writer *w = record(d);
		int rc;

		lull_io_fail_at(n, ENOSPC, false);
		rc = lull_writer_trim(w, 1600000000, &err);
		lull_io_fail_at(0, 0, false);
		n_failed += rc != 0;
		assert_int_not_equal(access(next.at, F_OK), 0);
		report_ok(lull_text_add(w, last, &err), &err);
		report_ok(lull_writer_seal(w, &err), &err);
		expect_whole(d->file);
		unlink(d->file);
		if (!rc)
			break;
	}
	assert_true(n_failed > 3);
	lull_str_release(&next);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_trimmed_file_goes_on, report_set_up,
						report_tear_down),
		cmocka_unit_test_setup_teardown(a_fork_leaves_the_old_file, report_set_up,
						report_tear_down),
		cmocka_unit_test_setup_teardown(a_failure_leaves_everything_as_it_was,
						report_set_up, report_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
