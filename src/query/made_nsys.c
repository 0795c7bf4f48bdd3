/* Tables of nsys about processes, devices and the recording, made from our dimensions. */
#include "query/made.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "model/span.h"
#include "model/work.h"
#include "query/values.h"
#include "trace/issue.h"

static void put_string(struct lull_made_rows *rows, struct lull_values *v, u32 id)
{
	size_t len;
	const char *text = lull_reader_string(v->reader, id, &len);

	lull_rows_text(rows, id ? text : NULL, len);
}

static void put_text(struct lull_made_rows *rows, const char *text)
{
	lull_rows_text(rows, text, strlen(text));
}

static u32 pid_of(struct lull_values *v, u32 process)
{
	size_t n;
	const struct lull_process_row *rows = lull_reader_dim(v->reader, LULL_TABLE_process, &n);

	return process ? rows[process - 1].pid : 0;
}

/* True the first time it is asked for this key. */
static bool is_first(struct lull_map *seen, u64 key)
{
	bool is_new;

	lull_map_add(seen, key, &is_new);
	return is_new;
}

/* ---- NVTX ---- */

/* A name of a domain (75) or category (33), and where it belongs. */
struct nvtx_name {
	u32 type;
	u32 category;
	u32 text; /* string id */
	i64 domain;
};

static void add_name(struct lull_made_rows *rows, struct lull_values *v,
		     const struct nvtx_name *name, i64 thread)
{
	lull_rows_add(rows);
	lull_rows_int(rows, 0);
	lull_rows_null(rows);
	lull_rows_int(rows, name->type);
	lull_rows_null(rows);
	if (name->category)
		lull_rows_int(rows, name->category);
	else
		lull_rows_null(rows);
	lull_rows_null(rows);
	put_string(rows, v, name->text);
	lull_rows_int(rows, thread);
	lull_rows_null(rows);
	lull_rows_null(rows);
	lull_rows_int(rows, name->domain);
}

/* All names that labels have, each once. */
static void collect_names(struct lull_vec *names, struct lull_values *v)
{
	size_t n;
	const struct lull_label_row *labels = lull_reader_dim(v->reader, LULL_TABLE_label, &n);
	struct lull_map domains, categories;

	lull_map_init(&domains);
	lull_map_init(&categories);
	for (size_t i = 0; i < n; i++) {
		const struct lull_label_row *label = &labels[i];
		i64 domain = lull_values_domain(v, label->domain);

		if (label->domain && is_first(&domains, (u64)domain))
			*(struct nvtx_name *)lull_vec_push(names) =
				(struct nvtx_name){ 75, 0, label->domain, domain };
		if (label->category_name &&
		    is_first(&categories, (u64)domain << 32 | label->category))
			*(struct nvtx_name *)lull_vec_push(names) =
				(struct nvtx_name){ 33, label->category, label->category_name,
						    domain };
	}
	lull_map_release(&domains);
	lull_map_release(&categories);
}

/* nsys keeps names by process; the report does not, so each process that has threads gets all. */
void lull_made_nvtx_names(struct lull_made_rows *rows, struct lull_values *v)
{
	size_t n;
	const struct lull_lane_row *lanes = lull_reader_dim(v->reader, LULL_TABLE_lane, &n);
	const struct nvtx_name *all;
	struct lull_vec names;
	struct lull_map seen;

	lull_vec_init(&names, sizeof(struct nvtx_name));
	collect_names(&names, v);
	all = names.at;
	lull_map_init(&seen);
	for (size_t i = 0; i < n && names.n; i++) {
		if (lanes[i].kind == LULL_LANE_STREAM || !lanes[i].process ||
		    !is_first(&seen, lanes[i].process))
			continue;
		for (size_t k = 0; k < names.n; k++)
			add_name(rows, v, &all[k],
				 lull_nsys_id(pid_of(v, lanes[i].process), lanes[i].tid));
	}
	lull_map_release(&seen);
	lull_vec_release(&names);
}

/* ---- processes and threads ---- */

void lull_made_processes(struct lull_made_rows *rows, struct lull_values *v)
{
	size_t n;
	const struct lull_process_row *all = lull_reader_dim(v->reader, LULL_TABLE_process, &n);

	for (size_t i = 0; i < n; i++) {
		lull_rows_add(rows);
		lull_rows_int(rows, lull_nsys_id(all[i].pid, 0));
		lull_rows_int(rows, all[i].pid);
		put_string(rows, v, all[i].exe ? all[i].exe : all[i].name);
	}
}

void lull_made_thread_names(struct lull_made_rows *rows, struct lull_values *v)
{
	size_t n;
	const struct lull_lane_row *lanes = lull_reader_dim(v->reader, LULL_TABLE_lane, &n);

	for (size_t i = 0; i < n; i++) {
		if (lanes[i].kind == LULL_LANE_STREAM)
			continue;
		lull_rows_add(rows);
		lull_rows_int(rows, lanes[i].name);
		lull_rows_null(rows);
		lull_rows_int(rows, lull_nsys_id(pid_of(v, lanes[i].process), lanes[i].tid));
	}
}

/* ---- devices ---- */

/*
 * Number of each device on the machine, by row: the same for the same uuid, or for the same number
 * where it has none. Free with free().
 */
static u32 *gpu_ids(const struct lull_device_row *devices, size_t n)
{
	u32 *ids = lull_alloc(n + 1, sizeof(*ids));
	struct lull_map known;

	lull_map_init(&known);
	for (size_t i = 0; i < n; i++) {
		u64 key = devices[i].uuid ? devices[i].uuid : 1ull << 32 | devices[i].device_id;
		bool is_new;
		u32 *id = lull_map_add(&known, key, &is_new);

		if (is_new)
			*id = (u32)known.n - 1;
		ids[i] = *id;
	}
	lull_map_release(&known);
	return ids;
}

void lull_made_gpus(struct lull_made_rows *rows, struct lull_values *v)
{
	size_t n;
	const struct lull_device_row *all = lull_reader_dim(v->reader, LULL_TABLE_device, &n);
	u32 *ids = gpu_ids(all, n), n_seen = 0;

	for (size_t i = 0; i < n; i++) {
		if (ids[i] < n_seen)
			continue;
		n_seen++;
		lull_rows_add(rows);
		lull_rows_int(rows, LULL_NSYS_VM);
		lull_rows_int(rows, ids[i]);
		put_string(rows, v, all[i].name);
		lull_rows_null(rows);
		lull_rows_null(rows);
		lull_rows_int(rows, (i64)all[i].l2_bytes);
		lull_rows_int(rows, (i64)all[i].memory_bytes);
		lull_rows_int(rows, (i64)all[i].bandwidth_bytes);
		lull_rows_int(rows, (i64)all[i].clock_hz);
		lull_rows_int(rows, all[i].n_sms);
		lull_rows_null(rows);
		put_string(rows, v, all[i].uuid);
		lull_rows_null(rows);
		lull_rows_null(rows);
		lull_rows_int(rows, all[i].device_id);
		for (int skip = 15; skip < 37; skip++)
			lull_rows_null(rows);
		for (int twice = 0; twice < 2; twice++) {
			lull_rows_int(rows, all[i].capability / 10);
			lull_rows_int(rows, all[i].capability % 10);
		}
	}
	free(ids);
}

void lull_made_cuda_devices(struct lull_made_rows *rows, struct lull_values *v)
{
	size_t n;
	const struct lull_device_row *all = lull_reader_dim(v->reader, LULL_TABLE_device, &n);
	u32 *ids = gpu_ids(all, n);

	for (size_t i = 0; i < n; i++) {
		lull_rows_add(rows);
		lull_rows_int(rows, ids[i]);
		lull_rows_int(rows, all[i].device_id);
		lull_rows_int(rows, pid_of(v, all[i].process));
		put_string(rows, v, all[i].uuid);
		lull_rows_int(rows, all[i].n_sms);
	}
	free(ids);
}

void lull_made_cuda_contexts(struct lull_made_rows *rows, struct lull_values *v)
{
	size_t n, n_devices;
	const struct lull_lane_row *lanes = lull_reader_dim(v->reader, LULL_TABLE_lane, &n);
	const struct lull_device_row *devices =
		lull_reader_dim(v->reader, LULL_TABLE_device, &n_devices);
	struct lull_map seen;

	lull_map_init(&seen);
	for (size_t i = 0; i < n; i++) {
		u32 device = lanes[i].device;

		if (lanes[i].kind != LULL_LANE_STREAM ||
		    !is_first(&seen, (u64)lanes[i].process << 32 | lanes[i].context_id))
			continue;
		lull_rows_add(rows);
		lull_rows_int(rows, 0);
		lull_rows_int(rows, 0);
		lull_rows_int(rows, LULL_NSYS_VM);
		lull_rows_int(rows, pid_of(v, lanes[i].process));
		lull_rows_int(rows, device ? devices[device - 1].device_id : 0);
		lull_rows_int(rows, lanes[i].context_id);
	}
	lull_map_release(&seen);
}

void lull_made_cuda_streams(struct lull_made_rows *rows, struct lull_values *v)
{
	size_t n;
	const struct lull_lane_row *lanes = lull_reader_dim(v->reader, LULL_TABLE_lane, &n);

	for (size_t i = 0; i < n; i++) {
		if (lanes[i].kind != LULL_LANE_STREAM)
			continue;
		lull_rows_add(rows);
		lull_rows_int(rows, lanes[i].stream_id);
		lull_rows_int(rows, 0);
		lull_rows_int(rows, LULL_NSYS_VM);
		lull_rows_int(rows, pid_of(v, lanes[i].process));
		lull_rows_int(rows, lanes[i].context_id);
		lull_rows_int(rows, lanes[i].priority);
		lull_rows_int(rows, lanes[i].stream_kind);
	}
}

void lull_made_gpu_metrics(struct lull_made_rows *rows, struct lull_values *v)
{
	size_t n, n_devices;
	const struct lull_metric_row *all = lull_reader_dim(v->reader, LULL_TABLE_metric, &n);
	const struct lull_device_row *devices =
		lull_reader_dim(v->reader, LULL_TABLE_device, &n_devices);
	struct lull_map seen;

	lull_map_init(&seen);
	for (size_t d = 0; d < n_devices && n; d++) {
		if (!is_first(&seen, devices[d].device_id))
			continue;
		for (size_t i = 0; i < n; i++) {
			lull_rows_add(rows);
			lull_rows_int(rows, devices[d].device_id);
			lull_rows_int(rows, 0);
			put_string(rows, v, all[i].source);
			lull_rows_int(rows, (i64)i + 1);
			put_string(rows, v, all[i].name);
		}
	}
	lull_map_release(&seen);
}

/* ---- the recording ---- */

void lull_made_start_time(struct lull_made_rows *rows, struct lull_values *v)
{
	const struct lull_file_info *info = lull_reader_info(v->reader);
	time_t seconds = (time_t)(info->epoch_utc_ns / 1000000000);
	struct tm utc;
	char text[32];

	gmtime_r(&seconds, &utc);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc);
	lull_rows_add(rows);
	lull_rows_int(rows, (i64)info->epoch_utc_ns);
	put_text(rows, text);
	put_text(rows, text);
	lull_rows_int(rows, (i64)info->epoch_ns);
}

/* Meta rows that nsys has a number for. */
void lull_made_system_env(struct lull_made_rows *rows, struct lull_values *v)
{
	static const struct {
		const char *key, *name;
		int number;
	} known[] = {
		{ "host.name", "Hostname", 619 },
		{ "cuda.driver", "CudaDriverVersion", 611 },
		{ "gpu.driver", "NvDriverVersion", 205 },
	};
	size_t n;
	const struct lull_meta_row *all = lull_reader_dim(v->reader, LULL_TABLE_meta, &n);

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < LULL_COUNT_OF(known); k++) {
			if (strcmp(lull_reader_string(v->reader, all[i].key, NULL), known[k].key) !=
			    0)
				continue;
			lull_rows_add(rows);
			lull_rows_int(rows, lull_nsys_id(0, 0));
			put_text(rows, "SystemEnv");
			put_text(rows, known[k].name);
			lull_rows_int(rows, known[k].number);
			put_string(rows, v, all[i].value);
		}
}

void lull_made_analysis_details(struct lull_made_rows *rows, struct lull_values *v)
{
	const struct lull_file_info *info = lull_reader_info(v->reader);
	struct lull_span span = lull_span_recording(v->reader);

	lull_rows_add(rows);
	lull_rows_int(rows, lull_nsys_id(0, 0));
	lull_rows_int(rows, (i64)span.to_ns);
	lull_rows_int(rows, (i64)info->epoch_ns);
	lull_rows_int(rows, (i64)(info->epoch_ns + span.to_ns));
}

void lull_made_diagnostics(struct lull_made_rows *rows, struct lull_values *v)
{
	size_t n;
	const struct lull_issue_row *all = lull_reader_dim(v->reader, LULL_TABLE_issue, &n);

	for (size_t i = 0; i < n; i++) {
		struct lull_str text = LULL_STR_INIT;
		const char *detail = lull_reader_string(v->reader, all[i].detail, NULL);

		lull_str_addf(&text, "%" PRIu64 " x %s", all[i].count,
			      lull_reader_string(v->reader, all[i].text, NULL));
		if (*detail)
			lull_str_addf(&text, " (%s)", detail);
		lull_rows_add(rows);
		lull_rows_int(rows, 0);
		lull_rows_int(rows, 1);
		lull_rows_int(rows, 3);
		lull_rows_int(rows, all[i].severity <= 3 ? all[i].severity : 0);
		lull_rows_text(rows, text.at, text.len);
		if (all[i].process)
			lull_rows_int(rows, lull_nsys_id(pid_of(v, all[i].process), 0));
		lull_str_release(&text);
	}
}

void lull_made_meta_capture(struct lull_made_rows *rows, struct lull_values *v)
{
	size_t n;
	const struct lull_meta_row *all = lull_reader_dim(v->reader, LULL_TABLE_meta, &n);

	for (size_t i = 0; i < n; i++) {
		lull_rows_add(rows);
		put_string(rows, v, all[i].key);
		put_string(rows, v, all[i].value);
	}
}

void lull_made_meta_export(struct lull_made_rows *rows, struct lull_values *v)
{
	static const char *const pairs[][2] = {
		{ "EXPORT_PRODUCT_NAME", "lull" },
		{ "EXPORT_PRODUCT_VERSION", LULL_VERSION },
		{ "EXPORT_SCHEMA_VERSION", LULL_NSYS_SCHEMA },
		{ "EXPORT_SCHEMA_VERSION_MAJOR", "3" },
		{ "EXPORT_SCHEMA_VERSION_MINOR", "25" },
		{ "EXPORT_SCHEMA_VERSION_MICRO", "0" },
	};

	char flags[8];

	for (size_t i = 0; i < LULL_COUNT_OF(pairs); i++) {
		lull_rows_add(rows);
		put_text(rows, pairs[i][0]);
		put_text(rows, pairs[i][1]);
	}
	snprintf(flags, sizeof(flags), "%u", lull_reader_info(v->reader)->flags);
	lull_rows_add(rows);
	put_text(rows, "LULL_FILE_FLAGS");
	put_text(rows, flags);
}
