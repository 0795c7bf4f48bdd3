/*
 * tour - a program with known phases, for the tests of sessions and of what is recorded when.
 *
 *	tour beat MS CODE	until MS have passed, every ms: range "work" with mark "beat" inside
 *	tour takes N CODE	N times: mark "outside", range "take" with mark "inside"
 *	tour domains N CODE	the same with NVTX ranges "take" in the domains "left" and "right"
 *	tour flood MS CODE	ranges, marks and reads of a pipe, as fast as a paced thread can
 *	tour leaf NAME CODE	mark NAME, then end
 *
 * Each prints one line when it is done, and returns CODE.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/time.h"
#include "lull.h"
#include "support/nvtx_instance.h"

/* Reports follow one another only if the recorder has time to close one, and disks are slow. */
#define BETWEEN_TAKES_US 300000

static void beat(const char *ms)
{
	u64 end_ns = lull_now_ns() + strtoull(ms, NULL, 10) * 1000000;
	unsigned long long n = 0;

	while (lull_now_ns() < end_ns) {
		lull_push("work");
		lull_mark_value("beat", n++);
		lull_pop();
		usleep(1000);
	}
	puts("beat is over");
}

static void takes(const char *count)
{
	for (unsigned long long i = 0; i < strtoull(count, NULL, 10); i++) {
		lull_mark("outside");
		lull_push("take");
		lull_mark_value("inside", i);
		usleep(2000);
		lull_pop();
		lull_mark("outside");
		usleep(BETWEEN_TAKES_US);
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
	nvtx->domain_range_push_ex(domain, &e);
	nvtx->mark_a(inside);
	usleep(2000);
	nvtx->domain_range_pop(domain);
	usleep(BETWEEN_TAKES_US);
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

static void flood(const char *ms)
{
	u64 end_ns = lull_now_ns() + strtoull(ms, NULL, 10) * 1000000;
	unsigned long long n = 0;
	int ends[2];
	char byte = 0;

	if (pipe(ends) != 0)
		return;
	while (lull_now_ns() < end_ns) {
		for (int i = 0; i < 100; i++) {
			lull_push("flood");
			lull_mark_value("drop", n++);
			lull_pop();
		}
		if (write(ends[1], &byte, 1) != 1 || read(ends[0], &byte, 1) != 1)
			return;
		usleep(100);
	}
	printf("flood is over: %llu\n", n);
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

	for (size_t i = 0; argc > 3 && i < LULL_COUNT_OF(parts); i++) {
		if (strcmp(argv[1], parts[i].name) == 0) {
			parts[i].run(argv[2]);
			return atoi(argv[3]);
		}
	}
	return 2;
}
