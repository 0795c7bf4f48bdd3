/*
 * jump - preloaded, it sets the wall clock 400 days ahead as soon as there is a file called "jump".
 */
#include <dlfcn.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int (*next)(clockid_t, struct timespec *);
	int rc;

	*(void **)&next = dlsym(RTLD_NEXT, "clock_gettime");
	rc = next(clock, now);
	if (!rc && clock == CLOCK_REALTIME && access("jump", F_OK) == 0)
		now->tv_sec += 400L * 86400;
	return rc;
}
