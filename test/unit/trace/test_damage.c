/*
 * Cut, flipped and unwritable files: what is read is right, or it is said that something is
 * missing.
 */
#include "unit/report.h"

#include <errno.h>

#include "base/io.h"
#include "trace/file_frame.h"
#include "trace/recover.h"

/* Every kind of block, several of most. */
static const char early[] = "meta key=host.name value=test\n"
			    "process pid=10 name=train\n"
			    "lane process=1 tid=10 name=main\nlane process=1 tid=11 name=worker\n"
			    "label name=forward\nlabel name=backward\n"
			    "range start=100us dur=20us lane=1 label=1\n"
			    "range start=105us dur=5us depth=1 lane=1 label=2\n"
			    "oscall start=1us dur=7us lane=2 name=read ret=-1\n";
static const char late[] = "lane#2 name=renamed\n"
			   "range start=300us dur=20us lane=2 label=1\n"
			   "mark start=310us lane=1 label=2 payload=5\n";

struct small_file {
	unsigned char *bytes;
	size_t len;
	char *dump;   /* of everything */
	char *ranges; /* of the table without strings */
};

/*
 * Record a little, ignoring what flush says, as a recorder with a full disk does. Returns what
 * sealing says.
 */
static int record(const struct report_dir *d, struct lull_writer_stats *stats, struct lull_err *err)
{
	struct lull_file_info info = { 0 };
	struct lull_writer *w;
	struct lull_err ignored;
	int rc = lull_writer_open(&w, d->file, &info, err);

	if (rc)
		return rc;
	report_ok(lull_text_add(w, early, err), err);
	lull_writer_flush(w, &ignored);
	report_ok(lull_text_add(w, late, err), err);
	if (lull_writer_flush(w, &ignored))
		assert_int_equal(lull_writer_error(w, &ignored), LULL_E_IO);
	*stats = lull_writer_stats(w);
	return lull_writer_seal(w, err);
}

static void small_file_make(const struct report_dir *d, struct small_file *f)
{
	struct lull_err err;

	report_ok(record(d, &(struct lull_writer_stats){ 0 }, &err), &err);
	f->bytes = report_load(d->file, &f->len);
	f->dump = report_dump_file(d->file, NULL);
	f->ranges = report_dump_file(d->file, "range");
}

static void small_file_free(const struct report_dir *d, struct small_file *f)
{
	free(f->bytes);
	free(f->dump);
	free(f->ranges);
	unlink(d->file);
	unlink(d->other);
}

/* Offsets of the ends of all blocks, 0 after the last. */
static size_t block_ends(const char *path, u64 *ends, size_t max)
{
	struct lull_reader *r;
	struct lull_err err;
	const struct lull_entry *e;
	size_t n;

	report_ok(lull_reader_open(&r, path, &err), &err);
	e = lull_reader_blocks(r, &n);
	assert_true(n <= max);
	for (size_t i = 0; i < n; i++)
		ends[i] = e[i].off + e[i].size_bytes;
	lull_reader_close(r);
	return n;
}

/* ---- truncation ---- */

static void a_file_cut_at_any_byte_gives_exactly_its_whole_blocks(void **state)
{
	const struct report_dir *d = *state;
	struct small_file f;
	u64 ends[64];
	size_t n;

	small_file_make(d, &f);
	n = block_ends(d->file, ends, 64);
	for (size_t cut = 0; cut < f.len; cut += test_stride(41)) {
		struct lull_reader *r;
		struct lull_err err;
		size_t n_whole = 0, n_found;
		char *ranges;

		report_store(d->other, f.bytes, cut);
		if (lull_reader_open(&r, d->other, &err)) {
			assert_true(cut < LULL_HEADER_BYTES);
			continue;
		}
		assert_true(cut >= LULL_HEADER_BYTES);
		assert_false(lull_reader_is_sealed(r));
		for (size_t i = 0; i < n; i++)
			n_whole += ends[i] <= cut;
		lull_reader_blocks(r, &n_found);
		assert_int_equal(n_found, n_whole);
		assert_int_equal(lull_reader_verify(r), 0);
		ranges = report_dump(r, "range");
		assert_true(report_is_part_of(ranges, f.ranges));
		free(ranges);
		lull_reader_close(r);
	}
	small_file_free(d, &f);
}

static void a_file_cut_at_any_block_border_recovers(void **state)
{
	const struct report_dir *d = *state;
	struct small_file f;
	u64 ends[64];
	size_t n;

	small_file_make(d, &f);
	n = block_ends(d->file, ends, 64);
	for (size_t i = 0; i < n; i++)
		for (int extra = -1; extra <= 1; extra++) {
			struct lull_recover_stats stats;
			struct lull_err err;
			struct lull_reader *r;
			char *before, *after;

			report_store(d->part, f.bytes, (size_t)((i64)ends[i] + extra));
			before = report_dump_file(d->part, "range");
			report_ok(lull_recover_file(d->part, d->other, &stats, &err), &err);
			assert_false(stats.was_sealed);
			assert_true(extra == 0 ? stats.lost_bytes == 0 : stats.lost_bytes > 0);
			report_ok(lull_reader_open(&r, d->other, &err), &err);
			assert_true(lull_reader_is_sealed(r));
			assert_int_equal(lull_reader_verify(r), 0);
			after = report_dump(r, "range");
			assert_string_equal(before, after);
			lull_reader_close(r);
			free(before);
			free(after);
			/* In place gives the same, under the final name. */
			before = report_dump_file(d->other, NULL);
			report_ok(lull_recover_file(d->part, NULL, &stats, &err), &err);
			assert_int_not_equal(access(d->part, F_OK), 0);
			after = report_dump_file(d->file, NULL);
			assert_string_equal(before, after);
			free(before);
			free(after);
		}
	small_file_free(d, &f);
}

/* ---- flipped bits ---- */

static void one_flipped_bit_anywhere_is_noticed(void **state)
{
	const struct report_dir *d = *state;
	struct small_file f;

	small_file_make(d, &f);
	for (size_t at = 0; at < f.len; at += test_stride(41)) {
		struct lull_reader *r;
		struct lull_err err;
		char *dump;

		f.bytes[at] ^= (unsigned char)(1u << at % 8);
		report_store(d->other, f.bytes, f.len);
		f.bytes[at] ^= (unsigned char)(1u << at % 8);
		if (lull_reader_open(&r, d->other, &err))
			continue; /* the header */
		dump = report_dump(r, "range");
		assert_true(report_is_part_of(dump, f.ranges));
		free(dump);
		dump = report_dump(r, NULL);
		/*
		 * Whatever differs is announced; and what was not announced is found by looking at
		 * it all.
		 */
		if (strcmp(dump, f.dump) != 0)
			assert_true(lull_reader_n_damaged(r) + lull_reader_lost_bytes(r) > 0);
		if (lull_reader_is_sealed(r))
			assert_true(lull_reader_verify(r) > 0);
		free(dump);
		lull_reader_close(r);
	}
	small_file_free(d, &f);
}

static void recovery_leaves_a_damaged_block_out(void **state)
{
	const struct report_dir *d = *state;
	struct lull_recover_stats stats;
	struct small_file f;
	struct lull_reader *r;
	struct lull_err err;
	u64 ends[64];
	size_t n;
	char *dump;

	small_file_make(d, &f);
	n = block_ends(d->file, ends, 64);
	assert_true(n > 4);
	/*
	 * The blocks of the index are sorted by table; the one in front of `mark` holds the second
	 * ranges.
	 */
	f.bytes[ends[n - 2] - 70] ^= 4;
	report_store(d->other, f.bytes, f.len);
	report_ok(lull_recover_file(d->other, NULL, &stats, &err), &err);
	assert_int_equal(stats.n_damaged, 1);
	assert_true(stats.lost_bytes > 0);
	report_ok(lull_reader_open(&r, d->other, &err), &err);
	assert_true(lull_reader_is_sealed(r));
	assert_int_equal(lull_reader_verify(r), 0);
	dump = report_dump(r, "issue");
	assert_non_null(strstr(dump, "\"name\":\"recovered\""));
	assert_non_null(strstr(dump, "1 damaged block\""));
	free(dump);
	lull_reader_close(r);
	small_file_free(d, &f);
}

static void a_whole_report_is_not_changed_by_recovery(void **state)
{
	const struct report_dir *d = *state;
	struct lull_recover_stats stats;
	struct small_file f;
	struct lull_err err;
	unsigned char *after;
	size_t len;

	small_file_make(d, &f);
	report_ok(lull_recover_file(d->file, NULL, &stats, &err), &err);
	assert_true(stats.was_sealed);
	assert_int_equal(stats.n_rows, 5);
	after = report_load(d->file, &len);
	assert_int_equal(len, f.len);
	assert_memory_equal(after, f.bytes, len);
	free(after);
	small_file_free(d, &f);
}

static void blocks_behind_a_hole_are_found_and_older_ones_are_not_believed(void **state)
{
	const struct report_dir *d = *state;
	struct small_file f;
	struct lull_reader *r;
	struct lull_err err;
	unsigned char *glued;
	u64 ends[64], end = 0;
	size_t n, found;

	small_file_make(d, &f);
	n = block_ends(d->file, ends, 64);
	for (size_t i = 0; i < n; i++)
		end = ends[i] > end ? ends[i] : end;
	/* The blocks, then garbage that begins like a block, then all blocks once more. */
	glued = calloc(1, 2 * end + 640);
	memcpy(glued, f.bytes, end);
	memcpy(glued + end, "LULB", 4);
	memcpy(glued + end + 640, f.bytes + LULL_HEADER_BYTES, end - LULL_HEADER_BYTES);
	report_store(d->other, glued, 2 * end + 640 - LULL_HEADER_BYTES);
	report_ok(lull_reader_open(&r, d->other, &err), &err);
	lull_reader_blocks(r, &found);
	assert_int_equal(found, n);
	assert_int_equal(lull_reader_lost_bytes(r), 640 + end - LULL_HEADER_BYTES);
	lull_reader_close(r);
	/* A hole in the middle: all but the block that lies there. */
	memset(glued + LULL_HEADER_BYTES, 0, 64);
	report_store(d->other, glued, end);
	report_ok(lull_reader_open(&r, d->other, &err), &err);
	lull_reader_blocks(r, &found);
	assert_int_equal(found, n - 1);
	lull_reader_close(r);
	free(glued);
	small_file_free(d, &f);
}

/* ---- writes that fail ---- */

static void a_failing_call_loses_only_what_it_says(void **state)
{
	const struct report_dir *d = *state;
	struct small_file f;
	struct lull_err err;
	u64 n_calls;

	small_file_make(d, &f);
	unlink(d->file);
	lull_io_fail_at(0, 0, false);
	report_ok(record(d, &(struct lull_writer_stats){ 0 }, &err), &err);
	n_calls = lull_io_n_calls();
	assert_true(n_calls > 10);
	unlink(d->file);
	for (int is_lasting = 0; is_lasting <= 1; is_lasting++)
		for (u64 at = 1; at <= n_calls; at += test_stride(5)) {
			struct lull_writer_stats stats = { 0 };
			struct lull_recover_stats recovered;
			char *ranges;
			int rc;

			lull_io_fail_at(at, ENOSPC, is_lasting);
			rc = record(d, &stats, &err);
			lull_io_fail_at(0, 0, false);
			if (rc)
				assert_int_equal(rc, LULL_E_IO);
			if (rc && access(d->part, F_OK) == 0)
				report_ok(lull_recover_file(d->part, NULL, &recovered, &err), &err);
			if (access(d->file, F_OK) == 0) {
				ranges = report_dump_file(d->file, "range");
				assert_true(report_is_part_of(ranges, f.ranges));
				if (!rc && !stats.n_lost)
					assert_string_equal(ranges, f.ranges);
				free(ranges);
			} else {
				assert_true(at <= 3); /* nothing was there yet to be kept */
			}
			unlink(d->file);
			unlink(d->part);
		}
	small_file_free(d, &f);
}

static void writing_goes_on_when_the_disk_has_room_again(void **state)
{
	const struct report_dir *d = *state;
	struct lull_file_info info = { 0 };
	struct lull_writer *w;
	struct lull_err err;
	char *dump;

	report_ok(lull_writer_open(&w, d->file, &info, &err), &err);
	assert_int_equal(lull_writer_error(w, &err), 0);
	report_ok(
		lull_text_add(w,
			      "lane tid=1 name=a\nmark start=1 lane=1\nflush\nmark start=2 lane=1\n"
			      "lane tid=2 name=b\n",
			      &err),
		&err);
	lull_io_fail_at(1, ENOSPC, true);
	assert_int_equal(lull_writer_flush(w, &err), LULL_E_IO);
	lull_io_fail_at(0, 0, false);
	assert_non_null(strstr(err.msg, "No space left"));
	assert_int_equal(lull_writer_stats(w).n_lost, 1);
	report_ok(lull_text_add(w, "mark start=3 lane=2\n", &err), &err);
	report_ok(lull_writer_flush(w, &err), &err);
	assert_int_equal(lull_writer_error(w, &err), LULL_E_IO);
	assert_int_equal(lull_writer_stats(w).n_rows, 2);
	report_ok(lull_writer_seal(w, &err), &err);
	dump = report_dump_file(d->file, NULL);
	assert_non_null(strstr(dump, "\"table\":\"mark\",\"start_ns\":1,"));
	assert_null(strstr(dump, "\"table\":\"mark\",\"start_ns\":2,"));
	assert_non_null(strstr(dump, "\"table\":\"mark\",\"start_ns\":3,\"lane\":2"));
	assert_non_null(strstr(dump, "\"tid\":2,\"name\":\"b\""));
	free(dump);
	unlink(d->file);
}

static void files_that_are_no_reports_are_refused(void **state)
{
	const struct report_dir *d = *state;
	struct lull_reader *r;
	struct lull_err err;

	assert_int_equal(lull_reader_open(&r, d->other, &err), LULL_E_IO);
	assert_int_equal(lull_reader_open(&r, d->path, &err), LULL_E_FORMAT);
	report_store(d->other, "", 0);
	assert_int_equal(lull_reader_open(&r, d->other, &err), LULL_E_FORMAT);
	report_store(d->other, early, sizeof(early));
	assert_int_equal(lull_reader_open(&r, d->other, &err), LULL_E_FORMAT);
	assert_non_null(strstr(err.msg, "not a lull report"));
	unlink(d->other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_cut_at_any_byte_gives_exactly_its_whole_blocks),
		cmocka_unit_test(a_file_cut_at_any_block_border_recovers),
		cmocka_unit_test(one_flipped_bit_anywhere_is_noticed),
		cmocka_unit_test(recovery_leaves_a_damaged_block_out),
		cmocka_unit_test(a_whole_report_is_not_changed_by_recovery),
		cmocka_unit_test(blocks_behind_a_hole_are_found_and_older_ones_are_not_believed),
		cmocka_unit_test(a_failing_call_loses_only_what_it_says),
		cmocka_unit_test(writing_goes_on_when_the_disk_has_room_again),
		cmocka_unit_test(files_that_are_no_reports_are_refused),
	};

	return cmocka_run_group_tests(tests, report_set_up, report_tear_down);
}
