/*
 * feed_gpu - what the sampler of devices tells becomes rows of `metric`, `device` and `counter`.
 */
#include "record/collector_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "record/gpu/gpu_sampler.h"

/* What each metric is. */
#define METRIC(id, name, unit, source, meaning) { #name, unit, source, meaning },
static const struct {
	const char *name, *unit, *source, *meaning;
} metrics[] = {
#include "record/live/metrics.def"
};
#undef METRIC

struct lull_gpu_feed {
	struct lull_gpu_sampler sampler;
	u32 n_records; /* the report that the row ids below are of */
	u32 metric_rows[LULL_N_METRICS];
	u32 device_rows[LULL_MAX_GPUS];
	struct lull_gpu_facts devices[LULL_MAX_GPUS];
	struct lull_live_devices live; /* for --metrics-port */
	char refusal[256]; /* why counters are not there, "" if they are, or nobody asked */
	u64 n_lost;
	size_t n_bytes; /* in the buffer */
	u8 bytes[1 << 16];
};

static u32 metric_row(struct lull_recording *r, struct lull_gpu_feed *g, u32 metric)
{
	struct lull_metric_row row;

	if (g->metric_rows[metric])
		return g->metric_rows[metric];
	row = (struct lull_metric_row){
		.name = lull_recording_text(r, metrics[metric].name),
		.unit = lull_recording_text(r, metrics[metric].unit),
		.source = lull_recording_text(r, metrics[metric].source),
		.meaning = lull_recording_text(r, metrics[metric].meaning),
	};
	g->metric_rows[metric] = lull_writer_add_dim(r->writer, LULL_TABLE_metric, &row);
	return g->metric_rows[metric];
}

static u32 device_row(struct lull_recording *r, struct lull_gpu_feed *g, u32 ix)
{
	const struct lull_gpu_facts *facts = &g->devices[ix];
	struct lull_device_row row;

	if (g->device_rows[ix])
		return g->device_rows[ix];
	row = (struct lull_device_row){
		.device_id = ix,
		.name = lull_recording_text(r, facts->name),
		.uuid = lull_recording_text(r, facts->uuid),
		.memory_bytes = facts->memory_bytes,
		.is_simulated = strstr(facts->name, "Simulated") != NULL,
	};
	g->device_rows[ix] = lull_writer_add_dim(r->writer, LULL_TABLE_device, &row);
	return g->device_rows[ix];
}

/* What --metrics-port tells, whether or not a recording is on. */
static void add_live(struct lull_gpu_feed *g, const struct lull_gpu_message *m, const u8 *body)
{
	struct lull_gpu_value v;

	for (u32 off = 0; off + sizeof(v) <= m->size_bytes; off += sizeof(v)) {
		memcpy(&v, body + off, sizeof(v));
		lull_live_add(&g->live, m->device_ix, v.metric, m->time_ns, v.value);
	}
}

static void add_values(struct lull_collector *c, const struct lull_gpu_message *m, const u8 *body)
{
	struct lull_recording *r = &c->recording;
	struct lull_gpu_feed *g = c->gpu;
	struct lull_gpu_value v;

	if (!lull_recording_is_on(r) || lull_feed_duty_is_paused(c) ||
	    m->device_ix >= LULL_MAX_GPUS || m->time_ns < r->epoch_ns)
		return;
	/* Another report: its rows are to be written again. */
	if (g->n_records != c->n_records) {
		memset(g->metric_rows, 0, sizeof(g->metric_rows));
		memset(g->device_rows, 0, sizeof(g->device_rows));
		g->n_records = c->n_records;
	}
	for (u32 off = 0; off + sizeof(v) <= m->size_bytes; off += sizeof(v)) {
		struct lull_counter_row row = { .start_ns = lull_recording_ns(r, m->time_ns) };

		memcpy(&v, body + off, sizeof(v));
		if (v.metric >= LULL_N_METRICS)
			continue;
		row.metric = metric_row(r, g, v.metric);
		row.device = device_row(r, g, m->device_ix);
		row.value = v.value;
		lull_recording_add(r, LULL_TABLE_counter, &row);
	}
}

static void on_message(struct lull_collector *c, const struct lull_gpu_message *m, const u8 *body)
{
	struct lull_gpu_feed *g = c->gpu;
	u64 n = 0;

	switch (m->kind) {
	case LULL_GPU_DEVICE:
		if (m->device_ix >= LULL_MAX_GPUS || m->size_bytes != sizeof(g->devices[0]))
			break;
		memcpy(&g->devices[m->device_ix], body, sizeof(g->devices[0]));
		lull_live_announce(&g->live, m->device_ix, &g->devices[m->device_ix]);
		break;
	case LULL_GPU_VALUES:
		if (c->options->metrics_address)
			add_live(g, m, body);
		add_values(c, m, body);
		break;
	case LULL_GPU_ABSENT:
		/* Nobody asked for it by name: a machine without a device is no trouble. */
		if (!c->options->is_gpu_wanted)
			break;
		/* fall through */
	case LULL_GPU_REFUSED:
		snprintf(g->refusal, sizeof(g->refusal), "%.*s", (int)m->size_bytes,
			 (const char *)body);
		break;
	case LULL_GPU_LOST:
		memcpy(&n, body, m->size_bytes < sizeof(n) ? m->size_bytes : sizeof(n));
		g->n_lost += n;
		break;
	}
}

static void take_messages(struct lull_collector *c)
{
	struct lull_gpu_feed *g = c->gpu;
	struct lull_gpu_message m;
	size_t off = 0;

	while (g->n_bytes - off >= sizeof(m)) {
		memcpy(&m, g->bytes + off, sizeof(m));
		if (m.size_bytes > LULL_GPU_MESSAGE_MAX) { /* it lost its way */
			g->n_bytes = 0;
			return;
		}
		if (g->n_bytes - off < sizeof(m) + m.size_bytes)
			break;
		on_message(c, &m, g->bytes + off + sizeof(m));
		off += sizeof(m) + m.size_bytes;
	}
	memmove(g->bytes, g->bytes + off, g->n_bytes - off);
	g->n_bytes -= off;
}

void lull_feed_gpu_open(struct lull_collector *c)
{
	const struct lull_collector_options *o = c->options;
	struct lull_gpu_sampler_options options = { o->gpu_devices, o->gpu_rate_hz,
						    o->metrics_address != NULL };
	struct lull_gpu_sampler sampler;
	struct lull_err err;

	if (!o->is_gpu_sampled || (!o->is_gpu_wanted && !lull_gpu_is_likely()))
		return;
	if (lull_gpu_sampler_start(&sampler, &options, &err) != 0)
		return;
	c->gpu = lull_alloc(1, sizeof(*c->gpu));
	c->gpu->sampler = sampler;
	lull_live_init(&c->gpu->live);
}

void lull_feed_gpu(struct lull_collector *c)
{
	struct lull_gpu_feed *g = c->gpu;
	ssize_t n;

	while (g && g->sampler.fd >= 0) {
		n = read(g->sampler.fd, g->bytes + g->n_bytes, sizeof(g->bytes) - g->n_bytes);
		if (n == 0) { /* it has ended */
			close(g->sampler.fd);
			g->sampler.fd = -1;
		}
		if (n <= 0)
			break;
		g->n_bytes += (size_t)n;
		take_messages(c);
	}
}

void lull_feed_gpu_issues(struct lull_collector *c)
{
	struct lull_gpu_feed *g = c->gpu;

	if (!g)
		return;
	if (g->refusal[0])
		lull_recording_issue(&c->recording, LULL_ISSUE_gpu_metrics_refused, NULL, 1,
				     g->refusal);
	if (g->n_lost)
		lull_recording_issue(&c->recording, LULL_ISSUE_gpu_samples_lost, NULL, g->n_lost,
				     NULL);
	g->n_lost = 0;
}

void lull_feed_gpu_close(struct lull_collector *c)
{
	if (c->gpu)
		lull_gpu_sampler_stop(&c->gpu->sampler);
	free(c->gpu);
	c->gpu = NULL;
}

const struct lull_live_devices *lull_feed_gpu_live(const struct lull_collector *c)
{
	return c->gpu ? &c->gpu->live : NULL;
}

pid_t lull_feed_gpu_pid(const struct lull_collector *c)
{
	return c->gpu ? c->gpu->sampler.pid : 0;
}

void lull_feed_gpu_ended(struct lull_collector *c, pid_t pid)
{
	if (c->gpu && c->gpu->sampler.pid == pid)
		c->gpu->sampler.pid = 0;
}
