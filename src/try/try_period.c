/*
 * Where the calls of a program repeat, whatever time they take.
 *
 * The rounds of `lull why` go by time as well: on a busy machine, pauses may look like the ends of
 * rounds. What a run calls is the same each time, and so is how many calls later it repeats. The
 * row of calls is compared with itself, moved by 1, 2, ... calls; where nearly all are alike is the
 * period.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "try/try_int.h"

/* Calls that are looked at, from the middle of the recording, and the longest period. */
#define MOST_CALLS  20000u
#define MOST_PERIOD 4000u

/* With so many calls alike, no longer period is looked for; with less it is none. */
#define SURE  0.995
#define LEAST 0.9

/* The chain with most calls; false if others have many, too: then order says little. */
static bool main_chain(const struct lull_chain *c, u32 *first, u32 *n)
{
	*n = 0;
	for (u32 i = 0; i < c->n_chains; i++) {
		if (c->first[i + 1] - c->first[i] <= *n)
			continue;
		*first = c->first[i];
		*n = c->first[i + 1] - c->first[i];
	}
	return *n && (f64)*n >= LEAST * (f64)c->n;
}

/* Calls are alike if they have the same name and start the same kernel. */
static u32 *read_calls(const struct lull_subject *s, u32 first, u32 n)
{
	u32 *calls = lull_alloc(n, sizeof(*calls));

	for (u32 i = 0; i < n; i++) {
		const struct lull_node *node = &s->chain.nodes[first + i];
		const struct lull_unit *unit =
			node->unit == LULL_NONE ? NULL : &s->units.at[node->unit];
		bool is_kernel = unit && unit->kind == LULL_UNIT_KERNEL;

		calls[i] = node->name * 65599u + (is_kernel ? unit->what : 0);
	}
	return calls;
}

/* The share of calls that are like those `period` calls later. */
static f64 alike(const u32 *calls, u32 n, u32 period)
{
	u32 n_same = 0;

	for (u32 i = 0; i + period < n; i++)
		n_same += calls[i] == calls[i + period];
	return (f64)n_same / (f64)(n - period);
}

u32 lull_try_period(const u32 *calls, u32 n, u32 least_rounds)
{
	u32 most = n / least_rounds < MOST_PERIOD ? n / least_rounds : MOST_PERIOD, best = 0;
	f64 others = 1 - LEAST;

	for (u32 period = 1; period <= most && others > 1 - SURE; period++) {
		f64 now = 1 - alike(calls, n, period);

		/* Of a period and its multiples, one is a little better by chance. */
		if (best ? now < others / 2 : now <= others) {
			others = now;
			best = period;
		}
	}
	return best;
}

bool lull_try_repeat(struct lull_try_repeat *found, const struct lull_subject *s, u32 least_rounds)
{
	u32 first, n, *calls;

	if (!main_chain(&s->chain, &first, &n))
		return false;
	found->first = n > MOST_CALLS ? first + (n - MOST_CALLS) / 2 : first;
	found->n = n > MOST_CALLS ? MOST_CALLS : n;
	calls = read_calls(s, found->first, found->n);
	found->period = lull_try_period(calls, found->n, least_rounds);
	free(calls);
	return found->period;
}
