/*
 * The CUDA source around the counts that test_sim.c compares: objects and their names, what the
 * options choose, another tool that uses CUPTI, ends of all kinds, and the command lines that
 * people have for nsys.
 */
#include "support/sim.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wire/wire.h"

static char text[65536];

/* ---- helpers ---- */

static u64 counted(const char *name)
{
	return sim_counted(text, name);
}

static int begin(void **state)
{
	static const char *const knobs[] = {
		"NEIGHBOUR",	     "NEIGHBOUR_FIRST",	    "LAUNCHES_END",
		"LAUNCHES_PROFILER", "LAUNCHES_TURNS",	    "LAUNCHES_GRAPHS",
		"LULL_CUPTI_LEAVE",  "LAUNCHES_FAIL",	    "OBJECTS_WAIT",
		"LULL_SIM_MISSING",  "LULL_SIM_SUBSCRIBED", "LULL_SIM_CALL_NS",
		"LULL_SIM_SKEW_NS",  "LULL_CUPTI_PATH",	    "CUDA_INJECTION64_PATH",
		"LULL_SIM_STATE",    "LAUNCHES_AFTER",	    "LAUNCHES_GONE",
		"LAUNCHES_OFF",	     "LAUNCHES_AWAIT",
	};

	(void)state;
	return sim_begin(knobs, LULL_COUNT_OF(knobs));
}

#define QUIET "profile -q -t cuda,nvtx -s none --cpuctxsw none -f -o %%R/a "

static int record(const char *options, const char *arguments)
{
	return test_profile_run(text, QUIET "%s %s/e2e/launches %s", options, LULL_BUILD,
				arguments);
}

/* ---- objects ---- */

static const struct lull_lane_row *find_lane(struct lull_reader *r, const char *name)
{
	size_t n;
	const struct lull_lane_row *lanes = lull_reader_dim(r, LULL_TABLE_lane, &n);

	for (size_t i = 0; i < n; i++)
		if (strcmp(lull_reader_string(r, lanes[i].name, NULL), name) == 0)
			return &lanes[i];
	fail_msg("no lane '%s'", name);
	return NULL;
}

static void check_names(struct lull_reader *r)
{
	const struct lull_lane_row *stream = find_lane(r, "copies ⇄");
	size_t n;
	const struct lull_cuda_context_row *contexts =
		lull_reader_dim(r, LULL_TABLE_cuda_context, &n);

	assert_int_equal(stream->priority, -3);
	assert_int_equal(stream->stream_kind, 2);
	assert_int_equal(n, 1);
	assert_string_equal(lull_reader_string(r, contexts[0].name, NULL), "trainer");
	assert_int_equal(contexts[0].context_id, stream->context_id);
	assert_int_equal(contexts[0].null_stream_id, 7);
	assert_int_equal(contexts[0].api, 1);
	assert_string_equal(lull_reader_string(r, sim_device(r)->given_name, NULL), "the big one");
}

static void check_modules(struct lull_reader *r)
{
	u64 n_kinds[6] = { 0 }, size_bytes = 0;
	struct lull_cuda_module_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, r, LULL_TABLE_cuda_module, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			assert_in_range(cols.kind[i], 1, 5);
			n_kinds[cols.kind[i]]++;
			if (cols.kind[i] == LULL_MODULE_LOADED)
				size_bytes += cols.size_bytes[i];
			if (cols.kind[i] != LULL_MODULE_COMPILED)
				assert_int_equal(cols.module_id[i], 1);
			else
				assert_true(cols.dur_ns[i] > 0 && cols.correlation[i] > 0);
		}
	}
	lull_cursor_release(&c);
	assert_int_equal(n_kinds[LULL_MODULE_LOADED], 1);
	assert_int_equal(n_kinds[LULL_MODULE_UNLOADED], 1);
	assert_int_equal(n_kinds[LULL_MODULE_COMPILED], 1);
	assert_int_equal(size_bytes, counted("ptx_bytes"));
}

static void check_unified(struct lull_reader *r, u64 n_faults)
{
	u64 moved_bytes = 0, faults = 0;
	struct lull_um_event_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, r, LULL_TABLE_um_event, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			moved_bytes += cols.kind[i] == 1 ? cols.size_bytes[i] : 0;
			faults += cols.n_faults[i];
			assert_true(cols.address[i] != 0);
			assert_int_equal(cols.cause[i], cols.kind[i] == 1 ? 1 : 2);
		}
	}
	lull_cursor_release(&c);
	assert_int_equal(moved_bytes, counted("managed_bytes"));
	assert_int_equal(faults, n_faults);
}

static void check_memory(struct lull_reader *r)
{
	i64 in_use = 0, most = 0;
	struct lull_cuda_memory_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, r, LULL_TABLE_cuda_memory, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			in_use += cols.operation[i] == 1 ? (i64)cols.size_bytes[i]
							 : -(i64)cols.size_bytes[i];
			most = in_use > most ? in_use : most;
		}
	}
	lull_cursor_release(&c);
	assert_int_equal(in_use, 0);
	assert_int_equal(most, counted("managed_bytes") + counted("device_bytes"));
}

static void record_objects(const char *options)
{
	if (strstr(options, "--cuda-um-"))
		sim_set("OBJECTS_WAIT", "1");
	assert_int_equal(
		test_profile_run(text, QUIET "%s %s/e2e/cuda_objects", options, LULL_BUILD), 0);
}

static void objects_and_their_names_are_recorded(void **state)
{
	struct lull_reader *r;

	(void)state;
	record_objects("--cuda-memory-usage=true --cuda-um-cpu-page-faults=true");
	r = test_profile_open("a.lull");
	check_names(r);
	check_modules(r);
	check_unified(r, 1);
	check_memory(r);
	assert_int_equal(test_profile_issue(r, "um_refused"), 0);
	lull_reader_close(r);
	record_objects("--cuda-um-gpu-page-faults=true");
	r = test_profile_open("a.lull");
	check_unified(r, 0);
	assert_int_equal(test_profile_rows(r, LULL_TABLE_cuda_memory), 0);
	lull_reader_close(r);
}

static void refused_unified_memory_is_said(void **state)
{
	struct lull_reader *r;

	(void)state;
	sim_set("LULL_SIM_MISSING", "cuptiActivityConfigureUnifiedMemoryCounter");
	record_objects("--cuda-um-cpu-page-faults=true");
	r = test_profile_open("a.lull");
	assert_int_equal(test_profile_issue(r, "um_refused"), 1);
	assert_int_equal(test_profile_rows(r, LULL_TABLE_um_event), 0);
	check_modules(r);
	lull_reader_close(r);
}

/* ---- options ---- */

/* Calls of this name. */
static u64 count_calls(struct lull_reader *r, const char *name)
{
	struct lull_cuda_call_cols cols;
	struct lull_cursor c;
	u64 n_calls = 0;
	size_t n;

	lull_cursor_init(&c, r, LULL_TABLE_cuda_call, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0)
		for (size_t i = 0; i < n; i++)
			n_calls += strcmp(lull_reader_string(r, cols.name[i], NULL), name) == 0;
	lull_cursor_release(&c);
	return n_calls;
}

static void all_calls_are_recorded_on_demand(void **state)
{
	struct lull_reader *r;

	(void)state;
	record_objects("");
	r = test_profile_open("a.lull");
	assert_int_equal(count_calls(r, "cuCtxGetCurrent"), 0);
	assert_int_equal(count_calls(r, "cuLaunchKernel"), 1);
	assert_int_equal(test_profile_rows(r, LULL_TABLE_um_event), 0);
	lull_reader_close(r);
	record_objects("--cuda-trace-all-apis=true");
	r = test_profile_open("a.lull");
	assert_int_equal(count_calls(r, "cuCtxGetCurrent"), 1);
	assert_int_equal(count_calls(r, "cuLaunchKernel"), 1);
	lull_reader_close(r);
}

/* The function at the outermost named frames of a call's stack; true if it is there. */
static bool is_called_by(struct lull_reader *r, u32 stack, const char *name)
{
	size_t n_stacks, n_frames;
	const struct lull_stack_row *stacks = lull_reader_dim(r, LULL_TABLE_stack, &n_stacks);
	const struct lull_frame_row *frames = lull_reader_dim(r, LULL_TABLE_frame, &n_frames);

	for (; stack; stack = stacks[stack - 1].parent) {
		const struct lull_frame_row *frame = &frames[stacks[stack - 1].frame - 1];

		if (frame->function &&
		    strcmp(lull_reader_string(r, frame->function, NULL), name) == 0)
			return true;
	}
	return false;
}

/*
 * All waits for the context have the stack that led to them, launches have none. Returns how many.
 */
static u64 check_callers(void)
{
	struct lull_reader *r = test_profile_open("a.lull");
	struct lull_cuda_call_cols cols;
	struct lull_cursor c;
	u64 n_waits = 0;
	size_t n;

	lull_cursor_init(&c, r, LULL_TABLE_cuda_call, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			const char *name = lull_reader_string(r, cols.name[i], NULL);

			if (strcmp(name, "cuCtxSynchronize") == 0) {
				assert_true(is_called_by(r, cols.stack[i], "main"));
				assert_true(is_called_by(r, cols.stack[i], "cuCtxSynchronize"));
				n_waits++;
			}
			if (strcmp(name, "cuLaunchKernel") == 0)
				assert_int_equal(cols.stack[i], 0);
		}
	}
	lull_cursor_release(&c);
	lull_reader_close(r);
	return n_waits;
}

static void callers_of_long_calls_are_recorded(void **state)
{
	(void)state;
	assert_int_equal(record("--cudabacktrace=sync:1", "20"), 0);
	assert_int_equal(check_callers(), counted("syncs"));
	assert_int_equal(record("--cudabacktrace=everything", "1"), 2);
	assert_non_null(strstr(text, "--cudabacktrace: 'everything' is not none, all"));
}

/* The process whose number the file holds has ended, and nobody has asked how. */
static bool is_zombie(const char *file)
{
	char path[64], state = 0;
	int pid = 0;
	FILE *f = fopen(test_profile_path(file), "re");

	if (!f)
		return false;
	if (fscanf(f, "%d", &pid) != 1)
		pid = 0;
	fclose(f);
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	fclose(f);
	return state == 'Z';
}

/*
 * The device's libraries are found by a relative path, and nobody can ask where the program stood.
 */
static void files_of_a_program_that_has_ended_are_known(void **state)
{
	pid_t pid;

	(void)state;
	pid = test_profile_launch(QUIET "--cudabacktrace=sync:1 sh -c 'echo $$ > %%R/pid; "
					"until test -e %%R/go; do sleep 0.01; done; "
					"exec %s/e2e/launches 20 >/dev/null'",
				  LULL_BUILD);
	test_wait_for(test_profile_exists("pid"));
	kill(pid, SIGSTOP);
	test_profile_touch("go");
	test_wait_for(is_zombie("pid"));
	kill(pid, SIGCONT);
	assert_int_equal(test_profile_wait(pid), 0);
	assert_true(check_callers() > 0);
}

static void nothing_is_lost_without_flushing(void **state)
{
	struct lull_reader *r;

	(void)state;
	assert_int_equal(record("--cuda-flush-interval=0", "100"), 0);
	r = test_profile_open("a.lull");
	assert_int_equal(test_profile_rows(r, LULL_TABLE_kernel), counted("kernels"));
	lull_reader_close(r);
}

static void a_window_is_recorded_exactly(void **state)
{
	struct lull_reader *r;

	(void)state;
	sim_set("LAUNCHES_PROFILER", "1");
	assert_int_equal(record("--capture-range=cudaProfilerApi --capture-range-end=stop", "100"),
			 0);
	r = test_profile_open("a.lull");
	assert_int_equal(test_profile_rows(r, LULL_TABLE_kernel), counted("kernels"));
	assert_int_equal(test_profile_rows(r, LULL_TABLE_graph), counted("graphs"));
	assert_int_equal(count_calls(r, "cuLaunchKernel"), counted("launches"));
	lull_reader_close(r);
}

static void what_is_not_there_is_refused(void **state)
{
	(void)state;
	assert_int_equal(record("--cuda-event-trace=true", "1"), 2);
	assert_non_null(strstr(text, "--cuda-event-trace: only auto and false are supported"));
	assert_int_equal(record("--cuda-trace-scope=system-wide", "1"), 2);
	assert_non_null(strstr(text, "--cuda-trace-scope: only process-tree is supported"));
	assert_int_equal(record("--cuda-flush-interval=100000", "1"), 2);
	assert_int_equal(record("--cuda-event-trace=false --cuda-trace-scope process-tree "
				"--flush-on-cudaprofilerstop=true",
				"1"),
			 0);
}

/* Record with the simulated CUPTI telling in `text` what is on at the end. */
static void record_to_the_end(const char *options, const char *arguments)
{
	char file[512];
	FILE *in;

	snprintf(file, sizeof(file), "%s", test_profile_path("state"));
	sim_set("LULL_SIM_STATE", file);
	assert_int_equal(record(options, arguments), 0);
	in = fopen(file, "r");
	assert_non_null(in);
	text[fread(text, 1, sizeof(text) - 1, in)] = '\0';
	fclose(in);
}

/* A program that tells nothing keeps CUPTI: there is no safe place to leave it. */
static void all_is_off_after_the_recording(void **state)
{
	(void)state;
	sim_set("LAUNCHES_OFF", "1");
	record_to_the_end("--duration=0.3 --kill=none", "100 1000");
	assert_int_equal(counted("calls_on"), 0);
	assert_int_equal(counted("kinds_on"), 0);
	assert_int_equal(counted("finalized"), 0);
}

static void expect_turn(const char *report, u64 n)
{
	struct lull_reader *r = test_profile_open(report);

	assert_int_equal(test_profile_rows(r, LULL_TABLE_kernel), n);
	assert_int_equal(count_calls(r, "cuLaunchKernel"), n);
	lull_reader_close(r);
}

/* Between two recordings it stays: a second coming is not good for programs with graphs. */
static void cupti_leaves_when_nothing_more_can_be_recorded(void **state)
{
	(void)state;
	sim_set("LAUNCHES_TURNS", "2");
	record_to_the_end("-c lull --capture-range-end=repeat", "100 1000");
	assert_int_equal(counted("finalized"), 0);
	assert_int_equal(counted("calls_on"), 0);
	assert_int_equal(counted("kinds_on"), 0);
	/* The second is the last. */
	sim_set("LAUNCHES_GONE", "last");
	record_to_the_end("-c lull --capture-range-end=repeat:2", "100 1000");
	assert_int_equal(counted("finalized"), 1);
	assert_int_equal(counted("subscribed"), 0);
}

/* Where a thread may be inside of it, or a graph is captured, it stays: it costs, but is safe. */
static void cupti_stays_where_leaving_is_not_safe(void **state)
{
	(void)state;
	sim_set("LAUNCHES_TURNS", "1");
	sim_set("LAUNCHES_AFTER", "busy");
	/* Long calls, so that a thread that has to wait for its CPU does so inside of one. */
	sim_set("LULL_SIM_CALL_NS", "20000000");
	record_to_the_end("-c lull", "2 0");
	assert_int_equal(counted("finalized"), 0);
	assert_int_equal(counted("kinds_on"), 0);
	sim_set("LULL_SIM_CALL_NS", "0");
	sim_set("LAUNCHES_AFTER", "capture");
	record_to_the_end("-c lull", "100 1000");
	assert_int_equal(counted("finalized"), 0);
	sim_set("LAUNCHES_AFTER", "nothing");
	sim_set("LAUNCHES_GONE", "last");
	record_to_the_end("-c lull", "100 1000");
	assert_int_equal(counted("finalized"), 1);
}

static void cupti_can_leave_after_each_recording(void **state)
{
	(void)state;
	sim_set("LAUNCHES_TURNS", "2");
	sim_set("LAUNCHES_GRAPHS", "0");
	sim_set("LULL_CUPTI_LEAVE", "always");
	sim_set("LAUNCHES_GONE", "each");
	record_to_the_end("-c lull --capture-range-end=repeat", "400 200");
	assert_int_equal(counted("finalized"), 2);
	assert_int_equal(counted("subscribed"), 0);
	expect_turn("a.lull", 1600);
	expect_turn("a-2.lull", 1600);
}

/* A program that says when to record has no CUPTI before that: it is not even loaded. */
static void cupti_comes_when_it_is_wanted(void **state)
{
	char file[512];

	(void)state;
	snprintf(file, sizeof(file), "%s", test_profile_path("state"));
	sim_set("LULL_SIM_STATE", file);
	record("-c lull", "50");
	assert_non_null(strstr(text, "kernels=200"));
	assert_int_not_equal(access(file, F_OK), 0);
	assert_int_equal(record("-c none", "50"), 0);
	assert_int_equal(access(file, F_OK), 0);
}

/* ---- clocks ---- */

static void the_error_of_the_clock_is_stated(void **state)
{
	struct lull_reader *r;

	(void)state;
	assert_int_equal(record("", "100"), 0);
	r = test_profile_open("a.lull");
	assert_non_null(test_profile_meta(r, "cuda.clock_error_ns"));
	assert_true(atol(test_profile_meta(r, "cuda.clock_lead_ns")) > 0);
	assert_int_equal(test_profile_issue(r, "clock_corrected"), 0);
	lull_reader_close(r);
}

static void work_never_begins_before_its_call(void **state)
{
	struct lull_reader *r;

	(void)state;
	sim_set("LULL_SIM_SKEW_NS", "-2000000");
	assert_int_equal(record("", "100"), 0);
	r = test_profile_open("a.lull");
	assert_true(test_profile_issue(r, "clock_corrected") > 0);
	/* 2 ms, less what lies between a call and its work. */
	assert_in_range(-atol(test_profile_meta(r, "cuda.clock_lead_ns")), 1000000, 2000000);
	assert_true(atol(test_profile_meta(r, "cuda.clock_error_ns")) >= 1000000);
	lull_reader_close(r);
}

/* ---- another tool ---- */

static void neighbours_get_the_same(const char *options)
{
	struct lull_reader *r;

	sim_set("NEIGHBOUR", LULL_BUILD "/e2e/part/libneighbour.so");
	assert_int_equal(record(options, "100"), 0);
	assert_int_equal(counted("refused"), 0);
	assert_int_equal(counted("their_kernels"), counted("shared_kernels"));
	assert_int_equal(counted("their_copies"), counted("shared_copies"));
	assert_int_equal(counted("their_bytes"), counted("shared_bytes"));
	assert_int_equal(counted("their_sets"), counted("shared_sets"));
	assert_true(counted("their_calls") > 0);
	assert_int_equal(counted("bad_slots"), 0);
	assert_int_equal(counted("bad_times"), 0);
	r = test_profile_open("a.lull");
	assert_int_equal(test_profile_issue(r, "cupti_shared"), 1);
	assert_int_equal(test_profile_issue(r, "cupti_dropped"), 0);
	assert_int_equal(test_profile_rows(r, LULL_TABLE_memcpy),
			 counted("in") + counted("in_pageable") + counted("out") +
				 counted("within"));
	assert_int_equal(count_calls(r, "cuLaunchKernel"), counted("launches"));
	lull_reader_close(r);
}

/* Kernels of graphs are records of their own only while the other tool wants them so. */
static void another_tool_gets_its_records_and_we_ours(void **state)
{
	struct lull_reader *r;
	u64 n_nodes;

	(void)state;
	neighbours_get_the_same("");
	r = test_profile_open("a.lull");
	n_nodes = test_profile_rows(r, LULL_TABLE_kernel) - counted("kernels");
	assert_int_equal(n_nodes, counted("graph_kernels") / 3);
	assert_int_equal(test_profile_rows(r, LULL_TABLE_graph), counted("graphs") * 2 / 3);
	lull_reader_close(r);
	neighbours_get_the_same("--cuda-graph-trace=node");
	r = test_profile_open("a.lull");
	assert_int_equal(test_profile_rows(r, LULL_TABLE_kernel),
			 counted("kernels") + counted("graph_kernels"));
	lull_reader_close(r);
}

static void another_tool_may_come_first(void **state)
{
	struct lull_reader *r;

	(void)state;
	sim_set("NEIGHBOUR_FIRST", "1");
	neighbours_get_the_same("--cuda-graph-trace=node");
	r = test_profile_open("a.lull");
	assert_int_equal(test_profile_rows(r, LULL_TABLE_kernel),
			 counted("kernels") + counted("graph_kernels"));
	lull_reader_close(r);
}

/* Nothing of CUDA is wanted: the tool has CUPTI for itself, through our names. */
static void another_tool_is_left_alone_without_cuda(void **state)
{
	struct lull_reader *r;

	(void)state;
	sim_set("NEIGHBOUR", LULL_BUILD "/e2e/part/libneighbour.so");
	assert_int_equal(test_profile_run(text,
					  "profile -q -t nvtx -s none --cpuctxsw none -f -o %%R/a "
					  "%s/e2e/launches 50",
					  LULL_BUILD),
			 0);
	assert_int_equal(counted("refused"), 0);
	assert_int_equal(counted("their_kernels"), counted("shared_kernels"));
	r = test_profile_open("a.lull");
	assert_int_equal(test_profile_rows(r, LULL_TABLE_kernel), 0);
	assert_int_equal(test_profile_issue(r, "cupti_shared"), 0);
	lull_reader_close(r);
}

/* Subscribed, and then CUPTI lacks something that we need: we must not stand in the way. */
static void a_tool_may_have_what_we_cannot_use(void **state)
{
	enum { UNSUPPORTED = 27 };

	(void)state;
	sim_set("NEIGHBOUR", LULL_BUILD "/e2e/part/libneighbour.so");
	sim_set("LULL_SIM_MISSING", "cuptiActivityRegisterTimestampCallback");
	assert_int_equal(record("", "50"), 0);
	assert_int_equal(counted("refused"), UNSUPPORTED); /* what is missing, and no more */
	assert_true(counted("their_kernels") > 0);
	unsetenv("LULL_SIM_MISSING");
}

/* ---- what goes wrong ---- */

static void says(const char *knob, const char *value, const char *issue, const char *detail)
{
	sim_set(knob, value);
	assert_int_equal(test_profile_run(text,
					  "profile -t cuda,nvtx -s none --cpuctxsw none -f -o "
					  "%%R/a %s/e2e/launches 5",
					  LULL_BUILD),
			 0);
	assert_non_null(strstr(text, issue));
	assert_non_null(strstr(text, detail));
	assert_non_null(strstr(text, "the rest is recorded"));
	unsetenv(knob);
}

static void a_cupti_that_cannot_be_used_is_said_at_the_end(void **state)
{
	(void)state;
	says("LULL_CUPTI_PATH", "/nowhere/libcupti.so", "libcupti was not found", "");
	says("LULL_CUPTI_PATH", LULL_BUILD "/sim/old/libcupti.so.13", "CUPTI could not be used",
	     "cuptiActivityRegisterTimestampCallback");
	says("LULL_SIM_CUPTI_VERSION", "11.4", "CUPTI could not be used",
	     "it is older than CUDA 11.8");
	says("LULL_SIM_SUBSCRIBED", "1", "another tool uses CUPTI", "");
	says("LULL_SIM_DENIED", "cuptiSubscribe", "CUPTI could not be used",
	     "cuptiSubscribe: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES");
	says("LULL_SIM_DENIED", "cuptiActivityEnable", "CUPTI could not be used",
	     "kernels: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES");
	says("LULL_SIM_MISSING", "cuptiActivityRegisterCallbacks", "CUPTI could not be used",
	     "no buffers of ours");
}

static void ends(const char *how, int status, bool is_cut)
{
	struct lull_reader *r;
	u64 n_kernels;

	sim_set("LAUNCHES_END", how);
	assert_int_equal(record("", "50"), status);
	r = test_profile_open("a.lull");
	n_kernels = test_profile_rows(r, LULL_TABLE_kernel);
	if (is_cut)
		assert_true(n_kernels <= counted("kernels"));
	else
		assert_int_equal(n_kernels, counted("kernels"));
	assert_int_equal(test_profile_issue(r, "device_tail"), is_cut);
	lull_reader_close(r);
}

static void ends_of_all_kinds_are_survived(void **state)
{
	(void)state;
	ends("fork", 0, false);
	ends("_exit", 5, false);
	ends("exec", 0, false);
	ends("abort", 128 + 6, true);
	ends("kill", 128 + 9, true);
}

static void a_failed_launch_is_recorded_as_such(void **state)
{
	struct lull_cuda_call_cols cols;
	struct lull_reader *r;
	struct lull_cursor c;
	u64 n_failed = 0;
	size_t n;

	(void)state;
	sim_set("LAUNCHES_FAIL", "1");
	assert_int_equal(record("", "10"), 0);
	assert_int_equal(counted("failed"), 1);
	r = test_profile_open("a.lull");
	lull_cursor_init(&c, r, LULL_TABLE_cuda_call, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0)
		for (size_t i = 0; i < n; i++)
			n_failed += cols.ret[i] != 0;
	lull_cursor_release(&c);
	assert_int_equal(n_failed, 1);
	lull_reader_close(r);
}

/* ---- habit ---- */

/* What tutorials type after "nsys profile", in our words; %P is the program with its arguments. */
static const struct habit {
	const char *words;
	const char *report;
	bool has_stats;
} habits[] = {
	{ "--trace=cuda,nvtx,osrt --sample=cpu --stats=true --output=%R/profile.nsys-rep %P",
	  "profile.lull", true },
	{ "--stats=true --output=%R/s %P", "s.lull", true },
	{ "-o %R/train_profile --trace=cuda,nvtx,osrt,cudnn,cublas,nccl "
	  "--capture-range=cudaProfilerApi --cuda-memory-usage=true %P",
	  "train_profile.lull", false },
	{ "--trace=cuda,nvtx,osrt,cudnn,cublas --output=%R/profile_output %P --epochs 1 "
	  "--max-steps 50",
	  "profile_output.lull", false },
	{ "--trace=cuda,nvtx --output=%R/attn_profile %P", "attn_profile.lull", false },
	{ "--delay 0.01 --duration 60 -o %R/window %P", "window.lull", false },
	{ "--trace=cuda,nvtx,nccl --output=%R/dist_profile_rank0 %P", "dist_profile_rank0.lull",
	  false },
	{ "-o %R/trace --force-overwrite true --trace=cuda,nvtx,osrt,cudnn,cublas %P --max-steps "
	  "20",
	  "trace.lull", false },
	{ "--trace=cuda,nvtx,osrt -o %R/t %P --max-steps 20", "t.lull", false },
};

/* The words with the program in them; it is started without "--" and says what it was given. */
static const char *words_of(const char *words)
{
	static char line[1024];
	const char *at = strstr(words, "%P");

	snprintf(line, sizeof(line), "profile %.*ssh %%R/train.sh%s", (int)(at - words), words,
		 at + 2);
	return line;
}

static void command_lines_for_nsys_run(void **state)
{
	FILE *script = fopen(test_profile_path("train.sh"), "w");

	(void)state;
	assert_non_null(script);
	fprintf(script, "echo \"given: $*.\"\nexec %s/e2e/launches 30 1000\n", LULL_BUILD);
	fclose(script);
	sim_set("LAUNCHES_PROFILER", "1");
	for (size_t i = 0; i < LULL_COUNT_OF(habits); i++) {
		const char *rest = strstr(habits[i].words, "%P") + 2;
		struct lull_reader *r;
		char given[128];

		/* Nothing is recorded of a program that ends before the delay does. */
		if (strstr(habits[i].words, "--delay"))
			sim_set("LAUNCHES_AWAIT", "1");
		assert_int_equal(test_profile_run(text, "%s", words_of(habits[i].words)), 0);
		unsetenv("LAUNCHES_AWAIT");
		snprintf(given, sizeof(given), "given: %s.", *rest ? rest + 1 : rest);
		assert_non_null(strstr(text, given));
		if (habits[i].has_stats)
			assert_non_null(strstr(text, "cuda_gpu_kern_sum"));
		r = test_profile_open(habits[i].report);
		assert_true(test_profile_rows(r, LULL_TABLE_kernel) > 0);
		lull_reader_close(r);
	}
	assert_int_equal(test_profile_run(text, "stats %%R/t.lull"), 0);
	assert_non_null(strstr(text, "count_up"));
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, begin, sim_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FOLDER(objects_and_their_names_are_recorded),
		WITH_FOLDER(refused_unified_memory_is_said),
		WITH_FOLDER(all_calls_are_recorded_on_demand),
		WITH_FOLDER(callers_of_long_calls_are_recorded),
		WITH_FOLDER(files_of_a_program_that_has_ended_are_known),
		WITH_FOLDER(nothing_is_lost_without_flushing),
		WITH_FOLDER(a_window_is_recorded_exactly),
		WITH_FOLDER(what_is_not_there_is_refused),
		WITH_FOLDER(all_is_off_after_the_recording),
		WITH_FOLDER(cupti_leaves_when_nothing_more_can_be_recorded),
		WITH_FOLDER(cupti_stays_where_leaving_is_not_safe),
		WITH_FOLDER(cupti_can_leave_after_each_recording),
		WITH_FOLDER(cupti_comes_when_it_is_wanted),
		WITH_FOLDER(the_error_of_the_clock_is_stated),
		WITH_FOLDER(work_never_begins_before_its_call),
		WITH_FOLDER(another_tool_gets_its_records_and_we_ours),
		WITH_FOLDER(another_tool_may_come_first),
		WITH_FOLDER(another_tool_is_left_alone_without_cuda),
		WITH_FOLDER(a_tool_may_have_what_we_cannot_use),
		WITH_FOLDER(a_cupti_that_cannot_be_used_is_said_at_the_end),
		WITH_FOLDER(ends_of_all_kinds_are_survived),
		WITH_FOLDER(a_failed_launch_is_recorded_as_such),
		WITH_FOLDER(command_lines_for_nsys_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
