/*
 * program - build and run small programs inside a test, in a directory of its own.
 *
 * Everything is relative to the root of the tree, where `make unit` runs the tests.
 */
#ifndef LULL_TEST_PROGRAM_H
#define LULL_TEST_PROGRAM_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A new directory; its name is written to `dir`, which has room for 64 bytes. */
static inline void program_make_dir(char *dir)
{
	snprintf(dir, 64, "/tmp/lull-test-XXXXXX");
	if (!mkdtemp(dir))
		abort();
}

/*
 * Run a shell command made like printf; returns its exit status. Sanitizer settings do not reach
 * it.
 */
__attribute__((format(printf, 1, 2))) static inline int program_run(const char *fmt, ...)
{
	char command[8192];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(command, sizeof(command), fmt, ap);
	va_end(ap);
	return system(command);
}

/* True if this compiler, with these flags, makes a program; "-x c++" is such a flag. */
static inline bool program_can_build(const char *compiler)
{
	return program_run("echo 'int main(void) { return 0; }' >/tmp/lull-test-%d.c; "
			   "%s /tmp/lull-test-%d.c -o /dev/null 2>/dev/null; rc=$?; "
			   "rm /tmp/lull-test-%d.c; exit $rc",
			   (int)getpid(), compiler, (int)getpid(), (int)getpid()) == 0;
}

/* Remove the directory of program_make_dir(). */
static inline void program_remove_dir(const char *dir)
{
	if (program_run("rm -rf '%s'", dir))
		abort();
}

#endif
