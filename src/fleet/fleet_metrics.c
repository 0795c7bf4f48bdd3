#include "fleet/fleet_metrics.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/vec.h"
#include "base/whole_file.h"
#include "export/otlp.h"
#include "text/prometheus.h"

/* One value; its job and cause may be NULL. */
struct point {
	u32 family; /* index in `families` */
	const char *job, *cause;
	f64 value;
};

enum {
	REPORTS,
	DAMAGED,
	BYTES,
	PROCESSES,
	RUNNING,
	BEGUN,
	FAILED,
	REMOVED,
	STEP,
	LOST_SHARE,
	GPU,
	LOST,
	P99,
	N_FAMILIES,
};

static const struct {
	const char *name, *otlp, *unit, *help;
	bool is_counter;
} families[N_FAMILIES] = {
	[REPORTS] = { "lull_fleet_reports", "lull.fleet.reports", "1", "Reports in the folder.",
		      0 },
	[DAMAGED] = { "lull_fleet_damaged_reports", "lull.fleet.damaged_reports", "1",
		      "Reports that cannot be read.", 0 },
	[BYTES] = { "lull_fleet_bytes", "lull.fleet.size", "By", "Bytes of all reports.", 0 },
	[PROCESSES] = { "lull_fleet_processes", "lull.fleet.processes", "1",
			"Processes that compute on a device.", 0 },
	[RUNNING] = { "lull_fleet_recordings", "lull.fleet.recordings", "1",
		      "Recordings that are on.", 0 },
	[BEGUN] = { "lull_fleet_recordings_total", "lull.fleet.recordings.started", "1",
		    "Recordings that were started.", 1 },
	[FAILED] = { "lull_fleet_failures_total", "lull.fleet.recordings.failed", "1",
		     "Recordings that failed.", 1 },
	[REMOVED] = { "lull_fleet_removed_reports_total", "lull.fleet.reports.removed", "1",
		      "Reports that were removed for space or age.", 1 },
	[STEP] = { "lull_job_step_seconds", "lull.job.step", "s",
		   "Mean step in the newest report of the job.", 0 },
	[LOST_SHARE] = { "lull_job_lost_share", "lull.job.lost.share", "1",
			 "Share of the device's time in the newest report, by cause.", 0 },
	[GPU] = { "lull_job_gpu_seconds", "lull.job.gpu", "s",
		  "Time of devices in all reports of the job.", 0 },
	[LOST] = { "lull_job_lost_gpu_seconds", "lull.job.lost", "s", "What causes have of it.",
		   0 },
	[P99] = { "lull_job_request_p99_seconds", "lull.job.request.p99", "s",
		  "99 of 100 requests of the newest report take no longer.", 0 },
};

static void add(struct lull_vec *to, u32 family, const char *job, const char *cause, f64 value)
{
	*(struct point *)lull_vec_push(to) = (struct point){ family, job, cause, value };
}

static void add_job(struct lull_vec *to, const struct lull_fleet *f,
		    const struct lull_fleet_job *job)
{
	const struct lull_fleet_entry *e =
		job->latest < 0 ? NULL : lull_vec_get(&f->entries, (size_t)job->latest);

	add(to, GPU, job->name, NULL, (f64)job->gpu_ns / 1e9);
	for (int i = 0; i < LULL_N_CAUSES; i++)
		if (job->by_cause_ns[i])
			add(to, LOST, job->name, lull_causes[i]->id,
			    (f64)job->by_cause_ns[i] / 1e9);
	if (!e)
		return;
	add(to, STEP, job->name, NULL, (f64)e->step_ns / 1e9);
	if (e->n_requests)
		add(to, P99, job->name, NULL, (f64)e->p99_ns / 1e9);
	for (int i = 0; e->gpu_ns && i < LULL_N_CAUSES; i++)
		if (e->lost_ns[i])
			add(to, LOST_SHARE, job->name, lull_causes[i]->id,
			    (f64)e->lost_ns[i] / (f64)e->gpu_ns);
}

static void collect(struct lull_vec *to, const struct lull_fleet *f,
		    const struct lull_fleet_status *s)
{
	lull_vec_init(to, sizeof(struct point));
	add(to, REPORTS, NULL, NULL, (f64)f->entries.n);
	add(to, DAMAGED, NULL, NULL, f->n_by_state[LULL_FLEET_DAMAGED]);
	add(to, BYTES, NULL, NULL, (f64)s->n_bytes);
	add(to, PROCESSES, NULL, NULL, s->n_processes);
	add(to, RUNNING, NULL, NULL, s->n_running);
	add(to, BEGUN, NULL, NULL, (f64)s->n_begun);
	add(to, FAILED, NULL, NULL, (f64)s->n_failed);
	add(to, REMOVED, NULL, NULL, (f64)s->n_removed);
	for (size_t i = 0; i < f->jobs.n; i++)
		add_job(to, f, lull_vec_get(&f->jobs, i));
}

/* ---- Prometheus ---- */

static void put_family(struct lull_str *to, const struct lull_vec *points, u32 family)
{
	const struct point *p = points->at;
	bool has_head = false;

	for (size_t i = 0; i < points->n; i++) {
		if (p[i].family != family)
			continue;
		if (!has_head)
			lull_prom_family(to, families[family].name,
					 families[family].is_counter ? "counter" : "gauge",
					 families[family].help);
		has_head = true;
		lull_str_puts(to, families[family].name);
		if (p[i].job) {
			lull_str_puts(to, "{");
			lull_prom_label(to, "job", p[i].job);
		}
		if (p[i].cause) {
			lull_str_puts(to, ",");
			lull_prom_label(to, "cause", p[i].cause);
		}
		lull_str_addf(to, "%s %.9g\n", p[i].job ? "}" : "", p[i].value);
	}
}

void lull_fleet_metrics_prometheus(const struct lull_fleet *f, const struct lull_fleet_status *s,
				   struct lull_str *to)
{
	struct lull_vec points;

	collect(&points, f, s);
	for (u32 i = 0; i < N_FAMILIES; i++)
		put_family(to, &points, i);
	lull_vec_release(&points);
}

/* ---- OTLP ---- */

static void put_point(struct lull_json *j, const struct point *p, u64 now_utc_ns)
{
	lull_json_object(j);
	lull_json_key(j, "attributes");
	lull_json_array(j);
	if (p->job)
		lull_otlp_text(j, "job", p->job);
	if (p->cause)
		lull_otlp_text(j, "cause", p->cause);
	lull_json_end(j);
	lull_otlp_u64(j, "timeUnixNano", now_utc_ns);
	lull_json_key(j, "asDouble");
	lull_json_f64(j, p->value);
	lull_json_end(j);
}

static void put_metric(struct lull_json *j, const struct lull_vec *points, u32 family,
		       u64 now_utc_ns)
{
	const struct point *p = points->at;
	size_t n = 0;

	for (size_t i = 0; i < points->n; i++)
		n += p[i].family == family;
	if (!n)
		return;
	lull_json_object(j);
	lull_json_key_text(j, "name", families[family].otlp);
	lull_json_key_text(j, "unit", families[family].unit);
	lull_json_key_text(j, "description", families[family].help);
	lull_json_key(j, families[family].is_counter ? "sum" : "gauge");
	lull_json_object(j);
	if (families[family].is_counter) {
		lull_json_key(j, "aggregationTemporality");
		lull_json_u64(j, 2); /* since the start */
		lull_json_key(j, "isMonotonic");
		lull_json_bool(j, true);
	}
	lull_json_key(j, "dataPoints");
	lull_json_array(j);
	for (size_t i = 0; i < points->n; i++)
		if (p[i].family == family)
			put_point(j, &p[i], now_utc_ns);
	for (int i = 0; i < 3; i++)
		lull_json_end(j);
}

static void put_all(struct lull_json *j, const struct lull_vec *points, u64 now_utc_ns)
{
	char host[256] = "";

	gethostname(host, sizeof(host) - 1);
	lull_json_object(j);
	lull_json_key(j, "resourceMetrics");
	lull_json_array(j);
	lull_json_object(j);
	lull_json_key(j, "resource");
	lull_json_object(j);
	lull_json_key(j, "attributes");
	lull_json_array(j);
	lull_otlp_text(j, "service.name", "lull-fleetd");
	lull_otlp_text(j, "host.name", host);
	lull_json_end(j);
	lull_json_end(j);
	lull_json_key(j, "scopeMetrics");
	lull_json_array(j);
	lull_json_object(j);
	lull_json_key(j, "scope");
	lull_json_object(j);
	lull_json_key_text(j, "name", "lull");
	lull_json_key_text(j, "version", LULL_VERSION);
	lull_json_end(j);
	lull_json_key(j, "metrics");
	lull_json_array(j);
	for (u32 i = 0; i < N_FAMILIES; i++)
		put_metric(j, points, i, now_utc_ns);
	for (int i = 0; i < 6; i++)
		lull_json_end(j);
}

int lull_fleet_metrics_otlp(const struct lull_fleet *f, const struct lull_fleet_status *s,
			    const char *path, struct lull_err *err)
{
	struct lull_whole_file_rules rules = { .is_overwriting = true };
	struct lull_whole_file place;
	struct lull_vec points;
	struct lull_json j;
	FILE *to;
	int rc = lull_whole_file_begin(&place, path, &rules, err);

	if (rc)
		return rc;
	to = fopen(place.part, "we");
	if (!to)
		return lull_whole_file_end(&place, lull_fail_errno(err, "creating %s", place.part),
					   err);
	collect(&points, f, s);
	lull_json_init(&j, to);
	put_all(&j, &points, s->now_utc_ns);
	lull_vec_release(&points);
	putc('\n', to);
	rc = ferror(to) ? LULL_E_IO : 0;
	if (fclose(to) != 0 || rc)
		rc = lull_fail_errno(err, "writing %s", path);
	return lull_whole_file_end(&place, rc, err);
}
