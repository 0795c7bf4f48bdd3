/*
 * What CUDA did is in the report, exactly: a program that counts its own launches, copies and sets
 * (launches.c) runs on the simulated device, and rows, bytes and names are compared with its
 * counts; then the same when something goes wrong. The stand-ins themselves are tried first, with a
 * small user of CUPTI (sim_client.c) in the agent's place.
 */
#include "support/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS "200"

/* At most so many records say what there is: a device, its context, streams, overhead. */
#define N_DESCRIBED 100

static char text[8192];
static const char *const versions[] = { "11.8", "12.0", "12.8", "13.0" };

/* ---- helpers ---- */

static u64 counted(const char *name)
{
	return sim_counted(text, name);
}

/* All knobs as at first; the stand-ins before any real library. */
static int begin(void **state)
{
	static const char *const knobs[] = {
		"LULL_SIM_CUPTI_VERSION", "LULL_SIM_DROP",    "LULL_SIM_ZERO_TIMES",
		"LULL_SIM_SUBSCRIBED",	  "LULL_SIM_MISSING", "LAUNCHES_ABORT",
		"LULL_SIM_SKEW_NS",	  "LULL_CUPTI_PATH",  "CUDA_INJECTION64_PATH",
		"CLIENT_GRAPHS",	  "CLIENT_STOPS",     "LULL_SIM_LATE_US",
		"LULL_SIM_STATE",
	};

	(void)state;
	return sim_begin(knobs, LULL_COUNT_OF(knobs));
}

/* Run the counting program under lull; `text` has its counts afterwards. */
static int record(const char *options, const char *arguments)
{
	return test_profile_run(text,
				"profile -q -t cuda,nvtx -s none --cpuctxsw none -f -o %%R/a %s "
				"%s/e2e/launches %s",
				options, LULL_BUILD, arguments);
}

/* Run it with the small client instead; `text` has the counts of both. */
static void run_client(const char *arguments)
{
	char command[256];
	FILE *pipe;
	size_t n;

	sim_set("CUDA_INJECTION64_PATH", LULL_BUILD "/e2e/part/libsim_client.so");
	snprintf(command, sizeof(command), "%s %s/e2e/launches %s", test_profile_limit(),
		 LULL_BUILD, arguments);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	n = fread(text, 1, sizeof(text) - 1, pipe);
	text[n] = '\0';
	assert_int_equal(pclose(pipe), 0);
}

/* ---- the stand-ins ---- */

static void client_matches_program(void)
{
	assert_int_equal(counted("second"), 39);
	assert_int_equal(counted("enters"), counted("exits"));
	assert_int_equal(counted("called_launch"), counted("launches"));
	assert_int_equal(counted("bad_slots"), 0);
	assert_int_equal(counted("copies"), counted("in") + counted("in_pageable") +
						    counted("out") + counted("within"));
	assert_int_equal(counted("bytes_copied"), counted("copy_bytes"));
	assert_int_equal(counted("memsets"), counted("sets"));
	assert_int_equal(counted("bytes_set"), counted("set_bytes"));
	assert_int_equal(counted("bad_times"), 0);
	assert_int_equal(counted("devices"), 1);
	assert_int_equal(counted("contexts"), 1);
	assert_int_equal(counted("streams"), 9);
}

static void a_client_is_told_everything_in_each_version(void **state)
{
	static const u32 numbers[] = { 18, 19, 26, 130001 };

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(versions); i++) {
		sim_set("LULL_SIM_CUPTI_VERSION", versions[i]);
		run_client(ROUNDS);
		assert_int_equal(counted("version"), numbers[i]);
		client_matches_program();
		assert_int_equal(counted("kernel_records"),
				 counted("kernels") + counted("graph_kernels"));
		assert_int_equal(counted("of_graphs"), counted("graph_kernels"));
		assert_int_equal(counted("no_times"), 0);
		assert_int_equal(counted("dropped"), 0);
	}
}

static void graphs_as_a_whole_replace_their_nodes(void **state)
{
	(void)state;
	sim_set("CLIENT_GRAPHS", "1");
	run_client(ROUNDS);
	client_matches_program();
	assert_int_equal(counted("kernel_records"), counted("kernels"));
	assert_int_equal(counted("graph_records"), counted("graphs"));
}

static void knobs_drop_records_and_times(void **state)
{
	(void)state;
	sim_set("LULL_SIM_DROP", "5");
	sim_set("LULL_SIM_ZERO_TIMES", "3");
	run_client(ROUNDS);
	client_matches_program();
	assert_int_equal(counted("kernel_records"),
			 counted("kernels") + counted("graph_kernels") - 5);
	assert_int_equal(counted("dropped"), 5);
	assert_int_equal(counted("no_times"), 3);
}

static void a_taken_cupti_refuses(void **state)
{
	(void)state;
	sim_set("LULL_SIM_SUBSCRIBED", "1");
	run_client("10");
	assert_int_equal(counted("refused"), 1);
	assert_int_equal(counted("kernels"), 40);
}

/* A client that is late in its callback, and stops the callbacks there. */
static void a_call_whose_callbacks_stop_has_no_end(void **state)
{
	char file[512];
	FILE *from;

	(void)state;
	snprintf(file, sizeof(file), "%s", test_profile_path("state"));
	sim_set("LULL_SIM_STATE", file);
	sim_set("LULL_SIM_LATE_US", "10");
	sim_set("CLIENT_STOPS", "1");
	run_client("10");
	from = fopen(file, "r");
	assert_non_null(from);
	text[fread(text, 1, sizeof(text) - 1, from)] = '\0';
	fclose(from);
	assert_int_equal(counted("calls_on"), 0);
	assert_true(counted("endless") > 0);
}

/* ---- the agent ---- */

#define MAX_CALLS 65536

/* The call of each correlation id. */
struct calls {
	u64 start_ns[MAX_CALLS];
	const char *name[MAX_CALLS];
};

static u64 read_calls(struct lull_reader *r, struct calls *calls, const char *name)
{
	struct lull_cuda_call_cols cols;
	struct lull_cursor c;
	u64 n_named = 0;
	size_t n;

	memset(calls, 0, sizeof(*calls));
	lull_cursor_init(&c, r, LULL_TABLE_cuda_call, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			u32 ix = cols.correlation[i];

			assert_true(ix > 0 && ix < MAX_CALLS);
			assert_null(calls->name[ix]);
			calls->name[ix] = lull_reader_string(r, cols.name[i], NULL);
			calls->start_ns[ix] = cols.start_ns[i];
			n_named += strcmp(calls->name[ix], name) == 0;
			assert_int_equal(cols.ret[i], 0);
			assert_int_equal(cols.api[i], 1);
		}
	}
	lull_cursor_release(&c);
	return n_named;
}

/* Work begins after the call that asked for it, and that call has this name. */
static void check_joined(const struct calls *calls, u32 correlation, u64 start_ns, const char *name)
{
	assert_true(correlation > 0 && correlation < MAX_CALLS);
	assert_non_null(calls->name[correlation]);
	assert_ptr_equal(strstr(calls->name[correlation], name), calls->name[correlation]);
	assert_true(start_ns >= calls->start_ns[correlation]);
}

static void check_kernels(struct lull_reader *r, const struct calls *calls, bool has_nodes)
{
	struct lull_kernel_cols cols;
	struct lull_cursor c;
	u64 n_alone = 0, n_of_graphs = 0;
	size_t n, n_launches;
	const struct lull_launch_row *launches = lull_reader_dim(r, LULL_TABLE_launch, &n_launches);

	lull_cursor_init(&c, r, LULL_TABLE_kernel, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			const struct lull_launch_row *launch = &launches[cols.launch[i] - 1];

			assert_string_equal(lull_reader_string(r, launch->name, NULL), "count_up");
			assert_in_range(launch->grid_x, 1, 7);
			assert_int_equal(launch->block_x, 32);
			check_joined(calls, cols.correlation[i], cols.start_ns[i],
				     cols.graph_id[i] ? "cuGraphLaunch" : "cuLaunchKernel");
			n_of_graphs += cols.graph_id[i] != 0;
			n_alone += cols.graph_id[i] == 0;
			assert_true(!cols.graph_id[i] || cols.graph_node_id[i]);
		}
	}
	lull_cursor_release(&c);
	assert_int_equal(n_alone, counted("kernels"));
	assert_int_equal(n_of_graphs, has_nodes ? counted("graph_kernels") : 0);
	assert_int_equal(test_profile_rows(r, LULL_TABLE_graph), has_nodes ? 0 : counted("graphs"));
}

static void check_copies(struct lull_reader *r, const struct calls *calls)
{
	enum { PAGEABLE = 1, PINNED = 2, DEVICE = 3 };
	u64 n_kinds[16] = { 0 }, n_pageable = 0, size_bytes = 0;
	struct lull_memcpy_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, r, LULL_TABLE_memcpy, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			assert_true(cols.copy_kind[i] < LULL_COUNT_OF(n_kinds));
			n_kinds[cols.copy_kind[i]]++;
			n_pageable += cols.src_kind[i] == PAGEABLE;
			size_bytes += cols.size_bytes[i];
			assert_int_equal(cols.flags[i] & 1, cols.src_kind[i] != PAGEABLE);
			check_joined(calls, cols.correlation[i], cols.start_ns[i], "cuMemcpy");
		}
	}
	lull_cursor_release(&c);
	assert_int_equal(n_kinds[1], counted("in") + counted("in_pageable"));
	assert_int_equal(n_kinds[2], counted("out"));
	assert_int_equal(n_kinds[8], counted("within"));
	assert_int_equal(n_pageable, counted("in_pageable"));
	assert_int_equal(size_bytes, counted("copy_bytes"));
}

static void check_sets(struct lull_reader *r, const struct calls *calls)
{
	struct lull_memset_cols cols;
	struct lull_cursor c;
	u64 n_sets = 0, size_bytes = 0;
	size_t n;

	lull_cursor_init(&c, r, LULL_TABLE_memset, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			size_bytes += cols.size_bytes[i];
			check_joined(calls, cols.correlation[i], cols.start_ns[i], "cuMemset");
			n_sets++;
		}
	}
	lull_cursor_release(&c);
	assert_int_equal(n_sets, counted("sets"));
	assert_int_equal(size_bytes, counted("set_bytes"));
}

static void check_waits(struct lull_reader *r)
{
	u64 n_kinds[8] = { 0 };
	struct lull_cuda_sync_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, r, LULL_TABLE_cuda_sync, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0)
		for (size_t i = 0; i < n; i++) {
			n_kinds[cols.kind[i] % LULL_COUNT_OF(n_kinds)]++;
			assert_int_equal(cols.event_id[i] != 0, cols.kind[i] <= 2);
			assert_true(cols.correlation[i] != 0 && cols.lane[i] != 0);
		}
	lull_cursor_release(&c);
	assert_int_equal(n_kinds[2], counted("kernels")); /* a stream waits in each round */
	assert_int_equal(n_kinds[3], counted("stream_waits"));
	assert_int_equal(n_kinds[4], counted("syncs"));
}

static void check_device(struct lull_reader *r)
{
	const struct lull_device_row *device = sim_device(r);

	assert_string_equal(lull_reader_string(r, device->name, NULL), "Simulated GPU");
	assert_int_equal(device->is_simulated, 1);
	assert_int_equal(device->capability, 90);
	assert_int_equal(device->n_sms, 16);
}

static void check_report(bool has_nodes)
{
	struct lull_reader *r = test_profile_open("a.lull");
	struct calls *calls = malloc(sizeof(*calls));

	assert_non_null(calls);
	assert_int_equal(read_calls(r, calls, "cuLaunchKernel"), counted("launches"));
	check_kernels(r, calls, has_nodes);
	check_copies(r, calls);
	check_sets(r, calls);
	check_waits(r);
	check_device(r);
	assert_int_equal(test_profile_issue(r, "cupti_dropped"), 0);
	assert_int_equal(test_profile_issue(r, "no_device_time"), 0);
	assert_int_equal(test_profile_issue(r, "device_tail"), 0);
	free(calls);
	lull_reader_close(r);
}

static void everything_is_recorded_in_each_version(void **state)
{
	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(versions); i++) {
		sim_set("LULL_SIM_CUPTI_VERSION", versions[i]);
		assert_int_equal(record("", ROUNDS), 0);
		check_report(false);
	}
}

static void nodes_of_graphs_are_recorded_on_demand(void **state)
{
	(void)state;
	assert_int_equal(record("--cuda-graph-trace=node", ROUNDS), 0);
	check_report(true);
}

static void a_version_with_gaps_is_mentioned(void **state)
{
	struct lull_reader *r;

	(void)state;
	sim_set("LULL_SIM_CUPTI_VERSION", "13.0.0");
	assert_int_equal(record("", "10"), 0);
	r = test_profile_open("a.lull");
	assert_int_equal(test_profile_issue(r, "cupti_version"), 1);
	lull_reader_close(r);
}

static void lost_records_and_times_are_counted(void **state)
{
	struct lull_reader *r;

	(void)state;
	sim_set("LULL_SIM_DROP", "5");
	sim_set("LULL_SIM_ZERO_TIMES", "3");
	assert_int_equal(record("", ROUNDS), 0);
	r = test_profile_open("a.lull");
	assert_int_equal(test_profile_issue(r, "cupti_dropped"), 5);
	assert_int_equal(test_profile_issue(r, "no_device_time"), 3);
	assert_int_equal(test_profile_rows(r, LULL_TABLE_kernel), counted("kernels") - 8);
	lull_reader_close(r);
}

/* CUPTI cannot be used: the issue says so, the program does not notice, the rest is there. */
static void goes_on_without_cupti(const char *issue)
{
	struct lull_reader *r;

	assert_int_equal(record("", "10"), 0);
	assert_int_equal(counted("kernels"), 40);
	r = test_profile_open("a.lull");
	assert_int_equal(test_profile_issue(r, issue), 1);
	assert_int_equal(test_profile_rows(r, LULL_TABLE_kernel), 0);
	assert_int_equal(lull_reader_n_dim(r, LULL_TABLE_process), 1);
	lull_reader_close(r);
}

static void another_subscriber_is_reported(void **state)
{
	(void)state;
	sim_set("LULL_SIM_SUBSCRIBED", "1");
	goes_on_without_cupti("cupti_taken");
}

static void a_missing_cupti_is_reported(void **state)
{
	(void)state;
	sim_set("LULL_CUPTI_PATH", "/nowhere/libcupti.so.13");
	goes_on_without_cupti("no_cupti");
}

static void a_cupti_that_lacks_symbols_is_reported(void **state)
{
	(void)state;
	sim_set("LULL_CUPTI_PATH", LULL_BUILD "/sim/old/libcupti.so.13");
	goes_on_without_cupti("cupti_refused");
}

static void a_cupti_that_refuses_is_reported(void **state)
{
	(void)state;
	sim_set("LULL_SIM_MISSING", "cuptiActivityRegisterTimestampCallback");
	goes_on_without_cupti("cupti_refused");
}

/* Times of the device that are off are taken as they come; nothing is lost over it. */
static void a_skewed_clock_loses_nothing(void **state)
{
	struct lull_reader *r;

	(void)state;
	sim_set("LULL_SIM_SKEW_NS", "-2000000");
	assert_int_equal(record("", ROUNDS), 0);
	r = test_profile_open("a.lull");
	assert_int_equal(test_profile_rows(r, LULL_TABLE_kernel), counted("kernels"));
	lull_reader_close(r);
}

/* Rows of what a device did, or a thread waited for it. */
static u64 n_device_rows(struct lull_reader *r)
{
	return test_profile_rows(r, LULL_TABLE_kernel) + test_profile_rows(r, LULL_TABLE_graph) +
	       test_profile_rows(r, LULL_TABLE_memcpy) + test_profile_rows(r, LULL_TABLE_memset) +
	       test_profile_rows(r, LULL_TABLE_cuda_sync);
}

/* The program dies in the middle of its work, when CUPTI has delivered 500 records. */
static void a_killed_program_keeps_what_was_flushed(void **state)
{
	struct lull_reader *r;

	(void)state;
	sim_set("LAUNCHES_ABORT", "500");
	assert_int_equal(record("", "1 2000"), 128 + 6);
	r = test_profile_open("a.lull");
	print_message("%llu rows\n", (unsigned long long)n_device_rows(r));
	/* Some of what is delivered describes devices and streams. */
	assert_true(n_device_rows(r) >= 500 - N_DESCRIBED);
	assert_true(test_profile_rows(r, LULL_TABLE_kernel) > 0);
	assert_int_equal(test_profile_issue(r, "device_tail"), 1);
	lull_reader_close(r);
}

/* ---- the example ---- */

#define STEPS	  20
#define N_KERNELS 10 /* of a step */

/* Record it; returns its checksum. */
static u64 train(const char *name, const char *arguments)
{
	struct lull_reader *r;
	char file[32];
	const char *sum;

	assert_int_equal(test_profile_run(text,
					  "profile -q -t cuda,nvtx -s none --cpuctxsw none -f -o "
					  "%%R/%s %s/examples/train_cuda --steps=%d %s",
					  name, LULL_BUILD, STEPS, arguments),
			 0);
	snprintf(file, sizeof(file), "%s.lull", name);
	r = test_profile_open(file);
	assert_int_equal(test_profile_rows(r, LULL_TABLE_step), STEPS);
	assert_int_equal(test_profile_rows(r, LULL_TABLE_kernel), N_KERNELS * STEPS);
	lull_reader_close(r);
	sum = strstr(text, "checksum=");
	assert_non_null(sum);
	return strtoull(sum + strlen("checksum="), NULL, 16);
}

static void the_example_computes_the_same_after_its_fix(void **state)
{
	u64 before = train("before", ""), after = train("after", "--fixed");

	(void)state;
	assert_int_equal(before, after);
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, begin, sim_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FOLDER(a_client_is_told_everything_in_each_version),
		WITH_FOLDER(graphs_as_a_whole_replace_their_nodes),
		WITH_FOLDER(knobs_drop_records_and_times),
		WITH_FOLDER(a_taken_cupti_refuses),
		WITH_FOLDER(a_call_whose_callbacks_stop_has_no_end),
		WITH_FOLDER(everything_is_recorded_in_each_version),
		WITH_FOLDER(nodes_of_graphs_are_recorded_on_demand),
		WITH_FOLDER(a_version_with_gaps_is_mentioned),
		WITH_FOLDER(lost_records_and_times_are_counted),
		WITH_FOLDER(another_subscriber_is_reported),
		WITH_FOLDER(a_missing_cupti_is_reported),
		WITH_FOLDER(a_cupti_that_lacks_symbols_is_reported),
		WITH_FOLDER(a_cupti_that_refuses_is_reported),
		WITH_FOLDER(a_skewed_clock_loses_nothing),
		WITH_FOLDER(a_killed_program_keeps_what_was_flushed),
		WITH_FOLDER(the_example_computes_the_same_after_its_fix),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
