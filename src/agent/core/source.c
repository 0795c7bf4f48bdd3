#include "agent/core/source.h"

#include "agent/core/agent.h"

static const struct {
	const struct lull_source *source;
	u32 bits; /* on if one is in control->sources; 0 = always */
} sources[] = {
#define SOURCE(name, bits) { &lull_source_##name, bits },
#include "wire/sources.def"
};

/* Those that are on. Written before main and in forked children, when there is one thread. */
static struct {
	u32 n;
	const struct lull_source *at[LULL_COUNT_OF(sources)];
} on;

#define EACH(what, ...)                                      \
	do {                                                 \
		for (u32 i = 0; i < on.n; i++)               \
			if (on.at[i]->what)                  \
				on.at[i]->what(__VA_ARGS__); \
	} while (0)

void lull_sources_start(void)
{
	on.n = 0;
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
	EACH(loaded);
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
	for (u32 i = on.n; i-- > 0;)
		if (on.at[i]->withdraw)
			on.at[i]->withdraw();
	on.n = 0;
}
