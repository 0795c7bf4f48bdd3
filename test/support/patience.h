/*
 * patience - how long a test waits for something before it gives up, and how it waits.
 *
 * No test asserts how long something takes: machines are slow, busy and emulated. A test waits for
 * the condition that it needs. The limit only stops tests that hang, and no assertion depends on
 * it. LULL_TEST_PATIENCE in the environment is an integer factor for machines on
 * which it is too short.
 */
#ifndef LULL_TEST_PATIENCE_H
#define LULL_TEST_PATIENCE_H

#include <stdlib.h>
#include <unistd.h>

#include "base/time.h"

/* Some hundred times what the slowest wait takes on an idle machine. */
#define TEST_PATIENCE_S 120u

/* The limit in seconds. */
static inline unsigned test_patience_s(void)
{
	const char *text = getenv("LULL_TEST_PATIENCE");
	unsigned long factor = text ? strtoul(text, NULL, 10) : 1;

	return TEST_PATIENCE_S * (factor > 1 && factor < 1000 ? (unsigned)factor : 1);
}

/* The moment on CLOCK_MONOTONIC at which a wait that begins now is given up. */
static inline u64 test_patience_end_ns(void)
{
	return lull_now_ns() + test_patience_s() * LULL_NS_PER_S;
}

/* Between two looks at what is waited for; false once the wait is to be given up. */
static inline bool test_patience_pause(u64 end_ns)
{
	usleep(2000);
	return lull_now_ns() < end_ns;
}

/* Wait until the expression is true; the test fails where it never is. Needs cmocka. */
#define test_wait_for(condition)                                                           \
	do {                                                                               \
		u64 test_end_ns_ = test_patience_end_ns();                                 \
                                                                                           \
		while (!(condition))                                                       \
			if (!test_patience_pause(test_end_ns_))                            \
				fail_msg("waited %u s in vain for: %s", test_patience_s(), \
					 #condition);                                      \
	} while (0)

#endif
