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
#include <sys/types.h>

#include "base/types.h"
#include "support/patience.h"
#include "support/skip.h"
#include "trace/reader.h"

/* The command under test: $LULL, else the one of the build. */
const char *test_profile_command(void);

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

/* The same in the background; the pid is that of lull itself. */
pid_t test_profile_launch(const char *words, ...) __attribute__((format(printf, 1, 2)));

/* Wait for it, as long as tests wait; returns the exit status as a shell does. */
int test_profile_wait(pid_t pid);

/* True if the recorder with this pid has left nothing in shared memory. */
bool test_profile_is_clean(pid_t recorder_pid);

/* True if the folder holds a file of this name. */
bool test_profile_exists(const char *name);

/* Make an empty file of this name in the folder; programs wait for such. */
void test_profile_touch(const char *name);

/* How many files of the folder end like this. */
int test_profile_count_files(const char *suffix);

/* "timeout SECONDS", to go before a command: a program that hangs must not hang the tests. */
const char *test_profile_limit(void);

/* Skip the test where a mount namespace of one's own is refused: no root, or a chroot. */
void test_profile_need_namespace(void);

/* Open a report of the folder; it must be whole. */
struct lull_reader *test_profile_open(const char *name);

/* Rows of a table of facts; of a dimension also those that were written again. */
u64 test_profile_rows(struct lull_reader *r, u16 table);

/* How often the issue occurred, 0 if it did not. */
u64 test_profile_issue(struct lull_reader *r, const char *name);

/* Marks of this name; `process` 0 counts those of all processes. */
u64 test_profile_marks(struct lull_reader *r, const char *name, u32 process);

/* Ranges of this name. */
u64 test_profile_ranges(struct lull_reader *r, const char *name);

/* Row ids of processes with this pid, in order of exec; returns how many, `rows` has room for 8. */
size_t test_profile_processes(struct lull_reader *r, u32 pid, u32 *rows);

/* A process by its row id. */
const struct lull_process_row *test_profile_process(struct lull_reader *r, u32 row);

/* Value of a meta key, or NULL. */
const char *test_profile_meta(struct lull_reader *r, const char *key);

#endif
