/*
 * feed_metrics - let others ask what the recording says right now.
 */
#include "record/collector_int.h"

#include <stdio.h>

#include "base/time.h"

/* Shares of idle time are those of the last 10 s to 20 s: Prometheus asks every 15 s by default. */
#define SHARES_NS (10 * LULL_NS_PER_S)

/* What the recorder knows of itself, for whoever asks for metrics. */
static void answer_metrics(void *ctx, struct lull_metrics_facts *facts)
{
	struct lull_collector *c = ctx;

	facts->pulse = &c->pulse;
	facts->devices = lull_feed_gpu_live(c);
	facts->now_ns = lull_now_ns();
	facts->is_recording = lull_recording_is_on(&c->recording);
	facts->n_reports = (u32)c->result->reports.n;
	facts->cpu_s = (f64)lull_clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e9;
	if (!facts->is_recording)
		return;
	facts->n_events = c->recording.n_events;
	facts->n_lost = lull_control_losses(c);
	facts->report_bytes = lull_writer_stats(c->recording.writer).size_bytes;
}

int lull_feed_metrics_open(struct lull_collector *c, struct lull_err *err)
{
	const struct lull_collector_options *o = c->options;
	u16 port = o->metrics_port;
	char line[128];

	if (!o->metrics_address)
		return 0;
	if (lull_metrics_open(&c->metrics, o->metrics_address, &port, answer_metrics, c, err))
		return err->code;
	snprintf(line, sizeof(line), "metrics at http://%s:%u/metrics", o->metrics_address, port);
	lull_progress_say(&c->progress, line);
	return 0;
}

void lull_feed_metrics(struct lull_collector *c, u64 now_ns)
{
	if (!c->metrics)
		return;
	lull_metrics_serve(c->metrics);
	if (now_ns - c->turn_ns < SHARES_NS)
		return;
	c->turn_ns = now_ns;
	lull_pulse_turn(&c->pulse);
}
