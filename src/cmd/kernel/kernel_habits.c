#include "cmd/kernel/kernel_habits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct habit {
	const char *name;
	const char *value;
	const char *sentence;
};

static const struct habit habits[] = {
#define HABIT(name, value, sentence) { name, value, sentence },
#include "cmd/kernel/habits.def"
#undef HABIT
};

static int on_habit(void *ctx, const char *value, struct lull_err *err)
{
	const struct habit *habit = ctx;

	(void)value;
	if (!habit->sentence)
		return LULL_OK;
	return lull_fail(err, LULL_E_USAGE, "not known here; %s", habit->sentence);
}

/* Launches are measured from the start, or a range is. */
static int on_from_start(void *ctx, const char *value, struct lull_err *err)
{
	struct lull_err ignored;
	bool is_on = true;

	(void)ctx;
	if (!lull_opt_parse_bool(value, &is_on, &ignored) && is_on)
		return LULL_OK;
	return lull_fail(err, LULL_E_USAGE,
			 "'%s': use --replay range, which measures from "
			 "cudaProfilerStart() to cudaProfilerStop() as one, or choose launches "
			 "with --nvtx-include",
			 value);
}

/* Names are those of functions; anything else is an expression over the whole name. */
static int on_name_base(void *ctx, const char *value, struct lull_err *err)
{
	(void)ctx;
	return strcmp(value, "function") == 0
		       ? LULL_OK
		       : lull_fail(err, LULL_E_USAGE,
				   "'%s': use --kernel-name regex:EXPR, which "
				   "looks at the whole name",
				   value);
}

static int bad_id(const char *id, struct lull_err *err)
{
	return lull_fail(err, LULL_E_USAGE,
			 "'%s': write ::NAME:N for launch N of a kernel, with "
			 "regex:EXPR as NAME if needed; contexts and streams cannot be chosen",
			 id);
}

/* CONTEXT:STREAM:[regex:]NAME:INVOCATION; the name may have colons of its own. */
static int on_kernel_id(void *ctx, const char *id, struct lull_err *err)
{
	struct lull_kernel_collect *k = ctx;
	const char *last = strrchr(id, ':');
	u64 n = 0;
	char *end;

	if (strncmp(id, "::", 2) != 0 || last < id + 2)
		return bad_id(id, err);
	errno = 0;
	if (last[1]) {
		n = strtoull(last + 1, &end, 10);
		if (*end || errno || !n || last[1] == '-')
			return bad_id(id, err);
		k->skip = n - 1;
		k->count = 1;
	}
	free(k->id_name);
	k->id_name = lull_strndup(id + 2, (size_t)(last - id - 2));
	k->kernel_name = *k->id_name ? k->id_name : NULL;
	return LULL_OK;
}

size_t lull_kernel_habits(struct lull_kernel_collect *k, struct lull_opt *to, size_t room)
{
	const struct lull_opt own[] = {
		OPT_CALL(0, "profile-from-start", "yes|no", on_from_start, NULL, NULL),
		OPT_CALL(0, "kernel-name-base", "NAME", on_name_base, NULL, NULL),
	};
	size_t n = 0;

	for (; n < LULL_COUNT_OF(own) && n < room; n++)
		to[n] = own[n];
	for (size_t i = 0; i < LULL_COUNT_OF(habits) && n < room; i++)
		to[n++] = (struct lull_opt)OPT_CALL(0, habits[i].name, habits[i].value, on_habit,
						    (void *)&habits[i], NULL);
	if (n < room)
		to[n++] = (struct lull_opt)OPT_CALL(0, "kernel-id", "::NAME:N", on_kernel_id, k,
						    NULL);
	return n;
}
