/*
 * random - numbers that are the same in every run.
 */
#ifndef LULL_UNIT_RANDOM_H
#define LULL_UNIT_RANDOM_H

#include <math.h>

#include "base/types.h"

struct test_random {
	u64 state; /* not 0 */
};

/* The next 64 bits (xorshift*). */
static inline u64 test_random_bits(struct test_random *random)
{
	random->state ^= random->state >> 12;
	random->state ^= random->state << 25;
	random->state ^= random->state >> 27;
	return random->state * 0x2545F4914F6CDD1DULL;
}

/* Evenly between 0 and 1, exclusive. */
static inline f64 test_random_share(struct test_random *random)
{
	return ((f64)(test_random_bits(random) >> 11) + 0.5) / 9007199254740992.0;
}

/* From the standard normal distribution (Box-Muller). */
static inline f64 test_random_normal(struct test_random *random)
{
	f64 radius = sqrt(-2 * log(test_random_share(random)));

	return radius * cos(2 * M_PI * test_random_share(random));
}

#endif
