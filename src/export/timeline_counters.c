/*
 * timeline_counters - what was measured over time, as counters of a timeline.
 */
#include <string.h>

#include "base/hash.h"
#include "base/str.h"
#include "export/timeline_int.h"
#include "model/names.h"

/* `key` tells the counters of one source apart. */
static bool count(struct lull_timeline *t, struct lull_timeline_record *rec, u64 key,
		  const struct lull_timeline_family *family, f64 value)
{
	u64 parts[] = { rec->rank >> 8, key, family->process, family->device };

	rec->type = LULL_TIMELINE_COUNTER;
	rec->family = lull_timeline_other(t, lull_hash(parts, sizeof(parts)), family);
	memcpy(&rec->values[0], &value, sizeof(value));
	return true;
}

static bool counter_row(struct lull_timeline *t, const void *cols, size_t i,
			struct lull_timeline_record *rec)
{
	const struct lull_counter_cols *c = cols;
	struct lull_metric_row metric = { 0 };
	size_t n;
	const struct lull_metric_row *metrics = lull_reader_dim(t->reader, LULL_TABLE_metric, &n);

	if (c->metric[i])
		metric = metrics[c->metric[i] - 1];
	return count(t, rec, c->metric[i],
		     &(struct lull_timeline_family){
			     .process = c->process[i],
			     .device = c->device[i],
			     .name = lull_reader_string(t->reader, metric.name, NULL),
			     .unit = lull_reader_string(t->reader, metric.unit, NULL) },
		     c->value[i]);
}

const struct lull_timeline_source lull_timeline_counter = { LULL_TABLE_counter, counter_row };

/* ---- processes ---- */

static bool usage_rss_row(struct lull_timeline *t, const void *cols, size_t i,
			  struct lull_timeline_record *rec)
{
	const struct lull_usage_cols *c = cols;

	return count(t, rec, 0,
		     &(struct lull_timeline_family){ .process = c->process[i],
						     .name = "resident memory",
						     .unit = "B" },
		     (f64)c->rss_bytes[i]);
}

const struct lull_timeline_source lull_timeline_usage_rss = { LULL_TABLE_usage, usage_rss_row };

static bool usage_cpu_row(struct lull_timeline *t, const void *cols, size_t i,
			  struct lull_timeline_record *rec)
{
	const struct lull_usage_cols *c = cols;

	return count(t, rec, 0,
		     &(struct lull_timeline_family){ .process = c->process[i],
						     .name = "CPU time",
						     .unit = "CPUs",
						     .counting = LULL_TIMELINE_RATE },
		     ((f64)c->user_ns[i] + (f64)c->system_ns[i]) / 1e9);
}

const struct lull_timeline_source lull_timeline_usage_cpu = { LULL_TABLE_usage, usage_cpu_row };

static bool usage_threads_row(struct lull_timeline *t, const void *cols, size_t i,
			      struct lull_timeline_record *rec)
{
	const struct lull_usage_cols *c = cols;

	return count(t, rec, 0,
		     &(struct lull_timeline_family){
			     .process = c->process[i], .name = "threads", .unit = "" },
		     c->n_threads[i]);
}

const struct lull_timeline_source lull_timeline_usage_threads = { LULL_TABLE_usage,
								  usage_threads_row };

/* ---- memory ---- */

/* A counter of the framework's allocator on one device of a process. */
static bool count_alloc(struct lull_timeline *t, const struct lull_alloc_cols *c, size_t i,
			struct lull_timeline_record *rec, const char *what)
{
	u32 process = c->lane[i] ? t->lanes[c->lane[i] - 1].process : 0;
	u64 bytes = !strcmp(what, "allocated") ? c->allocated_bytes[i] : c->reserved_bytes[i];
	struct lull_str name = LULL_STR_INIT;

	lull_str_addf(&name, "%s by the framework", what);
	if (c->device_kind[i])
		lull_str_addf(&name, ", GPU %u", c->device_id[i]);
	count(t, rec, (u64)c->device_kind[i] << 32 | c->device_id[i],
	      &(struct lull_timeline_family){
		      .process = process, .name = lull_str_text(&name), .unit = "B" },
	      (f64)bytes);
	lull_str_release(&name);
	return true;
}

static bool allocated_row(struct lull_timeline *t, const void *cols, size_t i,
			  struct lull_timeline_record *rec)
{
	return count_alloc(t, cols, i, rec, "allocated");
}

const struct lull_timeline_source lull_timeline_allocated = { LULL_TABLE_alloc, allocated_row };

static bool reserved_row(struct lull_timeline *t, const void *cols, size_t i,
			 struct lull_timeline_record *rec)
{
	return count_alloc(t, cols, i, rec, "reserved");
}

const struct lull_timeline_source lull_timeline_reserved = { LULL_TABLE_alloc, reserved_row };

static bool cuda_memory_row(struct lull_timeline *t, const void *cols, size_t i,
			    struct lull_timeline_record *rec)
{
	const struct lull_cuda_memory_cols *c = cols;
	f64 sign = c->operation[i] == 2 ? -1 : 1;
	struct lull_str name = LULL_STR_INIT;

	lull_str_addf(&name, "memory allocated with CUDA: %s",
		      lull_names_memory(c->memory_kind[i]));
	count(t, rec, c->memory_kind[i],
	      &(struct lull_timeline_family){ .process = c->process[i],
					      .device = c->device[i],
					      .name = lull_str_text(&name),
					      .unit = "B",
					      .counting = LULL_TIMELINE_SUM },
	      sign * (f64)c->size_bytes[i]);
	lull_str_release(&name);
	return true;
}

const struct lull_timeline_source lull_timeline_cuda_memory = { LULL_TABLE_cuda_memory,
								cuda_memory_row };
