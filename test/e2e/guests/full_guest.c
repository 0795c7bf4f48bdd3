/*
 * full_guest - a program that fills the shared memory which its recording lives in, and goes on.
 *
 *	full_guest gap		full, a little room, full again
 *	full_guest threads	more threads than there is memory for their places
 *	full_guest slots|used	full, and then it writes a wild number into the head of its image
 *
 * Only where /dev/shm is a small one of its own; ends with 77 otherwise.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "lull.h"
#include "own_image.h"

#define MAX_BYTES (200ul << 20) /* of a /dev/shm that may be filled */
#define TMPFS	  0x01021994

static int filler;

static void fill(void)
{
	static char page[4096];

	lseek(filler, 0, SEEK_END);
	while (write(filler, page, sizeof(page)) == (ssize_t)sizeof(page))
		continue;
}

static int is_small(void)
{
	const char *session = getenv("LULL_SESSION");
	struct statfs fs;

	return (!session || strncmp(session, "/dev/shm/", 9) == 0) &&
	       statfs("/dev/shm", &fs) == 0 && fs.f_type == TMPFS &&
	       fs.f_blocks * (unsigned long)fs.f_bsize <= MAX_BYTES;
}

/* Chunks hold fewer marks than this. */
static void mark_many(const char *name)
{
	for (int i = 0; i < 4000; i++)
		lull_mark(name);
}

static void gap(void)
{
	fill();
	mark_many("full");
	if (ftruncate(filler, lseek(filler, 0, SEEK_END) - 50 * 4096) != 0)
		exit(1);
	mark_many("room");
	fill();
	for (int i = 0; i < 20; i++) {
		mark_many("again");
		usleep(20000);
	}
}

static pthread_barrier_t begun, full;

static void *be_marked(void *first)
{
	lull_mark("early");
	pthread_barrier_wait(&begun);
	pthread_barrier_wait(&full);
	return first;
}

static void *mark_late(void *unused)
{
	errno = 77;
	mark_many("late");
	if (errno != 77)
		exit(1);
	return unused;
}

/* All of the first page of slots, and then one more. */
static void threads(void)
{
	pthread_t early[LULL_N_READY], late;

	pthread_barrier_init(&begun, NULL, LULL_N_READY);
	pthread_barrier_init(&full, NULL, LULL_N_READY);
	lull_mark("early");
	for (size_t i = 1; i < LULL_N_READY; i++)
		pthread_create(&early[i], NULL, be_marked, NULL);
	pthread_barrier_wait(&begun);
	fill();
	pthread_create(&late, NULL, mark_late, NULL);
	pthread_join(late, NULL);
	pthread_barrier_wait(&full);
	for (size_t i = 1; i < LULL_N_READY; i++)
		pthread_join(early[i], NULL);
}

static void go_wild(const char *what)
{
	struct lull_image *image;

	if (!getenv("LULL_SESSION"))
		return;
	image = own_image();
	if (!image)
		exit(1);
	fill();
	if (strcmp(what, "slots") == 0)
		image->n_slots_ready = UINT32_MAX;
	else
		image->n_used = UINT32_MAX;
	for (int i = 0; i < 300; i++) {
		lull_mark("wild");
		usleep(1000);
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!is_small())
		return 77;
	lull_mark("one");
	filler = open("/dev/shm/filler", O_CREAT | O_RDWR, 0600);
	if (strcmp(what, "gap") == 0)
		gap();
	else if (strcmp(what, "threads") == 0)
		threads();
	else
		go_wild(what);
	/* What is written at the end needs no room there, but the next one does. */
	unlink("/dev/shm/filler");
	puts("survived");
	return 5;
}
