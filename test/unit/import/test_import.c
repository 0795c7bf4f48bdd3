#include "unit/report.h"

#include <errno.h>
#include <fcntl.h>
#include <zlib.h>
#include <zstd.h>

#include "base/io.h"
#include "base/mem.h"
#include "import/import.h"

/* One event of every kind that PyTorch writes, in an order in which it writes them. */
static const char pytorch[] =
	"{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [{\"id\": 0, \"name\": \"NVIDIA "
	"H200\", "
	"\"totalGlobalMem\": 150109880320, \"computeMajor\": 9, \"computeMinor\": 0, \"numSms\": "
	"132}],\n"
	"  \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": 1, \"world_size\": 2},\n"
	"  \"baseTimeNanoseconds\": 1790857026000000000,\n  \"traceEvents\": [\n"
	"  {\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::mm\", \"pid\": 401, \"tid\": "
	"428,\n"
	"    \"ts\": 1000100.001, \"dur\": 20.5,\n    \"args\": {\"External id\": 7, \"Sequence "
	"number\": 3, "
	"\"Fwd thread id\": 1, \"Input Dims\": [[2, 3], [3, 4]], \"Input type\": [\"float\", "
	"\"float\"], "
	"\"Concrete Inputs\": [\"\", \"\"], \"Ev Idx\": 0}},\n"
	"  {\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"pid\": "
	"401, "
	"\"tid\": 428, \"ts\": 1000105, \"dur\": 5, \"args\": {\"cbid\": 211, \"correlation\": "
	"11}},\n"
	"  {\"ph\": \"s\", \"id\": 11, \"pid\": 401, \"tid\": 428, \"ts\": 1000105, \"cat\": "
	"\"ac2g\", "
	"\"name\": \"ac2g\"},\n"
	"  {\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"gemm\", \"pid\": 0, \"tid\": 7, "
	"\"ts\": 1000120.032,"
	" \"dur\": 3.2, \"args\": {\"device\": 0, \"context\": 1, \"stream\": 7, \"correlation\": "
	"11, "
	"\"registers per thread\": 32, \"shared memory\": 1024, \"grid\": [16, 2, 1], \"block\": "
	"[128, 1, 1], "
	"\"blocks per SM\": 1.9}},\n"
	"  {\"ph\": \"X\", \"cat\": \"gpu_memcpy\", \"name\": \"Memcpy HtoD (Pinned -> Device)\", "
	"\"pid\": 0, "
	"\"tid\": 7, \"ts\": 1000130, \"dur\": 1, \"args\": {\"device\": 0, \"context\": 1, "
	"\"stream\": 7, "
	"\"correlation\": 12, \"bytes\": 4096}},\n"
	"  {\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"ProfilerStep#4\", \"pid\": "
	"401, "
	"\"tid\": 401, \"ts\": 1000000, \"dur\": 200, \"args\": {}},\n"
	"  {\"ph\": \"X\", \"cat\": \"python_function\", \"name\": \"train.py(41): step\", "
	"\"pid\": 401, "
	"\"tid\": 401, \"ts\": 1000001, \"dur\": 190, \"args\": {\"Python id\": 1, "
	"\"Python parent id\": null}},\n"
	"  {\"ph\": \"i\", \"cat\": \"cpu_instant_event\", \"s\": \"t\", \"name\": \"[memory]\", "
	"\"pid\": 401, "
	"\"tid\": 428, \"ts\": 1000104, \"args\": {\"Total Reserved\": 8192, \"Total Allocated\": "
	"512, "
	"\"Bytes\": 512, \"Device Id\": 0, \"Device Type\": 1, \"Addr\": 139831058366464}},\n"
	"  {\"ph\": \"X\", \"cat\": \"kernel\", \"name\": "
	"\"ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)\", "
	"\"pid\": 0, \"tid\": 40, \"ts\": 1000150, \"dur\": 9, \"args\": {\"device\": 0, "
	"\"context\": 1, "
	"\"stream\": 40, \"correlation\": 13, \"Collective name\": \"allreduce\", \"In msg "
	"nelems\": 100, "
	"\"Out msg nelems\": 100, \"Group size\": 2, \"dtype\": \"Float\", \"Process Group Name\": "
	"\"0\", "
	"\"Process Group Ranks\": \"[0, 1]\"}},\n"
	"  {\"name\": \"thread_name\", \"ph\": \"M\", \"ts\": 0, \"pid\": 401, \"tid\": 428, "
	"\"args\": "
	"{\"name\": \"thread 428 (pt_autograd_0)\"}}\n  ],\n  \"traceName\": \"x.json\"\n}\n";

enum { N_PYTORCH_EVENTS = 10 };

static void write_file(const char *path, const void *bytes, size_t len)
{
	FILE *to = fopen(path, "we");

	assert_non_null(to);
	assert_int_equal(fwrite(bytes, 1, len, to), len);
	assert_int_equal(fclose(to), 0);
}

/* Import this text; the result, and the reader if it is wanted. */
static int import_text(struct report_dir *d, const char *text, size_t len,
		       struct lull_import_result *result, struct lull_reader **r,
		       struct lull_err *err)
{
	const struct lull_import_options options = { .is_temporary = true };
	int rc;

	write_file(d->other, text, len);
	unlink(d->file);
	rc = lull_import_file(d->other, d->file, &options, result, err);
	if (!rc && r)
		assert_int_equal(lull_reader_open(r, d->file, err), 0);
	return rc;
}

static struct lull_reader *import_good(struct report_dir *d, const char *text,
				       struct lull_import_result *result)
{
	struct lull_reader *r = NULL;
	struct lull_err err;

	assert_int_equal(import_text(d, text, strlen(text), result, &r, &err), 0);
	return r;
}

static u64 n_rows(struct lull_reader *r, enum lull_table table)
{
	return lull_reader_stats(r, table).n_rows;
}

/* ---- PyTorch ---- */

static void every_kind_of_event_finds_its_table(void **state)
{
	static const enum lull_table tables[] = { LULL_TABLE_op,     LULL_TABLE_cuda_call,
						  LULL_TABLE_memcpy, LULL_TABLE_range,
						  LULL_TABLE_step,   LULL_TABLE_pycall,
						  LULL_TABLE_alloc,  LULL_TABLE_collective };
	struct lull_import_result result;
	struct lull_reader *r = import_good(*state, pytorch, &result);

	assert_string_equal(result.format->name, "pytorch");
	for (size_t i = 0; i < LULL_COUNT_OF(tables); i++)
		assert_int_equal(n_rows(r, tables[i]), 1);
	assert_int_equal(n_rows(r, LULL_TABLE_kernel), 2);
	assert_int_equal(lull_reader_n_dim(r, LULL_TABLE_issue), 0);
	assert_int_equal(result.n_bad + result.n_unmapped, 0);
	assert_false(result.is_cut);
	/* The step is first; PyTorch's clock counts from baseTimeNanoseconds. */
	assert_int_equal(lull_reader_info(r)->epoch_ns, 1000000000);
	assert_int_equal(lull_reader_info(r)->epoch_utc_ns, 1790857026000000000 + 1000000000);
	lull_reader_close(r);
}

static void rows_say_what_the_events_said(void **state)
{
	struct lull_reader *r = import_good(*state, pytorch, NULL);
	struct lull_collective_cols together;
	struct lull_kernel_cols kernels;
	struct lull_memcpy_cols copies;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, r, LULL_TABLE_kernel, 0, UINT64_MAX);
	assert_int_equal(lull_cursor_next(&c, &kernels), 2);
	assert_int_equal(kernels.start_ns[0], 120032);
	assert_int_equal(kernels.dur_ns[0], 3200);
	assert_int_equal(kernels.correlation[0], 11);
	assert_int_equal(kernels.process[0], 1);
	lull_cursor_release(&c);
	lull_cursor_init(&c, r, LULL_TABLE_memcpy, 0, UINT64_MAX);
	assert_int_equal(lull_cursor_next(&c, &copies), 1);
	assert_int_equal(copies.copy_kind[0], 1);
	assert_int_equal(copies.src_kind[0], 2);
	assert_int_equal(copies.dst_kind[0], 3);
	lull_cursor_release(&c);
	lull_cursor_init(&c, r, LULL_TABLE_collective, 0, UINT64_MAX);
	assert_int_equal(lull_cursor_next(&c, &together), 1);
	assert_int_equal(together.in_bytes[0], 400);
	assert_int_equal(together.rank[0], 1);
	assert_int_equal(together.source[0], 3);
	assert_string_equal(lull_reader_string(r, together.op[0], NULL), "Sum");
	lull_cursor_release(&c);
	assert_int_equal(((const struct lull_device_row *)lull_reader_dim(r, LULL_TABLE_device, &n))
				 ->capability,
			 90);
	assert_int_equal(
		((const struct lull_frame_row *)lull_reader_dim(r, LULL_TABLE_frame, &n))->line,
		41);
	assert_int_equal(
		((const struct lull_launch_row *)lull_reader_dim(r, LULL_TABLE_launch, &n))->grid_y,
		2);
	lull_reader_close(r);
}

static void a_file_cut_anywhere_gives_what_came_before(void **state)
{
	struct lull_import_result result;
	u64 n_before = 0;
	size_t n_good = 0;

	/* test_jevents.c cuts at every byte. */
	for (size_t len = 0; len < sizeof(pytorch) - 1; len += 13) {
		struct lull_reader *r = NULL;
		struct lull_err err = { 0, "" };
		u64 n;
		int rc = import_text(*state, pytorch, len, &result, &r, &err);

		if (rc) {
			/* Before the first event there is nothing to give. */
			assert_int_equal(n_good, 0);
			assert_true(rc == LULL_E_FORMAT || rc == LULL_E_UNSUPPORTED);
			continue;
		}
		n_good++;
		n = result.n_rows;
		assert_true(n >= n_before);
		n_before = n;
		/* All that may be missing without a loss is the last line end. */
		assert_true(result.is_cut || len >= sizeof(pytorch) - 3);
		lull_reader_close(r);
	}
	assert_true(n_good > 100);
}

static void nonsense_is_an_error_with_a_sentence(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "", "is empty" },
		{ "hello", "none of the formats that lull reads" },
		{ "{}", "no array \"traceEvents\"" },
		{ "{\"a\": 1}", "no array \"traceEvents\"" },
		{ "{\"traceEvents\": 5}", "invalid JSON" },
		{ "{\"traceEvents\": [{\"ph\"", "before the first event" },
		{ "[{]", "none of its 1 events" },
	};

	for (size_t i = 0; i < LULL_COUNT_OF(cases); i++) {
		struct lull_err err = { 0, "" };
		struct report_dir *d = *state;

		assert_true(import_text(d, cases[i].text, strlen(cases[i].text), NULL, NULL, &err) <
			    0);
		if (!strstr(err.msg, cases[i].says))
			fail_msg("%s: %s", cases[i].text, err.msg);
		assert_int_equal(access(d->file, F_OK), -1);
		assert_int_equal(access(d->part, F_OK), -1);
	}
}

/* ---- Chrome ---- */

static void ranges_marks_and_counters_of_any_program(void **state)
{
	static const char text[] =
		"[{\"ph\":\"B\",\"name\":\"outer\",\"cat\":\"a\",\"pid\":1,\"tid\":2,\"ts\":10},\n"
		"{\"ph\":\"B\",\"name\":\"inner\",\"pid\":1,\"tid\":2,\"ts\":12},\n"
		"{\"ph\":\"E\",\"pid\":1,\"tid\":2,\"ts\":15},{\"ph\":\"E\",\"pid\":1,\"tid\":2,"
		"\"ts\":20},\n"
		"{\"ph\":\"b\",\"cat\":\"net\",\"id\":\"0x1\",\"name\":\"get\",\"pid\":1,\"tid\":2,"
		"\"ts\":11},\n"
		"{\"ph\":\"e\",\"cat\":\"net\",\"id\":\"0x1\",\"name\":\"get\",\"pid\":1,\"tid\":3,"
		"\"ts\":31},\n"
		"{\"ph\":\"i\",\"name\":\"here\",\"pid\":1,\"tid\":2,\"ts\":13,\"s\":\"t\"},\n"
		"{\"ph\":\"C\",\"name\":\"mem\",\"pid\":1,\"ts\":14,\"args\":{\"used\":5,\"free\":"
		"2.5}},\n"
		"{\"ph\":\"X\",\"name\":\"early\",\"pid\":\"P\",\"tid\":\"T\",\"ts\":\"5\",\"dur\":"
		"1,"
		"\"args\":{\"k\":\"v\"}},\n"
		"{\"ph\":\"s\",\"id\":1,\"cat\":\"flow\",\"name\":\"f\",\"pid\":1,\"tid\":2,\"ts\":"
		"11},\n"
		"{\"ph\":\"B\",\"name\":\"open\",\"pid\":1,\"tid\":2,\"ts\":21},\n";
	struct lull_import_result result;
	struct lull_reader *r = import_good(*state, text, &result);
	struct lull_range_cols ranges;
	struct lull_cursor c;
	size_t n, n_labels;
	const struct lull_label_row *labels = lull_reader_dim(r, LULL_TABLE_label, &n_labels);

	assert_string_equal(result.format->name, "chrome");
	/* An array that is not closed is what programs that die leave behind. */
	assert_false(result.is_cut);
	assert_int_equal(result.n_unmapped, 1);
	assert_int_equal(n_rows(r, LULL_TABLE_mark), 1);
	assert_int_equal(n_rows(r, LULL_TABLE_counter), 2);
	lull_cursor_init(&c, r, LULL_TABLE_range, 0, UINT64_MAX);
	n = lull_cursor_next(&c, &ranges);
	assert_int_equal(n, 5);
	for (size_t i = 0; i < n; i++) {
		const char *name = lull_reader_string(r, labels[ranges.label[i] - 1].name, NULL);

		if (!strcmp(name, "inner")) {
			assert_int_equal(ranges.depth[i], 1);
			assert_int_equal(ranges.start_ns[i], 7000);
			assert_int_equal(ranges.dur_ns[i], 3000);
		} else if (!strcmp(name, "get")) {
			assert_int_equal(ranges.flags[i], 4);
			assert_int_equal(ranges.dur_ns[i], 20000);
		} else if (!strcmp(name, "early")) {
			assert_int_equal(ranges.start_ns[i], 0);
			assert_string_equal(lull_reader_string(r, ranges.data[i], NULL),
					    "{\"k\":\"v\"}");
		} else if (!strcmp(name, "open")) {
			assert_int_equal(ranges.flags[i], 1);
		}
	}
	lull_cursor_release(&c);
	lull_reader_close(r);
}

static void bad_events_are_skipped_and_counted(void **state)
{
	static const char text[] =
		"{\"traceEvents\": "
		"[{\"ph\":\"X\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1},"
		"{\"ph\":\"X\",\"name\":\"no time\",\"pid\":1,\"tid\":1},"
		"{\"ph\":\"X\",\"name\":\"nan\",\"pid\":1,\"tid\":1,\"ts\":NaN,\"dur\":1},"
		"{\"ph\":\"X\",\"name\":\"back\",\"pid\":1,\"tid\":1,\"ts\":5,\"dur\":-1},"
		"{\"ph\" \"X\"}, null, 17, {\"name\": \"none\"},"
		"{\"ph\":\"X\",\"name\":\"z\x01\",\"pid\":1,\"tid\":1,\"ts\":9,\"dur\":1}]}";
	struct lull_import_result result;
	struct lull_reader *r = import_good(*state, text, &result);

	assert_int_equal(n_rows(r, LULL_TABLE_range), 2);
	assert_int_equal(result.n_bad, 7);
	assert_false(result.is_cut);
	assert_int_equal(lull_reader_n_dim(r, LULL_TABLE_issue), 2);
	lull_reader_close(r);
}

/* ---- packed files ---- */

static void packed_files_are_unpacked_and_cut_ones_too(void **state)
{
	struct report_dir *d = *state;
	struct lull_import_result result;
	struct lull_err err;
	struct lull_reader *r;
	gzFile to = gzopen(d->other, "wb");
	char *packed;
	FILE *from;
	size_t len;

	assert_non_null(to);
	assert_int_equal(gzwrite(to, pytorch, sizeof(pytorch) - 1), sizeof(pytorch) - 1);
	assert_int_equal(gzclose(to), Z_OK);
	unlink(d->file);
	assert_int_equal(lull_import_file(d->other, d->file, NULL, &result, &err), 0);
	assert_false(result.is_cut);
	assert_int_equal(result.n_rows, N_PYTORCH_EVENTS);
	/* Opened as it is, through a temporary report that has no name any more. */
	assert_int_equal(lull_import_open(d->other, &r, &err), 0);
	assert_int_equal(n_rows(r, LULL_TABLE_kernel), 2);
	lull_reader_close(r);

	packed = lull_alloc(sizeof(pytorch), 2);
	len = ZSTD_compress(packed, 2 * sizeof(pytorch), pytorch, sizeof(pytorch) - 1, 1);
	write_file(d->file, packed, len);
	assert_int_equal(lull_import_open(d->file, &r, &err), 0);
	assert_int_equal(n_rows(r, LULL_TABLE_kernel), 2);
	lull_reader_close(r);
	/* So little text is one piece of zstd: without its end there is nothing. */
	write_file(d->file, packed, len - 40);
	assert_int_equal(lull_import_open(d->file, &r, &err), LULL_E_FORMAT);
	from = fopen(d->other, "re");
	len = fread(packed, 1, sizeof(pytorch), from);
	fclose(from);
	write_file(d->other, packed, len - 40);
	unlink(d->file);
	assert_int_equal(lull_import_file(d->other, d->file, NULL, &result, &err), 0);
	assert_true(result.is_cut);
	assert_true(result.n_rows > 5);
	free(packed);
}

static void the_same_file_gives_the_same_bytes(void **state)
{
	struct report_dir *d = *state;
	struct lull_reader *r = import_good(d, pytorch, NULL);
	u8 id[16];

	memcpy(id, lull_reader_info(r)->id, sizeof(id));
	lull_reader_close(r);
	r = import_good(d, pytorch, NULL);
	assert_memory_equal(lull_reader_info(r)->id, id, sizeof(id));
	lull_reader_close(r);
}

/* ---- the disk ---- */

static void a_failing_write_leaves_nothing_behind(void **state)
{
#ifdef LULL_IO_FAULTS
	struct report_dir *d = *state;
	bool has_failed = true;

	write_file(d->other, pytorch, sizeof(pytorch) - 1);
	for (u64 n = 1; has_failed; n++) {
		struct lull_err err;
		u64 n_calls;

		unlink(d->file);
		lull_io_fail_at(n, ENOSPC, true);
		has_failed = lull_import_file(d->other, d->file, NULL, NULL, &err) < 0;
		n_calls = lull_io_n_calls();
		lull_io_fail_at(0, 0, false);
		assert_true(!has_failed || n_calls >= n);
		if (has_failed)
			unlink(d->part);
		assert_true(n < 200);
	}
#else
	(void)state;
	test_skip("failing writes need a build with LULL_IO_FAULTS (make SAN=1)");
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_of_event_finds_its_table),
		cmocka_unit_test(rows_say_what_the_events_said),
		cmocka_unit_test(a_file_cut_anywhere_gives_what_came_before),
		cmocka_unit_test(nonsense_is_an_error_with_a_sentence),
		cmocka_unit_test(ranges_marks_and_counters_of_any_program),
		cmocka_unit_test(bad_events_are_skipped_and_counted),
		cmocka_unit_test(packed_files_are_unpacked_and_cut_ones_too),
		cmocka_unit_test(the_same_file_gives_the_same_bytes),
		cmocka_unit_test(a_failing_write_leaves_nothing_behind),
	};

	return cmocka_run_group_tests(tests, report_set_up, report_tear_down);
}
