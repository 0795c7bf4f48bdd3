/*
 * own_image - what the agent has written and the recorder has not read yet, seen from the program.
 *
 * Programs that make more events than there is room for wait here for the recorder, which may be
 * without a CPU for a while. Without an agent there is nothing to wait for.
 */
#ifndef LULL_TEST_OWN_IMAGE_H
#define LULL_TEST_OWN_IMAGE_H

#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "wire/wire.h"

/* The head and the tables of this process's image, NULL if it has none. */
static inline struct lull_image *own_image(void)
{
	const char *session = getenv(LULL_ENV_SESSION);
	void *at = MAP_FAILED;
	char pattern[512];
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s/%d-*.image", session ? session : "", (int)getpid());
	if (!session || glob(pattern, 0, NULL, &found) != 0)
		return NULL;
	/* The program that was here before an exec had one as well; the last is ours. */
	int fd = open(found.gl_pathv[found.gl_pathc - 1], O_RDWR | O_CLOEXEC);

	if (fd >= 0) {
		at = mmap(NULL, LULL_IMAGE_DATA_OFF, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		close(fd);
	}
	globfree(&found);
	return at == MAP_FAILED ? NULL : at;
}

/* Places of threads that are taken. */
static inline unsigned own_slots(const struct lull_image *image)
{
	const struct lull_slot *slots =
		(const void *)((const unsigned char *)image + LULL_IMAGE_SLOTS_OFF);
	unsigned n = 0;

	for (unsigned i = 0; i < image->n_slots_ready; i++)
		n += atomic_load(&slots[i].state) != LULL_SLOT_FREE;
	return n;
}

/* Chunks that are full and not read. */
static inline unsigned own_full_chunks(const struct lull_image *image)
{
	const struct lull_chunk *chunks =
		(const void *)((const unsigned char *)image + LULL_IMAGE_CHUNKS_OFF);
	unsigned n = 0;

	for (unsigned i = 0; i < image->n_used; i++)
		n += atomic_load(&chunks[i].state) == LULL_CHUNK_FULL;
	return n;
}

#endif
