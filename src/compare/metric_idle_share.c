/*
 * idle_share: the part of a step in which a device had no work, over the devices that work at all.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "compare/metric.h"
#include "model/busy.h"

struct sums {
	const struct lull_vec *windows;
	f64 *busy_ns; /* per window */
	bool *is_seen;
	size_t n_tracks;
};

/* A piece may reach over several windows. */
static void visit(void *ctx, const struct lull_busy_piece *piece)
{
	struct sums *sums = ctx;
	const struct lull_span *at = sums->windows->at;
	size_t i = lull_vec_upper(sums->windows, offsetof(struct lull_span, from_ns),
				  piece->span.from_ns);

	if (!piece->running)
		return;
	if (!sums->is_seen[piece->track]) {
		sums->is_seen[piece->track] = true;
		sums->n_tracks++;
	}
	for (i = i ? i - 1 : 0; i < sums->windows->n && at[i].from_ns < piece->span.to_ns; i++) {
		struct lull_span part = lull_span_cut(piece->span, at[i].from_ns, at[i].to_ns);

		sums->busy_ns[i] += (f64)(part.to_ns - part.from_ns);
	}
}

static int measure(struct lull_reader *r, const struct lull_vec *windows, const char *arg,
		   f64 *value, struct lull_err *err)
{
	u32 *tracks = lull_busy_devices(r);
	size_t n_devices = lull_reader_n_dim(r, LULL_TABLE_device);
	struct sums sums = { windows, value, calloc(n_devices + 1, 1), 0 };
	const struct lull_span *at = windows->at;

	(void)arg;
	if (sums.is_seen)
		lull_busy_run(r, tracks, LULL_SPAN_ALL, visit, &sums);
	free(tracks);
	free(sums.is_seen);
	if (!sums.n_tracks)
		return lull_fail(err, LULL_E_NOT_FOUND, "no device did any work");
	for (size_t i = 0; i < windows->n; i++) {
		f64 wall = (f64)(at[i].to_ns - at[i].from_ns) * (f64)sums.n_tracks;

		value[i] = wall > 0 ? 1 - value[i] / wall : 0;
	}
	return LULL_OK;
}

const struct lull_metric lull_metric_idle_share = {
	.name = "idle_share",
	.alias = "idle",
	.summary = "share of a step in which a device had no work",
	.kind = LULL_OUT_PERCENT,
	.is_share = true,
	.is_means = true,
	.measure = measure,
};
