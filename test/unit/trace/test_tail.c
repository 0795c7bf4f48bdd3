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
			    "mark start=900ms lane=1 label=1\n"
			    "cuda_call start=200ms dur=2us lane=1 name=cuInit\n"
			    "checkpoint start=1s\n";
static const char across[] = "range start=900ms dur=800ms lane=1 label=1\n"
			     "checkpoint start=2s\n";
static const char late[] = "lane#1 name=renamed\n"
			   "label name=backward\n"
			   "range start=2500ms dur=20us lane=1 label=2\n"
			   "checkpoint start=2550ms\n";
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

/* What is left when all before 1.6 s is forgotten; the long range reaches into it. */
static const char *const kept[] = { "renamed", "backward", "\"start_ns\":900000000,\"dur_ns\"",
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
	assert_int_equal(lull_writer_stats(w).n_rows, 5);
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
	assert_int_equal(stats.n_rows, 8);
	unlink(copy.at);
	lull_str_release(&copy);
	lull_str_release(&part);
}

/* Steps of 10, 150, 20 and 430 ms one after the other, written at their ends. */
#define N_STEPS 40
#define END_MS	(N_STEPS / 4 * (10 + 150 + 20 + 430))
static const u64 step_ms[] = { 10, 150, 20, 430 };

/* A checkpoint each second, with a range that has been open from the start. */
static void add_checkpoint(struct lull_writer *w, u64 at_ns)
{
	struct lull_open_range_row open = { .start_ns = 1, .checkpoint_ns = at_ns };
	struct lull_checkpoint_row row = { .start_ns = at_ns };
	struct lull_err err;

	lull_writer_add(w, LULL_TABLE_open_range, &open);
	report_ok(lull_writer_flush(w, &err), &err);
	lull_writer_add(w, LULL_TABLE_checkpoint, &row);
	report_ok(lull_writer_flush(w, &err), &err);
}

static struct lull_writer *record_steps(const struct report_dir *d)
{
	struct lull_file_info info = { .id = { 7 } };
	u64 at_ns = 0, checkpoint_ns = 1000000000;
	struct lull_writer *w;
	struct lull_err err;

	report_ok(lull_writer_open(&w, d->file, &info, &err), &err);
	for (u64 i = 0; i < N_STEPS; i++) {
		struct lull_step_row row = { .start_ns = at_ns,
					     .dur_ns = step_ms[i % 4] * 1000000,
					     .number = i };

		at_ns += row.dur_ns;
		for (; at_ns >= checkpoint_ns; checkpoint_ns += 1000000000)
			add_checkpoint(w, checkpoint_ns);
		lull_writer_add(w, LULL_TABLE_step, &row);
	}
	return w;
}

/* All steps of the file from its first one on; that one begins before from_ns. */
static void expect_no_hole(const char *path, u64 from_ns)
{
	u64 n_found = 0, lowest = UINT64_MAX, lowest_ns = 0, highest = 0;
	struct lull_step_cols s;
	struct lull_cursor c;
	struct lull_reader *r;
	struct lull_err err;
	size_t n;

	report_ok(lull_reader_open(&r, path, &err), &err);
	lull_cursor_init(&c, r, LULL_TABLE_step, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &s)) > 0) {
		n_found += n;
		for (size_t i = 0; i < n; i++) {
			highest = s.number[i] > highest ? s.number[i] : highest;
			lowest_ns = s.number[i] < lowest ? s.start_ns[i] : lowest_ns;
			lowest = s.number[i] < lowest ? s.number[i] : lowest;
		}
	}
	lull_cursor_release(&c);
	lull_reader_close(r);
	assert_int_equal(highest, N_STEPS - 1);
	if (highest - lowest + 1 != n_found || lowest_ns > from_ns)
		fail_msg("from %llu ns on: %llu steps, %llu to %llu", (unsigned long long)from_ns,
			 (unsigned long long)n_found, (unsigned long long)lowest,
			 (unsigned long long)highest);
}

/* Long and short rows of a table are in different blocks, which end at different times. */
static void wherever_it_is_cut_no_step_is_missing(void **state)
{
	struct report_dir *d = *state;
	u64 n_smaller = 0;

	for (u64 from_ms = 0; from_ms < END_MS; from_ms += 30) {
		struct lull_writer *w = record_steps(d);
		struct lull_err err;

		report_ok(lull_writer_trim(w, from_ms * 1000000, &err), &err);
		n_smaller += lull_writer_stats(w).n_rows < N_STEPS / 2;
		report_ok(lull_writer_seal(w, &err), &err);
		expect_no_hole(d->file, from_ms * 1000000);
		unlink(d->file);
	}
	assert_true(n_smaller > END_MS / 30 / 4);
}

/* Recovery continues from the last checkpoint and its open ranges, however old they are. */
static void the_last_checkpoint_stays(void **state)
{
	struct report_dir *d = *state;
	struct lull_writer *w = record_steps(d);
	struct lull_err err;
	char *dump;

	report_ok(lull_writer_trim(w, END_MS * 1000000ull, &err), &err);
	report_ok(lull_writer_seal(w, &err), &err);
	dump = report_dump_file(d->file, NULL);
	if (!strstr(dump, "\"checkpoint_ns\":6000000000") ||
	    !strstr(dump, "\"table\":\"checkpoint\",\"start_ns\":6000000000") ||
	    strstr(dump, "\"checkpoint_ns\":5000000000"))
		fail_msg("not the last checkpoint alone:\n%s", dump);
	free(dump);
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
		cmocka_unit_test_setup_teardown(wherever_it_is_cut_no_step_is_missing,
						report_set_up, report_tear_down),
		cmocka_unit_test_setup_teardown(the_last_checkpoint_stays, report_set_up,
						report_tear_down),
		cmocka_unit_test_setup_teardown(a_failure_leaves_everything_as_it_was,
						report_set_up, report_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
