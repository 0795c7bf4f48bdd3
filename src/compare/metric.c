#include "compare/metric.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/convert.h"
#include "base/mem.h"
#include "text/term.h"
#include "text/nearest.h"
#include "model/span.h"

#define METRIC(name) extern const struct lull_metric lull_metric_##name;
#include "compare/metrics.def"
#undef METRIC

const struct lull_metric *const lull_metrics[] = {
#define METRIC(name) &lull_metric_##name,
#include "compare/metrics.def"
#undef METRIC
	NULL,
};

static bool is_called(const char *known, const char *name, size_t len)
{
	return known && strlen(known) == len && strncmp(known, name, len) == 0;
}

static const struct lull_metric *find(const char *name, size_t len)
{
	for (const struct lull_metric *const *m = lull_metrics; *m; m++)
		if (is_called((*m)->name, name, len) || is_called((*m)->alias, name, len))
			return *m;
	return NULL;
}

static int unknown(const char *spec, size_t len, struct lull_err *err)
{
	char *name = lull_strndup(spec, len);
	struct lull_nearest near = { .word = name };

	for (const struct lull_metric *const *m = lull_metrics; *m; m++)
		lull_nearest_add(&near, (*m)->name);
	lull_fail(err, LULL_E_USAGE, "unknown metric '%s'; %s%s", name,
		  near.best ? "did you mean " : "lull gate --list names them",
		  near.best ? near.best : "");
	free(name);
	return LULL_E_USAGE;
}

int lull_metric_find(const char *spec, const struct lull_metric **metric, const char **arg,
		     struct lull_err *err)
{
	size_t len = strcspn(spec, ":");

	*arg = spec[len] ? spec + len + 1 : NULL;
	*metric = find(spec, len);
	if (!*metric)
		return unknown(spec, len, err);
	if ((*metric)->arg && (!*arg || !**arg))
		return lull_fail(err, LULL_E_USAGE, "metric '%s' needs a name: %s:%s",
				 (*metric)->name, (*metric)->name, (*metric)->arg);
	if (!(*metric)->arg && *arg)
		return lull_fail(err, LULL_E_USAGE, "metric '%s' takes no argument after a colon",
				 (*metric)->name);
	return LULL_OK;
}

int lull_metric_sample(const struct lull_metric *metric, const char *arg, struct lull_reader *r,
		       const struct lull_windows *windows, struct lull_samples *to,
		       struct lull_err *err)
{
	const struct lull_vec *spans = metric->is_of_host ? &windows->host : &windows->device;
	f64 *value;
	int rc;

	if (metric->sample) {
		rc = metric->sample(r, to, err);
		lull_samples_end_run(to);
		return rc;
	}
	value = lull_alloc(spans->n + 1, sizeof(*value));
	memset(value, 0, (spans->n + 1) * sizeof(*value));
	rc = metric->measure(r, spans, arg, value, err);
	for (size_t i = 0; !rc && i < spans->n; i++)
		lull_samples_add(to, value[i]);
	lull_samples_end_run(to);
	free(value);
	return rc;
}

size_t lull_metric_window(const struct lull_vec *windows, u64 at_ns)
{
	size_t n = lull_vec_upper(windows, offsetof(struct lull_span, from_ns), at_ns);
	const struct lull_span *at = windows->at;

	return n && at_ns < at[n - 1].to_ns ? n - 1 : SIZE_MAX;
}

void lull_metric_value(const struct lull_metric *metric, f64 value, char *to, size_t cap_bytes)
{
	switch (metric->kind) {
	case LULL_OUT_NS:
		snprintf(to, cap_bytes, "%s", lull_format_ns(lull_u64_of(round(value))).text);
		break;
	case LULL_OUT_BYTES:
		snprintf(to, cap_bytes, "%s", lull_format_bytes(lull_u64_of(round(value))).text);
		break;
	case LULL_OUT_PERCENT:
		snprintf(to, cap_bytes, "%.1f %%", 100 * value);
		break;
	default:
		snprintf(to, cap_bytes, "%.6g%s%s", value, metric->unit ? " " : "",
			 metric->unit ? metric->unit : "");
		break;
	}
}
