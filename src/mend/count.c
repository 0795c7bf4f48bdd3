/*
 * Steps of a program that marks none: `lull try` has found its loop in a recording, and says how
 * many calls of one kind a round of it makes. A step starts with every N-th of them.
 *
 * LULL_TRY_COUNT is WHAT:N:SKIP, such as launches:24:3: the first 3 come before the loop. The calls
 * of all threads are counted together, as they were in the recording. Calls are counted before
 * anything here changes them, so that a step is the same work in all runs.
 */
#include "mend/mend.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lull.h"

static struct {
	bool is_on;
	enum lull_counted what;
	unsigned long long n, skip;
	atomic_ullong n_seen;
	atomic_int n_captures; /* of streams: to wait for the device would end them */
	atomic_bool is_due;    /* a step that could not start yet */
} count;

/* Threads that only wait are not among those of the recording's loop. */
static _Thread_local bool has_work;

/* The agent waits for the device when it measures; that is no call of the program. */
static _Thread_local bool is_inside;

__attribute__((constructor)) static void read_count(void)
{
	static const char *const names[] = {
		[LULL_COUNTED_LAUNCH] = "launches",
		[LULL_COUNTED_COPY] = "copies",
		[LULL_COUNTED_WAIT] = "waits",
	};
	const char *text = getenv("LULL_TRY_COUNT");
	size_t len = text ? strcspn(text, ":") : 0;

	for (size_t i = 0; len && i < LULL_COUNT_OF(names); i++) {
		if (strlen(names[i]) != len || strncmp(text, names[i], len) != 0)
			continue;
		count.what = (enum lull_counted)i;
		count.is_on =
			sscanf(text + len, ":%llu:%llu", &count.n, &count.skip) == 2 && count.n > 0;
	}
}

bool lull_count_is_on(void)
{
	return count.is_on;
}

static void start_step(unsigned long long number)
{
	if (atomic_load_explicit(&count.n_captures, memory_order_relaxed) > 0) {
		atomic_store_explicit(&count.is_due, true, memory_order_relaxed);
		return;
	}
	is_inside = true;
	lull_step(number);
	is_inside = false;
}

void lull_count(enum lull_counted what)
{
	unsigned long long at;

	if (!count.is_on || is_inside)
		return;
	has_work |= what == LULL_COUNTED_LAUNCH || what == LULL_COUNTED_COPY;
	if (what == LULL_COUNTED_CAPTURE)
		atomic_fetch_add_explicit(&count.n_captures, 1, memory_order_relaxed);
	if (what == LULL_COUNTED_CAPTURED)
		atomic_fetch_sub_explicit(&count.n_captures, 1, memory_order_relaxed);
	if (what != count.what || !has_work)
		return;
	at = atomic_fetch_add_explicit(&count.n_seen, 1, memory_order_relaxed);
	if ((at >= count.skip && (at - count.skip) % count.n == 0) ||
	    (atomic_load_explicit(&count.is_due, memory_order_relaxed) &&
	     atomic_exchange(&count.is_due, false)))
		start_step(at / count.n);
}
