#include "compare/bound.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct unit {
	enum lull_out_kind kind;
	const char *name;
	f64 factor;
};

static const struct unit units[] = {
	{ LULL_OUT_NS, "ns", 1 },
	{ LULL_OUT_NS, "us", 1e3 },
	{ LULL_OUT_NS, "µs", 1e3 },
	{ LULL_OUT_NS, "ms", 1e6 },
	{ LULL_OUT_NS, "s", 1e9 },
	{ LULL_OUT_BYTES, "B", 1 },
	{ LULL_OUT_BYTES, "KB", 1e3 },
	{ LULL_OUT_BYTES, "MB", 1e6 },
	{ LULL_OUT_BYTES, "GB", 1e9 },
	{ LULL_OUT_BYTES, "KiB", 1024 },
	{ LULL_OUT_BYTES, "MiB", 1024.0 * 1024 },
	{ LULL_OUT_BYTES, "GiB", 1024.0 * 1024 * 1024 },
	{ LULL_OUT_PERCENT, "%", 0.01 },
	{ LULL_OUT_FLOAT, "J", 1 },
	{ LULL_OUT_FLOAT, "mJ", 1e-3 },
};

/* What to write instead, by the kind of the metric. */
static const char *wanted(const struct lull_metric *metric)
{
	switch (metric->kind) {
	case LULL_OUT_NS:
		return "ns, us, ms or s";
	case LULL_OUT_BYTES:
		return "B, KB, MB, GB, KiB, MiB or GiB";
	case LULL_OUT_PERCENT:
		return "%";
	default:
		return metric->unit ? "J or mJ" : "no unit";
	}
}

static size_t trimmed(const char *text, size_t len)
{
	while (len && isspace((unsigned char)text[len - 1]))
		len--;
	return len;
}

int lull_bound_split(const char *text, struct lull_bound_text *parts, struct lull_err *err)
{
	const char *sign = strrchr(text, '<');
	size_t off;

	*parts = (struct lull_bound_text){ .text = text };
	if (!sign)
		return lull_fail(err, LULL_E_USAGE,
				 "'%s': there is no <; write METRIC < NUMBER UNIT, such as "
				 "'step < 40 ms'",
				 text);
	parts->spec_off = strspn(text, " \t");
	parts->is_inclusive = sign[1] == '=';
	off = (size_t)(sign - text);
	if (parts->spec_off >= off)
		return lull_fail(err, LULL_E_USAGE,
				 "'%s': there is no metric before < (character %zu)", text,
				 off + 1);
	parts->spec_len = trimmed(text + parts->spec_off, off - parts->spec_off);
	parts->limit_off = off + 1 + parts->is_inclusive;
	parts->limit_off += strspn(text + parts->limit_off, " \t");
	if (!text[parts->limit_off])
		return lull_fail(err, LULL_E_USAGE,
				 "'%s': there is no number after < (character %zu)", text, off + 1);
	return LULL_OK;
}

/* The factor of the unit at `off`; LULL_E_USAGE if the metric has no such unit. */
static int find_unit(const struct lull_bound_text *parts, const struct lull_metric *metric,
		     size_t off, f64 *factor, struct lull_err *err)
{
	const char *name = parts->text + off;
	size_t len = trimmed(name, strlen(name));
	bool is_plain = metric->kind == LULL_OUT_INT || (metric->kind == LULL_OUT_FLOAT && !len);

	*factor = 1;
	if (is_plain && !len)
		return LULL_OK;
	for (size_t i = 0; len && i < LULL_COUNT_OF(units); i++)
		if (units[i].kind == metric->kind && strlen(units[i].name) == len &&
		    strncmp(units[i].name, name, len) == 0 &&
		    (metric->kind != LULL_OUT_FLOAT || metric->unit)) {
			*factor = units[i].factor;
			return LULL_OK;
		}
	if (!len)
		return lull_fail(err, LULL_E_USAGE,
				 "'%s': the number has no unit (character %zu); %s takes %s",
				 parts->text, off + 1, metric->name, wanted(metric));
	return lull_fail(err, LULL_E_USAGE,
			 "'%s': '%.*s' (character %zu) is not a unit here; %s takes %s",
			 parts->text, (int)len, name, off + 1, metric->name, wanted(metric));
}

int lull_bound_limit(const struct lull_bound_text *parts, const struct lull_metric *metric,
		     f64 *limit, struct lull_err *err)
{
	const char *number = parts->text + parts->limit_off;
	char *end;
	f64 value = strtod(number, &end), factor;

	if (end == number || !isfinite(value))
		return lull_fail(err, LULL_E_USAGE, "'%s': '%s' (character %zu) is not a number",
				 parts->text, number, parts->limit_off + 1);
	if (value < 0)
		return lull_fail(err, LULL_E_USAGE, "'%s': no value is below %s (character %zu)",
				 parts->text, number, parts->limit_off + 1);
	end += strspn(end, " \t");
	if (find_unit(parts, metric, (size_t)(end - parts->text), &factor, err))
		return err->code;
	*limit = value * factor;
	return LULL_OK;
}
