/*
 * skip - skip a test that lacks something, and say what.
 *
 *	if (access(path, X_OK) != 0)
 *		test_skip("%s is not installed", path);
 *
 * The reason is a separate line on standard output, "skipped: REASON", which test/run.py counts.
 */
#ifndef LULL_TEST_SKIP_H
#define LULL_TEST_SKIP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

/* Ends the test. */
#define test_skip(...)                      \
	do {                                \
		print_message("skipped: "); \
		print_message(__VA_ARGS__); \
		print_message("\n");        \
		fflush(stdout);             \
		skip();                     \
	} while (0)

/*
 * The same where the program runs in an emulator (LULL_EMULATED), which is a process of its own
 * kind.
 */
#define test_skip_emulated(why)                         \
	do {                                            \
		if (getenv("LULL_EMULATED"))            \
			test_skip("emulated: %s", why); \
	} while (0)

/*
 * How far a loop over many similar cases goes on each time: 1, and n in an emulator, which takes
 * twenty times as long.
 */
static inline unsigned test_stride(unsigned n)
{
	return getenv("LULL_EMULATED") ? n : 1;
}

#endif
