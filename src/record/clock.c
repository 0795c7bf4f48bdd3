#include "record/clock.h"

#include <stdio.h>
#include <string.h>

#include "base/convert.h"
#include "base/time.h"

/*
 * Past this many pairs every second one is dropped: the line between distant pairs is as good for
 * old events.
 */
#define PAIRS_MAX 4096

/* The tightest of a few bracketed reads; a preempted one is off by a time slice. */
static struct lull_clock_pair take_pair(bool is_clock)
{
	struct lull_clock_pair best = { 0, 0 };
	u64 best_width = UINT64_MAX;

	for (int i = 0; i < 5; i++) {
		u64 before = is_clock ? lull_now_ns() : lull_counter();
		u64 ns = lull_now_ns();
		u64 after = is_clock ? lull_now_ns() : lull_counter();

		if (after - before < best_width) {
			best_width = after - before;
			best.counter = is_clock ? ns : before + (after - before) / 2;
			best.mono_ns = ns;
		}
	}
	return best;
}

/*
 * The kernel itself trusts the counter as its clock source? Then it is invariant and synchronous.
 */
static bool is_counter_usable(void)
{
#if defined(__aarch64__)
	return true; /* architected: constant rate, same on all CPUs */
#elif defined(__x86_64__)
	const char *path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
	FILE *f = fopen(path, "re");
	char name[64] = "";

	if (f) {
		if (!fgets(name, sizeof(name), f))
			name[0] = '\0';
		fclose(f);
		if (strncmp(name, "tsc", 3) == 0)
			return true;
		/* What the kernel falls back to when the counters of two CPUs went apart. */
		if (strncmp(name, "hpet", 4) == 0 || strncmp(name, "acpi_pm", 7) == 0)
			return false;
	}
	/* A guest may keep time by its host (kvm-clock) and still have an invariant counter. */
	f = fopen("/proc/cpuinfo", "re");
	if (f) {
		char line[8192];
		bool has_both = false;

		while (!has_both && fgets(line, sizeof(line), f))
			has_both = strstr(line, " constant_tsc") && strstr(line, " nonstop_tsc");
		fclose(f);
		return has_both;
	}
	return false;
#else
	return false;
#endif
}

static u64 measure_tick_hz(void)
{
	struct timespec pause = { 0, 20 * 1000 * 1000 };
	struct lull_clock_pair a, b;

#if defined(__aarch64__)
	u64 hz;

	__asm__ volatile("mrs %0, cntfrq_el0" : "=r"(hz));
	if (hz) /* firmware says it; not all of it does */
		return hz;
#endif
	a = take_pair(false);
	nanosleep(&pause, NULL);
	b = take_pair(false);
	return (u64)((f64)(b.counter - a.counter) * 1e9 / (f64)(b.mono_ns - a.mono_ns));
}

void lull_clock_init(struct lull_clock *c)
{
	lull_vec_init(&c->pairs, sizeof(struct lull_clock_pair));
	c->is_clock = !is_counter_usable();
	c->tick_hz = c->is_clock ? LULL_NS_PER_S : measure_tick_hz();
}

void lull_clock_release(struct lull_clock *c)
{
	lull_vec_release(&c->pairs);
}

/* Drop every second pair but the last. */
static void thin_out(struct lull_vec *pairs)
{
	struct lull_clock_pair *p = pairs->at;
	size_t n = 0;

	for (size_t i = 0; i < pairs->n; i++)
		if (i % 2 == 0 || i + 1 == pairs->n)
			p[n++] = p[i];
	pairs->n = n;
}

static void add_pair(struct lull_clock *c, struct lull_clock_pair pair)
{
	if (c->pairs.n >= PAIRS_MAX)
		thin_out(&c->pairs);
	*(struct lull_clock_pair *)lull_vec_push(&c->pairs) = pair;
}

void lull_clock_tick(struct lull_clock *c, struct lull_control *control)
{
	struct lull_clock_pair pair = take_pair(c->is_clock);
	u64 n = atomic_load_explicit(&control->n_clocks, memory_order_relaxed);

	add_pair(c, pair);
	control->clocks[n == 0 ? 0 : 1 + (n - 1) % (LULL_N_CLOCKS - 1)] = pair;
	/* Release: recovery that counts the pair sees it. */
	atomic_store_explicit(&control->n_clocks, n + 1, memory_order_release);
}

void lull_clock_load(struct lull_clock *c, const struct lull_control *control)
{
	u64 n = atomic_load_explicit(&control->n_clocks, memory_order_acquire);
	u64 ring = LULL_N_CLOCKS - 1;
	u64 first = n > LULL_N_CLOCKS ? n - ring : 1;

	lull_vec_init(&c->pairs, sizeof(struct lull_clock_pair));
	c->is_clock = control->is_clock;
	c->tick_hz = control->tick_hz;
	if (n)
		add_pair(c, control->clocks[0]);
	for (u64 i = first; i < n; i++)
		add_pair(c, control->clocks[1 + (i - 1) % ring]);
}

u64 lull_clock_dur_ns(const struct lull_clock *c, u64 ticks)
{
	return lull_u64_of((f64)ticks * 1e9 / (f64)c->tick_hz);
}

u64 lull_clock_ticks(const struct lull_clock *c, u64 dur_ns)
{
	return lull_u64_of((f64)dur_ns * (f64)c->tick_hz / 1e9);
}

/* Index of the first pair whose counter is above the value. */
static size_t upper_bound(const struct lull_clock_pair *p, size_t n, u64 counter)
{
	size_t lo = 0, hi = n;

	/* Events are recent: most lie before the last pair or the one before. */
	if (n > 2 && p[n - 2].counter <= counter)
		return p[n - 1].counter <= counter ? n : n - 1;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (p[mid].counter <= counter)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

u64 lull_clock_ns_of(const struct lull_clock *c, u64 counter)
{
	const struct lull_clock_pair *p = c->pairs.at;
	size_t n = c->pairs.n;
	size_t above;

	if (c->is_clock || !n)
		return counter;
	above = upper_bound(p, n, counter);
	if (above == 0) {
		u64 before_ns = lull_clock_dur_ns(c, p[0].counter - counter);

		return before_ns < p[0].mono_ns ? p[0].mono_ns - before_ns : 0;
	}
	if (above == n)
		return p[n - 1].mono_ns + lull_clock_dur_ns(c, counter - p[n - 1].counter);
	p += above - 1;
	/* Doubles are exact enough: a segment is far shorter than 2^53 ticks. */
	return p->mono_ns +
	       lull_u64_of((f64)(counter - p->counter) * (f64)(p[1].mono_ns - p->mono_ns) /
			   (f64)(p[1].counter - p->counter));
}
