/*
 * cupti_profiler - counters of kernels, as CUPTI's range profiler and its host library give them.
 *
 * What it is:  the calls of src/wire/cuprof.def in their order, with refusals where the real one
 *              refuses. A kernel that is launched between Start and Stop takes as long as all its
 *              passes. Metrics take one pass for each ten of them.
 * What a value is: duration, warps and threads are those of the launch; any other is a number below
 *              100 made from its name, the same in every run.
 * LULL_SIM_PROFILER=denied, busy, mig: no counters here; hang: a kernel never ends when it is run
 *              again; LULL_SIM_NO_METRICS=PREFIX,...: the chip does not have these.
 */
#include "cupti_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "wire/cuprof.h"

#define CHIP		 "GH100"
#define METRICS_PER_PASS 10u
#define MAGIC		 0x4d49534bu /* "KSIM" */
#define CUPTI_E_UNKNOWN	 999

/* What is planned on the host; also the config image. */
struct plan {
	u32 magic;
	u32 n_metrics;
	u32 is_spoilt; /* a name was refused: so is all that follows */
};

/* A counter data image. */
struct counter_data {
	u32 magic;
	u32 n_ranges;
	u32 passes_done;
	u32 n_warps;
	u64 n_threads;
	u64 dur_ns;
};

static struct {
	bool is_enabled, is_started, is_pushed;
	struct plan plan;
	struct counter_data *data;
	u32 range, replay;
	u32 pass_ix;
} profiler;

/* ---- host ---- */

#define ENTRY SIM_EXPORT int

static bool is_refused(const char *word)
{
	const char *knob = getenv("LULL_SIM_PROFILER");

	return knob && strcmp(knob, word) == 0;
}

static bool has_metric(const char *name)
{
	const char *list = getenv("LULL_SIM_NO_METRICS");

	if (!strstr(name, "__") || !strchr(name, '.'))
		return false;
	while (list && *list) {
		size_t n = strcspn(list, ",");

		if (n && strncmp(name, list, n) == 0)
			return false;
		list += n + (list[n] == ',');
	}
	return true;
}

static u32 passes_of(const struct plan *plan)
{
	return (plan->n_metrics + METRICS_PER_PASS - 1) / METRICS_PER_PASS;
}

#define PROF_HOST(name, params)	  ENTRY name(struct lull_prof_##params *p);
#define PROF_TARGET(name, params) ENTRY name(struct lull_prof_##params *p);
#include "wire/cuprof.def"
#undef PROF_HOST
#undef PROF_TARGET

int cuptiProfilerInitialize(struct lull_prof_init *p)
{
	return p->struct_bytes == LULL_PROF_BYTES_init ? CUPTI_OK : CUPTI_E_PARAMETER;
}

int cuptiProfilerHostGetSupportedChips(struct lull_prof_chips *p)
{
	static const char *const chips[] = { CHIP };

	p->n = 1;
	p->names = chips;
	return CUPTI_OK;
}

int cuptiProfilerHostInitialize(struct lull_prof_host *p)
{
	struct plan *plan;

	if (!p->chip || strcmp(p->chip, CHIP) != 0)
		return CUPTI_E_PARAMETER;
	plan = calloc(1, sizeof(*plan));
	if (!plan)
		return CUPTI_E_UNINITIALIZED;
	plan->magic = MAGIC;
	p->object = plan;
	return CUPTI_OK;
}

int cuptiProfilerHostDeinitialize(struct lull_prof_host_end *p)
{
	free(p->object);
	return CUPTI_OK;
}

int cuptiProfilerHostConfigAddMetrics(struct lull_prof_add *p)
{
	struct plan *plan = p->object;

	for (size_t i = 0; i < p->n; i++)
		plan->is_spoilt |= !has_metric(p->names[i]);
	plan->n_metrics += (u32)p->n;
	return plan->is_spoilt ? CUPTI_E_UNKNOWN : CUPTI_OK;
}

int cuptiProfilerHostGetConfigImageSize(struct lull_prof_config_size *p)
{
	p->size_bytes = sizeof(struct plan);
	return ((struct plan *)p->object)->is_spoilt ? CUPTI_E_UNKNOWN : CUPTI_OK;
}

int cuptiProfilerHostGetConfigImage(struct lull_prof_config *p)
{
	if (p->size_bytes < sizeof(struct plan))
		return CUPTI_E_PARAMETER;
	memcpy(p->image, p->object, sizeof(struct plan));
	return CUPTI_OK;
}

int cuptiProfilerHostGetNumOfPasses(struct lull_prof_passes *p)
{
	const struct plan *plan = (const struct plan *)p->image;

	if (plan->magic != MAGIC)
		return CUPTI_E_PARAMETER;
	p->n = passes_of(plan);
	return CUPTI_OK;
}

static f64 value_of(const struct counter_data *data, const char *name)
{
	if (strcmp(name, "gpu__time_duration.sum") == 0)
		return (f64)data->dur_ns;
	if (strcmp(name, "smsp__warps_launched.sum") == 0)
		return data->n_warps;
	if (strcmp(name, "sm__cycles_elapsed.avg.per_second") == 0)
		return SIM_DEVICE_CLOCK_KHZ * 1e3;
	if (strcmp(name, "smsp__thread_inst_executed_pred_on.sum") == 0)
		return (f64)data->n_threads;
	/* As the real one gives for a hit rate without accesses. */
	if (strcmp(name, "lrc__average_ilc_input_sector_success_rate.pct") == 0)
		return (f64)NAN;
	return (f64)(lull_hash(name, strlen(name)) % 10000) / 100.0;
}

int cuptiProfilerHostEvaluateToGpuValues(struct lull_prof_evaluate *p)
{
	const struct counter_data *data = (const struct counter_data *)p->image;

	if (data->magic != MAGIC || p->ix >= data->n_ranges)
		return CUPTI_E_PARAMETER;
	for (size_t i = 0; i < p->n; i++)
		p->values[i] = value_of(data, p->names[i]);
	return CUPTI_OK;
}

static const char *base_metrics[] = { "gpu__time_duration", "smsp__warps_launched", "dram__bytes",
				      "sm__foo", "lrc__average_ilc_input_sector_success_rate" };

int cuptiProfilerHostGetBaseMetrics(struct lull_prof_base_metrics *p)
{
	p->names = base_metrics;
	p->n = p->type == 0 ? LULL_COUNT_OF(base_metrics) : 0;
	return CUPTI_OK;
}

int cuptiProfilerHostGetSubMetrics(struct lull_prof_sub_metrics *p)
{
	p->n = 0;
	return CUPTI_OK;
}

int cuptiProfilerHostGetMetricProperties(struct lull_prof_properties *p)
{
	p->text = "a number of the simulated device";
	p->unit = "sim";
	p->dimension = "";
	p->type = 0;
	return CUPTI_OK;
}

/* ---- target ---- */

int cuptiDeviceGetChipName(struct lull_prof_chip *p)
{
	p->name = CHIP;
	return p->device_ix == 0 ? CUPTI_OK : CUPTI_E_PARAMETER;
}

int cuptiProfilerGetCounterAvailability(struct lull_prof_availability *p)
{
	p->size_bytes = 64;
	if (p->image)
		memset(p->image, 1, p->size_bytes);
	return CUPTI_OK;
}

int cuptiRangeProfilerEnable(struct lull_prof_enable *p)
{
	if (is_refused("denied"))
		return LULL_PROF_E_PRIVILEGES;
	if (is_refused("busy"))
		return LULL_PROF_E_BUSY;
	if (is_refused("mig"))
		return LULL_PROF_E_MIG;
	if (profiler.is_enabled || !p->context)
		return CUPTI_E_PARAMETER;
	profiler.is_enabled = true;
	p->object = &profiler;
	return CUPTI_OK;
}

int cuptiRangeProfilerDisable(struct lull_prof_object *p)
{
	if (p->object != &profiler || !profiler.is_enabled || profiler.is_started)
		return CUPTI_E_PARAMETER;
	profiler.is_enabled = false;
	return CUPTI_OK;
}

int cuptiRangeProfilerGetCounterDataSize(struct lull_prof_data_size *p)
{
	if (!p->n || p->max_nodes < p->max_ranges)
		return CUPTI_E_PARAMETER;
	p->size_bytes = sizeof(struct counter_data);
	return CUPTI_OK;
}

int cuptiRangeProfilerCounterDataImageInitialize(struct lull_prof_data *p)
{
	if (p->object != &profiler || p->size_bytes < sizeof(struct counter_data))
		return CUPTI_E_PARAMETER;
	memset(p->image, 0, p->size_bytes);
	((struct counter_data *)p->image)->magic = MAGIC;
	return CUPTI_OK;
}

int cuptiRangeProfilerSetConfig(struct lull_prof_set *p)
{
	const struct counter_data *data = (const struct counter_data *)p->data;

	if (p->object != &profiler || p->config_bytes != sizeof(struct plan) ||
	    p->data_bytes < sizeof(*data) || data->magic != MAGIC || p->n_levels != 1)
		return CUPTI_E_PARAMETER;
	memcpy(&profiler.plan, p->config, sizeof(profiler.plan));
	profiler.data = (struct counter_data *)p->data;
	profiler.range = p->range;
	profiler.replay = p->replay;
	/* CUPTI runs a kernel again by itself, a range it cannot. */
	if (p->range == LULL_PROF_USER_RANGE && p->replay == LULL_PROF_KERNEL_REPLAY)
		return CUPTI_E_PARAMETER;
	profiler.pass_ix = (u32)p->pass_ix;
	/* Passes come one after the other, or the program was not run for one of them. */
	return p->pass_ix == data->passes_done ? CUPTI_OK : CUPTI_E_PARAMETER;
}

int cuptiRangeProfilerStart(struct lull_prof_object *p)
{
	if (p->object != &profiler || !profiler.data || profiler.is_started)
		return CUPTI_E_PARAMETER;
	profiler.is_started = true;
	return CUPTI_OK;
}

void lull_cupti_profile(const struct sim_work *work)
{
	u64 dur_ns = work->end_ns - work->start_ns;
	u32 threads = work->block[0] * work->block[1] * work->block[2];
	u32 blocks = work->grid[0] * work->grid[1] * work->grid[2];

	if (!profiler.is_started)
		return;
	if (profiler.range == LULL_PROF_USER_RANGE) {
		if (!profiler.is_pushed)
			return;
		profiler.data->n_ranges = 1;
		profiler.data->dur_ns += dur_ns;
		profiler.data->n_warps += blocks * ((threads + 31) / 32);
		profiler.data->n_threads += (u64)blocks * threads;
		return;
	}
	while (is_refused("hang"))
		sleep(1);
	profiler.data->n_ranges++;
	profiler.data->dur_ns = dur_ns;
	profiler.data->n_warps = blocks * ((threads + 31) / 32);
	profiler.data->n_threads = (u64)blocks * threads;
	if (profiler.replay == LULL_PROF_KERNEL_REPLAY)
		usleep((useconds_t)(dur_ns / 1000 * passes_of(&profiler.plan)));
}

int cuptiRangeProfilerStop(struct lull_prof_stop *p)
{
	if (p->object != &profiler || !profiler.is_started || profiler.is_pushed)
		return CUPTI_E_PARAMETER;
	profiler.is_started = false;
	profiler.data->passes_done = profiler.replay == LULL_PROF_KERNEL_REPLAY
					     ? passes_of(&profiler.plan)
					     : profiler.pass_ix + 1;
	p->pass_ix = profiler.data->passes_done;
	p->is_all = profiler.data->passes_done >= passes_of(&profiler.plan);
	return CUPTI_OK;
}

/* Ranges of the user only, one level of them; each pass counts its kernels anew. */
int cuptiRangeProfilerPushRange(struct lull_prof_push *p)
{
	if (p->object != &profiler || !profiler.is_started || profiler.is_pushed || !p->name ||
	    profiler.range != LULL_PROF_USER_RANGE)
		return CUPTI_E_PARAMETER;
	profiler.is_pushed = true;
	profiler.data->n_ranges = 1;
	profiler.data->dur_ns = profiler.data->n_threads = profiler.data->n_warps = 0;
	return CUPTI_OK;
}

int cuptiRangeProfilerPopRange(struct lull_prof_object *p)
{
	if (p->object != &profiler || !profiler.is_pushed)
		return CUPTI_E_PARAMETER;
	profiler.is_pushed = false;
	return CUPTI_OK;
}

int cuptiRangeProfilerDecodeData(struct lull_prof_decode *p)
{
	p->n_dropped = 0;
	return p->object == &profiler && !profiler.is_started ? CUPTI_OK : CUPTI_E_PARAMETER;
}

int cuptiRangeProfilerGetCounterDataInfo(struct lull_prof_data_info *p)
{
	const struct counter_data *data = (const struct counter_data *)p->image;

	p->n_ranges = data->n_ranges ? 1 : 0;
	return data->magic == MAGIC ? CUPTI_OK : CUPTI_E_PARAMETER;
}

bool lull_cupti_profiler_is_on(void)
{
	return profiler.is_enabled;
}
