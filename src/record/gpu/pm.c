#include "record/gpu/pm.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/time.h"

#define PROFILER_PM	   1u /* CUPTI_PROFILER_TYPE_PM_SAMPLING */
#define TRIGGER_TIME	   1u /* CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL */
#define KEEP_LATEST	   1u
#define STOP_DATA_FULL	   1u /* CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL */
#define ERROR_PRIVILEGES   35
#define ERROR_BUSY	   26
#define BUFFER_BYTES	   ((size_t)64 << 20) /* half a second at 10 kHz, and more than Kineto's */
#define SAMPLES_PER_DECODE 2048u

struct lull_pm_api {
	void *library;
#define PM_CALL(name, params) int (*name)(struct lull_pm_##params *);
#include "record/gpu/pm.def"
#undef PM_CALL
};

/* A structure with the size that CUPTI wants to hear; see also the last fields in pm.def. */
#define NEW(name) ((struct lull_pm_##name){ .struct_bytes = sizeof(struct lull_pm_##name) })

/* CUPTI with all that we need of it; NULL, with the reason, if it cannot be had. */
static struct lull_pm_api *load(const char *path, struct lull_err *err)
{
	struct lull_pm_api *api = lull_alloc(1, sizeof(*api));
	const char *missing = NULL;

	api->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!api->library) {
		lull_fail(err, LULL_E_NOT_FOUND, "%s: %s", path, dlerror());
		free(api);
		return NULL;
	}
#define PM_CALL(name, params)                              \
	*(void **)&api->name = dlsym(api->library, #name); \
	if (!api->name)                                    \
		missing = #name;
#include "record/gpu/pm.def"
#undef PM_CALL
	if (!missing)
		return api;
	lull_fail(err, LULL_E_UNSUPPORTED, "%s has no %s; CUDA 12.6 or later has it", path,
		  missing);
	free(api);
	return NULL;
}

/* A new host object for the chip; NULL if CUPTI does not know it. */
static void *new_host(struct lull_pm_api *api, const char *chip, const u8 *availability)
{
	struct lull_pm_host host = NEW(host);

	host.type = PROFILER_PM;
	host.chip = chip;
	host.availability = availability;
	return api->cuptiProfilerHostInitialize(&host) == 0 ? host.object : NULL;
}

static void free_host(struct lull_pm_api *api, void *object)
{
	struct lull_pm_host_end end = NEW(host_end);

	end.object = object;
	if (object)
		api->cuptiProfilerHostDeinitialize(&end);
}

static bool add_metrics(struct lull_pm_api *api, void *object, const char **names, u32 n)
{
	struct lull_pm_add add = NEW(add);

	add.object = object;
	add.names = names;
	add.n = n;
	return api->cuptiProfilerHostConfigAddMetrics(&add) == 0;
}

/* The config image of what was added; NULL if there is none. */
static u8 *make_config(struct lull_pm_api *api, void *object, size_t *size_bytes)
{
	struct lull_pm_config_size size = NEW(config_size);
	struct lull_pm_config config = NEW(config);

	size.object = object;
	if (api->cuptiProfilerHostGetConfigImageSize(&size) != 0 || !size.size_bytes)
		return NULL;
	config.object = object;
	config.size_bytes = *size_bytes = size.size_bytes;
	config.image = lull_alloc(size.size_bytes, 1);
	if (api->cuptiProfilerHostGetConfigImage(&config) == 0)
		return config.image;
	free(config.image);
	return NULL;
}

static bool is_one_pass(struct lull_pm_api *api, u8 *config, size_t size_bytes)
{
	struct lull_pm_passes passes = NEW(passes);

	passes.size_bytes = size_bytes;
	passes.image = config;
	return api->cuptiProfilerHostGetNumOfPasses(&passes) == 0 && passes.n == 1;
}

/* One kind of chip, as CUPTI is asked about it. */
struct target {
	const char *chip;
	const u8 *availability;
};

/* A host object with these metrics if they take one pass; the plan owns it then. */
static bool try_metrics(struct lull_pm_plan *plan, const struct target *target, u32 n)
{
	void *host = new_host(plan->api, target->chip, target->availability);
	size_t size_bytes = 0;
	u8 *config = NULL;

	if (host && add_metrics(plan->api, host, plan->names, n))
		config = make_config(plan->api, host, &size_bytes);
	if (!config || !is_one_pass(plan->api, config, size_bytes)) {
		free(config);
		free_host(plan->api, host);
		return false;
	}
	free(plan->config);
	free_host(plan->api, plan->host);
	plan->host = host;
	plan->config = config;
	plan->config_bytes = size_bytes;
	plan->n = n;
	return true;
}

/* Take each metric, by the first of its names that is known and still fits into the pass. */
static void choose_metrics(struct lull_pm_plan *plan, const struct target *target)
{
	static const struct {
		enum lull_metric_kind metric;
		const char *names[2];
	} wanted[] = {
#define PM_METRIC(metric, ...) { LULL_METRIC_pm_##metric, { __VA_ARGS__ } },
#include "record/gpu/pm.def"
#undef PM_METRIC
	};

	for (size_t i = 0; i < LULL_COUNT_OF(wanted); i++) {
		for (size_t k = 0; k < LULL_COUNT_OF(wanted[i].names); k++) {
			plan->names[plan->n] = wanted[i].names[k];
			plan->metrics[plan->n] = wanted[i].metric;
			if (try_metrics(plan, target, plan->n + 1))
				break;
		}
	}
}

static int make_plan(struct lull_pm_plan *plan, const struct target *target, struct lull_err *err)
{
	choose_metrics(plan, target);
	if (plan->n)
		return 0;
	return lull_fail(err, LULL_E_UNSUPPORTED, "CUPTI has no counters to sample on %s",
			 target->chip);
}

int lull_pm_plan_chip(struct lull_pm_plan *plan, const char *cupti_path, const char *chip,
		      struct lull_err *err)
{
	struct lull_pm_init init = NEW(init);
	struct target target = { chip, NULL };
	int rc;

	*plan = (struct lull_pm_plan){ 0 };
	plan->api = load(cupti_path, err);
	if (!plan->api)
		return err->code;
	plan->api->cuptiProfilerInitialize(
		&init); /* may fail without a driver; the host half works */
	rc = make_plan(plan, &target, err);
	if (rc)
		lull_pm_plan_release(plan);
	return rc;
}

void lull_pm_plan_release(struct lull_pm_plan *plan)
{
	if (plan->api)
		free_host(plan->api, plan->host);
	free(plan->config);
	free(plan->api); /* the library stays: it may have left threads behind */
	*plan = (struct lull_pm_plan){ 0 };
}

struct lull_pm {
	struct lull_pm_plan plan;
	void *object;
	u8 *availability;
	u8 *data;
	size_t data_bytes;
	bool is_started;
	i64 offset_ns; /* CLOCK_MONOTONIC minus the device's time */
	bool has_offset;
};

/* A step of the way was refused. */
static int refuse(struct lull_err *err, const char *what, int code)
{
	const char *why = code == ERROR_PRIVILEGES
				  ? ": only the administrator may read counters here"
			  : code == ERROR_BUSY ? ": another tool samples this device"
					       : "";

	return lull_fail(err, LULL_E_UNSUPPORTED, "%s failed with CUPTI error %d%s", what, code,
			 why);
}

/* The device's kind and what can be counted on it now. */
static int ask_device(struct lull_pm *pm, u32 device_ix, struct target *target,
		      struct lull_err *err)
{
	struct lull_pm_api *api = pm->plan.api;
	struct lull_pm_availability availability = NEW(availability);
	struct lull_pm_init init = NEW(init);
	struct lull_pm_chip chip = NEW(chip);
	int rc = api->cuptiProfilerInitialize(&init);

	if (rc)
		return refuse(err, "cuptiProfilerInitialize", rc);
	chip.device_ix = device_ix;
	rc = api->cuptiDeviceGetChipName(&chip);
	if (rc)
		return refuse(err, "cuptiDeviceGetChipName", rc);
	availability.device_ix = device_ix;
	rc = api->cuptiPmSamplingGetCounterAvailability(&availability);
	if (rc)
		return refuse(err, "cuptiPmSamplingGetCounterAvailability", rc);
	availability.image = pm->availability = lull_alloc(availability.size_bytes, 1);
	rc = api->cuptiPmSamplingGetCounterAvailability(&availability);
	if (rc)
		return refuse(err, "cuptiPmSamplingGetCounterAvailability", rc);
	*target = (struct target){ chip.name, pm->availability };
	return 0;
}

static int reset_data(struct lull_pm *pm)
{
	struct lull_pm_data data = NEW(data);

	data.object = pm->object;
	data.size_bytes = pm->data_bytes;
	data.image = pm->data;
	return pm->plan.api->cuptiPmSamplingCounterDataImageInitialize(&data);
}

static int configure(struct lull_pm *pm, u64 interval_ns, struct lull_err *err)
{
	struct lull_pm_api *api = pm->plan.api;
	struct lull_pm_set set = NEW(set);
	struct lull_pm_data_size size = NEW(data_size);
	struct lull_pm_object object = NEW(object);
	int rc;

	set.object = size.object = object.object = pm->object;
	set.config_bytes = pm->plan.config_bytes;
	set.config = pm->plan.config;
	set.buffer_bytes = BUFFER_BYTES;
	set.interval_ns = interval_ns;
	set.trigger = TRIGGER_TIME;
	set.append_mode = KEEP_LATEST;
	rc = api->cuptiPmSamplingSetConfig(&set);
	if (rc)
		return refuse(err, "cuptiPmSamplingSetConfig", rc);
	size.names = pm->plan.names;
	size.n = pm->plan.n;
	size.n_samples = SAMPLES_PER_DECODE;
	rc = api->cuptiPmSamplingGetCounterDataSize(&size);
	if (rc)
		return refuse(err, "cuptiPmSamplingGetCounterDataSize", rc);
	pm->data_bytes = size.size_bytes;
	pm->data = lull_alloc(size.size_bytes, 1);
	rc = reset_data(pm);
	if (rc)
		return refuse(err, "cuptiPmSamplingCounterDataImageInitialize", rc);
	rc = api->cuptiPmSamplingStart(&object);
	if (rc)
		return refuse(err, "cuptiPmSamplingStart", rc);
	pm->is_started = true;
	return 0;
}

/* CUDA's driver has to be up; its devices are numbered as NVML's (see gpu_sampler.c). */
static int start_cuda(struct lull_err *err)
{
	void *cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	int (*init)(u32 flags);
	int rc;

	if (!cuda)
		return lull_fail(err, LULL_E_NOT_FOUND, "no libcuda.so.1");
	*(void **)&init = dlsym(cuda, "cuInit");
	rc = init ? init(0) : -1;
	return rc ? lull_fail(err, LULL_E_UNSUPPORTED, "cuInit failed with error %d", rc) : 0;
}

static int begin(struct lull_pm *pm, u32 device_ix, u64 interval_ns, struct lull_err *err)
{
	struct lull_pm_enable enable = NEW(enable);
	struct target target = { NULL, NULL };
	int rc;

	if (ask_device(pm, device_ix, &target, err) || make_plan(&pm->plan, &target, err))
		return err->code;
	enable.device_ix = device_ix;
	rc = pm->plan.api->cuptiPmSamplingEnable(&enable);
	if (rc)
		return refuse(err, "cuptiPmSamplingEnable", rc);
	pm->object = enable.object;
	return configure(pm, interval_ns, err);
}

int lull_pm_open(struct lull_pm **to, const char *cupti_path, u32 device_ix, u64 interval_ns,
		 struct lull_err *err)
{
	struct lull_pm *pm;
	int rc = start_cuda(err);

	*to = NULL;
	if (rc)
		return rc;
	pm = lull_alloc(1, sizeof(*pm));
	pm->plan.api = load(cupti_path, err);
	rc = pm->plan.api ? begin(pm, device_ix, interval_ns, err) : err->code;
	if (rc) {
		lull_pm_close(pm);
		return rc;
	}
	*to = pm;
	return 0;
}

/*
 * The device's time is that of CUPTI's clock; where that is cannot be told from here, so it is
 * found: the newest sample ended before it was read, and the least such distance seen so far is the
 * best guess. It errs by the shortest time that a sample took to arrive.
 */
static u64 to_monotonic(struct lull_pm *pm, u64 device_ns)
{
	i64 offset_ns = (i64)lull_now_ns() - (i64)device_ns;

	if (!pm->has_offset || offset_ns < pm->offset_ns)
		pm->offset_ns = offset_ns;
	pm->has_offset = true;
	return (u64)((i64)device_ns + pm->offset_ns);
}

static void hand_over(struct lull_pm *pm, size_t n, lull_pm_sample_fn *tell, void *ctx)
{
	struct lull_pm_api *api = pm->plan.api;
	struct lull_pm_sample sample = NEW(sample);
	struct lull_pm_evaluate evaluate = NEW(evaluate);
	f64 values[LULL_PM_MAX_METRICS];

	sample.object = pm->object;
	sample.image = evaluate.image = pm->data;
	sample.size_bytes = evaluate.size_bytes = pm->data_bytes;
	evaluate.object = pm->plan.host;
	evaluate.names = pm->plan.names;
	evaluate.n = pm->plan.n;
	evaluate.values = values;
	/* The newest first: it sets the clock. */
	for (size_t i = n; i-- > 0;) {
		sample.ix = evaluate.ix = i;
		if (api->cuptiPmSamplingCounterDataGetSampleInfo(&sample) == 0 &&
		    api->cuptiProfilerHostEvaluateToGpuValues(&evaluate) == 0)
			tell(ctx, to_monotonic(pm, sample.end), &pm->plan, values);
	}
}

u64 lull_pm_drain(struct lull_pm *pm, lull_pm_sample_fn *tell, void *ctx)
{
	u64 n_overflows = 0;
	bool is_more = true;

	while (is_more) {
		struct lull_pm_decode decode = NEW(decode);
		struct lull_pm_data_info info = NEW(data_info);

		/* CUPTI counts up to the last field, without what pads it. */
		decode.struct_bytes = offsetof(struct lull_pm_decode, has_overflow) + 1;
		decode.object = pm->object;
		decode.image = pm->data;
		decode.size_bytes = pm->data_bytes;
		if (pm->plan.api->cuptiPmSamplingDecodeData(&decode) != 0)
			break;
		n_overflows += decode.has_overflow;
		is_more = decode.stop_reason == STOP_DATA_FULL;
		info.image = pm->data;
		info.size_bytes = pm->data_bytes;
		if (pm->plan.api->cuptiPmSamplingGetCounterDataInfo(&info) != 0)
			break;
		hand_over(pm, info.n_completed, tell, ctx);
		if (reset_data(pm) != 0)
			break;
	}
	return n_overflows;
}

void lull_pm_close(struct lull_pm *pm)
{
	struct lull_pm_object object = NEW(object);

	if (!pm)
		return;
	object.object = pm->object;
	if (pm->plan.api && pm->is_started)
		pm->plan.api->cuptiPmSamplingStop(&object);
	if (pm->plan.api && pm->object)
		pm->plan.api->cuptiPmSamplingDisable(&object);
	lull_pm_plan_release(&pm->plan);
	free(pm->availability);
	free(pm->data);
	free(pm);
}
