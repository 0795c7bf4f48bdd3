/*
 * metrics_port - live values of a recording, for Prometheus.
 *
 * What it gives:  GET /metrics in the text format 0.0.4, at an address of this machine.
 * Disturbance:    none: connections are served between two rounds of the recorder without ever
 *                 waiting for a client; at most 8 at a time, each for 5 s and with 16 KiB.
 * Ownership:      lull_metrics_close().
 */
#ifndef LULL_RECORD_LIVE_METRICS_PORT_H
#define LULL_RECORD_LIVE_METRICS_PORT_H

#include "base/err.h"
#include "base/str.h"
#include "record/live/live_devices.h"
#include "record/live/pulse.h"

struct lull_metrics;

/* State of the recorder; filled for each request. */
struct lull_metrics_facts {
	const struct lull_pulse *pulse;
	const struct lull_live_devices *devices; /* NULL: they are not looked at */
	u64 now_ns;
	bool is_recording;
	u64 n_events, n_lost, report_bytes;
	u32 n_reports;
	f64 cpu_s; /* of the recorder */
};

/* Fill the facts. */
typedef void lull_metrics_ask(void *ctx, struct lull_metrics_facts *facts);

/*
 * Understand "[ADDRESS:]PORT"; without an address it is this machine alone. LULL_E_USAGE if it is
 * none.
 */
int lull_metrics_parse(const char *text, char *address, size_t room, u16 *port,
		       struct lull_err *err);

/*
 * Listen there; port 0 is any that is free, and *port says which. LULL_E_IO if the port cannot be
 * had.
 */
int lull_metrics_open(struct lull_metrics **m, const char *address, u16 *port,
		      lull_metrics_ask *ask, void *ctx, struct lull_err *err);

/* Write the text that is served. */
typedef void lull_metrics_tell(void *ctx, struct lull_str *to);

/* The same for any text. */
int lull_metrics_open_text(struct lull_metrics **m, const char *address, u16 *port,
			   lull_metrics_tell *tell, void *ctx, struct lull_err *err);

/* A descriptor that is readable when there is something to do. */
int lull_metrics_fd(const struct lull_metrics *m);

/* Do it; never waits. Also to be called now and then without need, for clients that say nothing. */
void lull_metrics_serve(struct lull_metrics *m);

/* Stop listening and free it; NULL is fine. */
void lull_metrics_close(struct lull_metrics *m);

/* The text itself. */
void lull_metrics_write(const struct lull_metrics_facts *facts, struct lull_str *to);

#endif
