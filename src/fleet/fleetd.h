/*
 * fleetd - has the GPU processes of this host recorded, week after week.
 *
 * Each round: find the processes (fleet_find.h), decide about each by the policy (fleet_policy.h),
 * start a recording for those that are chosen and have none, remove old reports (fleet_keep.h),
 * read new ones (fleet.h), tell metrics (fleet_metrics.h). A recording is a command, `lull attach`,
 * that ends by itself after some minutes; the next round starts another. One that fails is tried
 * again later each time.
 *
 * Time:     rounds follow CLOCK_BOOTTIME, which nobody sets. The age of reports is reckoned from
 *           the wall clock at the start, so that a clock that jumps removes nothing.
 * End:      SIGTERM or SIGINT: recordings are told to end, and are waited for.
 */
#ifndef LULL_FLEET_FLEETD_H
#define LULL_FLEET_FLEETD_H

#include "base/err.h"
#include "base/types.h"
#include "fleet/fleet_policy.h"

struct lull_fleetd_options {
	const char *folder;
	const char *attach; /* words of the command, with {pid}, {output}, {budget}, {seconds} */
	const struct lull_fleet_policy *policy;
	u64 every_ns;		     /* between two rounds */
	u64 report_ns;		     /* what a report covers */
	u64 at_once;		     /* recordings at a time */
	u64 max_bytes, max_age_ns;   /* of the folder; 0: no bound */
	const char *metrics_address; /* NULL: none */
	u16 metrics_port;
	const char *otlp; /* file, or NULL */
	u64 n_rounds;	  /* 0: until a signal comes */
};

/* Run it. Fails if the folder or the port cannot be had; trouble later is said and counted. */
int lull_fleetd_run(const struct lull_fleetd_options *o, struct lull_err *err);

/* The words of the command for a process, NULL at the end; free with lull_fleetd_free_words(). */
char **lull_fleetd_words(const struct lull_fleetd_options *o, const struct lull_fleet_process *p,
			 const struct lull_fleet_rule *rule, u64 now_utc_ns);
void lull_fleetd_free_words(char **words);

#endif
