#include "cmd/record/record_steps.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* More steps than anybody has. */
#define STEPS_MAX 1000000000ul

int lull_record_pytorch(const struct lull_vec *words, u32 *sources, struct lull_err *err)
{
	static const struct {
		const char *name;
		u32 source;
	} known[] = {
		{ "auto", LULL_SOURCE_TORCH },
		{ "steps", LULL_SOURCE_TORCH },
		{ "ops", LULL_SOURCE_TORCH | LULL_SOURCE_TORCH_OPS | LULL_SOURCE_TORCH_MEMORY },
		{ "modules", LULL_SOURCE_TORCH | LULL_SOURCE_TORCH_MODULES },
		{ "none", 0 },
		/* As scripts for other profilers have them. */
		{ "autograd-nvtx", LULL_SOURCE_TORCH | LULL_SOURCE_TORCH_OPS },
		{ "autograd-shapes-nvtx", LULL_SOURCE_TORCH | LULL_SOURCE_TORCH_OPS },
		{ "functions-trace", LULL_SOURCE_TORCH | LULL_SOURCE_TORCH_OPS },
	};
	char **at = words->at;

	if (!words->n)
		*sources |= LULL_SOURCE_TORCH;
	for (size_t i = 0; i < words->n; i++) {
		size_t k = 0;

		while (k < LULL_COUNT_OF(known) && strcmp(at[i], known[k].name) != 0)
			k++;
		if (k == LULL_COUNT_OF(known))
			return lull_fail(err, LULL_E_USAGE,
					 "--pytorch: '%s' is not known; choose among auto, none, "
					 "steps, ops, modules",
					 at[i]);
		*sources |= known[k].source;
	}
	return 0;
}

static int take_number(const char *value, size_t len, u32 *to)
{
	char digits[12] = "", *end;
	unsigned long n;

	if (!len || len >= sizeof(digits))
		return -1;
	memcpy(digits, value, len);
	n = strtoul(digits, &end, 10);
	if (*end || digits[0] == '-' || digits[0] == '+' || n > STEPS_MAX)
		return -1;
	*to = (u32)n;
	return 0;
}

static int take_pair(const char *pair, size_t len, struct lull_schedule *s)
{
	const struct {
		const char *name;
		u32 *to;
	} names[] = { { "skip=", &s->skip_first }, { "skip_first=", &s->skip_first },
		      { "wait=", &s->wait },	   { "warmup=", &s->warmup },
		      { "active=", &s->active },   { "repeat=", &s->repeat } };

	for (size_t i = 0; i < LULL_COUNT_OF(names); i++) {
		size_t n = strlen(names[i].name);

		if (len > n && strncmp(pair, names[i].name, n) == 0)
			return take_number(pair + n, len - n, names[i].to);
	}
	return -1;
}

int lull_record_steps(const char *text, struct lull_schedule *s, struct lull_err *err)
{
	*s = (struct lull_schedule){ .active = 1 };
	for (const char *at = text; *at;) {
		size_t len = strcspn(at, ",");

		if (take_pair(at, len, s))
			return lull_fail(err, LULL_E_USAGE,
					 "--steps: '%.*s' is not understood; write it like "
					 "skip=5,wait=1,warmup=1,active=3,repeat=1",
					 (int)len, at);
		at += len + (at[len] == ',');
	}
	if (!s->active)
		return lull_fail(
			err, LULL_E_USAGE,
			"--steps: active is the number of steps to record and cannot be 0");
	if (s->repeat != 1 && s->wait + s->warmup == 0)
		return lull_fail(
			err, LULL_E_USAGE,
			"--steps: rounds that repeat need a step of wait or warmup between "
			"them; add wait=1, or repeat=1 for one round");
	return 0;
}
