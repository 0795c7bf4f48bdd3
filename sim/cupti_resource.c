/*
 * cupti_resource - contexts, streams and modules as objects: callbacks about them, their numbers;
 * and which counters of unified memory are wanted.
 */
#include "cupti_int.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#define DOMAIN_RESOURCE 3u
#define N_CBIDS		32u
#define N_COUNTERS	9u

enum { CONTEXT_CREATED = 1, MODULE_LOADED = 6, MODULE_UNLOADING = 7 };

/* CUPTI's data of such a callback. */
struct resource_data {
	const void *context;
	const void *stream;
	const void *descriptor;
};
struct module_data {
	u32 module_id;
	size_t cubin_bytes;
	const char *cubin;
};
_Static_assert(sizeof(struct resource_data) == 24, "as CUPTI lays it out");
_Static_assert(offsetof(struct module_data, cubin_bytes) == 8, "as CUPTI lays it out");

static _Atomic bool is_enabled[N_CBIDS];
static _Atomic bool is_counted[N_COUNTERS];

void lull_cupti_resource_enable(u32 cbid, bool is_on)
{
	if (cbid < N_CBIDS)
		is_enabled[cbid] = is_on;
}

static void tell(u32 cbid, const void *context, const void *descriptor)
{
	struct resource_data data = { context, NULL, descriptor };

	if (is_enabled[cbid])
		lull_cupti_call_subscriber(DOMAIN_RESOURCE, cbid, &data);
}

void lull_cupti_resource_context(const struct sim_object *object)
{
	tell(CONTEXT_CREATED, object->handle, NULL);
}

void lull_cupti_resource_module(const struct sim_event *event)
{
	struct module_data module = { event->module_id, event->size_bytes, "" };

	if (event->kind == SIM_LOADED)
		tell(MODULE_LOADED, event->context, &module);
	if (event->kind == SIM_UNLOADED)
		tell(MODULE_UNLOADING, event->context, &module);
}

static _Atomic bool has_refused;

bool lull_cupti_has_refused_um(void)
{
	return has_refused;
}

bool lull_cupti_wants_counter(u32 counter_kind)
{
	return counter_kind < N_COUNTERS && is_counted[counter_kind];
}

/* The object that is looked for, and what was found. */
static _Thread_local struct {
	const void *handle;
	struct sim_object object;
} search;

static void compare(const struct sim_object *object)
{
	if (object->handle == search.handle)
		search.object = *object;
}

static bool find(const void *handle)
{
	sim_replay_fn *replay;

	*(void **)&replay = lull_cupti_find_in_driver("lull_sim_replay");
	search.handle = handle;
	search.object = (struct sim_object){ 0 };
	if (replay)
		replay(compare);
	return search.object.context_id != 0;
}

/* Each does what CUPTI's manual says of the function of this name. */
SIM_EXPORT int cuptiGetContextId(void *context, u32 *id);
SIM_EXPORT int cuptiGetStreamIdEx(void *context, void *stream, u8 is_per_thread, u32 *id);
SIM_EXPORT int cuptiActivityConfigureUnifiedMemoryCounter(const u32 (*configs)[4], u32 n);

int cuptiGetContextId(void *context, u32 *id)
{
	if (!id || !find(context))
		return CUPTI_E_PARAMETER;
	*id = search.object.context_id;
	return CUPTI_OK;
}

int cuptiGetStreamIdEx(void *context, void *stream, u8 is_per_thread, u32 *id)
{
	(void)context;
	(void)is_per_thread;
	if (!id || !find(stream))
		return CUPTI_E_PARAMETER;
	*id = search.object.stream_id;
	return CUPTI_OK;
}

/* There is one device, number 0. */
int cuptiActivityConfigureUnifiedMemoryCounter(const u32 (*configs)[4], u32 n)
{
	enum { SCOPE, KIND, DEVICE, ENABLE };

	if (lull_cupti_is_missing(__func__)) {
		has_refused = true;
		return CUPTI_E_UNSUPPORTED;
	}
	for (u32 i = 0; i < n; i++) {
		if (configs[i][DEVICE] != 0 || configs[i][KIND] >= N_COUNTERS)
			return CUPTI_E_PARAMETER;
		is_counted[configs[i][KIND]] = configs[i][ENABLE] != 0;
	}
	return CUPTI_OK;
}
