/*
 * fleet_metrics - what a host's reports and recordings say, for Prometheus and as OTLP.
 *
 * Values of a job are those of its newest report, and sums over the reports that are kept.
 */
#ifndef LULL_FLEET_FLEET_METRICS_H
#define LULL_FLEET_FLEET_METRICS_H

#include "base/err.h"
#include "base/str.h"
#include "fleet/fleet.h"

/* What fleetd knows of itself. */
struct lull_fleet_status {
	u32 n_processes; /* that compute on a device */
	u32 n_running;	 /* recordings */
	u64 n_begun, n_failed, n_removed;
	u64 n_bytes; /* in the folder */
	u64 now_utc_ns;
};

/* In the text format of Prometheus. */
void lull_fleet_metrics_prometheus(const struct lull_fleet *f, const struct lull_fleet_status *s,
				   struct lull_str *to);

/* As one ExportMetricsServiceRequest of OTLP, in JSON. */
int lull_fleet_metrics_otlp(const struct lull_fleet *f, const struct lull_fleet_status *s,
			    const char *path, struct lull_err *err);

#endif
