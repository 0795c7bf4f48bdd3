/*
 * Functions of a library are recorded by name, and the program does not notice. What is expected
 * here is what lib_guest.cc does. The same guest of the other architecture runs under an emulator,
 * where there is one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/session.h"
#include "support/skip.h"

/* Calls of a name, and how many of them were left without a return. */
struct calls {
	size_t n, n_left;
};

static struct calls count(const struct test_events *events, const char *name)
{
	struct calls calls = { 0 };

	for (size_t i = 0; i < events->n; i++) {
		const struct test_event *e = &events->all[i];
		const struct lull_wire_lib_call *call = (const void *)e->head;
		const char *text;

		if (e->type != LULL_EVENT_lib_call)
			continue;
		text = test_events_text(events, e->pid, call->name);
		assert_non_null(text);
		if (strcmp(text, name) != 0)
			continue;
		calls.n++;
		calls.n_left += (e->head->a & LULL_LIB_LEFT) != 0;
	}
	return calls;
}

static void expect(const struct test_events *events, const char *name, size_t n, size_t n_left)
{
	struct calls calls = count(events, name);

	if (calls.n != n || calls.n_left != n_left)
		print_error("%s\n", name);
	assert_int_equal(calls.n, n);
	assert_int_equal(calls.n_left, n_left);
}

static u32 deepest(const struct test_events *events)
{
	u32 depth = 0;

	for (size_t i = 0; i < events->n; i++)
		if (events->all[i].type == LULL_EVENT_lib_call &&
		    (events->all[i].head->a & ~LULL_LIB_LEFT) > depth)
			depth = events->all[i].head->a & ~LULL_LIB_LEFT;
	return depth;
}

/*
 * Functions whose addresses are taken, too. Calls through a pointer are recorded where the file has
 * one entry for calls and addresses; of w_shared that is so on some machines.
 */
static void expect_addresses(const struct test_events *events, bool is_noplt)
{
	struct calls shared = count(events, "w_shared"), told = count(events, "w_told");

	assert_in_range(shared.n, 100, 101);
	assert_int_equal(shared.n_left, 0);
	expect(events, "w_direct", 100 + 10 + 3, 0);
	assert_in_range(told.n, 0, is_noplt);
}

/* Run the guest and count; w_fork is called so many times. */
static void run_guest(const char *agent, char *const argv[], size_t n_forks, bool is_noplt)
{
	static const char *const once[] = { "w_many", "w_sum",	       "w_big",	   "w_pair",
					    "w_four", "w_long_double", "w_vector", "w_jump" };
	struct test_session session;
	struct test_events events;
	int status;

	test_session_open(&session, LULL_SOURCE_LIBRARY);
	strcpy(session.control->libraries, "libnothing.so:*\nlibwatched.so:w_*\n");
	status = test_session_run(&session, agent, argv);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	test_session_read(&session, &events);
	assert_int_equal(events.n_dropped, 0);
	for (size_t i = 0; i < LULL_COUNT_OF(once); i++)
		expect(&events, once[i], 1, 0);
	/* 50 times out of a callback, caught outside; 50 caught by the caller; 50 not thrown. */
	expect(&events, "w_throw", 150, 100);
	/* Recursions of 500 and four of 20, a backtrace, exceptions, longjmps; and coroutines. */
	expect(&events, "w_call", 500 + 4 * 20 + 1 + 50 + 50 + 2, 50 + 50);
	assert_true(count(&events, "w_add").n > 4 * 1000 + 100);
	expect(&events, "w_fork", n_forks, 0);
	expect(&events, "w_unused", 0, 0);
	expect_addresses(&events, is_noplt);
	assert_int_equal(deepest(&events), 499);
	test_events_release(&events);
	test_session_close(&session);
}

static void calls_are_recorded_and_nothing_breaks(void **state)
{
	char *argv[] = { LULL_BUILD "/e2e/lib_guest", NULL };

	(void)state;
	run_guest(LULL_BUILD "/liblull-agent.so", argv, 1, false);
}

static void tables_that_are_read_only_are_opened_and_closed(void **state)
{
	char *argv[] = { LULL_BUILD "/e2e/lib_guest_now", NULL };

	(void)state;
	run_guest(LULL_BUILD "/liblull-agent.so", argv, 1, false);
}

static void files_without_jump_slots_are_watched(void **state)
{
	char *argv[] = { LULL_BUILD "/e2e/lib_guest_noplt", NULL };

	(void)state;
	run_guest(LULL_BUILD "/liblull-agent.so", argv, 1, true);
}

/* Thunks are in the tables and in pointers all the same, and lead to the functions. */
static void nothing_is_recorded_while_stopped(void **state)
{
	char *argv[] = { LULL_BUILD "/e2e/lib_guest", NULL };
	struct test_session session;
	struct test_events events;

	(void)state;
	test_session_open(&session, LULL_SOURCE_LIBRARY);
	strcpy(session.control->libraries, "libwatched.so:w_*\n");
	session.control->record = 0;
	assert_int_equal(test_session_run(&session, LULL_BUILD "/liblull-agent.so", argv), 0);
	test_session_read(&session, &events);
	assert_true(events.n_images > 0);
	assert_int_equal(test_events_count(&events, LULL_EVENT_lib_call), 0);
	test_events_release(&events);
	test_session_close(&session);
}

static void the_other_architecture_does_the_same(void **state)
{
	const char *agent = getenv("LULL_FOREIGN_AGENT"), *emulator = getenv("LULL_EMULATOR");
	char libraries[256];
	/* All of the compiler's libraries: installed ones of that architecture may be others. */
	char *argv[] = { (char *)emulator,
			 "-L",
			 getenv("LULL_FOREIGN_ROOT"),
			 "-E",
			 libraries,
			 getenv("LULL_FOREIGN_GUEST"),
			 "no-fork",
			 NULL };

	(void)state;
	if (!agent || !emulator || access(emulator, X_OK) != 0)
		test_skip("there is no compiler or no emulator for the other architecture");
	snprintf(libraries, sizeof(libraries), "LD_LIBRARY_PATH=%s/lib", argv[2]);
	run_guest(agent, argv, 0, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_are_recorded_and_nothing_breaks),
		cmocka_unit_test(tables_that_are_read_only_are_opened_and_closed),
		cmocka_unit_test(files_without_jump_slots_are_watched),
		cmocka_unit_test(nothing_is_recorded_while_stopped),
		cmocka_unit_test(the_other_architecture_does_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
