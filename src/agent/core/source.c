#include "agent/core/source.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/core/agent.h"

static const struct {
	const struct lull_source *source;
	u32 bits; /* on if one is in control->sources; 0 = always */
} sources[] = {
#define SOURCE(name, bits) { &lull_source_##name, bits },
#include "wire/sources.def"
};

/* Those that are on. Written before main and in forked children, when there is one thread. */
static LULL_EARLY struct {
	u32 n;
	const struct lull_source *at[LULL_COUNT_OF(sources)];
} on;

/*
 * A thread that has loaded a file lets sources put their functions into it. None may do so once
 * sources have taken them out again.
 */
static LULL_EARLY _Atomic i32 n_loading;
static LULL_EARLY _Atomic u32 is_leaving;

/* How long it is waited for; a forked child may have a number of threads that it does not have. */
#define LOADING_TRIES 1000 /* of 1 ms */

#define EACH(what, ...)                                      \
	do {                                                 \
		for (u32 i = 0; i < on.n; i++)               \
			if (on.at[i]->what)                  \
				on.at[i]->what(__VA_ARGS__); \
	} while (0)

void lull_sources_start(void)
{
	on.n = 0;
	atomic_store(&is_leaving, 0);
	for (u32 i = 0; i < LULL_COUNT_OF(sources); i++)
		if (!sources[i].bits || (sources[i].bits & lull_agent.control->sources))
			on.at[on.n++] = sources[i].source;
	for (u32 i = 0; i < on.n; i++)
		if (on.at[i]->is_of_each_fork)
			lull_sources_follow_forks();
	EACH(start);
}

void lull_sources_follow_forks(void)
{
	lull_agent.follows_forks = true;
}

void lull_sources_loaded(void)
{
	/* In this order: whoever leaves either sees us, or is seen. */
	atomic_fetch_add(&n_loading, 1);
	if (!atomic_load(&is_leaving))
		EACH(loaded);
	atomic_fetch_sub(&n_loading, 1);
}

void lull_sources_renewed(struct lull_thread *t)
{
	EACH(renewed, t);
}

bool lull_sources_prepare(void)
{
	for (u32 i = 0; i < on.n; i++)
		if (on.at[i]->prepare && !on.at[i]->prepare())
			return false;
	return true;
}

void lull_sources_began(void)
{
	EACH(began);
}

void lull_sources_ended(void)
{
	EACH(ended);
}

void lull_sources_passed(void)
{
	EACH(passed);
}

void lull_sources_calls(void)
{
	EACH(calls);
}

void lull_sources_flush(void)
{
	EACH(flush);
}

void lull_sources_leave(void)
{
	EACH(leave);
}

void lull_sources_execs(void)
{
	EACH(execs);
}

void lull_sources_stop(void)
{
	EACH(stop);
}

void lull_sources_idle(void)
{
	EACH(idle);
}

/* In the reverse order: what one uses of another is still there. */
void lull_sources_withdraw(void)
{
	struct timespec ms = { 0, 1000000 };

	atomic_store(&is_leaving, 1);
	for (int i = 0; i < LOADING_TRIES && atomic_load(&n_loading) > 0; i++)
		syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0L, &ms, NULL);
	for (u32 i = on.n; i-- > 0;)
		if (on.at[i]->withdraw)
			on.at[i]->withdraw();
	on.n = 0;
}
