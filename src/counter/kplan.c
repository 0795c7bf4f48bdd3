#include "counter/kplan.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "wire/cuprof.h"

/* Counters, ratios, throughputs: CUpti_MetricType. */
#define N_METRIC_TYPES 3u

struct lull_kplan {
	void *library;
	const char *chip;
	char *chip_name;
#define PROF_HOST(name, params) int (*name)(struct lull_prof_##params *);
#include "wire/cuprof.def"
#undef PROF_HOST
};

/* CUPTI prints to standard error where libnvperf_host is missing; we say it ourselves. */
static int load(struct lull_kplan *plan, const char *path, struct lull_err *err)
{
	const char *missing = NULL;

	plan->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!plan->library)
		return lull_fail(err, LULL_E_NOT_FOUND, "%s: %s", path, dlerror());
#define PROF_HOST(name, params)                              \
	*(void **)&plan->name = dlsym(plan->library, #name); \
	if (!plan->name)                                     \
		missing = #name;
#include "wire/cuprof.def"
#undef PROF_HOST
	return missing ? lull_fail(err, LULL_E_UNSUPPORTED,
				   "%s has no %s; CUDA 12.6 or later has it", path, missing)
		       : 0;
}

static void *new_host(struct lull_kplan *plan)
{
	struct lull_prof_host host = LULL_PROF_NEW(host);

	host.type = LULL_PROF_RANGE_PROFILER;
	host.chip = plan->chip;
	return plan->cuptiProfilerHostInitialize(&host) == 0 ? host.object : NULL;
}

static void free_host(struct lull_kplan *plan, void *object)
{
	struct lull_prof_host_end end = LULL_PROF_NEW(host_end);

	end.object = object;
	if (object)
		plan->cuptiProfilerHostDeinitialize(&end);
}

static int refuse_chip(struct lull_kplan *plan, const char *chip, struct lull_err *err)
{
	struct lull_prof_chips chips = LULL_PROF_NEW(chips);
	char known[160] = "";
	size_t used = 0;

	if (plan->cuptiProfilerHostGetSupportedChips(&chips) != 0)
		return lull_fail(err, LULL_E_UNSUPPORTED,
				 "CUPTI cannot plan here; is libnvperf_host.so beside it?");
	for (size_t i = 0; i < chips.n && used < sizeof(known); i++)
		used += (size_t)snprintf(known + used, sizeof(known) - used, " %s", chips.names[i]);
	return lull_fail(err, LULL_E_USAGE, "CUPTI knows no chip '%s'; it knows%s", chip, known);
}

/* People write gh100, and CUPTI wants GH100. */
static char *upper_of(const char *chip)
{
	char *name = lull_strdup(chip);

	for (char *p = name; *p; p++)
		*p = *p >= 'a' && *p <= 'z' ? (char)(*p - 'a' + 'A') : *p;
	return name;
}

int lull_kplan_open(struct lull_kplan **to, const char *cupti_path, const char *chip,
		    struct lull_err *err)
{
	struct lull_kplan *plan = lull_alloc(1, sizeof(*plan));
	struct lull_prof_init init = LULL_PROF_NEW(init);
	void *host;
	int rc = load(plan, cupti_path, err);

	*to = NULL;
	if (!rc) {
		plan->chip = plan->chip_name = upper_of(chip);
		/* May fail without a driver; the host half works. */
		plan->cuptiProfilerInitialize(&init);
		host = new_host(plan);
		if (!host)
			rc = refuse_chip(plan, chip, err);
		free_host(plan, host);
	}
	if (rc)
		lull_kplan_close(plan);
	else
		*to = plan;
	return rc;
}

void lull_kplan_close(struct lull_kplan *plan)
{
	if (!plan)
		return;
	free(plan->chip_name);
	free(plan); /* the library stays loaded: it may have started threads */
}

/* All at once: CUPTI does not join what comes one by one. */
static bool add(struct lull_kplan *plan, void *host, const char **names, size_t n)
{
	struct lull_prof_add params = LULL_PROF_NEW(add);

	params.object = host;
	params.names = names;
	params.n = n;
	return plan->cuptiProfilerHostConfigAddMetrics(&params) == 0;
}

static bool is_known(struct lull_kplan *plan, const char *name)
{
	void *host = new_host(plan);
	bool is_added = host && add(plan, host, &name, 1);

	free_host(plan, host);
	return is_added;
}

const char *lull_kplan_name(struct lull_kplan *plan, const struct lull_kmetric_desc *metric)
{
	for (size_t i = 0; i < LULL_KMETRIC_NAMES && metric->names[i]; i++)
		if (is_known(plan, metric->names[i]))
			return metric->names[i];
	return NULL;
}

static u32 count_passes(struct lull_kplan *plan, void *host)
{
	struct lull_prof_config_size size = LULL_PROF_NEW(config_size);
	struct lull_prof_config config = LULL_PROF_NEW(config);
	struct lull_prof_passes passes = LULL_PROF_NEW(passes);

	size.object = config.object = host;
	if (plan->cuptiProfilerHostGetConfigImageSize(&size) != 0 || !size.size_bytes)
		return 0;
	config.size_bytes = passes.size_bytes = size.size_bytes;
	config.image = passes.image = lull_alloc(size.size_bytes, 1);
	if (plan->cuptiProfilerHostGetConfigImage(&config) != 0 ||
	    plan->cuptiProfilerHostGetNumOfPasses(&passes) != 0)
		passes.n = 0;
	free(config.image);
	return (u32)passes.n;
}

/* The names of a set on this chip; what it lacks goes to cost->missing. */
static void choose(struct lull_kplan *plan, const struct lull_kset *set, const char **names,
		   struct lull_kcost *cost)
{
	const struct lull_kmetric_desc **metrics = set->metrics.at;
	const char **others = set->others.at;

	for (size_t i = 0; i < set->metrics.n + set->others.n; i++) {
		bool is_ours = i < set->metrics.n;
		const char *asked = is_ours ? metrics[i]->key : others[i - set->metrics.n];
		const char *name = is_ours		   ? lull_kplan_name(plan, metrics[i])
				   : is_known(plan, asked) ? asked
							   : NULL;

		if (name)
			names[cost->n_metrics++] = name;
		else
			*(const char **)lull_vec_push(&cost->missing) = asked;
	}
}

int lull_kplan_passes(struct lull_kplan *plan, const struct lull_kset *set, struct lull_kcost *cost,
		      struct lull_err *err)
{
	const char **names = lull_alloc(set->metrics.n + set->others.n + 1, sizeof(*names));
	void *host = new_host(plan);

	*cost = (struct lull_kcost){ .n_passes = 0 };
	lull_vec_init(&cost->missing, sizeof(char *));
	choose(plan, set, names, cost);
	if (host && cost->n_metrics && add(plan, host, names, cost->n_metrics))
		cost->n_passes = count_passes(plan, host);
	free_host(plan, host);
	free(names);
	if (cost->n_passes)
		return 0;
	lull_vec_release(&cost->missing);
	return lull_fail(err, LULL_E_UNSUPPORTED, "CUPTI makes no plan for these metrics on %s",
			 plan->chip);
}

static void tell_one(struct lull_kplan *plan, void *host, const char *name,
		     lull_kplan_metric_fn *tell, void *ctx)
{
	struct lull_prof_properties of = LULL_PROF_NEW(properties);

	of.object = host;
	of.metric = name;
	if (plan->cuptiProfilerHostGetMetricProperties(&of) != 0)
		of.dimension = of.text = NULL;
	tell(ctx, name, of.dimension ? of.dimension : "", of.text ? of.text : "");
}

u64 lull_kplan_list(struct lull_kplan *plan, lull_kplan_metric_fn *tell, void *ctx)
{
	void *host = new_host(plan);
	u64 n = 0;

	for (u32 type = 0; host && type < N_METRIC_TYPES; type++) {
		struct lull_prof_base_metrics list = LULL_PROF_NEW(base_metrics);

		list.object = host;
		list.type = type;
		if (plan->cuptiProfilerHostGetBaseMetrics(&list) != 0)
			continue;
		for (size_t i = 0; i < list.n; i++)
			tell_one(plan, host, list.names[i], tell, ctx);
		n += list.n;
	}
	free_host(plan, host);
	return n;
}
