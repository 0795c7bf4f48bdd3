/*
 * names - a program that gives every mark a name of its own.
 *
 *	names COUNT
 *
 * A thousand a millisecond at most; the last one is called "last".
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lull.h"

int main(int argc, char **argv)
{
	long count = argc > 1 ? atol(argv[1]) : 1000;
	char name[64];

	for (long i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "mark number %ld", i);
		lull_mark(name);
		if (i % 1000 == 999)
			usleep(1000);
	}
	/* Whatever is forgotten is forgotten by now. */
	sleep(1);
	lull_mark("last");
	return 1;
}
