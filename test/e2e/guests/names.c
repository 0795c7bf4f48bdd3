/*
 * names - a program that gives every mark a name of its own.
 *
 *	names COUNT
 *
 * It waits for a recorder that has not read what there is, and in the end until the recorder has
 * begun anew because there are too many names. The last mark is called "last"; ends with 1.
 */
#include "lull.h"
#include "own_image.h"

/* A number that changes with each recording; 0 where nothing is recorded. */
static unsigned recording(void)
{
	static const struct lull_control *control;
	const char *session = getenv(LULL_ENV_SESSION);
	char path[512];

	if (!session)
		return 0;
	if (!control) {
		int fd;

		snprintf(path, sizeof(path), "%s/control", session);
		fd = open(path, O_RDONLY);
		control = mmap(NULL, sizeof(*control), PROT_READ, MAP_SHARED, fd, 0);
		if (fd < 0 || control == MAP_FAILED)
			exit(2);
		close(fd);
	}
	return atomic_load(&control->record);
}

int main(int argc, char **argv)
{
	long count = argc > 1 ? atol(argv[1]) : 1000;
	struct lull_image *image = own_image();
	unsigned first = recording();
	char name[64];

	for (long i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "mark number %ld", i);
		lull_mark(name);
		while (i % 1000 == 0 && image && own_full_chunks(image) > LULL_N_CHUNKS / 16)
			usleep(1000);
	}
	while (first && (recording() == first || recording() == 0))
		usleep(1000);
	lull_mark("last");
	return 1;
}
