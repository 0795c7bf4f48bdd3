#include "record/live/metrics_port.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "text/prometheus.h"

#define MAX_CONNECTIONS	 8u
#define CONNECTION_BYTES (16u << 10)
#define CONNECTION_S	 5u

#define CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

struct lull_metrics {
	struct MHD_Daemon *daemon;
	int fd;
	lull_metrics_ask *ask;
	lull_metrics_tell *tell; /* instead of it, if it is not NULL */
	void *ctx;
};

int lull_metrics_parse(const char *text, char *address, size_t room, u16 *port,
		       struct lull_err *err)
{
	const char *colon = strrchr(text, ':');
	const char *digits = colon ? colon + 1 : text;
	size_t n = colon ? (size_t)(colon - text) : 0;
	char *end;
	unsigned long value = strtoul(digits, &end, 10);
	struct in_addr parsed;

	snprintf(address, room, "%.*s", (int)n, text);
	if (!n)
		snprintf(address, room, "127.0.0.1");
	if (*digits < '0' || *digits > '9' || *end || value > 65535)
		return lull_fail(err, LULL_E_USAGE,
				 "--metrics-port: '%s' is not [ADDRESS:]PORT, such as 9464 or "
				 "0.0.0.0:9464",
				 text);
	if (n >= room || inet_pton(AF_INET, address, &parsed) != 1)
		return lull_fail(
			err, LULL_E_USAGE,
			"--metrics-port: '%s' is not an IPv4 address; 0.0.0.0 is all of this "
			"machine",
			address);
	*port = (u16)value;
	return 0;
}

/* ---- the text ---- */

static void one(struct lull_str *to, const char *name, const char *type, const char *help,
		f64 value)
{
	lull_prom_family(to, name, type, help);
	lull_str_addf(to, "%s %.15g\n", name, value);
}

static void write_steps(const struct lull_pulse *p, struct lull_str *to)
{
	static const u64 bounds[] = LULL_PULSE_BUCKETS;
	unsigned long long n = 0;

	lull_prom_family(to, "lull_step_seconds", "histogram", "Time of the steps of the program.");
	for (size_t i = 0; i < LULL_PULSE_N_BUCKETS; i++) {
		n += p->step_counts[i];
		lull_str_addf(to, "lull_step_seconds_bucket{le=\"%g\"} %llu\n",
			      (f64)bounds[i] / 1e9, n);
	}
	lull_str_addf(to, "lull_step_seconds_bucket{le=\"+Inf\"} %llu\n",
		      (unsigned long long)p->n_steps);
	lull_str_addf(to, "lull_step_seconds_sum %.9f\nlull_step_seconds_count %llu\n",
		      (f64)p->step_ns / 1e9, (unsigned long long)p->n_steps);
	one(to, "lull_last_step_seconds", "gauge", "Time of the last step.",
	    (f64)p->last_step_ns / 1e9);
}

static void write_devices(const struct lull_pulse *p, struct lull_str *to)
{
	lull_prom_family(to, "lull_device_busy_seconds_total", "counter",
			 "Time in which a device had work of this process.");
	for (u32 i = 0; i < p->n_devices; i++)
		lull_str_addf(to, "lull_device_busy_seconds_total{pid=\"%u\",device=\"%u\"} %.9f\n",
			      p->devices[i].pid, p->devices[i].number,
			      (f64)p->devices[i].busy_ns / 1e9);
	lull_prom_family(to, "lull_device_idle_seconds_total", "counter",
			 "Time in which a device had no work, by what the host did; an estimate.");
	for (u32 i = 0; i < p->n_devices; i++)
		for (u32 c = 0; c < LULL_PULSE_N_CAUSES; c++)
			lull_str_addf(to,
				      "lull_device_idle_seconds_total{pid=\"%u\",device=\"%u\","
				      "cause=\"%s\"} %.9f\n",
				      p->devices[i].pid, p->devices[i].number, lull_pulse_causes[c],
				      (f64)p->devices[i].idle_ns[c] / 1e9);
}

/* Share of each cause in the time since the last turn. */
static void write_shares(const struct lull_pulse *p, struct lull_str *to)
{
	lull_prom_family(to, "lull_device_idle_ratio", "gauge",
			 "Share of idle time by cause in the last 10 to 20 seconds; an estimate.");
	for (u32 i = 0; i < p->n_devices; i++) {
		const struct lull_pulse_device *d = &p->devices[i];
		u64 all_ns = d->busy_ns - d->past_busy_ns;

		for (u32 c = 0; c < LULL_PULSE_N_CAUSES; c++)
			all_ns += d->idle_ns[c] - d->past_idle_ns[c];
		for (u32 c = 0; c < LULL_PULSE_N_CAUSES; c++)
			lull_str_addf(
				to,
				"lull_device_idle_ratio{pid=\"%u\",device=\"%u\",cause=\"%s\"} "
				"%.6f\n",
				d->pid, d->number, lull_pulse_causes[c],
				all_ns ? (f64)(d->idle_ns[c] - d->past_idle_ns[c]) / (f64)all_ns
				       : 0);
	}
}

static void write_copies(const struct lull_pulse *p, struct lull_str *to)
{
	static const struct {
		u32 kind;
		const char *name;
	} kinds[] = { { 1, "host-to-device" },
		      { 2, "device-to-host" },
		      { 8, "within-device" },
		      { 10, "device-to-device" },
		      { 0, "other" } };

	lull_prom_family(to, "lull_copied_bytes_total", "counter", "Bytes copied by devices.");
	for (size_t i = 0; i < LULL_COUNT_OF(kinds); i++)
		lull_str_addf(to, "lull_copied_bytes_total{kind=\"%s\"} %llu\n", kinds[i].name,
			      (unsigned long long)p->copied_bytes[kinds[i].kind]);
}

void lull_metrics_write(const struct lull_metrics_facts *f, struct lull_str *to)
{
	const struct lull_pulse *p = f->pulse;

	one(to, "lull_recording", "gauge", "1 while a recording is running.", f->is_recording);
	write_steps(p, to);
	lull_live_requests_write(&p->requests, to);
	write_devices(p, to);
	write_shares(p, to);
	one(to, "lull_launches_total", "counter", "Kernels and graphs launched.",
	    (f64)p->n_launches);
	one(to, "lull_kernels_total", "counter", "Kernels that ran.", (f64)p->n_kernels);
	write_copies(p, to);
	one(to, "lull_events_total", "counter", "Events of the current recording.",
	    (f64)f->n_events);
	one(to, "lull_events_lost_total", "counter", "Lost events of the current recording.",
	    (f64)f->n_lost);
	one(to, "lull_report_bytes", "gauge", "Bytes of the report so far.", (f64)f->report_bytes);
	one(to, "lull_reports_total", "counter", "Reports written so far.", f->n_reports);
	one(to, "lull_recorder_cpu_seconds_total", "counter", "CPU time of the recorder itself.",
	    f->cpu_s);
	if (f->devices)
		lull_live_write(f->devices, f->now_ns, to);
}

/* ---- the server ---- */

static enum MHD_Result reply(struct MHD_Connection *connection, unsigned status,
			     struct lull_str *text)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(
		text->len, text->at ? (void *)text->at : (void *)"", MHD_RESPMEM_MUST_COPY);
	enum MHD_Result rc = MHD_NO;

	if (response) {
		MHD_add_response_header(response, "Content-Type", CONTENT_TYPE);
		rc = MHD_queue_response(connection, status, response);
		MHD_destroy_response(response);
	}
	lull_str_release(text);
	return rc;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url,
				  const char *method, const char *version, const char *upload,
				  size_t *upload_bytes, void **state)
{
	struct lull_metrics *m = cls;
	struct lull_metrics_facts facts = { 0 };
	struct lull_str text = LULL_STR_INIT;
	static int has_begun;

	(void)version;
	(void)upload;
	if (!*state) {
		*state = &has_begun;
		return MHD_YES;
	}
	/* A body is read and forgotten. */
	if (*upload_bytes) {
		*upload_bytes = 0;
		return MHD_YES;
	}
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
		lull_str_puts(&text, "only GET is answered here\n");
		return reply(connection, MHD_HTTP_METHOD_NOT_ALLOWED, &text);
	}
	if (strcmp(url, "/metrics") != 0) {
		lull_str_puts(&text, "see /metrics\n");
		return reply(connection, MHD_HTTP_NOT_FOUND, &text);
	}
	if (m->tell) {
		m->tell(m->ctx, &text);
	} else {
		m->ask(m->ctx, &facts);
		lull_metrics_write(&facts, &text);
	}
	return reply(connection, MHD_HTTP_OK, &text);
}

static int listen_at(struct lull_metrics *m, const char *address, u16 *port, struct lull_err *err)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(*port) };
	const union MHD_DaemonInfo *info;

	inet_pton(AF_INET, address, &at.sin_addr);
	errno = 0;
	m->daemon = MHD_start_daemon(MHD_USE_EPOLL | MHD_NO_FLAG, *port, NULL, NULL, on_request, m,
				     MHD_OPTION_SOCK_ADDR, &at, MHD_OPTION_CONNECTION_LIMIT,
				     MAX_CONNECTIONS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
				     (size_t)CONNECTION_BYTES, MHD_OPTION_CONNECTION_TIMEOUT,
				     CONNECTION_S, MHD_OPTION_LISTENING_ADDRESS_REUSE, 1u,
				     MHD_OPTION_END);
	if (!m->daemon)
		return errno ? lull_fail_errno(err, "--metrics-port: listening at %s:%u", address,
					       *port)
			     : lull_fail(err, LULL_E_IO,
					 "--metrics-port: cannot listen at %s:%u; is the port in "
					 "use?",
					 address, *port);
	info = MHD_get_daemon_info(m->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	m->fd = info ? info->listen_fd : -1;
	info = MHD_get_daemon_info(m->daemon, MHD_DAEMON_INFO_BIND_PORT);
	if (info)
		*port = info->port;
	return 0;
}

int lull_metrics_open(struct lull_metrics **out, const char *address, u16 *port,
		      lull_metrics_ask *ask, void *ctx, struct lull_err *err)
{
	int rc;

	*out = lull_alloc(1, sizeof(**out));
	(*out)->ask = ask;
	(*out)->ctx = ctx;
	rc = listen_at(*out, address, port, err);
	if (rc) {
		free(*out);
		*out = NULL;
	}
	return rc;
}

int lull_metrics_open_text(struct lull_metrics **out, const char *address, u16 *port,
			   lull_metrics_tell *tell, void *ctx, struct lull_err *err)
{
	int rc = lull_metrics_open(out, address, port, NULL, ctx, err);

	if (!rc)
		(*out)->tell = tell;
	return rc;
}

int lull_metrics_fd(const struct lull_metrics *m)
{
	return m->fd;
}

void lull_metrics_serve(struct lull_metrics *m)
{
	MHD_run(m->daemon);
}

void lull_metrics_close(struct lull_metrics *m)
{
	if (!m)
		return;
	MHD_stop_daemon(m->daemon);
	free(m);
}
