/*
 * tour - a program with known phases, for the tests of sessions and of what is recorded when.
 *
 *	tour beat UNTIL CODE	until then: range "work" with mark "beat" inside, and again; "end"
 *	tour takes N CODE	N times: mark "outside", range "take" with mark "inside"; 0: no end
 *	tour domains N CODE	the same with NVTX ranges "take" in the domains "left" and "right"
 *	tour flood UNTIL CODE	ranges, marks and reads of a pipe, as fast as a paced thread can
 *	tour leaf NAME CODE	mark NAME, then end
 *
 * UNTIL is a number of beats or drops; or "recorded", so many of them that a recording has; "over",
 * when the session has recorded its last; "gone:PID", when that process has ended; "never"; or a
 * path: when there is such a file. Beats and drops are counted (support/guest.h).
 *
 * Each prints one line when it is done, and returns CODE.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lull.h"
#include "support/guest.h"
#include "support/nvtx_instance.h"

#define N_RECORDED 50 /* beats that are enough to look at */

static bool is_then(const char *until)
{
	const struct guest_counts *counts = guest_counts();

	if (*until >= '0' && *until <= '9')
		return atomic_load(&counts->n_emitted) >= strtoull(until, NULL, 10);
	if (strcmp(until, "recorded") == 0)
		return atomic_load(&counts->n_heard) >= N_RECORDED;
	if (strcmp(until, "over") == 0)
		return guest_is_over();
	if (strncmp(until, "gone:", 5) == 0)
		return kill((pid_t)atoi(until + 5), 0) != 0;
	return strcmp(until, "never") != 0 && access(until, F_OK) == 0;
}

static void beat(const char *until)
{
	struct guest_counts *counts = guest_counts();

	while (!is_then(until)) {
		bool is_heard = lull_is_recording();

		lull_push("work");
		lull_mark_value("beat", atomic_load(&counts->n_emitted));
		lull_pop();
		/* A recording was on before and after, which is the same one: they are slow. */
		if (is_heard && lull_is_recording())
			atomic_fetch_add(&counts->n_heard, 1);
		atomic_fetch_add(&counts->n_emitted, 1);
		usleep(1000);
	}
	lull_mark("end");
	puts("beat is over");
	atomic_store(&counts->is_done, 1);
}

static void takes(const char *count)
{
	unsigned long long n = strtoull(count, NULL, 10);

	for (unsigned long long i = 0; !n || i < n; i++) {
		guest_wait_for_recorder();
		lull_mark("outside");
		lull_push("take");
		lull_mark_value("inside", i);
		usleep(2000);
		lull_pop();
		lull_mark("outside");
	}
	puts("takes are over");
}

static void take_in(const struct lull_nvtx_calls *nvtx, const char *name)
{
	struct lull_nvtx_event e = {
		.version = LULL_NVTX_VERSION,
		.size_bytes = sizeof(e),
		.message_type = LULL_NVTX_MESSAGE_ASCII,
		.message = "take",
	};
	struct lull_nvtx_domain *domain = nvtx->domain_create_a(name);
	char inside[32];

	snprintf(inside, sizeof(inside), "inside %s", name);
	guest_wait_for_recorder();
	nvtx->domain_range_push_ex(domain, &e);
	nvtx->mark_a(inside);
	usleep(2000);
	nvtx->domain_range_pop(domain);
}

static void domains(const char *count)
{
	static struct nvtx_instance nvtx;

	if (!nvtx_instance_load(&nvtx)) {
		puts("no tool");
		return;
	}
	for (int i = 0; i < atoi(count); i++) {
		take_in(&nvtx.calls, "left");
		take_in(&nvtx.calls, "right");
	}
	puts("domains are over");
}

static void flood(const char *until)
{
	struct guest_counts *counts = guest_counts();
	unsigned long long n = 0;
	int ends[2];
	char byte = 0;

	if (pipe(ends) != 0)
		return;
	while (!is_then(until)) {
		for (int i = 0; i < 100; i++) {
			lull_push("flood");
			lull_mark_value("drop", n++);
			lull_pop();
		}
		atomic_store(&counts->n_emitted, n);
		if (write(ends[1], &byte, 1) != 1 || read(ends[0], &byte, 1) != 1)
			return;
		usleep(100);
	}
	printf("flood is over: %llu\n", n);
	atomic_store(&counts->is_done, 1);
}

static void leaf(const char *name)
{
	lull_mark(name);
	puts(name);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(const char *arg);
	} parts[] = {
		{ "beat", beat },   { "takes", takes }, { "domains", domains },
		{ "flood", flood }, { "leaf", leaf },
	};

	guest_set_limit();
	for (size_t i = 0; argc > 3 && i < LULL_COUNT_OF(parts); i++) {
		if (strcmp(argv[1], parts[i].name) == 0) {
			parts[i].run(argv[2]);
			return atoi(argv[3]);
		}
	}
	return 2;
}
