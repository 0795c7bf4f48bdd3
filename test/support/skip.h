/*
 * skip - leave out a test whose means are not there, and say which.
 *
 *	if (access(path, X_OK) != 0)
 *		test_skip("%s is not installed", path);
 *
 * The reason is a line of its own on standard output, "skipped: REASON", for whoever counts them.
 */
#ifndef LULL_TEST_SKIP_H
#define LULL_TEST_SKIP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

/* Ends the test. */
#define test_skip(...)                      \
	do {                                \
		print_message("skipped: "); \
		print_message(__VA_ARGS__); \
		print_message("\n");        \
		fflush(stdout);             \
		skip();                     \
	} while (0)

#endif
