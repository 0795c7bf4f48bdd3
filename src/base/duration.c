#include "base/duration.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"

static const struct {
	const char *name;
	u64 ns;
} units[] = {
	{ "ns", 1 },
	{ "us", 1000 },
	{ "ms", 1000 * 1000 },
	{ "s", LULL_NS_PER_S },
	{ "m", 60 * LULL_NS_PER_S },
	{ "h", 3600 * LULL_NS_PER_S },
};

/*
 * The ns of the unit at `text`, which is moved past it; 1 at the end of the text, 0 if there is
 * none.
 */
static u64 take_unit(const char **text)
{
	size_t len = 0;

	while (isalpha((unsigned char)(*text)[len]))
		len++;
	if (!len)
		return **text ? 0 : 1;
	for (size_t i = 0; i < LULL_COUNT_OF(units); i++) {
		if (strlen(units[i].name) == len && !memcmp(units[i].name, *text, len)) {
			*text += len;
			return units[i].ns;
		}
	}
	return 0;
}

/* Digits after the point as ns, without the rounding of a double. */
static u64 fraction_ns(const char *digits, u64 unit_ns)
{
	u64 sum = 0;

	for (; isdigit((unsigned char)*digits); digits++) {
		unit_ns /= 10;
		sum += (u64)(*digits - '0') * unit_ns;
	}
	return sum;
}

/* One number with its unit, added to *ns; *text is moved past it. */
static bool take_part(const char **text, u64 *ns)
{
	const char *fraction = "";
	u64 whole = 0, unit_ns, part_ns;

	if (!isdigit((unsigned char)**text))
		return false;
	for (; isdigit((unsigned char)**text); ++*text) {
		if (__builtin_mul_overflow(whole, 10, &whole) ||
		    __builtin_add_overflow(whole, (u64)(**text - '0'), &whole))
			return false;
	}
	if (**text == '.')
		for (fraction = ++*text; isdigit((unsigned char)**text);)
			++*text;
	unit_ns = take_unit(text);
	return unit_ns && !__builtin_mul_overflow(whole, unit_ns, &part_ns) &&
	       !__builtin_add_overflow(part_ns, fraction_ns(fraction, unit_ns), &part_ns) &&
	       !__builtin_add_overflow(*ns, part_ns, ns);
}

int lull_duration_parse(const char *text, u64 *ns, struct lull_err *err)
{
	const char *at = text;
	u64 sum_ns = 0;

	do {
		if (!take_part(&at, &sum_ns))
			return lull_fail(err, LULL_E_USAGE,
					 "\"%s\" is not a time such as 250ms, 1.5s or 1m30s", text);
	} while (*at);
	*ns = sum_ns;
	return LULL_OK;
}

/* So that nanoseconds fit into their numbers. */
#define SECONDS_MAX 1000000000u

int lull_duration_seconds(const char *text, f64 *seconds, struct lull_err *err)
{
	u64 ns = 0;
	char *end;

	*seconds = strtod(text, &end);
	if (end == text || *end || !(*seconds >= 0)) {
		if (lull_duration_parse(text, &ns, err))
			return err->code;
		*seconds = (f64)ns / 1e9;
	}
	if (*seconds > SECONDS_MAX)
		return lull_fail(err, LULL_E_USAGE, "'%s': %u seconds at most", text, SECONDS_MAX);
	return LULL_OK;
}
