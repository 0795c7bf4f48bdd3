/*
 * profile - run `lull` in a test and look at the report.
 *
 * Everything happens in a folder of its own that test_profile_end() removes. Failures are test
 * failures.
 */
#ifndef LULL_TEST_PROFILE_H
#define LULL_TEST_PROFILE_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/types.h"
#include "trace/reader.h"

/* Make the folder; the tests' working folder does not change. */
void test_profile_begin(void);

/* Remove the folder with all that is in it. */
void test_profile_end(void);

/* Path of a file in the folder; a ring of eight buffers. */
const char *test_profile_path(const char *name);

/*
 * Run "lull WORDS" in a shell; `%R` in the words stands for the folder. Output of both streams goes
 * to `text` (8 KiB at least, may be NULL). Returns the exit status.
 */
int test_profile_run(char *text, const char *words, ...) __attribute__((format(printf, 2, 3)));

/* Open a report of the folder; it must be whole. */
struct lull_reader *test_profile_open(const char *name);

/* Rows of a table. */
u64 test_profile_rows(struct lull_reader *r, u16 table);

/* How often the issue occurred, 0 if it did not. */
u64 test_profile_issue(struct lull_reader *r, const char *name);

/* Value of a meta key, or NULL. */
const char *test_profile_meta(struct lull_reader *r, const char *key);

#endif
