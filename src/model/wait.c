#include "model/wait.h"

#include <string.h>

/*
 * By the beginning of the name, the longest match first where one begins like another; families of
 * functions share it, and variants such as pread64 or __read_chk need no line of their own. What is
 * not here is LULL_WAIT_IO: most of the list of recorded calls (wire/osrt.def) is.
 */
static const struct {
	const char *prefix;
	enum lull_wait wait;
} prefixes[] = {
	{ "pthread_create", LULL_WAIT_OTHER },
	{ "pthread_", LULL_WAIT_LOCK },
	{ "sem", LULL_WAIT_LOCK },
	{ "flock", LULL_WAIT_LOCK },
	{ "lockf", LULL_WAIT_LOCK },
	{ "fcntl", LULL_WAIT_LOCK }, /* only its commands that wait for a lock are recorded */
	{ "nanosleep", LULL_WAIT_SLEEP },
	{ "clock_nanosleep", LULL_WAIT_SLEEP },
	{ "sleep", LULL_WAIT_SLEEP },
	{ "usleep", LULL_WAIT_SLEEP },
	{ "wait", LULL_WAIT_OTHER },
	{ "posix_spawn", LULL_WAIT_OTHER },
	{ "system", LULL_WAIT_OTHER },
	{ "sig", LULL_WAIT_OTHER },
	{ "pause", LULL_WAIT_OTHER },
	{ "dl", LULL_WAIT_OTHER },
	{ "mmap", LULL_WAIT_OTHER },
	{ "munmap", LULL_WAIT_OTHER },
};

enum lull_wait lull_wait_of(const char *function)
{
	for (size_t i = 0; i < LULL_COUNT_OF(prefixes); i++) {
		if (!strncmp(function, prefixes[i].prefix, strlen(prefixes[i].prefix)))
			return prefixes[i].wait;
	}
	return LULL_WAIT_IO;
}
