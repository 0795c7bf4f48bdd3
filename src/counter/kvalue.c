#include "counter/kvalue.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "text/term.h"
#include "counter/profile.h"

const struct lull_k_info lull_k_infos[] = {
#define KMETRIC(key, unit, meaning, ...) { #key, unit, meaning, NULL },
#include "counter/kmetrics.def"
#undef KMETRIC
#define KVALUE(key, unit, meaning, formula) { #key, unit, meaning, #formula },
#include "counter/kvalues.def"
#undef KVALUE
};

int lull_k_find(const char *key)
{
	for (int i = 0; i < LULL_N_KMETRICS; i++)
		if (strcmp(lull_k_infos[i].key, key) == 0)
			return i;
	return -1;
}

/* ---- formulas ---- */

static f64 or0(f64 value)
{
	return isnan(value) ? 0 : value;
}

static f64 ratio(f64 a, f64 b)
{
	return b != 0 ? a / b : NAN;
}

/* 0 in a column of the report means not known. */
static f64 known(f64 value)
{
	return value > 0 ? value : NAN;
}

/*
 * Values use each other, and the lists are in no order; a cycle would be a bug of the list, which
 * the test of all values finds.
 */
static f64 compute(const struct lull_profile *p, enum lull_k k)
{
#define M(key)		 lull_k_of(p, LULL_K_##key)
#define OR0(key)	 or0(M(key))
#define RATIO(a, b)	 ratio(a, b)
#define KNOWN(x)	 known(x)
#define MOST(a, b)	 fmax(a, b)
#define PER_SECOND(x)	 ratio(1e9 * (x), (f64)p->dur_ns)
#define LAUNCH(column)	 (p->launch.column)
#define DEVICE(column)	 (p->device.column)
#define OCCUPANCY(field) (p->has_occupancy ? (f64)p->occupancy.field : NAN)
#define AT_MOST		 (p->is_at_most)
	switch (k) {
#define KVALUE(key, unit, meaning, formula) \
	case LULL_K_##key:                  \
		return formula;
#include "counter/kvalues.def"
#undef KVALUE
	default:
		return NAN;
	}
#undef M
#undef OR0
#undef RATIO
#undef KNOWN
#undef MOST
#undef PER_SECOND
#undef LAUNCH
#undef DEVICE
#undef OCCUPANCY
#undef AT_MOST
}

f64 lull_k_of(const struct lull_profile *p, enum lull_k k)
{
	return k < LULL_N_KMETRICS ? p->metrics[k] : compute(p, k);
}

/* ---- for people ---- */

/* 3.91 T; decimal, as vendors state peaks. */
static void scaled(char *to, size_t size, f64 value, const char *unit)
{
	static const char steps[] = " kMGTPE";
	size_t step = 0;

	while (fabs(value) >= 999.5 && step + 2 < sizeof(steps)) {
		value /= 1000;
		step++;
	}
	snprintf(to, size, "%.*f %.*s%s",
		 fabs(value) >= 99.95 || (!step && value == floor(value)) ? 0
		 : fabs(value) >= 9.995					  ? 1
									  : 2,
		 value, step ? 1 : 0, &steps[step], unit);
	if (!*unit && !step)
		to[strlen(to) - 1] = 0;
}

i64 lull_k_whole(f64 value)
{
	if (isnan(value))
		return 0;
	return (i64)fmin(9e18, fmax(-9e18, value));
}

struct lull_k_text lull_k_format(f64 value, const char *unit)
{
	struct lull_k_text t;

	if (isnan(value))
		snprintf(t.text, sizeof(t.text), "not measured");
	else if (strcmp(unit, "%") == 0)
		snprintf(t.text, sizeof(t.text), "%.1f %%", value);
	else if (strcmp(unit, "ns") == 0)
		snprintf(t.text, sizeof(t.text), "%s",
			 lull_format_ns((u64)lull_k_whole(fmax(0, value))).text);
	else if (strcmp(unit, "ratio") == 0 || strcmp(unit, "/cycle") == 0 || !*unit)
		snprintf(t.text, sizeof(t.text), "%.2f", value);
	else if (strcmp(unit, "count") == 0 && fabs(value) < 1e6 && value == floor(value))
		snprintf(t.text, sizeof(t.text), "%s",
			 lull_format_grouped(lull_k_whole(value)).text);
	else if (strcmp(unit, "count") == 0)
		scaled(t.text, sizeof(t.text), value, "");
	else
		scaled(t.text, sizeof(t.text), value, unit);
	return t;
}

struct lull_k_text lull_k_text(const struct lull_profile *p, enum lull_k k)
{
	return lull_k_format(lull_k_of(p, k), lull_k_infos[k].unit);
}
