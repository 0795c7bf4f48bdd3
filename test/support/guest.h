/*
 * guest - helpers for programs that tests record: wait for the recorder, not for a fixed time.
 *
 * What it gives: the control page of its session, waits for conditions on it, and counters that the
 *                test can read while the program runs and after it was killed.
 * Without a session nothing is waited for.
 */
#ifndef LULL_TEST_GUEST_H
#define LULL_TEST_GUEST_H

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lull.h"
#include "support/patience.h"
#include "wire/wire.h"

/* How far the program is; the file that TEST_COUNTS names, mapped. */
struct guest_counts {
	_Atomic u64 n_emitted;
	_Atomic u64 n_heard; /* of these, in the midst of a recording: it must have them */
	_Atomic u32 is_done; /* nothing more comes */
};

/* Map the file; NULL if it cannot be. */
static inline struct guest_counts *guest_counts_map(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	void *at = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, sizeof(struct guest_counts)) == 0)
		at = mmap(NULL, sizeof(struct guest_counts), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			  0);
	if (fd >= 0)
		close(fd);
	return at == MAP_FAILED ? NULL : at;
}

/* Where this program counts. */
static inline struct guest_counts *guest_counts(void)
{
	static struct guest_counts nobody_looks, *at;
	const char *path = getenv("TEST_COUNTS");

	if (!at)
		at = path ? guest_counts_map(path) : &nobody_looks;
	if (!at)
		exit(2);
	return at;
}

/* A test that failed leaves its program alone: it ends some day, whatever it waits for. */
static inline void guest_set_limit(void)
{
	alarm(2 * test_patience_s());
}

/* The control page, NULL without a recorder. */
static inline const struct lull_control *guest_control(void)
{
	static const struct lull_control *control;
	const char *session = getenv(LULL_ENV_SESSION);
	char path[512];
	void *at;
	int fd;

	if (control || !session)
		return control;
	snprintf(path, sizeof(path), "%s/control", session);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	at = mmap(NULL, sizeof(*control), PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (at != MAP_FAILED)
		control = at;
	return control;
}

/* Wait until the expression is true; the program ends with status 2 where it never is. */
#define guest_wait_for(condition)                                                        \
	do {                                                                             \
		u64 guest_end_ns_ = test_patience_end_ns();                              \
                                                                                         \
		while (!(condition))                                                     \
			if (!test_patience_pause(guest_end_ns_)) {                       \
				fprintf(stderr, "waited in vain for: %s\n", #condition); \
				exit(2);                                                 \
			}                                                                \
	} while (0)

/*
 * Wait until the recorder has closed the report of the last capture range: one that begins before
 * that is missed.
 */
static inline void guest_wait_for_recorder(void)
{
	const struct lull_control *c = guest_control();

	guest_wait_for(!c || atomic_load(&c->next_record) || atomic_load(&c->is_over));
}

/* True when the session has recorded its last, and nothing is recorded now. */
static inline bool guest_is_over(void)
{
	const struct lull_control *c = guest_control();

	return !c || (atomic_load(&c->is_over) && !atomic_load(&c->record));
}

#endif
