#include "agent/counters/kprof.h"

#include <string.h>

#include "agent/cuda/cupti.h"
#include "agent/core/sys.h"

/* One name can be asked for with two more to try. */
#define N_NAMES 4u

static struct {
	bool has_tried, is_there;
#define PROF_HOST(name, params)	  int (*name)(struct lull_prof_##params *);
#define PROF_TARGET(name, params) int (*name)(struct lull_prof_##params *);
#include "wire/cuprof.def"
#undef PROF_HOST
#undef PROF_TARGET
} api;

static bool load(void)
{
	if (api.has_tried)
		return api.is_there;
	api.has_tried = api.is_there = true;
#define PROF_HOST(name, params)                       \
	*(void **)&api.name = lull_cupti_find(#name); \
	api.is_there = api.is_there && api.name;
#define PROF_TARGET(name, params) PROF_HOST(name, params)
#include "wire/cuprof.def"
#undef PROF_HOST
#undef PROF_TARGET
	return api.is_there;
}

static void *map(size_t size_bytes)
{
	return lull_sys_map(size_bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

static bool ask_device(struct lull_kprof *p)
{
	struct lull_prof_init init = LULL_PROF_NEW(init);
	struct lull_prof_chip chip = LULL_PROF_NEW(chip);
	struct lull_prof_availability ask = LULL_PROF_NEW(availability);

	LULL_TRY(cuptiProfilerInitialize, &init);
	chip.device_ix = p->device_ix;
	LULL_TRY(cuptiDeviceGetChipName, &chip);
	strncpy(p->chip, chip.name, sizeof(p->chip) - 1);
	ask.context = p->context;
	LULL_TRY(cuptiProfilerGetCounterAvailability, &ask);
	ask.image = p->availability = map(ask.size_bytes);
	if (!ask.image)
		return lull_refuse(&p->refused, "mmap", LULL_PROF_E_OUT_OF_MEMORY);
	LULL_TRY(cuptiProfilerGetCounterAvailability, &ask);
	return true;
}

static void *new_host(struct lull_kprof *p)
{
	struct lull_prof_host host = LULL_PROF_NEW(host);

	host.type = LULL_PROF_RANGE_PROFILER;
	host.chip = p->chip;
	host.availability = p->availability;
	p->refused.error = api.cuptiProfilerHostInitialize(&host);
	return p->refused.error ? NULL : host.object;
}

static void free_host(void *object)
{
	struct lull_prof_host_end end = LULL_PROF_NEW(host_end);

	end.object = object;
	if (object)
		api.cuptiProfilerHostDeinitialize(&end);
}

/* CUPTI plans well only what it gets in one call; a refused name spoils the object. */
static bool add(void *host, const char **names, size_t n)
{
	struct lull_prof_add params = LULL_PROF_NEW(add);

	params.object = host;
	params.names = names;
	params.n = n;
	return api.cuptiProfilerHostConfigAddMetrics(&params) == 0;
}

static bool is_known(struct lull_kprof *p, const char *name)
{
	void *host = new_host(p);
	bool is_added = host && add(host, &name, 1);

	free_host(host);
	return is_added;
}

/* Cut the next line into its words; false at the end of the text. */
static bool next_wish(char **text, const char *words[N_NAMES + 2])
{
	char *at = *text;
	size_t n = 0;

	for (size_t i = 0; i < N_NAMES + 2; i++)
		words[i] = NULL;
	if (!*at)
		return false;
	while (*at && *at != '\n') {
		if (n <= N_NAMES)
			words[n++] = at;
		at += strcspn(at, "\t\n");
		if (*at == '\t')
			*at++ = '\0';
	}
	if (*at)
		*at++ = '\0';
	*text = at;
	return true;
}

/*
 * The first name of each, which is right on most chips; where that is refused as a whole, each is
 * tried by itself. `is_careful` says which.
 */
static void choose(struct lull_kprof *p, char *wish, bool is_careful)
{
	const char *words[N_NAMES + 2];

	p->n = p->n_left_out = 0;
	while (p->n < LULL_KPROF_MAX_METRICS && next_wish(&wish, words)) {
		size_t i = 1;

		while (is_careful && words[i] && !is_known(p, words[i]))
			i++;
		if (!words[i]) {
			p->n_left_out++;
			continue;
		}
		p->keys[p->n] = words[0];
		p->names[p->n++] = words[i];
	}
}

static bool make_host(struct lull_kprof *p)
{
	p->host = new_host(p);
	if (!p->host)
		return lull_refuse(&p->refused, "cuptiProfilerHostInitialize", p->refused.error);
	if (p->n && add(p->host, p->names, p->n))
		return true;
	free_host(p->host);
	p->host = NULL;
	return false;
}

static bool make_plan(struct lull_kprof *p, char *wish)
{
	struct lull_prof_config_size size = LULL_PROF_NEW(config_size);
	struct lull_prof_config config = LULL_PROF_NEW(config);
	struct lull_prof_passes passes = LULL_PROF_NEW(passes);
	size_t wish_bytes = strlen(wish) + 1;
	char *copy = map(wish_bytes);

	if (!copy)
		return lull_refuse(&p->refused, "mmap", LULL_PROF_E_OUT_OF_MEMORY);
	memcpy(copy, wish, wish_bytes);
	choose(p, copy, false);
	if (!make_host(p)) {
		memcpy(copy, wish, wish_bytes);
		choose(p, copy, true);
		if (!make_host(p))
			return lull_refuse(&p->refused, "cuptiProfilerHostConfigAddMetrics",
					   p->refused.error);
	}
	size.object = config.object = p->host;
	LULL_TRY(cuptiProfilerHostGetConfigImageSize, &size);
	config.size_bytes = passes.size_bytes = p->config_bytes = size.size_bytes;
	config.image = passes.image = p->config = map(size.size_bytes);
	if (!p->config)
		return lull_refuse(&p->refused, "mmap", LULL_PROF_E_OUT_OF_MEMORY);
	LULL_TRY(cuptiProfilerHostGetConfigImage, &config);
	LULL_TRY(cuptiProfilerHostGetNumOfPasses, &passes);
	p->n_passes = (u32)passes.n;
	return true;
}

static bool enable(struct lull_kprof *p)
{
	struct lull_prof_enable params = LULL_PROF_NEW(enable);
	struct lull_prof_data_size size = LULL_PROF_NEW(data_size);

	params.context = p->context;
	LULL_TRY(cuptiRangeProfilerEnable, &params);
	p->object = params.object;
	p->is_enabled = true;
	if (p->data)
		return true;
	size.object = p->object;
	size.names = p->names;
	size.n = p->n;
	size.max_ranges = 1;
	size.max_nodes = 1;
	LULL_TRY(cuptiRangeProfilerGetCounterDataSize, &size);
	p->data_bytes = size.size_bytes;
	p->data = map(size.size_bytes);
	return p->data || lull_refuse(&p->refused, "mmap", LULL_PROF_E_OUT_OF_MEMORY);
}

struct lull_kprof *lull_kprof_open(void *context, u32 device_ix, char *wish)
{
	struct lull_kprof *p = map(sizeof(*p));

	if (!p)
		return NULL;
	p->context = context;
	p->device_ix = device_ix;
	if (!load())
		lull_refuse(&p->refused, "CUPTI before 12.6", -1);
	else if (ask_device(p) && make_plan(p, wish))
		enable(p);
	return p;
}

/* What earlier runs of the program have measured of this launch. */
static bool load_data(struct lull_kprof *p)
{
	int fd = lull_sys_open(p->data_path, O_RDONLY, 0);
	size_t n = 0;
	long got = 1;

	if (fd < 0)
		return lull_refuse(&p->refused, "reading what the run before has measured", 0);
	while (n < p->data_bytes && got > 0) {
		got = lull_sys_read(fd, p->data + n, p->data_bytes - n);
		n += got > 0 ? (size_t)got : 0;
	}
	got = lull_sys_read(fd, &p->before, sizeof(p->before));
	lull_sys_close(fd);
	return (n == p->data_bytes && got == (long)sizeof(p->before)) ||
	       lull_refuse(&p->refused, "reading what the run before has measured", 0);
}

static bool save_data(struct lull_kprof *p)
{
	int fd = lull_sys_open(p->data_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	size_t n = 0;
	long put = 1;

	if (fd < 0)
		return lull_refuse(&p->refused, "keeping what this run has measured", 0);
	while (n < p->data_bytes && put > 0) {
		put = syscall(SYS_write, fd, p->data + n, p->data_bytes - n);
		n += put > 0 ? (size_t)put : 0;
	}
	if (put > 0)
		put = syscall(SYS_write, fd, &p->before, sizeof(p->before));
	lull_sys_close(fd);
	return (n == p->data_bytes && put > 0) ||
	       lull_refuse(&p->refused, "keeping what this run has measured", 0);
}

bool lull_kprof_start(struct lull_kprof *p)
{
	struct lull_prof_data data = LULL_PROF_NEW(data);
	struct lull_prof_set set = LULL_PROF_NEW(set);
	struct lull_prof_object start = LULL_PROF_NEW(object);
	struct lull_prof_push push = LULL_PROF_NEW(push);

	if (!p->is_enabled && !enable(p))
		return false;
	data.object = set.object = start.object = push.object = p->object;
	data.size_bytes = set.data_bytes = p->data_bytes;
	data.image = set.data = p->data;
	p->needs_more = false;
	p->before = (struct lull_kprof_runs){ 0, UINT32_MAX };
	if (!p->pass_ix)
		LULL_TRY(cuptiRangeProfilerCounterDataImageInitialize, &data);
	else if (!load_data(p))
		return false;
	set.config_bytes = p->config_bytes;
	set.config = p->config;
	set.range = p->range ? LULL_PROF_USER_RANGE : LULL_PROF_AUTO_RANGE;
	set.replay = *p->data_path ? LULL_PROF_APPLICATION_REPLAY : LULL_PROF_KERNEL_REPLAY;
	set.pass_ix = p->pass_ix;
	set.max_ranges = 1;
	set.n_levels = set.min_level = set.target_level = 1;
	LULL_TRY(cuptiRangeProfilerSetConfig, &set);
	LULL_TRY(cuptiRangeProfilerStart, &start);
	push.name = p->range;
	if (p->range)
		LULL_TRY(cuptiRangeProfilerPushRange, &push);
	return true;
}

/* How many launches the range had in this and in the runs before. */
static void count_runs(struct lull_kprof *p)
{
	struct lull_kprof_runs *r = &p->before;

	r->most = p->n_launches > r->most ? p->n_launches : r->most;
	r->least = p->n_launches < r->least ? p->n_launches : r->least;
	p->n_launches = r->most;
	p->n_launches_least = r->least;
}

bool lull_kprof_stop(struct lull_kprof *p)
{
	struct lull_prof_stop stop = LULL_PROF_NEW(stop);
	struct lull_prof_decode decode = LULL_PROF_NEW(decode);
	struct lull_prof_data_info info = LULL_PROF_NEW(data_info);
	struct lull_prof_evaluate evaluate = LULL_PROF_NEW(evaluate);
	struct lull_prof_object pop = LULL_PROF_NEW(object);

	stop.object = decode.object = pop.object = p->object;
	count_runs(p);
	if (p->range)
		LULL_TRY(cuptiRangeProfilerPopRange, &pop);
	LULL_TRY(cuptiRangeProfilerStop, &stop);
	LULL_TRY(cuptiRangeProfilerDecodeData, &decode);
	if (*p->data_path && p->pass_ix + 1 < p->n_passes) {
		p->needs_more = true;
		return save_data(p);
	}
	info.image = evaluate.image = p->data;
	info.size_bytes = evaluate.size_bytes = p->data_bytes;
	LULL_TRY(cuptiRangeProfilerGetCounterDataInfo, &info);
	if (!info.n_ranges)
		return lull_refuse(&p->refused, "no kernel ran", 0);
	evaluate.object = p->host;
	evaluate.names = p->names;
	evaluate.n = p->n;
	evaluate.values = p->values;
	LULL_TRY(cuptiProfilerHostEvaluateToGpuValues, &evaluate);
	return true;
}

void lull_kprof_pause(struct lull_kprof *p)
{
	struct lull_prof_object params = LULL_PROF_NEW(object);

	params.object = p->object;
	if (p->is_enabled)
		api.cuptiRangeProfilerDisable(&params);
	p->is_enabled = false;
	p->object = NULL;
}
