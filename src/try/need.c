#include "try/need.h"

#include <string.h>

#include "cause/why.h"

static bool has_collectives(const struct lull_why *why)
{
	for (u32 i = 0; i < why->n_subjects; i++) {
		const struct lull_units *units = &why->subjects[i].units;

		for (u32 n = 0; n < units->n; n++)
			if (units->at[n].kind == LULL_UNIT_COLLECTIVE)
				return true;
	}
	return false;
}

static bool has_streams(const struct lull_why *why)
{
	for (u32 i = 0; i < why->n_subjects; i++)
		if (why->subjects[i].units.lanes.n > 1)
			return true;
	return false;
}

static bool has_pytorch(const struct lull_why *why)
{
	return lull_subject_is_torch(why->lead);
}

static const struct lull_need needs[] = {
	{ "collectives", "the recording has no collectives", has_collectives },
	{ "streams", "the program uses one stream", has_streams },
	{ "pytorch", "the program does not use PyTorch", has_pytorch },
};

const struct lull_need *lull_need_find(const char *name)
{
	for (size_t i = 0; i < LULL_COUNT_OF(needs); i++)
		if (strcmp(needs[i].name, name) == 0)
			return &needs[i];
	return NULL;
}
